"""The values that a decoding step caches for each attention.

An attention reads keys and values at all positions. Any set of values from which these can be computed could be cached.
The cached values are the smallest such set among the values used only for the keys and values of this attention: the
keys and values themselves, before they are repeated for groups of heads; or a narrower latent vector from which both
are computed. Attentions that read the same keys or values, as in layers that reuse those of an earlier layer, share
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import TypeAlias

from archspec.analysis.cost.step_values import Application, AttentionRead, StepNode, StepValue
from archspec.analysis.cost.steps import DecodingStep
from archspec.core.algebra import product, substitute, symbols
from archspec.ir.ops import OPS

FlowNode: TypeAlias = "tuple[StepValue | None, str]"
"""A node of a flow: the computation of a value ("in") or its uses ("out"); without a value, the source or the sink."""

Flow: TypeAlias = dict[FlowNode, dict[FlowNode, float]]
"""The remaining capacities between nodes."""

SOURCE: FlowNode = (None, "source")
SINK: FlowNode = (None, "sink")

_OTHER_USE = frozenset([-1])
"""The readers of a value that is used for something other than keys or values."""


class CachedValues:
    """The values cached for attentions, and the operations that recompute all keys and values from them."""

    def __init__(
        self,
        application: Application,
        attentions: Mapping[int, AttentionRead],
        values: list[StepValue],
        recomputed: set[StepNode],
    ) -> None:
        self.application = application
        self.attentions = attentions
        self.values = values
        self.recomputed = recomputed


def find_cached_values(steps: DecodingStep) -> list[CachedValues] | None:
    """Return the cached values of each attention, or of each group that shares keys or values.

    Return None if merged applications do not cache values of their own.
    """
    readers = _find_readers(steps)
    if not all(-1 in readers[value] for value in steps.merged):
        return None
    result: list[CachedValues] = []
    for sources, attentions in _group_by_shared_values(steps.reads):
        cached = _minimum_cut(steps, attentions, sources, readers)
        if cached is None:
            return None
        result.append(cached)
    return result


def _group_by_shared_values(
    reads: Mapping[int, AttentionRead],
) -> list[tuple[set[StepValue], dict[int, AttentionRead]]]:
    """Group attentions that share keys or values, with the values from which these are rearranged."""
    groups: list[tuple[set[StepValue], dict[int, AttentionRead]]] = []
    for number, read in reads.items():
        values = {source for value in read.values for source in _rearrangement_sources(value)}
        attentions = {number: read}
        for group in [group for group in groups if group[0] & values]:
            groups.remove(group)
            values |= group[0]
            attentions = {**group[1], **attentions}
        groups.append((values, attentions))
    return groups


def _rearrangement_sources(value: StepValue) -> list[StepValue]:
    """Return a value and the values that it rearranges, such as keys before they are repeated for the query heads."""
    sources = [value]
    while (node := sources[-1].node) is not None and OPS[node.call.type].group == "Shape":
        operands = _dynamic_operands(sources[-1])
        if len(operands) != 1 or _element_count(operands[0]) > _element_count(sources[-1]):
            break
        sources += operands
    return sources


def _find_readers(steps: DecodingStep) -> Mapping[StepValue, frozenset[int]]:
    """Return, for each value, the attentions whose keys or values are computed from it; -1 for any other use."""
    readers: dict[StepValue, frozenset[int]] = {}

    def attentions_of(value: StepValue) -> frozenset[int]:
        attentions = _OTHER_USE if value.has_other_uses else frozenset[int]()
        for node, i in value.users:
            if node.attention >= 0 and i == 1:
                attentions |= {node.attention}
            else:
                attentions = attentions.union(*[readers[result] for result in node.results])
        return attentions or _OTHER_USE

    for node in reversed(steps.nodes):
        for value in node.results:
            readers[value] = attentions_of(value)
    for value in steps.merged:
        readers[value] = attentions_of(value)
    return readers


def _minimum_cut(
    steps: DecodingStep,
    attentions: Mapping[int, AttentionRead],
    shared_sources: set[StepValue],
    readers: Mapping[StepValue, frozenset[int]],
) -> CachedValues | None:
    """Find the smallest cut between the values used for these attentions alone and their keys and values.

    Values from which keys and values are rearranged (`shared_sources`) may have other uses: they could be cached
    instead. Return None if equal applications were merged that do not contain all these values.
    """
    flow: Flow = {}
    pending = list(dict.fromkeys([value for read in attentions.values() for value in read.values]))
    for value in pending:
        _connect(flow, (value, "out"), SINK, inf)
    for value in pending:
        _connect(flow, (value, "in"), (value, "out"), _element_count(value))
        operands = _dynamic_operands(value)
        serving = [
            operand
            for operand in operands
            if operand in shared_sources or readers.get(operand, _OTHER_USE) <= attentions.keys()
        ]
        if len(serving) < len(operands) or not operands:
            _connect(flow, SOURCE, (value, "in"), inf)
        for operand in serving:
            _connect(flow, (operand, "out"), (value, "in"), inf)
            if operand not in pending:
                pending.append(operand)
    applications = {read.application.repeated for read in attentions.values()}
    applications |= {(value.node.application if value.node else steps.model).repeated for value in pending}
    if steps.merged and (len(applications) > 1 or not steps.merged.isdisjoint(pending)):
        return None
    after_cut = _nodes_after_cut(flow)
    values = [value for value in pending if (value, "in") not in after_cut and (value, "out") in after_cut]
    recomputed = {value.node for value in pending if (value, "in") in after_cut and value.node is not None}
    return CachedValues(applications.pop(), attentions, values, recomputed)


def _connect(flow: Flow, start: FlowNode, end: FlowNode, capacity: float) -> None:
    flow.setdefault(start, {})[end] = capacity
    flow.setdefault(end, {}).setdefault(start, 0)


def _nodes_after_cut(flow: Flow) -> set[FlowNode]:
    """Return the nodes after the last of the smallest cuts, by augmenting paths (Edmonds and Karp, 1972)."""
    while True:
        predecessors = _find_augmenting_paths(flow)
        if SINK not in predecessors:
            break
        path = [SINK]
        while path[-1] != SOURCE:
            path.append(predecessors[path[-1]])
        edges = list(zip(path[1:], path, strict=False))
        bottleneck = min(flow[start][end] for start, end in edges)
        for start, end in edges:
            flow[start][end] -= bottleneck
            flow[end][start] += bottleneck
    after_cut = {SINK}
    pending = [SINK]
    for end in pending:
        for start in flow[end]:
            if start not in after_cut and flow[start][end] > 0:
                after_cut.add(start)
                pending.append(start)
    return after_cut


def _find_augmenting_paths(flow: Flow) -> dict[FlowNode, FlowNode]:
    """Return the nodes with an augmenting path from the source, each with its predecessor."""
    predecessors: dict[FlowNode, FlowNode] = {SOURCE: SOURCE}
    pending = [SOURCE]
    for start in pending:
        for end, capacity in flow[start].items():
            if capacity > 0 and end not in predecessors:
                predecessors[end] = start
                pending.append(end)
    return predecessors


def _dynamic_operands(value: StepValue) -> Sequence[StepValue]:
    """Return the values from which a value is computed, except parameters and tables."""
    node = value.node
    if node is None:
        return []
    return [operand for operand in node.operands if operand is not None and not operand.is_static]


def _element_count(value: StepValue) -> int:
    """Return the number of elements of a value for one position; symbolic sizes count as 1."""
    sizes = [substitute(size, dict.fromkeys(symbols(size), 1)) for size in value.shape]
    elements = product(sizes)
    assert isinstance(elements, int)
    return elements
