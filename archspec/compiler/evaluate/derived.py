"""Numbers that remember how they were computed from the sizes of a model: the trace compiles with them.

They have the values of the model, so that everything is decided as in the model, and tell which of these decisions
would be different for other sizes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeAlias, cast

from archspec.compiler.evaluate.numbers import NumberEvaluator, StaticArithmetic
from archspec.compiler.evaluate.values import Derived, Partial, Value, is_list, value_key
from archspec.compiler.resolve import nodes
from archspec.core.algebra import Dim, Expression, Polynomial, bounds, symbol, symbols
from archspec.core.diagnostics import Span
from archspec.ir.module import Constant, Type
from archspec.ir.ops import Op

Form = Expression | None
"""A number as a function of sizes; None if that is not known."""

Operator: TypeAlias = Callable[[Value, Value], Value]

_OPERATORS: dict[str, Operator] = {
    name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
}

NO_SIZES: frozenset[str] = frozenset()


class _DerivedArithmetic(Derived):
    """What arithmetic makes of derived numbers is derived; the operators are set below."""

    def __neg__(self) -> Any:
        return _apply_operator(_OPERATORS["mul"], cast("Value", self), -1)


class DerivedInt(_DerivedArithmetic, int):
    """An integer computed from sizes."""


class DerivedFloat(_DerivedArithmetic, float):
    """A real number computed from sizes."""


class DerivedDimension(_DerivedArithmetic, Polynomial):
    """A dimension computed from sizes."""


def make_derived(value: int | float | Polynomial, form: Form, sizes: frozenset[str]) -> Value:
    """A number or dimension that depends on `sizes`."""
    made: Derived
    if isinstance(value, Polynomial):
        made = DerivedDimension(value.terms)
    else:
        made = DerivedInt(value) if isinstance(value, int) else DerivedFloat(value)
    made.form, made.sizes = form, sizes
    return cast("Value", made)


def strip_origin(value: Value) -> Value:
    """A value without what it was computed from."""
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
    """The sizes that a value, or an item of a list, depends on."""
    if is_list(value):
        return NO_SIZES.union(*map(sizes_in, value))
    if isinstance(value, Partial):
        return NO_SIZES.union(*[sizes_in(item) for _, item in value.values])
    return value.sizes if isinstance(value, Derived) else NO_SIZES


def as_sizes(name: str, value: Value, listed: bool = False) -> Value:
    """The value of the hyperparameter `name`, an integer or a list of integers, as something that depends on it."""
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
    """The sizes on which it depends whether a comparison holds; dimensions are equal, or it would be in error."""
    if isinstance(left, Polynomial) or isinstance(right, Polynomial):
        return NO_SIZES if left is right else sizes_in((left, right))
    if left is None or right is None:
        return NO_SIZES
    sizes = sizes_in(left) | sizes_in(right)
    one, other = _form(left), _form(right)
    if not sizes or one is None or other is None:
        return sizes
    difference = one - other
    low, high = bounds(difference)
    if low is not None and low == high:
        return NO_SIZES
    is_apart = (low is not None and low > 0) or (high is not None and high < 0)
    if is_apart or (low == 0 and comparison in (">=", "<")) or (high == 0 and comparison in ("<=", ">")):
        return NO_SIZES
    return symbols(difference)


def _form(value: Value) -> Form:
    if isinstance(value, Derived):
        return value.form
    return value if isinstance(value, int) else None


def _apply_operator(function: Operator, left: Value, right: Value) -> Value:
    """A binary operation on numbers and dimensions."""
    value = function(strip_origin(left), strip_origin(right))
    if not isinstance(value, int | float | Polynomial):
        return value
    form: Form = None
    one, other = _form(left), _form(right)
    if isinstance(value, int) and one is not None and other is not None:
        try:
            found = function(one, other)
            form = found if isinstance(found, int | Polynomial) else None
        except (TypeError, ValueError, ArithmeticError):
            form = None
    return make_derived(value, form, sizes_in(left) | sizes_in(right))


def _operator(function: Operator, turned: bool) -> Operator:
    def compute(self: Value, other: Value) -> Value:
        return _apply_operator(function, other, self) if turned else _apply_operator(function, self, other)

    return compute


for _name, _function in _OPERATORS.items():
    setattr(_DerivedArithmetic, f"__{_name}__", _operator(_function, turned=False))
    setattr(_DerivedArithmetic, f"__r{_name}__", _operator(_function, turned=True))


class DerivedArithmetic(StaticArithmetic):
    """Computes with known numbers that remember what they were computed from.

    `decisive` are the sizes for whose other values something else would be computed, comparisons aside.
    """

    repeats = False

    def __init__(self) -> None:
        super().__init__()
        self.decisive: set[str] = set()

    def scalar(self, op: Op, values: list[Value], span: Span) -> Value:
        found = super().scalar(op, [strip_origin(value) for value in values], span)
        return self._depending(found, sizes_in(tuple(values)))

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
            return self._depending(value, sizes)
        if not isinstance(value, bool):
            self.decisive |= sizes
        return value

    def length(self, values: tuple[Value, ...]) -> int:
        listed = [v for v in values if is_list(v) or (isinstance(v, Derived) and v.form is None)]
        return cast("int", self._depending(len(values), sizes_in(tuple(listed))))

    def item(self, values: tuple[Value, ...], index: int) -> Value:
        return self._depending(values[index], sizes_in(index))

    def loop_indices(self, first: int, last: int) -> Iterable[int]:
        sizes = sizes_in((first, last))
        if first == last:
            self.decisive |= sizes
        return [cast("int", self._depending(i, sizes)) for i in range(first, last)]

    def on_size_matched(self, declared: Dim, size: Dim) -> None:
        if not sizes_in(declared):  # a number, which stays one in the code
            self.decisive |= sizes_in(size)

    def on_loop_bounds(self, values: Iterable[Value]) -> None:
        self.decisive |= sizes_in(tuple(values))  # with others, the loop may end before it starts

    def shape(
        self, walker: NumberEvaluator, sizes: tuple[Value, ...], written: nodes.ListLiteral
    ) -> tuple[tuple[Expression, ...], int] | None:
        found = super().shape(walker, sizes, written)
        return (found[0], int(found[1])) if found is not None else None

    def key(self, given: Type | Constant | None) -> Hashable:
        return (super().key(given), value_key(given.shape)) if isinstance(given, Type) else super().key(given)

    def _depending(self, value: Value, sizes: frozenset[str]) -> Value:
        if not sizes:
            return value
        if isinstance(value, int | float | Polynomial) and not isinstance(value, bool):
            return make_derived(value, None, sizes | sizes_in(value))
        self.decisive |= sizes if isinstance(value, str) else NO_SIZES
        return value
