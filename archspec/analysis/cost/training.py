"""The FLOPs of a training step: forward, backward, and what checkpointing computes again.

A value needs a gradient if it is a trained parameter, or a real result of an operation on such a value. Backward, a
product takes as much as forward for each factor that needs a gradient, if its result affects an output by way of real
values. `docs/costs.md` describes checkpointing and LoRA.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import TypeAlias

from archspec.analysis.cost.trained import block_patterns, find_gradients, is_block
from archspec.analysis.cost.visible import VisibleProducts
from archspec.core.addresses import join, prefixes
from archspec.core.algebra import multiply_unexpanded, substitute, symbol, weighted_sum
from archspec.core.algebra.polynomial import ratio
from archspec.core.diagnostics import make_error
from archspec.core.record import Record
from archspec.ir.active import get_active_parts, share_of
from archspec.ir.fold import ForwardResult, arguments, present_outputs, propagate_backward, propagate_forward
from archspec.ir.index_ranges import dimensions
from archspec.ir.module import Body, Call, Constant
from archspec.ir.ops import OPS
from archspec.ir.origins import InputOrigins, Origins, is_from_weights
from archspec.ir.structure.attention import AttentionPart, AttentionTracer, BodyContext
from archspec.ir.table import Table
from archspec.ir.work import Quantity, call_work, multiply_by_iterations, operand_type


class StepFlops(Record):
    """FLOPs of a training step in matrix products, 2 per multiply-accumulate; `recompute` is due to checkpointing."""

    forward: Quantity
    backward: Quantity
    recompute: Quantity

    @property
    def model(self) -> Quantity:
        """Forward and backward: the FLOPs of model FLOPs utilization (MFU)."""
        return self.forward + self.backward

    @property
    def hardware(self) -> Quantity:
        """All that is computed: the FLOPs of hardware FLOPs utilization (HFU)."""
        return self.model + self.recompute

    def divide(self, number: Quantity) -> StepFlops:
        """Return the FLOPs of each of a number of tokens."""
        return StepFlops(*[ratio(part, number) for part in self])


class Training(Record):
    """The FLOPs of a training step: in `full`, and with the products of causal attention counted as `half`.

    `tokens` is the number of tokens of the step: `batch` times `seq`, None without `seq`. `blocks` are the
    patterns of the modules that are checkpointed, and `trained` is the number of trained parameters. If the FLOPs are
    those at most (`is_bound`), the first or last iterations of a loop over a sequence take less backward.

    For times, `visible` has the FLOPs without the products that masks hide, and `active` is the number of trained
    parameters of the experts of one token and of everything else; otherwise None.
    """

    full: StepFlops
    half: StepFlops
    tokens: Quantity | None
    trained: int
    checkpoint: str = "none"
    blocks: tuple[str, ...] = ()
    is_bound: bool = False
    visible: StepFlops | None = None
    active: int | None = None

    @property
    def per_token(self) -> StepFlops | None:
        """The FLOPs of `full` for each token."""
        return None if self.tokens is None else self.full.divide(self.tokens)


class _Weights(Record):
    """The gradients of the weights inside an address: all the same, or looked up by name (None)."""

    address: str
    gradient: int | None


class _Applied(Record):
    """A body, the gradients and origins of its inputs, and the gradients of its weights."""

    body: Body
    inputs: tuple[int, ...]
    origins: InputOrigins
    weights: _Weights


_NONE = 0
"""The gradient of a value that needs none."""


_Skipped: TypeAlias = Callable[[Quantity, "AttentionPart | None", Call, Body], Quantity]
"""The multiply-accumulates of an operation that are skipped."""


class _Totals(Record):
    """Multiply-accumulates of a body, and of those the skipped ones: of causal attention, half."""

    forward: Quantity = 0
    backward: Quantity = 0
    recompute: Quantity = 0
    skipped_forward: Quantity = 0
    skipped_backward: Quantity = 0
    skipped_recompute: Quantity = 0


def compute_training(
    table: Table,
    body: Body,
    values: Mapping[str, int],
    tracer: AttentionTracer,
    *,
    frozen: Collection[str] = (),
    lora: Mapping[str, int] | None = None,
    checkpoint: str = "none",
    for_time: bool = False,
) -> Training:
    """Compute the FLOPs of a training step; `values` are valid sizes.

    `frozen` are names or patterns of parameters that are not trained, `lora` the ranks of adapters by those of linear
    layers. `for_time` adds `visible` and `active`. Raises ArchError for a pattern without parameters.
    """
    gradients, trained = find_gradients(table, frozen, lora or {})
    step = _Step(tracer, gradients, checkpoint, bool(lora), _half_of_causal)
    full, half = step.flops(body, values)
    if lora and not step.adapted:
        raise make_error("unsupported", f"no linear layer of {table.model} is among {', '.join(lora)}")
    names = [name for name in dimensions(body.inputs) if name in ("batch", "seq")]
    tokens = multiply_unexpanded([values.get(name, symbol(name)) for name in names]) if "seq" in names else None
    blocks = block_patterns(table) if checkpoint != "none" else ()
    result = Training(full, half, tokens, sum(trained), checkpoint, blocks, step.is_bound)
    if not for_time:
        return result
    products = VisibleProducts(values)

    def hidden(macs: Quantity, part: AttentionPart | None, call: Call, body: Body) -> Quantity:
        return weighted_sum([(macs, 1), (products.count(macs, part, call, body), -1)])

    _, visible = _Step(tracer, gradients, checkpoint, bool(lora), hidden).flops(body, values)
    parts = zip(trained, get_active_parts(body).of_all(table.tensors), strict=True)
    active = sum(number if part == "rows" else share_of(number, part) for number, part in parts)  # gradients are dense
    return result._replace(visible=visible, active=active)


def _half_of_causal(macs: Quantity, part: AttentionPart | None, call: Call, body: Body) -> Quantity:
    return ratio(macs, 2) if part is not None and part.visible.causal else 0


class _Step:
    """Computation of the totals of bodies; each is visited once for each context and origin of its inputs."""

    def __init__(
        self, tracer: AttentionTracer, gradients: Mapping[str, int], checkpoint: str, lora: bool, skipped: _Skipped
    ) -> None:
        self.adapted = False
        self.is_bound = False
        self._tracer = tracer
        self._origins = Origins()
        self._gradients = gradients
        self._checkpoint = checkpoint
        self._skipped = skipped
        self._embeddings_need = checkpoint != "none" and lora  # as peft does, so that inputs of blocks need gradients
        self._by_address: dict[str, set[int]] = {}
        for name, gradient in gradients.items():
            for address in ("", *prefixes(name)):
                self._by_address.setdefault(address, set()).add(gradient)
        self._needs: Callable[[_Applied], ForwardResult[int]] = cache(self._find_needs)
        self.totals = cache(self._totals)
        self._arrivals = cache(self._find_arrivals)

    def flops(self, body: Body, values: Mapping[str, int]) -> tuple[StepFlops, StepFlops]:
        """Return the FLOPs of a model in full, and without the skipped products."""
        inputs, outputs = (_NONE,) * len(body.inputs), (True,) * len(body.outputs)
        total = self.totals(_Applied(body, inputs, (), self.inside("")), BodyContext(), outputs, False)
        amounts = [2 * substitute(amount, values) for amount in total]
        full = StepFlops(*amounts[:3])
        return full, StepFlops(*(number - skipped for number, skipped in zip(full, amounts[3:], strict=True)))

    def inside(self, address: str) -> _Weights:
        """Return the gradients of the weights inside an address."""
        gradients = self._by_address.get(address, {_NONE})
        return _Weights(address, None) if len(gradients) > 1 else _Weights("", next(iter(gradients)))

    def _inner(self, call: Call, weights: _Weights) -> _Weights:
        return weights if weights.gradient is not None else self.inside(join(weights.address, call.address))

    # Values that need gradients ---------------------------------------------------------------------------------------

    def _find_needs(self, applied: _Applied) -> ForwardResult[int]:
        body, inputs, origins, weights = applied
        slots = self._origins.slots(body, origins)

        def visit_op(call: Call, operands: list[int]) -> list[int]:
            op = OPS[call.type]
            if op.rearranges and len(operands) == len(call.outputs) == 1:
                return operands  # also of a weight with an adapter
            needs = any(operand > 0 for operand in operands) or _adapter_rank(call, operands) > 0
            if self._embeddings_need and op.macs is None and any(entry.indexes for entry in op.inputs):
                needs = needs or any(isinstance(o, int) and slots[o] == "weights" for _, o in call.inputs)
            return [int(needs and type is not None and type.dtype == "real") for type in call.outputs]

        def visit_call(call: Call, operands: list[int]) -> list[int]:
            assert call.body is not None
            inputs, origins = tuple(arguments(call, operands)), self._origins.inputs(call, slots)
            return self._needs(_Applied(call.body, inputs, origins, self._inner(call, weights))).outputs

        def weight(name: str) -> int:
            gradient = weights.gradient
            return self._gradients.get(join(weights.address, name), _NONE) if gradient is None else gradient

        carried = body.loop.carried if body.loop is not None else 0
        while True:
            result = propagate_forward(body, inputs, visit_op, visit_call, _NONE, weight=weight)
            joined = (*map(max, inputs[:carried], result.outputs[:carried]), *inputs[carried:])
            if joined == inputs:
                return result
            inputs, self.is_bound = joined, True  # the first iterations have fewer gradients

    # Values whose gradients are computed ------------------------------------------------------------------------------

    def _find_arrivals(self, applied: _Applied, outputs: tuple[bool, ...]) -> list[bool]:
        """Return the slots whose gradients are computed, from the outputs for which there are gradients."""
        body, needs = applied.body, self._needs(applied).slots

        def visit_op(call: Call, results: list[bool]) -> list[bool]:
            return [any(results) and isinstance(o, int) and needs[o] > 0 for _, o in call.inputs]

        def visit_call(call: Call, results: list[bool]) -> list[bool]:
            inner = self._apply(call, applied)
            arrivals = self._arrivals(inner, tuple(results))
            by_name = dict(zip([name for name, _ in inner.body.inputs], arrivals, strict=False))
            return [by_name.get(name, False) for name, _ in call.inputs]  # absent ones are no inputs

        carried = body.loop.carried if body.loop is not None else 0
        while True:
            present = [
                arrives and isinstance(o, int) and needs[o] > 0
                for arrives, (_, o) in zip(outputs, body.outputs, strict=True)
            ]
            arrivals = propagate_backward(body, present, visit_op, visit_call, False, _either)
            joined = (*map(_either, outputs[:carried], arrivals[:carried]), *outputs[carried:])
            if joined == outputs:
                return arrivals
            outputs, self.is_bound = joined, True  # the last iterations have fewer gradients

    def _apply(self, call: Call, applied: _Applied) -> _Applied:
        """Return the body that a call in an applied body applies."""
        assert call.body is not None
        operands = _operand_gradients(call, self._needs(applied).slots)
        origins = self._origins.inputs(call, self._origins.slots(applied.body, applied.origins))
        return _Applied(call.body, tuple(arguments(call, operands)), origins, self._inner(call, applied.weights))

    # Products ---------------------------------------------------------------------------------------------------------

    def _totals(self, applied: _Applied, context: BodyContext, outputs: tuple[bool, ...], in_block: bool) -> _Totals:
        body = applied.body
        traced = self._tracer.trace(body, context)
        arrivals = self._arrivals(applied, outputs)
        parts: list[_Totals] = []
        for call in body.calls:
            results = [False] * len(call.outputs)
            for i, slot in present_outputs(call):
                results[i] = arrivals[slot]
            if call.body is None:
                parts.append(self._product(call, applied, any(results), traced.part(call)))
                continue
            checkpointed = self._checkpoint != "none" and not in_block and is_block(call.address)
            inner, inner_context = self._apply(call, applied), traced.call_context(call)
            part = self.totals(inner, inner_context, tuple(results), in_block or checkpointed)
            if checkpointed:
                tail = self._tail(inner, inner_context)
                if tail is not None and any(results):
                    again, skipped_again = (
                        weighted_sum([(part.forward, 1), (tail.forward, -1)]),
                        weighted_sum([(part.skipped_forward, 1), (tail.skipped_forward, -1)]),
                    )
                    part = part._replace(recompute=again, skipped_recompute=skipped_again)
            parts.append(part)
        return _Totals(*(multiply_by_iterations(amount, body) for amount in _add(parts)))

    def _product(self, call: Call, applied: _Applied, arrives: bool, part: AttentionPart | None) -> _Totals:
        """Return the totals of an operation, whose result has a gradient if it `arrives`."""
        body = applied.body
        macs = call_work(call, body, self._origins.slots(body, applied.origins)).macs
        if not macs:
            return _Totals()
        operands = _operand_gradients(call, self._needs(applied).slots)
        factors = [
            operand > 0 for entry, operand in zip(OPS[call.type].inputs, operands, strict=False) if entry.name != "bias"
        ]
        times = sum(factors) if arrives else 0
        skipped = self._skipped(macs, part, call, body)
        totals = _Totals(macs, macs * times, 0, skipped, skipped * times, 0)
        rank = _adapter_rank(call, operands)
        if not rank:
            return totals
        first, last = self._adapter(call, body, rank)
        again = weighted_sum([(first, 1 + (operands[0] > 0)), (last, 2)]) if arrives else 0
        return _add([totals, _Totals(weighted_sum([(first, 1), (last, 1)]), again)])

    def _adapter(self, call: Call, body: Body, rank: int) -> tuple[Quantity, Quantity]:
        """Return the multiply-accumulates of the two products of an adapter."""
        self.adapted = True
        x, result = operand_type(call.inputs[0][1], body.types), call.outputs[0]
        assert x is not None and result is not None
        rows = result.shape[:-1]
        return (
            multiply_unexpanded((rank, x.shape[-1], *rows)),
            multiply_unexpanded((rank, result.shape[-1], *rows)),
        )

    def _tail(self, applied: _Applied, context: BodyContext) -> _Totals | None:
        """Return the products of a block that are not computed again, as nothing is saved for backward after them.

        Operations save their inputs before they compute, so a product that saves last is not computed again itself.
        Reentrant checkpointing computes all again. Return None if nothing is saved.
        """
        skipped, is_saved = self._find_tail(applied, context)
        if not is_saved:
            return None
        return skipped if self._checkpoint == "blocks" else _Totals()

    def _find_tail(self, applied: _Applied, context: BodyContext) -> tuple[_Totals, bool]:
        body = applied.body
        traced = self._tracer.trace(body, context)
        needs = self._needs(applied).slots
        slots = self._origins.slots(body, applied.origins)
        skipped: list[_Totals] = []
        for call in reversed(body.calls):
            if call.body is not None:
                part, is_saved = self._find_tail(self._apply(call, applied), traced.call_context(call))
                if call.body.loop is not None and is_saved:
                    return _add(skipped), True
                skipped.append(part)
            elif is_from_weights(call, slots):
                continue
            else:
                operands = _operand_gradients(call, needs)
                rank = _adapter_rank(call, operands)
                is_saved = rank > 0 or (any(operand > 0 for operand in operands) and _saves(call))
                if rank:
                    skipped.append(_Totals(self._adapter(call, body, rank)[1]))
                else:
                    skipped.append(self._product(call, applied, False, traced.part(call)))
            if is_saved:
                return _add(skipped), True
        return _add(skipped), False


def _operand_gradients(call: Call, needs: Sequence[int]) -> list[int]:
    """Return the gradients of the operands of a call; `needs` has one for each slot."""
    return [needs[o] if isinstance(o, int) else _NONE for _, o in call.inputs]


def _adapter_rank(call: Call, operands: Sequence[int]) -> int:
    """Return the rank of the adapter on the weight of a linear map; 0 if there is none."""
    op = OPS[call.type]
    if op.macs is None or op.attention == "product" or len(operands) < 2:
        return 0
    return -min(operands[1], 0)


def _saves(call: Call) -> bool:
    """Whether an operation on values that need gradients saves a tensor for backward."""
    op = OPS[call.type]
    if op.rearranges or op.casts or op.trains or op.group == "Shape" or op.symbol in ("+", "-"):
        return False
    return not (op.symbol in ("*", "/") and any(isinstance(operand, Constant) for _, operand in call.inputs))


def _add(parts: Sequence[_Totals]) -> _Totals:
    return _Totals(*(weighted_sum([(part[i], 1) for part in parts]) for i in range(len(_Totals._fields))))


def _either(a: bool, b: bool) -> bool:
    return a or b
