"""Indices of loops over a dimension: symbols in the compiled iteration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from archspec.compiler.evaluate.program import Program, Range
from archspec.compiler.evaluate.values import Value, is_list
from archspec.core.algebra import Dim, Polynomial, coefficients_by_power, has_lower_bound, substitute, symbols
from archspec.core.diagnostics import Span
from archspec.ir.module import Type
from archspec.ir.ops import Op, OpError
from archspec.ir.ops.check import is_certainly_below


def symbols_in(value: Value) -> Iterator[str]:
    """Yield the names of the symbols and indices in a static value."""
    if is_list(value):
        for item in value:
            yield from symbols_in(item)
    elif isinstance(value, Polynomial):
        yield from symbols(value)


def indices_in(value: Value, ranges: Mapping[str, Range]) -> frozenset[str]:
    """Return the indices of enclosing loops on which a static value depends."""
    return frozenset(symbols_in(value)) & ranges.keys() if ranges else frozenset()


def operation_types(
    program: Program, op: Op, inputs: Sequence[Type | None], attributes: dict[str, Value], span: Span
) -> tuple[Type, ...]:
    """Return the types of the results of an operation. Raises OpError.

    A position that depends on indices must be linear in them: it is then valid in all iterations if it is valid at the
    ends of their ranges.
    """
    depending: dict[str, frozenset[str]] = {}
    if program.ranges:
        indices_by_name = {name: indices_in(value, program.ranges) for name, value in attributes.items()}
        depending = {name: indices for name, indices in indices_by_name.items() if indices}
    if not depending:
        return program.numbers.outputs(op, inputs, attributes, span)
    positions = {attribute.name for attribute in op.attributes if attribute.is_position}
    for name, indices in depending.items():
        value = attributes[name]
        if name not in positions or not isinstance(value, Polynomial):
            index = f"`{min(indices)}`, the index of a loop over a dimension"
            raise OpError(f"hyperparameter `{name}` of `{op.name}` cannot depend on {index}", name)
        minimum = _minimum_position(value, indices, program.ranges)
        if minimum is None:
            raise OpError(f"hyperparameter `{name}` of `{op.name}` must be linear in the index of the loop", name)
        if is_certainly_below(minimum, 0) or (program.numbers.counts_elements and not has_lower_bound(minimum, 0)):
            raise OpError(f"`{op.name}` may receive a negative {name} in this loop: {value}", name)
    types: set[tuple[Type, ...]] = set()
    for corner in _corners(attributes, frozenset[str]().union(*depending.values()), program.ranges):
        types.add(program.numbers.outputs(op, inputs, corner, span))
    if len(types) > 1:
        raise OpError(f"the size of the result of `{op.name}` depends on the index of the loop")
    return types.pop()


def _minimum_position(value: Dim, indices: frozenset[str], ranges: Mapping[str, Range]) -> Dim | None:
    """Return the minimum of a position over all iterations; None if it is not linear in the indices."""
    for index in indices:
        powers = coefficients_by_power(value, index)
        slope = powers.get(1, 0) if powers is not None and powers.keys() <= {0, 1} else None
        if slope is None or not (has_lower_bound(slope, 0) or has_lower_bound(-slope, 0)):
            return None
        value = substitute(value, {index: ranges[index].first if has_lower_bound(slope, 0) else ranges[index].last})
    return value


def _corners(
    attributes: dict[str, Value], indices: frozenset[str], ranges: Mapping[str, Range]
) -> list[dict[str, Value]]:
    """Return the attributes with every combination of the first and last values of the indices."""
    corners = [attributes]
    for index in sorted(indices):
        corners = [
            {name: ranges[index].endpoint(end, value, index) for name, value in corner.items()}
            for corner in corners
            for end in (0, 1)
        ]
    return corners
