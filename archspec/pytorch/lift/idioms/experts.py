"""Mixtures of experts: the product with a matrix for each expert, and the function `gated_experts` of the library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from archspec.core.algebra import Dim, product
from archspec.pytorch.lift.idioms.patterns import activations
from archspec.pytorch.values.values import Operand, Setting, Value

if TYPE_CHECKING:
    from archspec.pytorch.lift.values.builder import SpecBuilder

PRODUCT = "expert_linear"


def product_of_experts(builder: SpecBuilder, made: Value, left: Value, right: Value) -> Value | None:
    """Return a product of matrices that are selected by indices, and vectors, as `expert_linear`; None if it is not."""
    for matrices, vectors, axes in ((left, right, (0, 1, 2)), (right, left, (0, 2, 1))):
        selected, _ = builder.layout(builder.unwritten(matrices))
        if selected.op != "embedding" or len(selected.operands[1].shape) != 3:
            continue
        ids, table = selected.operands
        weights = builder.permute(table, axes)
        lead, width = ids.shape, weights.shape[2]
        if product(vectors.shape) != product((*lead, width)):
            continue
        for x in _of_each_token(builder, builder.reshape(builder.unwritten(vectors), (*lead, width))):
            found = builder.reshape(builder.op(PRODUCT, x, ids, weights), made.shape)
            if found.array == made.array:
                return builder.rows.noted(found)
    return None


def merge_expert_bias(builder: SpecBuilder, result: Value, a: Operand, b: Operand) -> Value | None:
    """Return the product of experts `a` and rows `b` of their biases as one operation; None if they are not that."""
    if not (isinstance(a, Value) and isinstance(b, Value)):
        return None
    (made, _), (rows, _) = [builder.layout(builder.unwritten(value)) for value in (a, b)]
    if made.op != PRODUCT or len(made.args) != 3 or rows.op != "embedding":
        return None
    found = builder.reshape(builder.op(PRODUCT, *made.args, rows.operands[1]), a.shape)
    return builder.rows.noted(found) if found.array == result.array else None


def gated_experts(builder: SpecBuilder, result: Value, summed: Value, **along: Setting) -> Value | None:
    """Return the sum over the experts of each token as that of gated feed-forward layers; None if it is not that."""
    total, _ = builder.layout(result)
    terms = total.operands[0].operands if total.op == "sum" else []
    down = next((value for value in terms if value.op == PRODUCT), None)
    shares = next((value for value in terms if value is not down), None)
    if down is None or shares is None or len(total.shape) != 3 or len(down.args) != 3:
        return None
    inside = _before(down.operands[0])
    gate = next((value for value in inside if value.op == PRODUCT and value.args[1] is down.args[1]), None)
    applied = [value.op for value in inside if value.kind == "std" and value.op in activations()]
    if gate is None or len(gate.args) != 3 or not applied:
        return None
    x, ids, weights = gate.operands
    batch, seq, count = ids.shape
    given = [
        builder.written(builder.reshape(builder.unwritten(value), shape))
        for value, shape in ((x, (batch, seq, x.shape[-1])), (shares, (batch, seq, count)))
    ]
    settings: dict[str, Setting] = {} if applied[0] == "silu" else {"activation": applied[0]}
    args = [*given, ids, weights, down.operands[2]]
    found = builder.library.function("gated_experts", settings, [arg.array for arg in args], total.shape)
    if found != total.array:
        return None
    made = builder.made("gated_experts", args, total.array, settings, "std")
    return builder.rows.noted(builder.reshape(made, result.shape))


def _of_each_token(builder: SpecBuilder, x: Value) -> Iterator[Value]:
    """Yield the vectors of tokens that are repeated for each of their experts, and those vectors themselves."""
    root, _ = builder.layout(x)
    *lead, width = x.shape
    each: tuple[Dim, ...] = (*lead[:-1], width)
    if root.shape == each:
        yield builder.reshape(root, (*lead[:-1], 1, width))
    yield x


def _before(value: Value) -> list[Value]:
    """Return a value and those that it is computed from, up to products of experts."""
    found: dict[Value, None] = {}
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if value not in found:
            found[value] = None
            waiting += value.operands if value.op != PRODUCT else []
    return [*found]
