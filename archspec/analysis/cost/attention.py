"""Detection of attention's score and mix products from dataflow, independent of names.

A *score* product is a matmul whose result becomes the argument of a softmax; a *mix* product is a matmul that takes the
result of a softmax. Elementwise operations and moves that keep the shape (a scale, a mask, a bias) may come between
them. A matmul is a score only if a mix follows its softmax, so a final softmax over a vocabulary does not count.
(`Op.attention` in the record of an operation states its part.) What a loop over a dimension carries is not followed: it
may be different in the first and in the last iteration.

Masks in between that depend on positions tell which keys a query sees (`masks`): those with `-inf` have no weight. They
tell nothing if what is between a mask and the second product can move keys, or give hidden ones a weight (`hiding`).

Bodies are shared, and attention may extend over several of them, so each is analysed once per `Context`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, reduce
from typing import TypeVar

from archspec.analysis.cost.masks import (
    ALL,
    UNKNOWN,
    Masks,
    Positions,
    VisibleKeys,
    intersect_keys,
    keeps_hidden,
    unite_keys,
)
from archspec.core.record import Record
from archspec.ir.fold import (
    ForwardResult,
    VisitLimit,
    arguments,
    present_outputs,
    propagate_backward,
    propagate_forward,
)
from archspec.ir.module import Body, Call, Operand, Type
from archspec.ir.ops import OPS


class ProductOrigin(Record):
    """The content of a value: whether it is the result of a softmax, or of a product, changed elementwise or moved.

    `seen` are the keys that the masks after the product show.
    """

    softmaxed: bool = False
    product: bool = False
    seen: VisibleKeys = ALL


class AttentionUse(Record):
    """The uses of a value: by a product (`mixed`), and by a softmax whose result a product uses (`scored`).

    `seen` are the keys that the masks before that softmax show. If the value was `changed` since, masks before tell
    nothing.
    """

    mixed: bool = False
    scored: bool = False
    seen: VisibleKeys = ALL
    changed: bool = False


PLAIN, PRODUCT, UNUSED = ProductOrigin(), ProductOrigin(product=True), AttentionUse()
V = TypeVar("V")


class BodyContext(Record):
    """The context of a body: what its inputs hold, what is known of their positions, and the uses of its outputs; each
    may be empty if there is nothing in it.
    """

    held: tuple[ProductOrigin, ...] = ()
    positions: tuple[Positions, ...] = ()
    uses: tuple[AttentionUse, ...] = ()


class AttentionPart(Record):
    """The part of a product in attention: "score" or "mix", and the keys that a query sees."""

    name: str
    seen: VisibleKeys


class AttentionSlots(Record):
    """The facts of a `Context` for each slot of a body."""

    held: Sequence[ProductOrigin]
    positions: Sequence[Positions]
    uses: Sequence[AttentionUse]

    def part(self, call: Call) -> AttentionPart | None:
        """Return the part of an operation of the body in attention."""
        if OPS[call.type].attention != "product":
            return None
        held = [self.held[operand] for _, operand in call.inputs if isinstance(operand, int)]
        weights = [entry.seen for entry in held if entry.softmaxed]
        if weights:
            return AttentionPart("mix", reduce(unite_keys, weights))
        use = self.uses[call.first]
        return AttentionPart("score", use.seen) if use.scored else None

    def inside(self, call: Call) -> BodyContext:
        """Return the context of the body that a call applies."""
        operands = [operand for _, operand in call.inputs]
        held = [self.held[operand] if isinstance(operand, int) else PLAIN for operand in operands]
        uses = [UNUSED] * len(call.outputs)
        for i, slot in present_outputs(call):
            uses[i] = self.uses[slot]
        return BodyContext(
            _omit_defaults(PLAIN, arguments(call, held)),
            _positions_inside(call, self.positions),
            _omit_defaults(UNUSED, uses),
        )


class AttentionTracer:
    """Finds the slots of bodies that take part in attention, once per context."""

    def __init__(self) -> None:
        self._budget = VisitLimit()
        self._masks = Masks()
        self._forward: Callable[[Body, BodyContext], ForwardResult[ProductOrigin]] = cache(self._holds)
        self._backward: Callable[[Body, BodyContext], list[AttentionUse]] = cache(self._uses)

    def trace(self, body: Body, context: BodyContext) -> AttentionSlots:
        """Return the slots of a body that take part in attention. Raises ArchError if that takes too many steps."""
        self._budget.count_calls(body)
        uses = self._backward(body, context._replace(held=()))
        positions = self._positions(body, context)
        return AttentionSlots(self._forward(body, context._replace(uses=())).slots, positions, uses)

    def _positions(self, body: Body, context: BodyContext) -> list[Positions]:
        return self._masks.slots(body, context.positions or (None,) * len(body.inputs)).slots

    def _holds(self, body: Body, context: BodyContext) -> ForwardResult[ProductOrigin]:
        """Find what the slots and outputs hold."""
        positions = self._positions(body, context)

        def visit_op(call: Call, given: list[ProductOrigin]) -> list[ProductOrigin]:
            role = OPS[call.type].attention
            if role == "product":
                return [PRODUCT] * len(call.outputs)
            if role == "weights":
                return [ProductOrigin(True, False, given[0].seen if _is_along_keys(call, body) else UNKNOWN)] * len(
                    call.outputs
                )
            followed = zip(given, _passes(call, body.types), strict=True)
            # Other operands, such as biases and sinks, are not at keys, or are finite.
            passed = [entry for entry, passes in followed if passes and (entry.softmaxed or entry.product)]
            if not passed:
                return [PLAIN] * len(call.outputs)
            softmaxed, product = any(e.softmaxed for e in passed), any(e.product for e in passed)
            before = reduce(unite_keys, [entry.seen for entry in passed])
            if before != ALL and not keeps_hidden(
                call, body, [entry in passed for entry in given], softmaxed=softmaxed
            ):
                before = UNKNOWN
            seen = intersect_keys(before, self._shown(call, positions, body))
            return [ProductOrigin(softmaxed, product, seen)] * len(call.outputs)

        def visit_call(call: Call, given: list[ProductOrigin]) -> list[ProductOrigin]:
            assert call.body is not None
            inside = BodyContext(_omit_defaults(PLAIN, arguments(call, given)), _positions_inside(call, positions))
            return self._forward(call.body, inside).outputs

        carried = _carried_count(body)
        start = [PLAIN if i < carried else entry for i, entry in enumerate(context.held or [PLAIN] * len(body.inputs))]
        found = propagate_forward(body, start, visit_op, visit_call, PLAIN, budget=self._budget)
        return found._replace(outputs=[PLAIN if i < carried else entry for i, entry in enumerate(found.outputs)])

    def _uses(self, body: Body, context: BodyContext) -> list[AttentionUse]:
        """Derive the uses of each slot from those of the outputs."""
        positions = self._positions(body, context)

        def visit_op(call: Call, results: list[AttentionUse]) -> list[AttentionUse]:
            role = OPS[call.type].attention
            if role == "product":
                return [AttentionUse(mixed=True)] * len(call.inputs)
            if role == "weights":
                seen = ALL if _is_along_keys(call, body) else UNKNOWN
                return [AttentionUse(scored=results[0].mixed, seen=seen)] * len(call.inputs)
            use = reduce(_merge_uses, results)
            if use.scored:
                shown = self._shown(call, positions, body)
                seen = UNKNOWN if use.changed and shown != ALL else intersect_keys(use.seen, shown)
                use = use._replace(seen=seen)
            passed = _passes(call, body.types)
            return [_use_of(i, call, body, use) if passes else UNUSED for i, passes in enumerate(passed)]

        def visit_call(call: Call, results: list[AttentionUse]) -> list[AttentionUse]:
            assert call.body is not None
            inside = BodyContext((), _positions_inside(call, positions), _omit_defaults(UNUSED, results))
            slots = self._backward(call.body, inside)
            inner = {name: slots[i] for i, (name, _) in enumerate(call.body.inputs)}  # inputs fill the first slots
            return [inner.get(name, UNUSED) for name, _ in call.inputs]

        carried = _carried_count(body)
        outputs = context.uses or [UNUSED] * len(body.outputs)
        followed = [UNUSED if i < carried else use for i, use in enumerate(outputs)]
        found = propagate_backward(body, followed, visit_op, visit_call, UNUSED, _merge_uses, self._budget)
        found[:carried] = [UNUSED] * carried
        return found

    def _shown(self, call: Call, positions: Sequence[Positions], body: Body) -> VisibleKeys:
        given = [positions[operand] if isinstance(operand, int) else None for _, operand in call.inputs]
        return self._masks.shown(call, given, body)


def _use_of(index: int, call: Call, body: Body, use: AttentionUse) -> AttentionUse:
    """Return the use of an operand of an operation, from that of its result."""
    if not use.scored:
        return use
    followed = [i == index for i in range(len(call.inputs))]
    return use if keeps_hidden(call, body, followed) else use._replace(changed=True)


def _merge_uses(a: AttentionUse, b: AttentionUse) -> AttentionUse:
    seen = unite_keys(a.seen, b.seen) if a.scored and b.scored else a.seen if a.scored else b.seen
    return AttentionUse(a.mixed or b.mixed, a.scored or b.scored, seen, a.changed or b.changed)


def _positions_inside(call: Call, positions: Sequence[Positions]) -> tuple[Positions, ...]:
    given = [positions[operand] if isinstance(operand, int) else None for _, operand in call.inputs]
    return _omit_defaults(None, arguments(call, given))


def _omit_defaults(default: V, values: Sequence[V]) -> tuple[V, ...]:
    """Normalize the values of a context: return () if all are defaults, so that equal contexts compare equal."""
    return () if all(value == default for value in values) else tuple(values)


def _is_along_keys(call: Call, body: Body) -> bool:
    """Whether weights are computed along the last axis, that of the keys in a mask."""
    operand = call.inputs[0][1]
    axis = OPS[call.type].settings(call.attributes)["axis"]
    return isinstance(operand, int) and axis in (-1, len(body.types[operand].shape) - 1)


def _carried_count(body: Body) -> int:
    """Return the number of inputs and outputs that iterations of a loop pass on: these are not followed."""
    return body.loop.carried if body.loop is not None else 0


def _passes(call: Call, types: list[Type]) -> list[bool]:
    """Return the operands that an operation passes through, changed elementwise or moved."""
    group, result = OPS[call.type].group, call.outputs[0]
    if result is None or result.dtype != "real" or group not in ("Elementwise", "Shape"):
        return [False] * len(call.inputs)

    def passes(operand: Operand) -> bool:
        if not isinstance(operand, int) or types[operand].dtype != "real":
            return False
        return group == "Shape" or types[operand].shape == result.shape

    return [passes(operand) for _, operand in call.inputs]
