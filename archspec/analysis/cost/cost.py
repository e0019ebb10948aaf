"""The cost of a model: the work of each module and of the entire model, and the memory of its tensors.

`docs/costs.md` defines multiply-accumulates and elementwise operations, and cites the sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from archspec.analysis.cost.memory import Activations, Memory, StoredBytes, compute_memory
from archspec.core.addresses import is_inside, join
from archspec.core.algebra import substitute, weighted_sum
from archspec.core.algebra.polynomial import ratio
from archspec.core.record import Record
from archspec.core.reports.results import Result
from archspec.ir.index_ranges import dimensions
from archspec.ir.module import Body
from archspec.ir.ops import OPS
from archspec.ir.origins import InputOrigins, Origins
from archspec.ir.structure.attention import AttentionTracer, BodyContext
from archspec.ir.table import Table
from archspec.ir.work import Quantity, call_work, multiply_by_iterations

if TYPE_CHECKING:
    from archspec.analysis.cost.decoding import Decoding
    from archspec.analysis.cost.time import StepTime
    from archspec.analysis.cost.training import Training


class OperationCounts(Record):
    """Counts of operations: the multiply-accumulates of matrix products, and elementwise operations.

    `macs` includes `score_macs`, from attention scores (queries by keys), and `mix_macs`, from attention mixes
    (probabilities by values), and `expert_macs`, from products with the experts that a token is routed to. A
    multiply-accumulate is 2 FLOPs. Each count is an integer, or a `Polynomial` in the
    dimensions that have no size.
    """

    macs: Quantity = 0
    score_macs: Quantity = 0
    mix_macs: Quantity = 0
    elementwise: Quantity = 0
    expert_macs: Quantity = 0

    @property
    def flops(self) -> Quantity:
        return 2 * self.macs

    @property
    def score_flops(self) -> Quantity:
        return 2 * self.score_macs

    @property
    def mix_flops(self) -> Quantity:
        return 2 * self.mix_macs

    @property
    def expert_flops(self) -> Quantity:
        return 2 * self.expert_macs


class ModuleCost(Record):
    """A layer or block, applied `applied` times; the entire model has the address "".

    `own` is the work of the operations directly in the module's definition, in all applications; over all modules it
    sums to the work of the model. `parameters` is the number of parameters that the module owns directly, each tensor
    counted once, at its canonical name; `trainable` is the number of trainable ones.
    """

    address: str
    type: str
    applied: int
    own: OperationCounts
    parameters: int
    trainable: int


class Cost(Result):
    """The cost of a model for sizes of its dimensions (None for a symbolic one), with all optional inputs given.

    `work` is the total, and `modules` has the work of each module in program order; `memory` is in bytes.
    `causal` is whether the products of causal attention are counted as "whole" or as "half"; if there are none, it is
    "", or "none" if counting as half was requested.
    `activations` is set if an attention implementation was specified, `decoding` if a number of past positions was,
    `training` if a training step was requested, and `time` if a device was specified.
    `stored` has the bytes of quantized weights as they are stored, if the model comes from a configuration that
    describes them. `placed` has the numbers of vectors, of images or sounds, that take the places of tokens of a text.
    `table` is the table of the model, and `depth` limits the nesting of the rows shown.
    """

    table: Table
    dims: dict[str, int | None]
    work: OperationCounts
    modules: tuple[ModuleCost, ...]
    memory: Memory
    causal: str = ""
    activations: Activations | None = None
    decoding: Decoding | None = None
    stored: StoredBytes | None = None
    placed: tuple[Quantity, ...] = ()
    depth: int | None = None
    training: Training | None = None
    time: StepTime | None = None

    def __repr__(self) -> str:
        sizes = "".join(f", {name if size is None else f'{name} = {size}'}" for name, size in self.dims.items())
        flops = self.work.flops
        return f"<Cost of {self.model!r}{sizes}{f': {flops:,} FLOPs' if isinstance(flops, int) else ''}>"

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.table.model


def compute_cost(
    table: Table,
    body: Body,
    values: Mapping[str, int],
    dtype: str,
    causal_half: bool = False,
    tracer: AttentionTracer | None = None,
) -> Cost:
    """Compute the cost of a model; `values` are valid sizes, and `dtype` is one of `memory.BITS`.

    With `causal_half`, the products of causal attention count as half. Analyses of the model can share a `tracer`.
    """
    assert body.module is not None
    work = _Work(tracer or AttentionTracer(), causal_half)
    by_address = work.by_address(body, BodyContext(), ())
    parameters: Counter[str] = Counter()
    trainable: Counter[str] = Counter()
    for tensor in table.tensors.distinct:
        parameters[tensor.layer] += tensor.params
        trainable[tensor.layer] += tensor.params if tensor.trainable else 0
    repeats = {repeat.address: repeat.of for repeat in table.repeats}
    repeated = ""
    substituted: dict[int, OperationCounts] = {}  # by identity: most modules share their costs with others
    modules: list[ModuleCost] = []
    for row in table.modules:
        if row.address in repeats:
            repeated = row.address
        if repeated and is_inside(row.address, repeated):
            original = repeats[repeated] + row.address[len(repeated) :]
            parameters[row.address], trainable[row.address] = parameters[original], trainable[original]
        applied, symbolic = by_address.get(row.address, (0, NO_OPERATIONS))
        counts = substituted.get(id(symbolic))
        if counts is None:
            counts = substituted[id(symbolic)] = OperationCounts(*(substitute(amount, values) for amount in symbolic))
        modules.append(
            ModuleCost(row.address, row.type, applied, counts, parameters[row.address], trainable[row.address])
        )
    numbers = Counter([id(module.own) for module in modules])
    convention, no_causal = ("half", "none") if causal_half else ("whole", "")
    return Cost(
        table,
        {name: values.get(name) for name in dimensions(body.inputs)},
        add_scaled([(counts, numbers[id(counts)]) for counts in substituted.values()]),
        tuple(modules),
        compute_memory(body.module, dtype),
        convention if work.has_causal else no_causal,
    )


NO_OPERATIONS = OperationCounts()

WorkByAddress: TypeAlias = dict[str, tuple[int, OperationCounts]]
"""The number of applications of each module, and the work of its own operations in them."""


def add_scaled(parts: Iterable[tuple[OperationCounts, int]]) -> OperationCounts:
    """Add counts, each multiplied by a number."""
    parts = list(parts)
    return OperationCounts(
        *(weighted_sum((figures[i], times) for figures, times in parts) for i in range(len(OperationCounts._fields)))
    )


class _Work:
    """Computation of the work of modules by address; each body is computed once per context."""

    def __init__(self, tracer: AttentionTracer, causal_half: bool) -> None:
        self.has_causal = False
        self._causal_half = causal_half
        self._tracer = tracer
        self._origins = Origins()
        self.by_address: Callable[[Body, BodyContext, InputOrigins], WorkByAddress] = cache(self._by_address)

    def _by_address(self, body: Body, context: BodyContext, inputs: InputOrigins) -> WorkByAddress:
        """Return, for each module in a body, the number of applications and the work of its own operations in them.

        Addresses are relative to the body, whose own address is "".
        """
        traced = self._tracer.trace(body, context)
        slots = self._origins.slots(body, inputs)
        own_counts: list[tuple[OperationCounts, int]] = []
        nested: Counter[tuple[str, Body, BodyContext, InputOrigins]] = Counter()
        for call in body.calls:
            if call.body is not None:
                nested[call.address, call.body, traced.call_context(call), self._origins.inputs(call, slots)] += 1
                continue
            work, part = call_work(call, body, slots), traced.part(call)
            macs = work.macs
            if part is not None and part.visible.causal:
                self.has_causal = True
                macs = ratio(macs, 2) if self._causal_half else macs
            if macs or work.elementwise:
                scores = macs if part is not None and part.name == "score" else 0
                mixes = macs if part is not None and part.name == "mix" else 0
                routed = macs if any(input.indexes for input in OPS[call.type].inputs) else 0
                own_counts.append((OperationCounts(macs, scores, mixes, work.elementwise, routed), 1))
        result: WorkByAddress = {}
        for (address, inner, call_context, call_inputs), times in nested.items():
            for relative_address, (applied, figures) in self.by_address(inner, call_context, call_inputs).items():
                if inner.module is None and not relative_address:  # functions belong to the module that applies them
                    own_counts.append((figures, times))
                    continue
                name = join(address, relative_address)
                earlier = result.get(name)
                if earlier is not None:
                    applied, figures = applied * times + earlier[0], add_scaled([(figures, times), (earlier[1], 1)])
                elif times > 1:
                    applied, figures = applied * times, add_scaled([(figures, times)])
                result[name] = applied, figures
        result[""] = 1, OperationCounts(*[multiply_by_iterations(amount, body) for amount in add_scaled(own_counts)])
        return result
