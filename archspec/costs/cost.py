"""What a model costs: the work of each module and of the whole, and the bytes of what is stored.

`docs/costs.md` says what counts as a multiply-accumulate and as an elementwise operation, and where that comes from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import NamedTuple

from archspec.addresses import join
from archspec.algebra import substitute, symbols, total
from archspec.costs.attention import Context, Tracer
from archspec.costs.memory import Activations, Memory, memory_of
from archspec.ir import Body, Type
from archspec.table import Table
from archspec.work import Quantity, call_work


class Figures(NamedTuple):
    """Work. `macs` are the multiply-accumulates of all matrix products, of which `score_macs` are those of attention's
    scores (queries by keys) and `mix_macs` those of its mixes (probabilities by values). `elementwise` operations are
    apart. FLOPs are 2 a multiply-accumulate.

    Each is an integer, or a `Polynomial` in the dimensions that have no value.
    """

    macs: Quantity = 0
    score_macs: Quantity = 0
    mix_macs: Quantity = 0
    elementwise: Quantity = 0

    @property
    def flops(self) -> Quantity:
        return 2 * self.macs

    @property
    def score_flops(self) -> Quantity:
        return 2 * self.score_macs

    @property
    def mix_flops(self) -> Quantity:
        return 2 * self.mix_macs


class ModuleCost(NamedTuple):
    """A layer or block, the whole model under the address "".

    It is applied `applied` times. `own` is the work of the operations that stand in its definition itself, in all
    those times: over all modules these add up to the model's. `parameters` are those that it owns itself, each
    tensor counted once, where it is counted; `trainable` are those of them that are so.
    """

    address: str
    type: str
    applied: int
    own: Figures
    parameters: int
    trainable: int


class Cost(NamedTuple):
    """What a model costs for sizes of its dimensions (None for one left open), with every optional input given.

    `work` is all there is to do, `modules` say where, in program order; `memory` is in bytes. `activations` is there if
    the form of attention was named.
    """

    model: str
    dims: dict[str, int | None]
    work: Figures
    modules: tuple[ModuleCost, ...]
    memory: Memory
    activations: Activations | None = None


def cost_of(table: Table, body: Body, values: Mapping[str, int], dtype: str) -> Cost:
    """The cost of a model; `values` are sizes that it can run at, `dtype` one of `memory.BYTES`."""
    assert body.module is not None
    found = _Work().by_address(body, Context())
    parameters: Counter[str] = Counter()
    trainable: Counter[str] = Counter()
    for tensor in table.tensors:
        parameters[tensor.layer] += tensor.params
        trainable[tensor.layer] += tensor.params if tensor.trainable else 0
    known: dict[int, Figures] = {}  # most modules share theirs with others
    modules: list[ModuleCost] = []
    for row in table.modules:
        applied, symbolic = found.get(row.address, (0, NOTHING))
        own = known.get(id(symbolic))
        if own is None:
            own = known[id(symbolic)] = Figures(*(substitute(amount, values) for amount in symbolic))
        modules.append(ModuleCost(row.address, row.type, applied, own, parameters[row.address], trainable[row.address]))
    return Cost(
        table.model,
        {name: values.get(name) for name in dimensions(body.inputs)},
        added((module.own, 1) for module in modules),
        tuple(modules),
        memory_of(body.module, dtype),
    )


NOTHING = Figures()


def dimensions(inputs: Iterable[tuple[str, Type]]) -> list[str]:
    """The dimensions that inputs leave open, in the order in which they come."""
    return list(dict.fromkeys(name for _, type in inputs for size in type.shape for name in sorted(symbols(size))))


def added(parts: Iterable[tuple[Figures, int]]) -> Figures:
    """The sum of figures, each so many times."""
    parts = list(parts)
    return Figures(*(total((figures[i], times) for figures, times in parts) for i in range(len(Figures._fields))))


class _Work:
    """The work of modules by address, each body worked out once for each context."""

    def __init__(self) -> None:
        self._tracer = Tracer()
        self.by_address: Callable[[Body, Context], dict[str, tuple[int, Figures]]] = cache(self._by_address)

    def _by_address(self, body: Body, context: Context) -> dict[str, tuple[int, Figures]]:
        """For each module applied in a body: how often, and the work of its own operations in all those times.

        Addresses are relative; the body's own is "".
        """
        traced = self._tracer.trace(body, context)
        here: list[tuple[Figures, int]] = []
        opened: Counter[tuple[str, Body, Context]] = Counter()
        for call in body.calls:
            if call.body is not None:
                opened[call.address, call.body, traced.inside(call)] += 1
                continue
            work, part = call_work(call, body), traced.part(call)
            if work.macs or work.elementwise:
                scores, mixes = work.macs if part == "score" else 0, work.macs if part == "mix" else 0
                here.append((Figures(work.macs, scores, mixes, work.elementwise), 1))
        found: dict[str, tuple[int, Figures]] = {}
        for (address, inner, around), times in opened.items():
            for below, (applied, figures) in self.by_address(inner, around).items():
                if inner.module is None and not below:  # a function is part of what applies it
                    here.append((figures, times))
                    continue
                name = join(address, below)
                before = found.get(name)
                if before is not None:
                    applied, figures = applied * times + before[0], added([(figures, times), (before[1], 1)])
                elif times > 1:
                    applied, figures = applied * times, added([(figures, times)])
                found[name] = applied, figures
        found[""] = 1, added(here)
        return found
