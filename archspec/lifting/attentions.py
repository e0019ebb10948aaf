"""Attention that a module writes as products, masks and a softmax, as the function of the library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from archspec.equivalence.calls.values import Untranslatable
from archspec.lifting.builder import Builder
from archspec.lifting.operations.attention import VISIBLE, as_mask, attention
from archspec.lifting.values import Argument, Value, live, number_in

MOST_STEPS = 6
"""Scores are scaled, biased and masked in at most so many steps."""


class _Scores(NamedTuple):
    """Scores: a product that is scaled, to which biases are added, and which is hidden where it is not visible."""

    product: Value
    scale: float = 1.0
    bias: Value | None = None
    visible: Value | None = None


def with_attention(b: Builder, outputs: Sequence[Value]) -> None:
    """Replace products of a softmax of scores, which nothing else uses, by attention."""
    values = live(outputs)
    uses = Counter([operand for value in values for operand in value.operands] + [*outputs])
    for value in values:
        outer, b.frame = b.frame, value.frame
        found = _attention(b, value, uses)
        b.frame = outer
        if found is not None:
            value.op, value.args, value.settings, value.kind = found.op, found.args, found.settings, found.kind


def _attention(b: Builder, value: Value, uses: Counter[Value]) -> Value | None:
    weights = value.args[0] if _is_operation(value, "matmul") and len(value.shape) == 4 else None
    if not isinstance(weights, Value) or not _is_operation(weights, "softmax") or uses[weights] != 1:
        return None
    scores = _scores(b, weights.operands[0], uses) if weights.settings.get("axis", -1) == -1 else None
    if scores is None or len(scores.product.shape) != 4:
        return None
    (query, first), (keys, second) = [_unscaled(b, b.unwritten(side)) for side in scores.product.operands]
    if len(query.shape) != 4 or len(keys.shape) != 4:
        return None
    key, result = b.permute(keys, (0, 1, 3, 2)), b.unwritten(value.operands[1])
    scale = scores.scale * first * second
    try:
        found = attention(b, query, key, result, scores.visible, False, scale, scores.bias)
    except Untranslatable:
        return None
    is_written = all(other.op != VISIBLE for other in live([found]))
    return found if found.op == "attention" and found.array == value.array and is_written else None


def _unscaled(b: Builder, value: Value) -> tuple[Value, float]:
    """Return queries or keys before they were multiplied by a number, and the number."""
    root, _ = b.layout(value)
    number = _number(root.args[1]) if _is_operation(root, "mul", "div") else None
    inner = root.args[0] if number is not None else None
    if number is None or not isinstance(inner, Value) or inner.shape != root.shape:
        return value, 1.0
    return b.laid_out(b.unwritten(inner), value, root), number if root.op == "mul" else 1 / number


def _scores(b: Builder, value: Value, uses: Counter[Value], most: int = MOST_STEPS) -> _Scores | None:
    """Return what scores consist of; None if they are no product."""
    if uses[value] != 1 or not most:
        return None
    if _is_operation(value, "matmul"):
        return _Scores(value)
    for inner in value.operands if _is_operation(value, "where", "add", "mul", "div") else ():
        scores = _scores(b, inner, uses, most - 1) if inner.shape == value.shape and inner.dtype == "real" else None
        if scores is not None:
            return _changed(b, scores, value, inner)
    return None


def _changed(b: Builder, scores: _Scores, value: Value, inner: Value) -> _Scores | None:
    """Return scores after an operation that `value` is of `inner`."""
    if value.op == "where":
        test, first, second = value.args
        if not isinstance(test, Value) or _number(second if first is inner else first) != -inf:
            return None
        return _seen(b, scores, test if first is inner else b.op("not", test))
    first, other = value.args if value.args[0] is inner else value.args[::-1]
    number = _number(other)
    if value.op == "add" and isinstance(other, Value):
        visible = as_mask(b, other)
        if visible is not None:
            return _seen(b, scores, visible)
        return scores._replace(bias=other if scores.bias is None else b.op("add", scores.bias, other))
    if number is None or value.op == "add" or (value.op == "div" and first is not value.args[0]):
        return None
    return scores._replace(scale=scores.scale * number if value.op == "mul" else scores.scale / number)


def _seen(b: Builder, scores: _Scores, visible: Value) -> _Scores:
    both = visible if scores.visible is None else b.op("and", scores.visible, visible)
    return scores._replace(visible=both)


def _number(arg: Argument) -> float | None:
    found = number_in(arg) if isinstance(arg, Value) else arg
    return float(found) if isinstance(found, int | float) else None


def _is_operation(value: Value, *names: str) -> bool:
    return value.kind == "ops" and value.op in names
