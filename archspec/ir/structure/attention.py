"""Detection of attention's score and mix products from dataflow, independent of names.

A *score* product is a matmul whose result becomes the argument of a softmax; a *mix* product is a matmul that takes the
result of a softmax. Elementwise operations and moves that keep the shape (a scale, a mask, a bias) may come between
them. A matmul is a score only if a mix follows its softmax, so a final softmax over a vocabulary does not count.
(`Op.attention` in the record of an operation states its part.) Values that a loop over a dimension carries are not
followed: they may differ between the first and the last iteration.

Masks in between that depend on positions determine the keys that a query sees (`masks`): keys with `-inf` have no
weight. A mask is ignored if an operation between it and the second product can move keys, or give hidden keys a weight
(`keeps_hidden`).

Bodies are shared, and attention may extend over several of them, so each is analysed once per `BodyContext`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, reduce
from typing import TypeVar

from archspec.core.algebra import symbols
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
from archspec.ir.structure.masks import (
    ALL_KEYS,
    UNKNOWN_KEYS,
    Masks,
    Positions,
    VisibleKeys,
    intersect_keys,
    keeps_hidden,
    unite_keys,
)


class ProductOrigin(Record):
    """The origin of a value: whether it is the result of a softmax or of a product, changed elementwise or moved.

    `visible` are the keys that the masks after the product leave visible.
    """

    softmaxed: bool = False
    product: bool = False
    visible: VisibleKeys = ALL_KEYS


class AttentionUse(Record):
    """The uses of a value: by a product (`mixed`), and by a softmax whose result a product uses (`scored`).

    `visible` are the keys that the masks before that softmax leave visible. If the value is `changed` later, earlier
    masks determine nothing.
    """

    mixed: bool = False
    scored: bool = False
    visible: VisibleKeys = ALL_KEYS
    changed: bool = False


NO_ORIGIN, PRODUCT_ORIGIN, NO_USE = ProductOrigin(), ProductOrigin(product=True), AttentionUse()
V = TypeVar("V")


class BodyContext(Record):
    """The context of a body: the origins and positions of its inputs, and the uses of its outputs.

    Each is empty if it has only default values.
    """

    origins: tuple[ProductOrigin, ...] = ()
    positions: tuple[Positions, ...] = ()
    uses: tuple[AttentionUse, ...] = ()


class AttentionPart(Record):
    """The part of a product in attention: "score" or "mix", and the keys that a query sees."""

    name: str
    visible: VisibleKeys


class AttentionSlots(Record):
    """The facts of a `BodyContext` for each slot of a body."""

    origins: Sequence[ProductOrigin]
    positions: Sequence[Positions]
    uses: Sequence[AttentionUse]

    def part(self, call: Call) -> AttentionPart | None:
        """Return the part of an operation of the body in attention, or None."""
        if OPS[call.type].attention != "product":
            return None
        origins = [self.origins[operand] for _, operand in call.inputs if isinstance(operand, int)]
        weights = [entry.visible for entry in origins if entry.softmaxed]
        if weights:
            return AttentionPart("mix", reduce(unite_keys, weights))
        use = self.uses[call.first]
        return AttentionPart("score", use.visible) if use.scored else None

    def call_context(self, call: Call) -> BodyContext:
        """Return the context of the body that a call applies."""
        operands = [operand for _, operand in call.inputs]
        origins = [self.origins[operand] if isinstance(operand, int) else NO_ORIGIN for operand in operands]
        uses = [NO_USE] * len(call.outputs)
        for i, slot in present_outputs(call):
            uses[i] = self.uses[slot]
        return BodyContext(
            _omit_defaults(NO_ORIGIN, arguments(call, origins)),
            _positions_in_call(call, self.positions),
            _omit_defaults(NO_USE, uses),
        )


class AttentionTracer:
    """Finder of the slots of bodies that take part in attention; each body is analysed once per context."""

    def __init__(self) -> None:
        self._budget = VisitLimit()
        self._masks = Masks()
        self._forward: Callable[[Body, BodyContext], ForwardResult[ProductOrigin]] = cache(self._find_origins)
        self._backward: Callable[[Body, BodyContext], list[AttentionUse]] = cache(self._find_uses)

    def trace(self, body: Body, context: BodyContext) -> AttentionSlots:
        """Return the slots of a body that take part in attention. Raises ArchError if this takes too many steps."""
        self._budget.count_calls(body)
        uses = self._backward(body, context._replace(origins=()))
        positions = self._positions(body, context)
        return AttentionSlots(self._forward(body, context._replace(uses=())).slots, positions, uses)

    def _positions(self, body: Body, context: BodyContext) -> list[Positions]:
        return self._masks.slots(body, context.positions or (None,) * len(body.inputs)).slots

    def _find_origins(self, body: Body, context: BodyContext) -> ForwardResult[ProductOrigin]:
        """Find the origins of the slots and outputs."""
        positions = self._positions(body, context)

        def visit_op(call: Call, origins: list[ProductOrigin]) -> list[ProductOrigin]:
            role = OPS[call.type].attention
            if role == "product":
                return [PRODUCT_ORIGIN] * len(call.outputs)
            if role == "weights":
                visible = origins[0].visible if _is_softmax_along_keys(call, body) else UNKNOWN_KEYS
                return [ProductOrigin(True, False, visible)] * len(call.outputs)
            followed = zip(origins, _passed_operands(call, body.types), strict=True)
            # Other operands, such as biases and sinks, are not at keys, or are finite.
            passed = [entry for entry, passes in followed if passes and (entry.softmaxed or entry.product)]
            if not passed:
                return [NO_ORIGIN] * len(call.outputs)
            softmaxed, product = any(e.softmaxed for e in passed), any(e.product for e in passed)
            visible = reduce(unite_keys, [entry.visible for entry in passed])
            if visible != ALL_KEYS and not keeps_hidden(
                call, body, [entry in passed for entry in origins], softmaxed=softmaxed
            ):
                visible = UNKNOWN_KEYS
            visible = intersect_keys(visible, self._visible_keys(call, positions, body))
            return [ProductOrigin(softmaxed, product, visible)] * len(call.outputs)

        def visit_call(call: Call, origins: list[ProductOrigin]) -> list[ProductOrigin]:
            assert call.body is not None
            call_origins = _omit_defaults(NO_ORIGIN, arguments(call, origins))
            return self._forward(call.body, BodyContext(call_origins, _positions_in_call(call, positions))).outputs

        carried = _carried_count(body)
        input_origins = context.origins or [NO_ORIGIN] * len(body.inputs)
        start = [NO_ORIGIN if i < carried else entry for i, entry in enumerate(input_origins)]
        result = propagate_forward(body, start, visit_op, visit_call, NO_ORIGIN, budget=self._budget)
        return result._replace(outputs=[NO_ORIGIN if i < carried else entry for i, entry in enumerate(result.outputs)])

    def _find_uses(self, body: Body, context: BodyContext) -> list[AttentionUse]:
        """Derive the uses of each slot from the uses of the outputs."""
        positions = self._positions(body, context)

        def visit_op(call: Call, results: list[AttentionUse]) -> list[AttentionUse]:
            role = OPS[call.type].attention
            if role == "product":
                return [AttentionUse(mixed=True)] * len(call.inputs)
            if role == "weights":
                visible = ALL_KEYS if _is_softmax_along_keys(call, body) else UNKNOWN_KEYS
                return [AttentionUse(scored=results[0].mixed, visible=visible)] * len(call.inputs)
            use = reduce(_merge_uses, results)
            if use.scored:
                visible = self._visible_keys(call, positions, body)
                is_unknown = use.changed and visible != ALL_KEYS
                use = use._replace(visible=UNKNOWN_KEYS if is_unknown else intersect_keys(use.visible, visible))
            passed = _passed_operands(call, body.types)
            return [_operand_use(i, call, body, use) if passes else NO_USE for i, passes in enumerate(passed)]

        def visit_call(call: Call, results: list[AttentionUse]) -> list[AttentionUse]:
            assert call.body is not None
            call_context = BodyContext((), _positions_in_call(call, positions), _omit_defaults(NO_USE, results))
            slots = self._backward(call.body, call_context)
            inner = {name: slots[i] for i, (name, _) in enumerate(call.body.inputs)}  # inputs fill the first slots
            return [inner.get(name, NO_USE) for name, _ in call.inputs]

        carried = _carried_count(body)
        outputs = context.uses or [NO_USE] * len(body.outputs)
        followed = [NO_USE if i < carried else use for i, use in enumerate(outputs)]
        slot_uses = propagate_backward(body, followed, visit_op, visit_call, NO_USE, _merge_uses, self._budget)
        slot_uses[:carried] = [NO_USE] * carried
        return slot_uses

    def _visible_keys(self, call: Call, positions: Sequence[Positions], body: Body) -> VisibleKeys:
        operand_positions = [positions[operand] if isinstance(operand, int) else None for _, operand in call.inputs]
        return self._masks.visible_keys(call, operand_positions, body)


def find_score_products(body: Body, dimension: str) -> list[AttentionPart]:
    """Find the products that score keys along a dimension."""
    tracer = AttentionTracer()
    parts: list[AttentionPart] = []

    def visit(body: Body, traced: AttentionSlots) -> None:
        for call in body.calls:
            if call.body is not None:
                visit(call.body, tracer.trace(call.body, traced.call_context(call)))
            else:
                part = traced.part(call)
                if part is not None and part.name == "score" and _scores_dimension(call, dimension):
                    parts.append(part)

    visit(body, tracer.trace(body, BodyContext()))
    return parts


def _scores_dimension(call: Call, dimension: str) -> bool:
    result = call.outputs[0]
    return isinstance(result, Type) and all(dimension in symbols(size) for size in result.shape[-2:])


def _operand_use(index: int, call: Call, body: Body, use: AttentionUse) -> AttentionUse:
    """Derive the use of an operand of an operation from the use of its result."""
    if not use.scored:
        return use
    followed = [i == index for i in range(len(call.inputs))]
    return use if keeps_hidden(call, body, followed) else use._replace(changed=True)


def _merge_uses(a: AttentionUse, b: AttentionUse) -> AttentionUse:
    visible = unite_keys(a.visible, b.visible) if a.scored and b.scored else a.visible if a.scored else b.visible
    return AttentionUse(a.mixed or b.mixed, a.scored or b.scored, visible, a.changed or b.changed)


def _positions_in_call(call: Call, positions: Sequence[Positions]) -> tuple[Positions, ...]:
    operand_positions = [positions[operand] if isinstance(operand, int) else None for _, operand in call.inputs]
    return _omit_defaults(None, arguments(call, operand_positions))


def _omit_defaults(default: V, values: Sequence[V]) -> tuple[V, ...]:
    """Return the values of a context, or () if all are defaults, so that equivalent contexts compare equal."""
    return () if all(value == default for value in values) else tuple(values)


def _is_softmax_along_keys(call: Call, body: Body) -> bool:
    """Whether weights are computed along the last axis, which is the axis of keys in a mask."""
    operand = call.inputs[0][1]
    axis = OPS[call.type].settings(call.attributes)["axis"]
    return isinstance(operand, int) and axis in (-1, len(body.types[operand].shape) - 1)


def _carried_count(body: Body) -> int:
    """Return the number of inputs and outputs that a loop carries, which are not followed."""
    return body.loop.carried if body.loop is not None else 0


def _passed_operands(call: Call, types: list[Type]) -> list[bool]:
    """Return, for each operand, whether an operation passes it through, changed elementwise or moved."""
    group, result = OPS[call.type].group, call.outputs[0]
    if result is None or result.dtype != "real" or group not in ("Elementwise", "Shape"):
        return [False] * len(call.inputs)

    def passes(operand: Operand) -> bool:
        if not isinstance(operand, int) or types[operand].dtype != "real":
            return False
        return group == "Shape" or types[operand].shape == result.shape

    return [passes(operand) for _, operand in call.inputs]
