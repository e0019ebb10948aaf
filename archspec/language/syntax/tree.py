"""The syntax tree of an `.arch` file.

`store.py` converts nodes to and from plain data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeAlias, TypeVar, cast

from archspec.core.record import Node, from_values, is_tuple

N = TypeVar("N")


class Located(Protocol):
    """A part of a file: characters `start` to `end` (exclusive)."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


class SyntaxNode(Node):
    """A node of the tree; its first fields are the location in the file."""

    start: int
    end: int


# Expressions ----------------------------------------------------------------------------------------------------------


class Literal(SyntaxNode):
    """`12`, `1e-12`, `true`, `none`, `inf`, `"text"`."""

    value: int | float | bool | str | None


class Name(SyntaxNode):
    """A name in an expression: a hyperparameter, input, value, dimension, definition or operation, or `_`."""

    text: str


class ListLiteral(SyntaxNode):
    """`[a, ..., b]`: a list, or a shape. A `...` item is a LeadingDimensions node."""

    items: tuple[Expr, ...]


class LeadingDimensions(SyntaxNode):
    """`...` in a shape: the leading axes."""


class Unary(SyntaxNode):
    """`-x`, `not x`. `operator` is "-" or "not"."""

    operator: str
    operand: Expr


class Binary(SyntaxNode):
    """`x + y` and the like. `operator` is one of + - * / // % ** == != < <= > >= and or."""

    operator: str
    left: Expr
    right: Expr


class Conditional(SyntaxNode):
    """`value if condition else otherwise`; `otherwise` is None without an `else` (the value is then `none`)."""

    value: Expr
    condition: Expr
    otherwise: Expr | None


class Subscript(SyntaxNode):
    """`list[position]`."""

    value: Expr
    position: Expr


class Segment(SyntaxNode):
    """One segment of an address: a word or a number (`text`), or `[number]` (`number`; `text` is then empty).

    `names` are the names in braces in a quoted word: `"bucket_{i}"`.
    """

    text: str
    number: Expr | None
    names: tuple[Name, ...]


class Address(SyntaxNode):
    """`encoder.layer[i].query`: the address of a tensor or module, the same as in a checkpoint."""

    segments: tuple[Segment, ...]


class AddressReference(SyntaxNode):
    """`.address`: a tensor or module that this definition declares."""

    address: Address


class Argument(SyntaxNode):
    """`value`, `name = value`, or `..` (`value` is None and `name` is "..": forward arguments of the same names)."""

    name: str
    value: Expr | None


class Arguments(SyntaxNode):
    """One parenthesised list of arguments."""

    items: tuple[Argument, ...]


class Call(SyntaxNode):
    """`f(x)`, `f(hyper)(x)`, `.shared(x)`: one or two lists of arguments."""

    callee: Expr
    lists: tuple[Arguments, ...]


class ModuleDeclaration(SyntaxNode):
    """`address: frozen Callee(hyper)(x)`: a declaration, applied if it has inputs or is a step of a chain.

    `modifiers` are "frozen" and "unused", in source order; `lists` holds at most two lists of arguments.
    """

    address: Address
    modifiers: tuple[str, ...]
    callee: Expr
    lists: tuple[Arguments, ...]


class Step(SyntaxNode):
    """One `|> ...` of a chain.

    `operator` is "" for an application, else one of + - * / with `value` as the operand. If `condition` is false, the
    step is skipped, or replaced by `otherwise`. `loop` repeats the step.
    """

    operator: str
    value: Expr
    condition: Expr | None
    otherwise: Expr | None
    loop: Loop | None


class Chain(SyntaxNode):
    """`head |> step |> step`."""

    head: Expr
    steps: tuple[Step, ...]


class Loop(SyntaxNode):
    """`for variable in first..last` (last is exclusive)."""

    variable: str
    first: Expr
    last: Expr


Expr: TypeAlias = (
    Literal
    | Name
    | ListLiteral
    | LeadingDimensions
    | Unary
    | Binary
    | Conditional
    | Subscript
    | AddressReference
    | Call
    | ModuleDeclaration
    | Chain
)

# Statements -----------------------------------------------------------------------------------------------------------


class Assign(SyntaxNode):
    """`a, _ = value`."""

    targets: tuple[Name, ...]
    value: Expr


class Declare(SyntaxNode):
    """An expression statement; only `address: Callee(hyper)` is valid, optionally with `if` or a loop."""

    value: Expr
    condition: Expr | None
    loop: Loop | None


class Initializer(SyntaxNode):
    """`~ normal(0.02)`: the initializer of a parameter."""

    name: str
    arguments: tuple[Expr, ...]


class TensorDeclaration(SyntaxNode):
    """`address: frozen param int [n, d] = value` or `~ initial`.

    `kind` is "param", "buffer" or "const"; `type` is "", "int" or "bool".
    """

    address: Address
    modifiers: tuple[str, ...]
    kind: str
    type: str
    shape: ListLiteral
    value: Expr | None
    initial: Initializer | None
    condition: Expr | None
    loop: Loop | None


class Tie(SyntaxNode):
    """`tie alias = counted`."""

    alias: Address
    counted: Address
    condition: Expr | None
    loop: Loop | None


class Require(SyntaxNode):
    """`require condition, "message"`."""

    condition: Expr
    message: str | None


class Role(SyntaxNode):
    """`role attention`, for the entire definition, or `role attention for address, address`."""

    name: str
    addresses: tuple[Address, ...]


class Label(SyntaxNode):
    """`label "text"`, for the entire definition, or `label "text" for address`, a member, input or hyperparameter."""

    text: str
    addresses: tuple[Address, ...]


class Return(SyntaxNode):
    """`return value, value`."""

    values: tuple[Expr, ...]


class If(SyntaxNode):
    """`if condition { } else { }`."""

    condition: Expr
    body: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


class For(SyntaxNode):
    """`for i in 0..n { }`."""

    loop: Loop
    body: tuple[Statement, ...]


Statement: TypeAlias = Assign | Declare | TensorDeclaration | Tie | Require | Role | Label | Return | If | For

# Items ----------------------------------------------------------------------------------------------------------------


class ImportedName(SyntaxNode):
    """`Name` or `Name as Alias` in an import; `alias` is the name defined here."""

    name: str
    alias: str


class Import(SyntaxNode):
    """`import source { names }`; `path` is true for a quoted source. `export` re-exports the names."""

    export: bool
    source: str
    path: bool
    names: tuple[ImportedName, ...]


class DimensionDeclaration(SyntaxNode):
    """`dim batch, seq`."""

    names: tuple[Name, ...]


class SignatureEntry(SyntaxNode):
    """One entry of a signature: a hyperparameter (`shape` is None) or an input.

    For `..Other` (all hyperparameters, or all inputs, of Other), `name` is ".." and `default` is a Name.
    """

    name: str
    type: str
    shape: ListLiteral | None
    default: Expr | None


class Output(SyntaxNode):
    """One output; `name` is "" for an unnamed output; `optional` (`?`) allows `none`."""

    name: str
    type: str
    shape: ListLiteral
    optional: bool


class Definition(SyntaxNode):
    """`block Name(hyperparameters)(inputs) -> outputs { body }`.

    `kind` is "fn", "layer" or "block"; `doc` holds its `##` lines.
    """

    kind: str
    name: Name
    hyperparameters: tuple[SignatureEntry, ...]
    inputs: tuple[SignatureEntry, ...]
    outputs: tuple[Output, ...]
    body: tuple[Statement, ...]
    doc: str


class Expect(SyntaxNode):
    """`expect condition`."""

    condition: Expr


class Model(SyntaxNode):
    """`model "name" = Callee(hyper) { expect ... }`."""

    name: Literal
    callee: Name
    arguments: Arguments | None
    expects: tuple[Expect, ...]
    doc: str


Item: TypeAlias = Import | DimensionDeclaration | Definition | Model


class Comment(SyntaxNode):
    """`# text` or `## text`, including the hash signs."""

    text: str


class UnparsedRange(SyntaxNode):
    """A range that could not be parsed; `names` are the words in it, which are not reported as undefined."""

    names: tuple[str, ...]


class File(SyntaxNode):
    """A file; `comments` are in source order; `broken` is empty for a file without syntax errors."""

    items: tuple[Item, ...]
    comments: tuple[Comment, ...]
    broken: tuple[UnparsedRange, ...]


# Traversal ------------------------------------------------------------------------------------------------------------


# Walks over the syntax


def iter_nodes(part: object) -> Iterator[SyntaxNode]:
    """Yield a node and all nested nodes, in the order of the file."""
    pending = [part] if is_tuple(part) else []
    while pending:
        node = pending.pop()
        if isinstance(node, SyntaxNode):
            yield node
        pending += filter(is_tuple, node[::-1])


def iter_statements(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Yield statements, including those in their branches and loops."""
    for statement in body:
        yield statement
        if isinstance(statement, If):
            yield from iter_statements((*statement.body, *statement.otherwise))
        elif isinstance(statement, For):
            yield from iter_statements(statement.body)


def names_in(expr: Expr) -> Iterator[str]:
    """Yield the text of every name in an expression."""
    return (node.text for node in iter_nodes(expr) if isinstance(node, Name))


def assigned_names(body: tuple[Statement, ...]) -> Iterator[str]:
    """Yield the names that statements assign, including nested statements."""
    for statement in iter_statements(body):
        if isinstance(statement, Assign):
            yield from (target.text for target in statement.targets)


def iter_declarations(body: tuple[Statement, ...]) -> Iterator[ModuleDeclaration | TensorDeclaration]:
    """Yield the declarations of statements at any depth."""
    for statement in iter_statements(body):
        match statement:
            case TensorDeclaration():
                yield statement
            case Assign() | Declare():
                yield from (node for node in iter_nodes(statement.value) if isinstance(node, ModuleDeclaration))
            case Return():
                yield from (node for node in iter_nodes(statement.values) if isinstance(node, ModuleDeclaration))
            case _:
                pass


def relocate(part: N, location: Located) -> N:
    """Return a copy of a node or tuple of nodes in which every node has the span of `location`."""
    if not is_tuple(part):
        return part
    items = [relocate(item, location) for item in part]
    if not isinstance(part, SyntaxNode):
        return cast("N", tuple(items))
    return from_values(type(part), (location.start, location.end, *items[2:]))
