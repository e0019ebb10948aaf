"""The values that a decoding step keeps for each attention.

An attention reads keys and values at all positions. Any set of values from which these can be computed could be kept.
Those that are kept are, among the values that only serve the keys and values of this attention, the smallest set: the
keys and values themselves, before they are repeated for groups of heads; or a narrower latent vector from which both
are computed. Attentions that read the same keys or values, as layers that take those of an earlier layer, share them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import TypeAlias

from archspec.analysis.cost.steps import AttentionRead, StepNode, Steps, StepValue
from archspec.core.algebra import product, substitute, symbols
from archspec.ir.ops import OPS

FlowNode: TypeAlias = "tuple[StepValue | None, str]"
"""A node of a flow: where a value is computed ("in"), or where it is used ("out"); without a value, source or sink."""

Flow: TypeAlias = dict[FlowNode, dict[FlowNode, float]]
"""The capacities that are left between nodes."""

SOURCE: FlowNode = (None, "source")
SINK: FlowNode = (None, "sink")

_OTHERS = frozenset([-1])
"""The readers of what has a use that is not that of keys or values."""


class CachedValues:
    """The values kept for attentions, and the operations that compute keys and values from them at all positions."""

    def __init__(self, attentions: Mapping[int, AttentionRead], values: list[StepValue], again: set[StepNode]) -> None:
        self.attentions = attentions
        self.values = values
        self.again = again


def find_cached_values(steps: Steps) -> list[CachedValues]:
    """Return the cached values of each attention, or of each group that shares keys or values."""
    readers = _readers(steps)
    return [_minimum_cut(attentions, same, readers) for same, attentions in _group_by_shared_values(steps.readings)]


def _group_by_shared_values(
    readings: Mapping[int, AttentionRead],
) -> list[tuple[set[StepValue], dict[int, AttentionRead]]]:
    """Return attentions by number, those that share keys or values together, with what these are rearranged from."""
    found: list[tuple[set[StepValue], dict[int, AttentionRead]]] = []
    for number, reading in readings.items():
        values = {value for read in reading.values for value in _rearrangement_sources(read)}
        attentions = {number: reading}
        for others in [others for others in found if others[0] & values]:
            found.remove(others)
            values |= others[0]
            attentions = {**others[1], **attentions}
        found.append((values, attentions))
    return found


def _rearrangement_sources(value: StepValue) -> list[StepValue]:
    """Return a value and the values that it rearranges, such as keys before they are repeated for the query heads."""
    found = [value]
    while (node := found[-1].node) is not None and OPS[node.call.type].group == "Shape":
        before = _inputs(found[-1])
        if len(before) != 1 or _size(before[0]) > _size(found[-1]):
            break
        found += before
    return found


def _readers(steps: Steps) -> Mapping[StepValue, frozenset[int]]:
    """Return, for each value, the attentions whose keys or values it serves; -1 for any other use."""
    readers: dict[StepValue, frozenset[int]] = {}

    def of(value: StepValue) -> frozenset[int]:
        found = frozenset[int]()
        for node, i in value.users:
            if node.attention >= 0 and i == 1:
                found |= {node.attention}
            else:
                found = found.union(*[readers[result] for result in node.results])
        return found or _OTHERS

    for node in reversed(steps.nodes):
        for value in node.results:
            readers[value] = of(value)
    return readers


def _minimum_cut(
    attentions: Mapping[int, AttentionRead], same: set[StepValue], readers: Mapping[StepValue, frozenset[int]]
) -> CachedValues:
    """Find the smallest cut between the values that serve these attentions alone and their keys and values.

    What keys and values are rearranged from (`same`) may serve others, too: it could be kept in their place.
    """
    flow: Flow = {}
    pending = list(dict.fromkeys([value for reading in attentions.values() for value in reading.values]))
    for value in pending:
        _connect(flow, (value, "out"), SINK, inf)
    for value in pending:
        _connect(flow, (value, "in"), (value, "out"), _size(value))
        before = _inputs(value)
        serving = [
            operand for operand in before if operand in same or readers.get(operand, _OTHERS) <= attentions.keys()
        ]
        if len(serving) < len(before) or not before:
            _connect(flow, SOURCE, (value, "in"), inf)
        for operand in serving:
            _connect(flow, (operand, "out"), (value, "in"), inf)
            if operand not in pending:
                pending.append(operand)
    late = _after_cut(flow)
    values = [value for value in pending if (value, "in") not in late and (value, "out") in late]
    again = {value.node for value in pending if (value, "in") in late and value.node is not None}
    return CachedValues(attentions, values, again)


def _connect(flow: Flow, start: FlowNode, end: FlowNode, capacity: float) -> None:
    flow.setdefault(start, {})[end] = capacity
    flow.setdefault(end, {}).setdefault(start, 0)


def _after_cut(flow: Flow) -> set[FlowNode]:
    """Return the nodes after the smallest cut, the last of several, by augmenting paths (Edmonds and Karp, 1972)."""
    while True:
        before = _find_augmenting_paths(flow)
        if SINK not in before:
            break
        path = [SINK]
        while path[-1] != SOURCE:
            path.append(before[path[-1]])
        edges = list(zip(path[1:], path, strict=False))
        least = min(flow[start][end] for start, end in edges)
        for start, end in edges:
            flow[start][end] -= least
            flow[end][start] += least
    late = {SINK}
    pending = [SINK]
    for end in pending:
        for start in flow[end]:
            if start not in late and flow[start][end] > 0:
                late.add(start)
                pending.append(start)
    return late


def _find_augmenting_paths(flow: Flow) -> dict[FlowNode, FlowNode]:
    """Return the nodes to which more can flow from the source, each with the one before it."""
    before: dict[FlowNode, FlowNode] = {SOURCE: SOURCE}
    pending = [SOURCE]
    for start in pending:
        for end, capacity in flow[start].items():
            if capacity > 0 and end not in before:
                before[end] = start
                pending.append(end)
    return before


def _inputs(value: StepValue) -> Sequence[StepValue]:
    """Return the values from which a value is computed, apart from parameters and tables."""
    node = value.node
    if node is None:
        return []
    return [operand for operand in node.operands if operand is not None and not operand.is_static]


def _size(value: StepValue) -> int:
    """Return the elements of a value for one position, with all sizes that are not fixed at 1."""
    sizes = [substitute(size, dict.fromkeys(symbols(size), 1)) for size in value.shape]
    found = product(sizes)
    assert isinstance(found, int)
    return found
