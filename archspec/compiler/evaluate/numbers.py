"""Arithmetic on hyperparameters: with integers, evaluating every iteration of a loop.

`archspec.analysis.formula.symbolic_numbers` makes the same decisions for symbols.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

from archspec.compiler.evaluate.limits import Limits
from archspec.compiler.evaluate.values import (
    DYNAMIC,
    POISON,
    Derived,
    Partial,
    Value,
    arithmetic,
    compute_operation,
    describe,
    is_integer,
    is_list,
    value_key,
)
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.unit import Definition, Unit
from archspec.core.algebra import MAX_SIZE, Dim, Expression, Polynomial, bounds, symbol, symbols
from archspec.core.diagnostics import Note, Span
from archspec.ir.module import Constant, Module, Type
from archspec.ir.ops import Op
from archspec.language.syntax.tree import Located

MAX_CACHED_OPERATIONS = 10_000
"""The maximum number of operations whose output types are cached."""


class NumberEvaluator(Protocol):
    """The methods of an interpreter that StaticArithmetic and partial application use."""

    env: dict[str, Value]
    unit: Unit

    @property
    def definition(self) -> Definition | None: ...

    @property
    def limits(self) -> Limits: ...

    def value(self, expr: nodes.Expr) -> Value: ...

    def condition(self, expr: nodes.Expr) -> Value: ...

    def count_iterations(self, number: int, length: int, loop: nodes.Loop) -> None: ...

    def fault(
        self,
        code: str,
        message: str,
        node: Located,
        *,
        notes: tuple[Note, ...] = (),
        help: str | None = None,
        first: Located | None = None,
    ) -> Value: ...


class StaticArithmetic:
    """Arithmetic on static values: integers, reals and dimensions.

    `counts_elements` means that the number of elements of a tensor is an integer. `repeats` means that results for
    equal values can be reused without another call.
    """

    counts_elements = True
    repeats = True

    def __init__(self) -> None:
        self._outputs: dict[Hashable, tuple[Type, ...]] = {}

    def combine(self, operator: str, left: Value, right: Value, span: Span) -> Value:
        """Evaluate `left operator right` on numbers, one of which is symbolic. Raises StaticError."""
        return arithmetic(operator, left, right)

    def scalar(self, op: Op, values: list[Value], span: Span) -> Value:
        """Apply an operation to numbers. Raises StaticError."""
        return compute_operation(op, values, op.name)

    def outputs(
        self, op: Op, inputs: Sequence[Type | None], attributes: Mapping[str, Value], span: Span
    ) -> tuple[Type, ...]:
        """Return the output types of an operation. Raises OpError."""
        operands = tuple([self.key(type) for type in inputs])
        key = (op.name, operands, tuple([(name, value_key(value)) for name, value in attributes.items()]))
        types = self._outputs.get(key)
        if types is None:
            if len(self._outputs) > MAX_CACHED_OPERATIONS:
                self._outputs.clear()
            types = self._outputs[key] = op.rule(inputs, attributes)
        return types

    def are_equal(self, left: Dim, right: Dim, span: Span) -> bool:
        """Whether two sizes are equal."""
        return left == right

    def divides(self, divisor: Dim, size: Dim, span: Span) -> bool:
        """Whether `size` is divisible by `divisor`. Raises StaticError."""
        return self.are_equal(cast("Dim", self.combine("%", size, divisor, span)), 0, span)

    def on_return(self, value: Value, arguments: tuple[Value, ...]) -> Value:
        """Hook: return the result of a numeric function for these arguments."""
        return value

    def length(self, values: tuple[Value, ...]) -> int:
        """Return the number of items of a list."""
        return len(values)

    def item(self, values: tuple[Value, ...], index: int) -> Value:
        """Return an item of a list."""
        return values[index]

    def loop_indices(self, first: int, last: int) -> Iterable[int]:
        """Return the indices of a loop."""
        return range(first, last)

    def is_dimension(self, value: Value) -> bool:
        """Whether an integer depends on the sizes of the inputs."""
        return isinstance(value, Polynomial)

    def on_size_matched(self, declared: Dim, size: Dim) -> None:
        """Hook: a declared size matched the actual size of an input or output."""

    def on_loop_bounds(self, values: Iterable[Value]) -> None:
        """Hook: the bounds of a loop over a dimension depend on these values."""

    def key(self, argument: Type | Constant | None) -> Hashable:
        """Return a dictionary key for the argument of an input."""
        return (Constant, value_key(argument.value)) if isinstance(argument, Constant) else argument

    def index_text(self, index: Value) -> str | None:
        """Return the text of an index in an address; None if it cannot be an index."""
        return str(index) if is_integer(index) and index >= 0 else None

    def requires(self, walker: NumberEvaluator, condition: nodes.Expr) -> bool:
        """Whether the condition of a `require` holds."""
        return walker.condition(condition) is not False

    def shape(
        self, walker: NumberEvaluator, sizes: tuple[Value, ...], written: nodes.ListLiteral
    ) -> tuple[tuple[Expression, ...], int] | None:
        """Return the shape of a tensor and its number of elements; None after reporting an invalid size."""
        size = 1
        shape: list[Expression] = []
        for value, item in zip(sizes, written.items, strict=True):
            if not is_integer(value) or value < 1:
                report_wrong_size(walker, value, item)
                return None
            size *= value
            shape.append(value)
        if size > MAX_SIZE:
            message = "the number of elements of this tensor does not fit in 64 bits"
            walker.fault("budget", message, written.at)
            return None
        return tuple(shape), size

    def indices(self, walker: NumberEvaluator, loop: nodes.Loop, length: int) -> Iterable[Value] | None:
        """Return the indices of a loop whose iterations pass on no values; None after reporting invalid bounds."""
        bounds = _bounds(walker, loop, length)
        return None if bounds is None else self.loop_indices(*bounds)

    def iterate(
        self,
        walker: NumberEvaluator,
        loop: nodes.Loop,
        names: Collection[str],
        run: Callable[[], object],
        length: int,
        after_each: Callable[[dict[str, Value], dict[str, Value]], None] | None = None,
    ) -> bool:
        """Run every iteration of a loop over `length` characters that assigns `names`; False if its bounds are invalid.

        Names that are assigned before the loop are carried from one iteration to the next; all others are unset at the
        start of an iteration. In a loop of several iterations, `after_each` is called with the values of the carried
        names before and after each iteration.
        """
        bounds = _bounds(walker, loop, length)
        if bounds is None:
            return False
        env = walker.env
        carried = {name: env[name] for name in names if name in env}
        local_names = [name for name in names if name not in carried]
        first, last = bounds
        for index in self.loop_indices(first, last):
            for name in local_names:
                env.pop(name, None)
            env[loop.variable] = index
            run()
            if last - first > 1 and after_each is not None:
                before, carried = carried, {name: env[name] for name in carried}
                after_each(before, carried)
        return True

    # Hooks for proofs about open hyperparameters

    def on_declared(self, walker: NumberEvaluator, module: Module, address: str, node: nodes.Address) -> None:
        """Hook: a module or tensor was declared at an address."""

    def on_merged(self, walker: NumberEvaluator, module: Module, merged: Module, node: nodes.Address) -> None:
        """Hook: the declarations of `merged` were added to `module`."""

    def on_tied(self, walker: NumberEvaluator, tie: nodes.Tie) -> None:
        """Hook: two addresses will be tied."""

    def on_missing(self, module: Module, address: str) -> None:
        """Hook: nothing is declared at an address."""

    def finish(self, walker: NumberEvaluator, module: Module, ties: list[tuple[str, str]]) -> None:
        """Hook: all declarations of a module are processed; `ties` will be made."""


def report_wrong_size(walker: NumberEvaluator, value: Value, item: nodes.Expr) -> None:
    """Report a value that is not a valid size."""
    help = None
    if value.__class__ is float:
        help = "use `//` for integer division"
    elif value.__class__ is int:
        help = "use `if` to leave out a tensor"
    if value is not POISON:
        walker.fault("wrong-kind", f"expected a positive integer size, found {describe(value)}", item.at, help=help)


def _bounds(walker: NumberEvaluator, loop: nodes.Loop, length: int) -> tuple[int, int] | None:
    """Return the first and last (exclusive) index of a loop over `length` characters; None after an error."""
    first, last = walker.value(loop.first), walker.value(loop.last)
    for value, part in ((first, loop.first), (last, loop.last)):
        if value is DYNAMIC:
            message = "the number of loop iterations cannot depend on an input"
            walker.fault("ownership", message, part.at, help="make it a hyperparameter")
            return None
        if value is not POISON and not is_integer(value):
            help = "use integers: `//` divides without a remainder" if isinstance(value, float) else None
            walker.fault("wrong-kind", f"expected an integer loop bound, found {describe(value)}", part.at, help=help)
            return None
    if not is_integer(first) or not is_integer(last):
        return None  # an error was reported
    if last < first:
        help = "use an end (exclusive) that is at least the start"
        walker.fault("wrong-kind", f"loop end {last} is below its start {first}", loop.last.at, help=help)
        return None
    walker.count_iterations(last - first, length, loop)
    return first, last


# Derived numbers: numbers with their origin in the sizes of a model, for the trace of a compilation.
#
# They have the values of the model, so that every decision is the decision of the model, and record which of these
# decisions would differ for other sizes.

Form = Expression | None
"""A number as a function of sizes; None if the function is unknown."""

Operator: TypeAlias = Callable[[Value, Value], Value]

_OPERATORS: dict[str, Operator] = {
    name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
}

NO_SIZES: frozenset[str] = frozenset()


class _DerivedArithmetic(Derived):
    """A number whose arithmetic returns derived numbers; the operators are set below."""

    def __neg__(self) -> Any:
        return _apply_operator(_OPERATORS["mul"], cast("Value", self), -1)


class DerivedInt(_DerivedArithmetic, int):
    """An integer computed from sizes."""


class DerivedFloat(_DerivedArithmetic, float):
    """A real number computed from sizes."""


class DerivedDimension(_DerivedArithmetic, Polynomial):
    """A dimension computed from sizes."""


def make_derived(value: int | float | Polynomial, form: Form, sizes: frozenset[str]) -> Value:
    """Create a number or dimension that depends on `sizes`."""
    derived: Derived
    if isinstance(value, Polynomial):
        derived = DerivedDimension(value.terms)
    else:
        derived = DerivedInt(value) if isinstance(value, int) else DerivedFloat(value)
    derived.form, derived.sizes = form, sizes
    return cast("Value", derived)


def strip_origin(value: Value) -> Value:
    """Return a value without its origin."""
    if is_list(value):
        return tuple([strip_origin(item) for item in value])
    if isinstance(value, Partial):
        return value._replace(values=tuple([(name, strip_origin(item)) for name, item in value.values]))
    match value:
        case DerivedInt():
            return int(value)
        case DerivedFloat():
            return float(value)
        case DerivedDimension():
            return Polynomial(value.terms)
        case _:
            return value


def sizes_in(value: Value) -> frozenset[str]:
    """Return the sizes that a value, or an item of a list, depends on."""
    if is_list(value):
        return NO_SIZES.union(*map(sizes_in, value))
    if isinstance(value, Partial):
        return NO_SIZES.union(*[sizes_in(item) for _, item in value.values])
    return value.sizes if isinstance(value, Derived) else NO_SIZES


def as_sizes(name: str, value: Value, listed: bool = False) -> Value:
    """Return the value of the hyperparameter `name`, an integer or list, as derived numbers that depend on it."""
    if is_list(value):
        return tuple([as_sizes(name, item, listed=True) for item in value])
    assert isinstance(value, int)
    return make_derived(value, None if listed or value < 1 else symbol(name), frozenset([name]))


def is_size(value: Value) -> bool:
    """Whether a value is an integer, or a list of integers."""
    if is_list(value):
        return bool(value) and all(map(is_size, value))
    return isinstance(value, int) and not isinstance(value, bool)


def decisive_sizes(comparison: str, left: Value, right: Value) -> frozenset[str]:
    """Return the sizes that determine the result of a comparison.

    Two dimensions are assumed to be equal, because different dimensions are an error.
    """
    if isinstance(left, Polynomial) or isinstance(right, Polynomial):
        return NO_SIZES if left is right else sizes_in((left, right))
    if left is None or right is None:
        return NO_SIZES
    sizes = sizes_in(left) | sizes_in(right)
    left_form, right_form = _form(left), _form(right)
    if not sizes or left_form is None or right_form is None:
        return sizes
    difference = left_form - right_form
    low, high = bounds(difference)
    if low is not None and low == high:
        return NO_SIZES
    is_decided = (low is not None and low > 0) or (high is not None and high < 0)
    if is_decided or (low == 0 and comparison in (">=", "<")) or (high == 0 and comparison in ("<=", ">")):
        return NO_SIZES
    return symbols(difference)


def _form(value: Value) -> Form:
    if isinstance(value, Derived):
        return value.form
    return value if isinstance(value, int) else None


def _apply_operator(function: Operator, left: Value, right: Value) -> Value:
    """Apply a binary operator to numbers and dimensions, at least one of them derived."""
    value = function(strip_origin(left), strip_origin(right))
    if not isinstance(value, int | float | Polynomial):
        return value
    form: Form = None
    left_form, right_form = _form(left), _form(right)
    if isinstance(value, int) and left_form is not None and right_form is not None:
        try:
            result = function(left_form, right_form)
            form = result if isinstance(result, int | Polynomial) else None
        except (TypeError, ValueError, ArithmeticError):
            form = None
    return make_derived(value, form, sizes_in(left) | sizes_in(right))


def _create_operator(function: Operator, reverse: bool) -> Operator:
    def compute(self: Value, operand: Value) -> Value:
        return _apply_operator(function, operand, self) if reverse else _apply_operator(function, self, operand)

    return compute


for _name, _function in _OPERATORS.items():
    setattr(_DerivedArithmetic, f"__{_name}__", _create_operator(_function, reverse=False))
    setattr(_DerivedArithmetic, f"__r{_name}__", _create_operator(_function, reverse=True))


class DerivedArithmetic(StaticArithmetic):
    """Arithmetic with derived numbers.

    `decisive` are the sizes for which other values would change the computation, apart from comparisons.
    """

    repeats = False

    def __init__(self) -> None:
        super().__init__()
        self.decisive: set[str] = set()

    def scalar(self, op: Op, values: list[Value], span: Span) -> Value:
        result = super().scalar(op, [strip_origin(value) for value in values], span)
        return self._add_sizes(result, sizes_in(tuple(values)))

    def are_equal(self, left: Dim, right: Dim, span: Span) -> bool:
        self.decisive |= decisive_sizes("==", left, right)
        return left == right

    def divides(self, divisor: Dim, size: Dim, span: Span) -> bool:
        return size % divisor == 0  # PyTorch checks it for other sizes

    def on_return(self, value: Value, arguments: tuple[Value, ...]) -> Value:
        sizes = sizes_in(arguments)
        if is_list(value) and value:
            return tuple([self.on_return(item, arguments) for item in value])
        if isinstance(value, DerivedInt | DerivedFloat) and value.sizes == sizes:
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._add_sizes(value, sizes)
        if not isinstance(value, bool):
            self.decisive |= sizes
        return value

    def length(self, values: tuple[Value, ...]) -> int:
        listed = [v for v in values if is_list(v) or (isinstance(v, Derived) and v.form is None)]
        return cast("int", self._add_sizes(len(values), sizes_in(tuple(listed))))

    def item(self, values: tuple[Value, ...], index: int) -> Value:
        return self._add_sizes(values[index], sizes_in(index))

    def loop_indices(self, first: int, last: int) -> Iterable[int]:
        sizes = sizes_in((first, last))
        if first == last:
            self.decisive |= sizes
        return [cast("int", self._add_sizes(i, sizes)) for i in range(first, last)]

    def on_size_matched(self, declared: Dim, size: Dim) -> None:
        if not sizes_in(declared):  # a literal number, which stays literal in the code
            self.decisive |= sizes_in(size)

    def on_loop_bounds(self, values: Iterable[Value]) -> None:
        self.decisive |= sizes_in(tuple(values))  # for other values, the loop may end before it starts

    def shape(
        self, walker: NumberEvaluator, sizes: tuple[Value, ...], written: nodes.ListLiteral
    ) -> tuple[tuple[Expression, ...], int] | None:
        result = super().shape(walker, sizes, written)
        return (result[0], int(result[1])) if result is not None else None

    def key(self, argument: Type | Constant | None) -> Hashable:
        return (
            (super().key(argument), value_key(argument.shape)) if isinstance(argument, Type) else super().key(argument)
        )

    def _add_sizes(self, value: Value, sizes: frozenset[str]) -> Value:
        if not sizes:
            return value
        if isinstance(value, int | float | Polynomial) and not isinstance(value, bool):
            return make_derived(value, None, sizes | sizes_in(value))
        self.decisive |= sizes if isinstance(value, str) else NO_SIZES
        return value
