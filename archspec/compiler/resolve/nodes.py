"""The resolved form of a definition: every name, callee, argument and address is determined, once per file.

    definition  = Definition(kind, name, hyperparameters, inputs, outputs, body)      see `unit`
    statement   = Assign(targets, value) | Declare() | Tie(alias, counted, condition, loop)
                | Require(condition, message) | Role(name, addresses) | Label(text, addresses, names) | Return(values)
                | If(condition, body, otherwise) | For(loop, body, collects)
    declaration = GuardedDeclaration(what: ModuleDeclaration | TensorDeclaration, guards, loop, invariant)
    expression  = Literal(value) | Local(name) | Dimension(name, key) | Global(target) | PipedValue()
                | LeadingDimensions() | ListLiteral(items) | Unary(operator, operand) | Binary(operator, left, right)
                | Conditional(value, condition, otherwise) | Subscript(value, position) | Length(value)
                | AddressReference(address) | Apply(callee, arguments)
                | ModuleDeclaration(address, modifiers, callee, arguments)
                | Rearrange(word, literal, pattern, sizes, value) | Einsum(literal, equation, values)
                | Partial(callee, arguments) | BoundHyperparameter(value)
                | Chain(head, steps) | Collect(value, axis) | Invalid()
    step        = Step(operator, value, condition, otherwise, loop)      `value` of an application (no operator) is an
                                                                         Apply or a ModuleDeclaration
    arguments   = Arguments(hyperparameters, inputs, forward, piped, undecided, bound)
    loop        = Loop(variable, first, last)
    address     = Address(segments)

The first field of every node is `at`, its node of the syntax tree, which has the location in the file. Every statement
lists its declarations in program order, so that the declarations of a definition can be listed without a traversal of
expressions. `Invalid` replaces a part with a reported error; it causes no further diagnostics.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from archspec.compiler.resolve.unit import Definition
from archspec.core.record import Node
from archspec.ir.ops import Op
from archspec.ir.ops.einsum import Equation
from archspec.ir.ops.rearrange import Pattern
from archspec.language.syntax import tree
from archspec.language.syntax.tree import Located

# Expressions ---------------------------------------------------------------------------------------------------------


class Literal(Node):
    """A number, boolean, string or `none`."""

    at: tree.Expr
    value: int | float | bool | str | None


class Local(Node):
    """A name of the definition: a hyperparameter, an input, a value or the index of a loop."""

    at: tree.Name
    name: str


class Dimension(Node):
    """A dimension that the file declares with `dim`; its `key` differs from all names, which may shadow it."""

    at: tree.Name
    name: str
    key: str


class Global(Node):
    """A name of the file, or of an operation; `target` is the definition or operation that it refers to."""

    at: tree.Name
    name: str
    target: Definition | Op


class PipedValue(Node):
    """`_`, the piped value of a chain."""

    at: tree.Name


class LeadingDimensions(Node):
    """`...` in a shape: the leading dimensions."""

    at: tree.LeadingDimensions


class ListLiteral(Node):
    """A list, or a shape."""

    at: tree.ListLiteral
    items: tuple[Expr, ...]


class Unary(Node):
    """`operator` is "-" or "not"."""

    at: tree.Unary
    operator: str
    operand: Expr


class Binary(Node):
    """`operator` is one of + - * / // % ** == != < <= > >= in, not in, and, or."""

    at: tree.Binary
    operator: str
    left: Expr
    right: Expr


class Conditional(Node):
    """`value if condition else otherwise`; without an else, `otherwise` is None and the value is `none`."""

    at: tree.Conditional
    value: Expr
    condition: Expr
    otherwise: Expr | None


class Subscript(Node):
    """`value[position]`."""

    at: tree.Subscript
    value: Expr
    position: Expr


class Length(Node):
    """`len(value)`."""

    at: tree.Expr
    value: Expr


class WordWithIndex(Node):
    """`"bucket_{i}"`, a segment of an address: text, and the expressions of indices."""

    at: tree.Segment
    parts: tuple[str | Expr, ...]


class Address(Node):
    """An address; a segment is text, an expression for an index, or a word with indices in it.

    `fixed` is the text of an address without an index. If the only index is a name, the most frequent case, `variable`
    is its name, and `before` and `after` are the text around it.
    """

    at: tree.Address
    segments: tuple[str | Expr | WordWithIndex, ...]
    fixed: str | None
    before: str
    variable: str | None
    after: str

    def indices(self) -> Iterator[Expr]:
        """Yield the expressions of the indices."""
        for segment in self.segments:
            parts = segment.parts if isinstance(segment, WordWithIndex) else (segment,)
            yield from (part for part in parts if not isinstance(part, str))


class AddressReference(Node):
    """`.address`: a tensor to read, or a layer or block to apply again."""

    at: tree.AddressReference
    address: Address


class Argument(Node):
    """One argument; `name` is empty for a positional one. `at` is the application for an implicit piped value."""

    at: Located
    name: str
    value: Expr


class BoundArguments(Node):
    """Arguments by the names of one callee.

    `names` are the callee's inputs, with variadic ones numbered, and `inputs` their arguments (None if missing).
    """

    hyperparameters: dict[str, Argument]
    names: tuple[str, ...]
    inputs: tuple[Argument | None, ...]

    def argument_node(self, name: str) -> Located | None:
        """Return the node of the argument for the hyperparameter or input `name`; None if there is none."""
        argument = self.hyperparameters.get(name)
        if argument is None and name in self.names:
            argument = self.inputs[self.names.index(name)]
        return argument.at if argument is not None else None


class Arguments(Node):
    """The arguments of an application: hyperparameters, and inputs (None if it is declared without being applied).

    `forward` is `..`, which forwards the hyperparameters with the same names. If `piped` is set, the only input is the
    piped value, implicitly. `bound` is set if the callee is the same for all hyperparameters of the definition. The
    only list of any other callee is `undecided`: it has the hyperparameters if the callee has no inputs.
    """

    hyperparameters: tuple[Argument, ...]
    inputs: tuple[Argument, ...] | None
    forward: tree.Argument | None
    piped: bool
    undecided: bool
    bound: BoundArguments | None

    def every(self) -> Iterator[Argument]:
        """Yield all explicit arguments."""
        yield from self.hyperparameters
        yield from self.inputs or ()


class Apply(Node):
    """`callee(hyperparameters)(inputs)`; a callee that is an AddressReference is applied again."""

    at: tree.Expr
    callee: Expr
    arguments: Arguments


class Rearrange(Node):
    """`rearrange(pattern, sizes)(value)`; `word` is "rearrange" or "repeat", and `literal` has the pattern's text."""

    at: tree.Expr
    word: str
    literal: tree.Literal
    pattern: Pattern
    sizes: tuple[Argument, ...]
    value: Expr


class Einsum(Node):
    """`einsum(equation)(values)`; `literal` has the text of the equation."""

    at: tree.Expr
    literal: tree.Literal
    equation: Equation
    values: tuple[Expr, ...]


class Partial(Node):
    """`callee(hyperparameters)` as a value: the definition with these hyperparameters bound."""

    at: tree.Call
    callee: Global
    arguments: tuple[Argument, ...]


class BoundHyperparameter(Node):
    """A value bound in a partial definition, at an application of it."""

    at: Located
    value: object


class ModuleDeclaration(Node):
    """`address: callee(hyperparameters)(inputs)`: declares at the address; applies to the inputs or the piped value."""

    at: tree.ModuleDeclaration
    address: Address
    modifiers: tuple[str, ...]
    callee: Expr
    arguments: Arguments

    @property
    def merges(self) -> bool:
        """Whether it is `..: callee`, which adds the declarations of the callee to the definition."""
        return not self.address.segments


class Loop(Node):
    """`for variable in first..last` (last is exclusive)."""

    at: tree.Loop
    variable: str
    first: Expr
    last: Expr


class Step(Node):
    """One `|> ...` of a chain: `value` applied to the piped value, or `operator` with the operand `value`.

    If `condition` is false, the step is skipped or replaced by `otherwise`; `loop` repeats it.
    """

    at: tree.Step
    operator: str
    value: Expr
    condition: Expr | None
    otherwise: Expr | None
    loop: Loop | None


class Chain(Node):
    """`head |> step |> step`."""

    at: tree.Chain
    head: Expr
    steps: tuple[Step, ...]


class Collect(Node):
    """`collect(axis)(value)`, the value of an Assign in a loop: the values of all iterations along a new axis."""

    at: tree.Expr
    value: Expr
    axis: Expr


class Invalid(Node):
    """A part with a reported error."""

    at: Located


Expr: TypeAlias = (
    Literal
    | Local
    | Dimension
    | Global
    | PipedValue
    | LeadingDimensions
    | ListLiteral
    | Unary
    | Binary
    | Conditional
    | Subscript
    | Length
    | AddressReference
    | Apply
    | Rearrange
    | Einsum
    | Partial
    | BoundHyperparameter
    | ModuleDeclaration
    | Chain
    | Collect
    | Invalid
)

# Declarations --------------------------------------------------------------------------------------------------------


class Initializer(Node):
    """`~ name(arguments)`: how a parameter is initialized."""

    at: tree.Initializer
    name: str
    arguments: tuple[Expr, ...]


class TensorDeclaration(Node):
    """`address: param [n, d]`; `kind` is "param", "buffer" or "const"; `dtype` "real", "int" or "bool"."""

    at: tree.TensorDeclaration
    address: Address
    modifiers: tuple[str, ...]
    kind: str
    dtype: str
    shape: ListLiteral
    value: Expr | None
    initial: Initializer | None


class GuardedDeclaration(Node):
    """A declaration, made in each iteration of `loop` if every guard (condition, expected value) holds.

    It is `invariant` if all iterations of the enclosing loops declare the same.
    """

    what: ModuleDeclaration | TensorDeclaration
    guards: tuple[tuple[Expr, bool], ...]
    loop: Loop | None
    invariant: bool


# Statements ----------------------------------------------------------------------------------------------------------


class Assign(Node):
    """`targets = value`; the target `_` discards its value."""

    at: tree.Assign
    targets: tuple[str, ...]
    value: Expr
    declares: tuple[GuardedDeclaration, ...]


class Declare(Node):
    """A statement that declares a layer, block or tensor."""

    at: tree.Declare | tree.TensorDeclaration
    declares: tuple[GuardedDeclaration, ...]


class Tie(Node):
    """`tie alias = counted`."""

    at: tree.Tie
    alias: Address
    counted: Address
    condition: Expr | None
    loop: Loop | None


class Require(Node):
    """`require condition, "message"`."""

    at: tree.Require
    condition: Expr
    message: str | None


class Role(Node):
    """`role name`, for the entire definition, or `role name for addresses`."""

    at: tree.Role
    name: str
    addresses: tuple[Address, ...]


class Label(Node):
    """`label "text"`, for the entire definition, or `label "text" for addresses` and `names`, which are entries."""

    at: tree.Label
    text: str
    addresses: tuple[Address, ...]
    names: tuple[str, ...]


class Return(Node):
    """`return values`."""

    at: tree.Return
    values: tuple[Expr, ...]
    declares: tuple[GuardedDeclaration, ...]


class If(Node):
    """`if condition { } else { }`; `binds` are the names that either branch assigns."""

    at: tree.If
    condition: Expr
    body: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]
    binds: tuple[str, ...]
    broken: bool


class For(Node):
    """`for i in 0..n { }`; `binds` are the names that it assigns, `collects` the names in which it collects values.

    `declares`: an iteration may affect declarations. `selects`: an iteration declares something, applies an address, or
    reads one with the index, so each is compiled.
    """

    at: tree.For
    loop: Loop
    body: tuple[Statement, ...]
    binds: tuple[str, ...]
    collects: tuple[str, ...]
    declares: bool
    selects: bool


Statement: TypeAlias = Assign | Declare | Tie | Require | Role | Label | Return | If | For

# Signatures ----------------------------------------------------------------------------------------------------------


class TypedEntry(Node):
    """An input or output; `shape` is None for an input without a shape, `name` is empty for an unnamed output."""

    at: tree.SignatureEntry | tree.Output
    name: str
    dtype: str
    shape: ListLiteral | None
    optional: bool
