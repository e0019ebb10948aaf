"""The order of the entries in each row: program order, with as few crossings as a few sweeps find."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from archspec.drawing.plan.plan import Entry, Node, PassThrough, Plan, Value

_SWEEPS = 2

Place = tuple[int, Entry]
"""A row and an entry of it."""


def order_rows(plan: Plan, node: Node) -> None:
    """Order the entries of all rows of a node's contents."""
    contents = node.contents
    assert contents is not None
    order = _Order(plan, node)
    for _ in range(_SWEEPS):
        order.sweep(range(1, len(contents.rows)), order.above)
        order.sweep(range(len(contents.rows) - 2, -1, -1), order.below)
    order.put_streams_left()


class _Order:
    """`above` and `below` are the neighbors of each entry in the rows next to it, with the offset of the port."""

    def __init__(self, plan: Plan, node: Node) -> None:
        assert node.contents is not None
        self.plan = plan
        self.contents = node.contents
        self.above: dict[Place, list[tuple[Place, float]]] = {}
        self.below: dict[Place, list[tuple[Place, float]]] = {}
        self.places: dict[Place, float] = {}
        self._entering: dict[int, list[Value]] = {}
        for value in self.contents.values:
            for use in value.uses:
                if use.to is not None:
                    self._entering.setdefault(use.to, []).append(value)
        rank = {
            entry: row for row, entries in enumerate(self.contents.rows) for entry in entries if isinstance(entry, int)
        }
        program = {id: place for place, id in enumerate(self.contents.children)}
        self.first = self._first_sources(program)
        self._connect(rank)
        for row, entries in enumerate(self.contents.rows):
            entries.sort(key=lambda entry: self._program(entry, program))
            self._place(row)

    def _program(self, entry: Entry, program: dict[int, int]) -> float:
        if isinstance(entry, int):
            return program[entry]
        source = self.contents.values[entry.value].source
        return program[source] + 0.5 if source is not None else -1

    def _connect(self, rank: dict[int, int]) -> None:
        passing: dict[int, list[int]] = {}
        for row, entries in enumerate(self.contents.rows):
            for entry in entries:
                if isinstance(entry, PassThrough):
                    passing.setdefault(entry.value, []).append(row)
        for index, value in enumerate(self.contents.values):
            rows = passing.get(index, [])
            chain: list[Place] = [(row, PassThrough(index)) for row in rows]
            if value.source in rank:
                chain.insert(0, (rank[value.source], value.source))
                outputs = self.plan.nodes[value.source].outputs
                offset = (value.output - (outputs - 1) / 2) / 10
            else:
                offset = 0.0
            for upper, lower in itertools.pairwise(chain):
                self._link(upper, lower, 0.0, offset if isinstance(upper[1], int) else 0.0)
            for use in value.uses:
                if use.way == "down" and use.to in rank:
                    row = rank[use.to]
                    upper = next((place for place in chain if place[0] == row - 1), None)
                    if upper is not None:
                        target = self.plan.nodes[use.to]
                        place = self._symmetric_place(use.to, value) if target.form == "circle" else use.port
                        port = (place - (len(target.inputs) - 1) / 2) / 10
                        self._link(upper, (row, use.to), port, offset if isinstance(upper[1], int) else 0.0)

    def _first_sources(self, program: dict[int, int]) -> dict[int | None, int]:
        """Return, for each child, the place of the first child in program order from which it can be reached."""
        first: dict[int | None, int] = {None: -1, **program}
        for id in self.contents.children:
            for value in self._entering.get(id, ()):
                if value.source is not None:
                    first[id] = min(first[id], first[value.source])
        return first

    def _symmetric_place(self, id: int, value: Value) -> int:
        """Return the place of a value among those that enter a sum or product: that of its first source."""
        entering = self._entering[id]
        return sorted(entering, key=lambda other: (self.first[other.source], entering.index(other))).index(value)

    def _link(self, upper: Place, lower: Place, port: float, output: float) -> None:
        self.below.setdefault(upper, []).append((lower, port))
        self.above.setdefault(lower, []).append((upper, output))

    def sweep(self, rows: Iterable[int], neighbors: dict[Place, list[tuple[Place, float]]]) -> None:
        """Order rows by the mean place of the neighbors of their entries."""
        for row in rows:
            means: dict[Entry, float] = {}
            for entry in self.contents.rows[row]:
                place = (row, entry)
                around = [self.places[other] + offset for other, offset in neighbors.get(place, ())]
                means[entry] = sum(around) / len(around) if around else self.places[place]
            self.contents.rows[row].sort(key=lambda entry: round(means[entry], 6))
            self._place(row)

    def _place(self, row: int) -> None:
        entries = self.contents.rows[row]
        for i, entry in enumerate(entries):
            self.places[row, entry] = i - (len(entries) - 1) / 2

    def put_streams_left(self) -> None:
        """Put a child left of the one in its row that it feeds as another stream."""
        for value in self.contents.values:
            for use in value.uses:
                if use.way != "left" or value.source is None or use.to is None:
                    continue
                for entries in self.contents.rows:
                    if value.source in entries and use.to in entries:
                        source, target = entries.index(value.source), entries.index(use.to)
                        if source > target:
                            entries.insert(target, entries.pop(source))
