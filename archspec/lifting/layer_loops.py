"""Layers in turn with operations between them that no module around them has a call for, as loops: residuals that the
parent adds, and lists whose elements are lists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence

from archspec.algebra import index
from archspec.lifting.blocks import Body, replace_operands
from archspec.lifting.runs import Run, address_pattern
from archspec.lifting.values import LAYER, Argument, Repeated, Setting, Value, live

Key = Callable[[Value], Hashable]
"""What is equal for layers that compute the same."""


def loops_of(body: Body, key: Key, excluded: Collection[Value]) -> dict[Value, Run]:
    """Write repeated layers in a body as loops. Return those of all iterations by the one that stands for them.

    Values that are `excluded` stay as they are.
    """
    found: dict[Value, Run] = {}
    while True:
        values = _in_order(body)
        region = next(_regions(values, body.outputs, key, {*excluded, *found}), None)
        if region is None:
            return found
        found |= _replaced(region, body)


class _Region:
    """Values that several iterations compute, one iteration after the other, each in the same order.

    The last iteration stands for all: `args` are its arguments in the loop, with the values of the one before as
    `carried`, by their place in an iteration, from the `starts` of the first one on.
    """

    def __init__(self, iterations: list[list[Value]], places: Mapping[Value, int]) -> None:
        self.iterations = iterations
        self.last = iterations[-1]
        self.starts: dict[int, Value] = {}
        self.carried: dict[int, Value] = {}
        self.args: dict[Value, list[Argument]] = {}
        self.before: dict[tuple[Value, ...], Value] = {}
        """What each iteration computes of values from before the loop, and what stands for it in the loop."""
        self._places = places
        self._first = places[iterations[0][0]]

    @property
    def index(self) -> int | None:
        """The index of the first iteration, if it is the number in the addresses of all layers."""
        patterns = [address_pattern([value.address for value in column]) for column in self._layers()]
        starts = {start for _, start, _ in patterns}
        is_index = all("[i]" in address and length == len(self.iterations) for address, _, length in patterns)
        return starts.pop() if is_index and len(starts) == 1 else None

    def _layers(self) -> list[list[Value]]:
        columns = zip(*self.iterations, strict=True)
        return [[*column] for column in columns if column[0].kind in ("layer", "block")]

    def runs(self) -> dict[Value, Run]:
        """Return the layers of all iterations, by that of the last one."""
        patterns = [(column, address_pattern([value.address for value in column])) for column in self._layers()]
        return {column[-1]: Run(column, address, start, []) for column, (address, start, _) in patterns}

    def is_loop(self, users: Sequence[Value]) -> bool:
        """Whether the iterations compute the same, each of the one before, and `users` need only what is carried."""
        if self.index is None:
            return False
        for column in zip(*self.iterations, strict=True):
            try:
                self.args[column[-1]] = self._joined([value.args for value in column])
            except _Differs:
                return False
        carried = {self.last[place] for place in self.starts}
        inside = {value for iteration in self.iterations for value in iteration}
        return bool(carried) and all(value in carried for value in users if value in inside)

    def _joined(self, rows: Sequence[Sequence[Argument]]) -> list[Argument]:
        if len({len(row) for row in rows}) > 1:
            raise _Differs
        return [self._argument(column) for column in zip(*rows, strict=True)]

    def _argument(self, column: Sequence[Argument]) -> Argument:
        """Return what stands for an argument of the iterations. Raises _Differs if it is not the same."""
        last = column[-1]
        if isinstance(last, Sequence):
            lists = [item for item in column if isinstance(item, Sequence)]
            if len(lists) < len(column):
                raise _Differs
            return [item for item in self._joined(lists) if item is None or isinstance(item, Value)]
        values = [item for item in column if isinstance(item, Value)]
        if not values:
            return self._number(column)
        if len(values) < len(column):
            raise _Differs
        places = [self._places.get(value, -1) - self._first for value in values]
        if all(place < 0 for place in places):
            return self._from_before(values)
        length = len(self.last)
        relative = [place - turn * length for turn, place in enumerate(places)]
        if places[0] >= 0 and len({*relative}) == 1 and relative[0] < length:
            return last
        place = relative[1] + length
        if places[0] >= 0 or len({*relative[1:]}) > 1 or not 0 <= place < length or values[0].op == "tensor":
            raise _Differs
        return self._carried(place, values[0])

    def _number(self, column: Sequence[Argument]) -> Argument:
        """Return a number that is the same in all iterations, or is their index."""
        if all(item == column[0] and type(item) is type(column[0]) for item in column):
            return column[0]
        if [*column] != [self.index + turn if self.index is not None else None for turn in range(len(column))]:
            raise _Differs
        return index(LAYER)

    def _carried(self, place: int, start: Value) -> Value:
        if self.starts.setdefault(place, start) is not start:
            raise _Differs
        if place not in self.carried:
            self.carried[place] = _made("carried", "carried", self.last[place])
        return self.carried[place]

    def _from_before(self, column: Sequence[Value]) -> Value:
        """Return what stands for values from before the loop: one of them if all are equal."""
        last = column[-1]
        if all(value is last for value in column):
            return last
        if last.op != "tensor" and len({(value.op, value.array, value.dtype) for value in column}) == 1:
            return last
        key = tuple(column)
        if key not in self.before:
            shown = [(value.op, value.kind, value.dtype, value.shape, repr(value.settings)) for value in column]
            if len({*shown}) > 1 or last.kind not in ("ops", "std", "tensor"):
                raise _Differs
            value = _made(last.op, last.kind, last)
            if last.kind == "tensor":
                value.address, start, length = address_pattern([value.address for value in column])
                if start != self.index or length < len(column):
                    raise _Differs
            value.args, value.settings = self._joined([value.args for value in column]), last.settings
            self.before[key] = value
        return self.before[key]


class _Differs(Exception):
    """Iterations do not compute the same."""


def _made(op: str, kind: str, like: Value, args: Sequence[Argument] = (), **settings: Setting) -> Value:
    """Return a value with the name and type of another one."""
    value = Value(op, args, settings, array=like.array, dtype=like.dtype, frame=like.frame, kind=kind)
    value.names = like.names
    return value


def _in_order(body: Body) -> list[Value]:
    """Return the values that layers compute, and what is computed of these, each after its arguments."""
    found: dict[Value, None] = {}
    for value in body.values():
        if value.kind in ("layer", "block") or any(operand in found for operand in value.operands):
            found[value] = None
    return [*found]


def _regions(
    values: Sequence[Value], outputs: Sequence[Value], key: Key, excluded: Collection[Value]
) -> Iterator[_Region]:
    """Yield what can be written as loops, in the order of their first layers."""

    def are_alike(first: int, second: int) -> bool:
        both = values[first], values[second]
        return not any(value in excluded for value in both) and _are_alike(*both, key)

    places = {value: place for place, value in enumerate(values)}
    numbered = [place for place, value in enumerate(values) if _is_numbered(value)]
    for turn, first in enumerate(numbered):
        second = next((place for place in numbered[turn + 1 :] if are_alike(first, place)), None)
        if second is None:
            continue
        length = second - first
        alike = [
            place
            for place in range(max(0, first - length + 1), len(values) - length)
            if are_alike(place, place + length)
        ]
        begin, end = _around(first, alike)
        starts = range(begin, min(begin + length, end + 1))
        counts = [(start, (end + 1 + length - start) // length) for start in starts]
        found = [_longest(values, places, outputs, start, length, count) for start, count in counts]
        loops = [region for region in found if region is not None]
        yield from sorted(loops, key=lambda region: (-len(region.iterations), len(region.starts)))[:1]


def _is_numbered(value: Value) -> bool:
    """Whether a value is made by a layer with a number in its address."""
    return value.kind in ("layer", "block") and any(word.isdigit() for word in value.address.split("."))


def _longest(
    values: Sequence[Value], places: Mapping[Value, int], outputs: Sequence[Value], start: int, length: int, most: int
) -> _Region | None:
    """Return the loop of the most iterations of so many values from a place on."""
    for count in range(most, 1, -1):
        end = start + length * count
        region = _Region([[*values[place : place + length]] for place in range(start, end, length)], places)
        if region.is_loop([*outputs, *(operand for value in values[end:] for operand in value.operands)]):
            return region
    return None


def _around(place: int, alike: Sequence[int]) -> tuple[int, int]:
    """Return the first and last of the places one after the other around a place."""
    inside = {*alike}
    begin = end = place
    while begin - 1 in inside:
        begin -= 1
    while end + 1 in inside:
        end += 1
    return begin, end


def _are_alike(first: Value, second: Value, key: Key) -> bool:
    """Whether two values are made by equal layers, the second of which has the next number, or by equal operations."""
    if isinstance(first, Repeated):
        return False
    own = [(value.op, value.kind, value.dtype, value.shape, len(value.args)) for value in (first, second)]
    if own[0] != own[1] or key(first) != key(second):
        return False
    if first.kind not in ("layer", "block"):
        return first.address == second.address
    pattern, _, length = address_pattern([first.address, second.address])
    return length == 2 and "[i]" in pattern and not pattern.startswith("[i]")


def _replaced(region: _Region, body: Body) -> dict[Value, Run]:
    """Put a loop in the place of its iterations."""
    runs, start = region.runs(), region.index or 0
    others = [value for value in live(body.outputs) if value not in region.last]
    for value, args in region.args.items():
        value.args = args
    starts, carried = [*region.starts.values()], [region.carried[place] for place in region.starts]
    afters = [region.last[place] for place in region.starts]
    inner = [*region.before.values(), *region.last]
    loop = Repeated(starts, carried, afters, [], [], len(region.iterations), body.frame, inner, start)
    loop.results = [_made("part", "part", after, [loop], index=turn) for turn, after in enumerate(afters)]
    results = dict(zip(afters, loop.results, strict=True))
    for value in others:
        replace_operands(value, results)
    body.outputs = [results.get(value, value) for value in body.outputs]
    return runs
