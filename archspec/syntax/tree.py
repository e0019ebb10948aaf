"""The syntax tree of an `.arch` file.

The first fields of every node are `start` and `end`, character offsets in the file (end exclusive). Nodes are named
tuples: cheap to create, and simple to convert to plain data (`store.py`).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

# Expressions ----------------------------------------------------------------------------------------------------------


class Literal(NamedTuple):
    """`12`, `1e-12`, `true`, `none`, `inf`, `"text"`."""

    start: int
    end: int
    value: int | float | bool | str | None


class Name(NamedTuple):
    """A name in an expression: a hyperparameter, input, value, dimension, definition or operation, or `_`."""

    start: int
    end: int
    text: str


class Listing(NamedTuple):
    """`[a, ..., b]`: a list, or a shape. A `...` item is an Ellipsis_ node."""

    start: int
    end: int
    items: tuple[Expr, ...]


class Ellipsis_(NamedTuple):
    """`...` in a shape: the leading axes."""

    start: int
    end: int


class Unary(NamedTuple):
    """`-x`, `not x`. `operator` is "-" or "not"."""

    start: int
    end: int
    operator: str
    operand: Expr


class Binary(NamedTuple):
    """`x + y` and the like. `operator` is one of + - * / // % ** == != < <= > >= and or."""

    start: int
    end: int
    operator: str
    left: Expr
    right: Expr


class Conditional(NamedTuple):
    """`value if condition else otherwise`; `otherwise` is None without an `else` (the value is then `none`)."""

    start: int
    end: int
    value: Expr
    condition: Expr
    otherwise: Expr | None


class Subscript(NamedTuple):
    """`list[position]`."""

    start: int
    end: int
    value: Expr
    position: Expr


class Segment(NamedTuple):
    """One segment of an address: a word or a number (`text`), or `[number]` (`number`; `text` is then empty)."""

    start: int
    end: int
    text: str
    number: Expr | None


class Address(NamedTuple):
    """`encoder.layer[i].query`: the address of a tensor or module, the same as in a checkpoint."""

    start: int
    end: int
    segments: tuple[Segment, ...]


class Reference(NamedTuple):
    """`.address`: a tensor or module that this definition declares."""

    start: int
    end: int
    address: Address


class Argument(NamedTuple):
    """`value`, `name = value`, or `..` (`value` is None and `name` is "..": forward arguments of the same names)."""

    start: int
    end: int
    name: str
    value: Expr | None


class Arguments(NamedTuple):
    """One parenthesised list of arguments."""

    start: int
    end: int
    items: tuple[Argument, ...]


class Call(NamedTuple):
    """`f(x)`, `f(hyper)(x)`, `.shared(x)`: one or two lists of arguments."""

    start: int
    end: int
    callee: Expr
    lists: tuple[Arguments, ...]


class Own(NamedTuple):
    """`address: frozen Callee(hyper)(x)`: a declaration, applied if it has inputs or is a step of a chain.

    `modifiers` are "frozen" and "unused", in source order; `lists` holds at most two lists of arguments.
    """

    start: int
    end: int
    address: Address
    modifiers: tuple[str, ...]
    callee: Expr
    lists: tuple[Arguments, ...]


class Step(NamedTuple):
    """One `|> ...` of a chain.

    `operator` is "" for an application, else one of + - * / with `value` as the operand. If `condition` is false, the
    step is skipped, or replaced by `otherwise`. `loop` repeats the step.
    """

    start: int
    end: int
    operator: str
    value: Expr
    condition: Expr | None
    otherwise: Expr | None
    loop: Loop | None


class Chain(NamedTuple):
    """`head |> step |> step`."""

    start: int
    end: int
    head: Expr
    steps: tuple[Step, ...]


class Loop(NamedTuple):
    """`for variable in first..last` (last is exclusive)."""

    start: int
    end: int
    variable: str
    first: Expr
    last: Expr


Expr: TypeAlias = (
    Literal | Name | Listing | Ellipsis_ | Unary | Binary | Conditional | Subscript | Reference | Call | Own | Chain
)

# Statements -----------------------------------------------------------------------------------------------------------


class Bind(NamedTuple):
    """`a, _ = value`."""

    start: int
    end: int
    targets: tuple[Name, ...]
    value: Expr


class Declare(NamedTuple):
    """An expression statement; only `address: Callee(hyper)` is valid, optionally with `if` or a loop."""

    start: int
    end: int
    value: Expr
    condition: Expr | None
    loop: Loop | None


class Initial(NamedTuple):
    """`~ normal(0.02)`: the initializer of a parameter."""

    start: int
    end: int
    name: str
    arguments: tuple[Expr, ...]


class Param(NamedTuple):
    """`address: frozen param int [n, d] = value` or `~ initial`.

    `kind` is "param" or "buffer"; `type` is "", "int" or "bool".
    """

    start: int
    end: int
    address: Address
    modifiers: tuple[str, ...]
    kind: str
    type: str
    shape: Listing
    value: Expr | None
    initial: Initial | None
    condition: Expr | None
    loop: Loop | None


class Tie(NamedTuple):
    """`tie alias = counted`."""

    start: int
    end: int
    alias: Address
    counted: Address
    condition: Expr | None
    loop: Loop | None


class Require(NamedTuple):
    """`require condition, "message"`."""

    start: int
    end: int
    condition: Expr
    message: str | None


class Role(NamedTuple):
    """`role attention`, for the whole definition, or `role attention for address, address`."""

    start: int
    end: int
    name: str
    addresses: tuple[Address, ...]


class Return(NamedTuple):
    """`return value, value`."""

    start: int
    end: int
    values: tuple[Expr, ...]


class If(NamedTuple):
    """`if condition { } else { }`."""

    start: int
    end: int
    condition: Expr
    body: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


class For(NamedTuple):
    """`for i in 0..n { }`."""

    start: int
    end: int
    loop: Loop
    body: tuple[Statement, ...]


Statement: TypeAlias = Bind | Declare | Param | Tie | Require | Role | Return | If | For

# Items ----------------------------------------------------------------------------------------------------------------


class Imported(NamedTuple):
    """`Name` or `Name as Alias` in an import; `alias` is the name defined here."""

    start: int
    end: int
    name: str
    alias: str


class Import(NamedTuple):
    """`import source { names }`; `path` is true for a quoted source. `export` re-exports the names."""

    start: int
    end: int
    export: bool
    source: str
    path: bool
    names: tuple[Imported, ...]


class Dims(NamedTuple):
    """`dim batch, seq`."""

    start: int
    end: int
    names: tuple[Name, ...]


class Parameter(NamedTuple):
    """One entry of a signature: a hyperparameter (`shape` is None) or an input.

    For `..Other` (all hyperparameters of Other), `name` is ".." and `default` is a Name.
    """

    start: int
    end: int
    name: str
    type: str
    shape: Listing | None
    default: Expr | None


class Output(NamedTuple):
    """One output; `name` is "" if it is unnamed."""

    start: int
    end: int
    name: str
    type: str
    shape: Listing


class Definition(NamedTuple):
    """`block Name(hyperparameters)(inputs) -> outputs { body }`.

    `kind` is "fn", "layer" or "block"; `doc` holds its `##` lines.
    """

    start: int
    end: int
    kind: str
    name: Name
    hyperparameters: tuple[Parameter, ...]
    inputs: tuple[Parameter, ...]
    outputs: tuple[Output, ...]
    body: tuple[Statement, ...]
    doc: str


class Expect(NamedTuple):
    """`expect condition`."""

    start: int
    end: int
    condition: Expr


class Model(NamedTuple):
    """`model "name" = Callee(hyper) { expect ... }`."""

    start: int
    end: int
    name: Literal
    callee: Name
    arguments: Arguments | None
    expects: tuple[Expect, ...]
    doc: str


Item: TypeAlias = Import | Dims | Definition | Model


class Comment(NamedTuple):
    """`# text` or `## text`, including the hash signs."""

    start: int
    end: int
    text: str


class Broken(NamedTuple):
    """A range that could not be parsed; `names` are the words in it, so that they are not reported as undefined."""

    start: int
    end: int
    names: tuple[str, ...]


class File(NamedTuple):
    """A whole file; `comments` in source order; `broken` is empty for a file without syntax errors."""

    start: int
    end: int
    items: tuple[Item, ...]
    comments: tuple[Comment, ...]
    broken: tuple[Broken, ...]
