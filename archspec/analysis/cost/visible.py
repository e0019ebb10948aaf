"""Products of attention with the keys that masks leave visible: fused kernels skip the others.

`causal_half` counts half of the products of causal attention, which is more than a window leaves, and less than the
n (n + 1) / 2 pairs of n positions. A least time must count the pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from archspec.core.algebra import ratio, substitute, weighted_sum
from archspec.ir.module import Body, Call
from archspec.ir.origins import InputOrigins, Origins
from archspec.ir.structure.attention import AttentionPart, AttentionTracer, BodyContext
from archspec.ir.structure.masks import ALL_KEYS, VisibleKeys
from archspec.ir.work import Quantity, call_work, multiply_by_iterations, operand_type


class VisibleProducts:
    """Counter of these products, for sizes of all dimensions.

    The counts are at least, not exact (`are_exact`), where masks hide keys in ways that are not followed.
    """

    def __init__(self, values: Mapping[str, int]) -> None:
        self.values = values
        self.are_exact = True

    def count(self, macs: Quantity, part: AttentionPart | None, call: Call, body: Body) -> Quantity:
        """Return the multiply-accumulates of an operation with visible keys; `macs` are all of them."""
        if part is None or not macs or part.visible == ALL_KEYS:
            return macs
        weights = call.outputs[0] if part.name == "score" else operand_type(call.inputs[0][1], body.types)
        assert weights is not None
        queries, keys = (substitute(size, self.values) for size in weights.shape[-2:])
        if not isinstance(queries, int) or not isinstance(keys, int):
            self.are_exact = False
            return 0
        return ratio(weighted_sum([(macs, self._count_pairs(part.visible, queries, keys))]), queries * keys)

    def _count_pairs(self, visible: VisibleKeys, queries: int, keys: int) -> int:
        """Return the number of pairs of a query and a key that it sees, at least."""
        if not visible.is_known or not visible.exact or queries != keys:
            self.are_exact = False
            return queries  # each sees one key
        self.are_exact = self.are_exact and visible.causal
        earlier = keys - 1 if visible.window is None else min(visible.window, keys - 1)
        return (earlier + 1) * (earlier + 2) // 2 + (keys - 1 - earlier) * (earlier + 1)


def count_visible_macs(body: Body, tracer: AttentionTracer, products: VisibleProducts) -> int:
    """Return the multiply-accumulates of a forward pass without those that masks hide."""
    origins = Origins()

    @cache
    def visit(body: Body, context: BodyContext, inputs: InputOrigins) -> Quantity:
        traced, slots = tracer.trace(body, context), origins.slots(body, inputs)
        amounts: list[tuple[Quantity, int]] = []
        for call in body.calls:
            if call.body is None:
                amount = products.count(call_work(call, body, slots).macs, traced.part(call), call, body)
            else:
                amount = visit(call.body, traced.call_context(call), origins.inputs(call, slots))
            amounts.append((amount, 1))
        return multiply_by_iterations(weighted_sum(amounts), body)

    total = substitute(visit(body, BodyContext(), ()), products.values)
    assert isinstance(total, int)
    return total
