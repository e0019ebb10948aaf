"""The syntax tree of an `.arch` file.

The first fields of every node are `start` and `end`, character offsets in the file (end exclusive). `store.py` converts
nodes to and from plain data.
"""

from __future__ import annotations

from typing import TypeAlias

from archspec.syntax.node import Node

# Expressions ----------------------------------------------------------------------------------------------------------


class Literal(Node):
    """`12`, `1e-12`, `true`, `none`, `inf`, `"text"`."""

    start: int
    end: int
    value: int | float | bool | str | None


class Name(Node):
    """A name in an expression: a hyperparameter, input, value, dimension, definition or operation, or `_`."""

    start: int
    end: int
    text: str


class Listing(Node):
    """`[a, ..., b]`: a list, or a shape. A `...` item is an Ellipsis_ node."""

    start: int
    end: int
    items: tuple[Expr, ...]


class Ellipsis_(Node):
    """`...` in a shape: the leading axes."""

    start: int
    end: int


class Unary(Node):
    """`-x`, `not x`. `operator` is "-" or "not"."""

    start: int
    end: int
    operator: str
    operand: Expr


class Binary(Node):
    """`x + y` and the like. `operator` is one of + - * / // % ** == != < <= > >= and or."""

    start: int
    end: int
    operator: str
    left: Expr
    right: Expr


class Conditional(Node):
    """`value if condition else otherwise`; `otherwise` is None without an `else` (the value is then `none`)."""

    start: int
    end: int
    value: Expr
    condition: Expr
    otherwise: Expr | None


class Subscript(Node):
    """`list[position]`."""

    start: int
    end: int
    value: Expr
    position: Expr


class Segment(Node):
    """One segment of an address: a word or a number (`text`), or `[number]` (`number`; `text` is then empty)."""

    start: int
    end: int
    text: str
    number: Expr | None


class Address(Node):
    """`encoder.layer[i].query`: the address of a tensor or module, the same as in a checkpoint."""

    start: int
    end: int
    segments: tuple[Segment, ...]


class Reference(Node):
    """`.address`: a tensor or module that this definition declares."""

    start: int
    end: int
    address: Address


class Argument(Node):
    """`value`, `name = value`, or `..` (`value` is None and `name` is "..": forward arguments of the same names)."""

    start: int
    end: int
    name: str
    value: Expr | None


class Arguments(Node):
    """One parenthesised list of arguments."""

    start: int
    end: int
    items: tuple[Argument, ...]


class Call(Node):
    """`f(x)`, `f(hyper)(x)`, `.shared(x)`: one or two lists of arguments."""

    start: int
    end: int
    callee: Expr
    lists: tuple[Arguments, ...]


class Own(Node):
    """`address: frozen Callee(hyper)(x)`: a declaration, applied if it has inputs or is a step of a chain.

    `modifiers` are "frozen" and "unused", in source order; `lists` holds at most two lists of arguments.
    """

    start: int
    end: int
    address: Address
    modifiers: tuple[str, ...]
    callee: Expr
    lists: tuple[Arguments, ...]


class Step(Node):
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


class Chain(Node):
    """`head |> step |> step`."""

    start: int
    end: int
    head: Expr
    steps: tuple[Step, ...]


class Loop(Node):
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


class Bind(Node):
    """`a, _ = value`."""

    start: int
    end: int
    targets: tuple[Name, ...]
    value: Expr


class Declare(Node):
    """An expression statement; only `address: Callee(hyper)` is valid, optionally with `if` or a loop."""

    start: int
    end: int
    value: Expr
    condition: Expr | None
    loop: Loop | None


class Initial(Node):
    """`~ normal(0.02)`: the initializer of a parameter."""

    start: int
    end: int
    name: str
    arguments: tuple[Expr, ...]


class Param(Node):
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


class Tie(Node):
    """`tie alias = counted`."""

    start: int
    end: int
    alias: Address
    counted: Address
    condition: Expr | None
    loop: Loop | None


class Require(Node):
    """`require condition, "message"`."""

    start: int
    end: int
    condition: Expr
    message: str | None


class Role(Node):
    """`role attention`, for the whole definition, or `role attention for address, address`."""

    start: int
    end: int
    name: str
    addresses: tuple[Address, ...]


class Return(Node):
    """`return value, value`."""

    start: int
    end: int
    values: tuple[Expr, ...]


class If(Node):
    """`if condition { } else { }`."""

    start: int
    end: int
    condition: Expr
    body: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


class For(Node):
    """`for i in 0..n { }`."""

    start: int
    end: int
    loop: Loop
    body: tuple[Statement, ...]


Statement: TypeAlias = Bind | Declare | Param | Tie | Require | Role | Return | If | For

# Items ----------------------------------------------------------------------------------------------------------------


class Imported(Node):
    """`Name` or `Name as Alias` in an import; `alias` is the name defined here."""

    start: int
    end: int
    name: str
    alias: str


class Import(Node):
    """`import source { names }`; `path` is true for a quoted source. `export` re-exports the names."""

    start: int
    end: int
    export: bool
    source: str
    path: bool
    names: tuple[Imported, ...]


class Dims(Node):
    """`dim batch, seq`."""

    start: int
    end: int
    names: tuple[Name, ...]


class Parameter(Node):
    """One entry of a signature: a hyperparameter (`shape` is None) or an input.

    For `..Other` (all hyperparameters, or all inputs, of Other), `name` is ".." and `default` is a Name.
    """

    start: int
    end: int
    name: str
    type: str
    shape: Listing | None
    default: Expr | None


class Output(Node):
    """One output; `name` is "" if it is unnamed; `optional`: it may be absent (`?`)."""

    start: int
    end: int
    name: str
    type: str
    shape: Listing
    optional: bool


class Definition(Node):
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


class Expect(Node):
    """`expect condition`."""

    start: int
    end: int
    condition: Expr


class Model(Node):
    """`model "name" = Callee(hyper) { expect ... }`."""

    start: int
    end: int
    name: Literal
    callee: Name
    arguments: Arguments | None
    expects: tuple[Expect, ...]
    doc: str


Item: TypeAlias = Import | Dims | Definition | Model


class Comment(Node):
    """`# text` or `## text`, including the hash signs."""

    start: int
    end: int
    text: str


class Broken(Node):
    """A range that could not be parsed; `names` are the words in it, so that they are not reported as undefined."""

    start: int
    end: int
    names: tuple[str, ...]


class File(Node):
    """A whole file; `comments` in source order; `broken` is empty for a file without syntax errors."""

    start: int
    end: int
    items: tuple[Item, ...]
    comments: tuple[Comment, ...]
    broken: tuple[Broken, ...]
