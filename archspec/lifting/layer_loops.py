"""Layers in turn with operations between them that no module around them has a call for, as loops: residuals that the
parent adds, and lists whose elements are lists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import NamedTuple

from archspec.lifting.blocks import Body, replace_operands
from archspec.lifting.runs import Run, address_pattern
from archspec.lifting.values import Argument, Repeated, Value, live

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


class _Region(NamedTuple):
    """Values that several iterations compute, one iteration after the other, each in the same order.

    `starts` are what is carried into the first iteration, by the place in an iteration of what is carried on.
    """

    iterations: list[list[Value]]
    starts: dict[int, Value]
    places: dict[Value, int]

    def has_one_index(self) -> bool:
        """Whether the numbers of all layers in an iteration are equal."""
        patterns = [address_pattern([value.address for value in column]) for column in self._layers()]
        return len({start for _, start, _ in patterns}) == 1 and all(
            "[i]" in address and length == len(self.iterations) for address, _, length in patterns
        )

    def _layers(self) -> list[list[Value]]:
        columns = zip(*self.iterations, strict=True)
        return [[*column] for column in columns if column[0].kind in ("layer", "block")]

    def runs(self) -> dict[Value, Run]:
        """Return the layers of all iterations, by that of the last one."""
        found: dict[Value, Run] = {}
        for column in self._layers():
            address, start, _ = address_pattern([value.address for value in column])
            found[column[-1]] = Run(column, address, start, [])
        return found


def _in_order(body: Body) -> list[Value]:
    """Return the values that are computed of layers in lists, or are such layers, each after its arguments."""
    found: dict[Value, None] = {}
    for value in body.values():
        if _number_of(value) is not None or any(operand in found for operand in value.operands):
            found[value] = None
    return [*found]


def _number_of(value: Value) -> tuple[str, ...] | None:
    """Return the numbers in the address of a layer; None for anything else, or without a number."""
    if value.kind not in ("layer", "block"):
        return None
    return tuple([word for word in value.address.split(".") if word.isdigit()]) or None


def _regions(
    values: Sequence[Value], outputs: Sequence[Value], key: Key, excluded: Collection[Value]
) -> Iterator[_Region]:
    """Yield what can be written as a loop, of the most iterations and with the fewest values carried on first."""
    place_of = {value: place for place, value in enumerate(values)}
    for first, value in enumerate(values):
        if _number_of(value) is None or value in excluded:
            continue
        second = next((place for place in range(first + 1, len(values)) if _is_next(value, values[place], key)), None)
        if second is None:
            continue
        length = second - first
        alike = [
            place
            for place in range(max(0, first - length + 1), len(values) - length)
            if _are_alike(values[place], values[place + length], key, excluded)
        ]
        begin, end = _around(first, alike)
        candidates: list[_Region] = []
        for start in range(begin, min(begin + length, end + 1)):
            count = (end + 1 + length - start) // length
            while count > 1:
                region = _region(values, place_of, outputs, start, length, count)
                if region is not None:
                    candidates.append(region)
                    break
                count -= 1
        yield from sorted(candidates, key=lambda region: (-len(region.iterations), len(region.starts)))[:1]


def _is_next(first: Value, second: Value, key: Key) -> bool:
    return _are_alike(first, second, key, ()) and _number_of(second) is not None


def _around(place: int, alike: Sequence[int]) -> tuple[int, int]:
    """Return the first and last of the places one after the other around a place."""
    inside = {*alike}
    begin = end = place
    while begin - 1 in inside:
        begin -= 1
    while end + 1 in inside:
        end += 1
    return begin, end


def _are_alike(first: Value, second: Value, key: Key, excluded: Collection[Value]) -> bool:
    """Whether two values are made by equal layers, the second of which has the next number, or by equal operations."""
    if first in excluded or second in excluded or isinstance(first, Repeated):
        return False
    own = [(value.op, value.kind, value.dtype, value.shape, len(value.args)) for value in (first, second)]
    if own[0] != own[1] or key(first) != key(second):
        return False
    if first.kind not in ("layer", "block"):
        return first.address == second.address
    pattern, _, length = address_pattern([first.address, second.address])
    return length == 2 and "[i]" in pattern and not pattern.startswith("[i]")


def _region(
    values: Sequence[Value],
    place_of: dict[Value, int],
    outputs: Sequence[Value],
    start: int,
    length: int,
    count: int,
) -> _Region | None:
    """Return the iterations of so many values from a place on; None if they are not the same."""
    iterations = [[*values[start + turn * length : start + (turn + 1) * length]] for turn in range(count)]
    region = _Region(iterations, {}, place_of)
    for column in zip(*iterations, strict=True):
        rows = [[*_flat(value.args)] for value in column]
        if len({len(row) for row in rows}) > 1:
            return None
        if not all(_is_same_argument(region, args, start, length) for args in zip(*rows, strict=True)):
            return None
    end = start + length * count
    used = [operand for value in values[end:] for operand in value.operands] + [*outputs]
    carried = {iterations[-1][place] for place in region.starts}
    inside = {value for iteration in iterations for value in iteration}
    is_closed = all(value in carried for value in used if value in inside)
    return region if region.starts and is_closed and region.has_one_index() else None


def _flat(args: Sequence[Argument]) -> Iterator[object]:
    for arg in args:
        if isinstance(arg, Sequence):
            yield from arg
        else:
            yield arg


def _is_same_argument(region: _Region, args: Sequence[object], start: int, length: int) -> bool:
    """Whether what the iterations take as an argument is the same, computed in each, or by the one before."""
    if all(arg is args[0] for arg in args):
        return not isinstance(args[0], Value) or region.places.get(args[0], -1) < start
    if not all(isinstance(arg, Value) for arg in args):
        return all(arg == args[0] and type(arg) is type(args[0]) for arg in args)
    given = [arg for arg in args if isinstance(arg, Value)]
    places = [region.places.get(value, -1) for value in given]
    if all(place < start for place in places):
        return len({(value.op, value.array, value.dtype) for value in given}) == 1 and given[0].op != "tensor"
    relative = [place - start - turn * length for turn, place in enumerate(places)]
    if places[0] >= start:
        return len({*relative}) == 1 and 0 <= relative[0] < length
    carried = relative[1] + length
    if len({*relative[1:]}) > 1 or not 0 <= carried < length or given[0].op == "tensor":
        return False
    return region.starts.setdefault(carried, given[0]) is given[0]


def _replaced(region: _Region, body: Body) -> dict[Value, Run]:
    """Put a loop in the place of its iterations. The last one stands for all."""
    *_, before, last = region.iterations
    runs = region.runs()
    afters = [last[place] for place in region.starts]
    carried: dict[Value, Value] = {}
    for place, after in zip(region.starts, afters, strict=True):
        value = Value("carried", array=after.array, dtype=after.dtype, frame=body.frame, kind="carried")
        value.names = after.names
        carried[before[place]] = value
    others = [value for value in live(body.outputs) if value not in last]
    for value in last:
        replace_operands(value, carried)
    starts, start = [*region.starts.values()], next(iter(runs.values())).start
    loop = Repeated(starts, [*carried.values()], afters, [], [], len(region.iterations), body.frame, last, start)
    for turn, after in enumerate(afters):
        part = Value(
            "part", [loop], {"index": turn}, array=after.array, dtype=after.dtype, frame=body.frame, kind="part"
        )
        part.names = after.names
        loop.results.append(part)
    results = dict(zip(afters, loop.results, strict=True))
    for value in others:
        replace_operands(value, results)
    body.outputs = [results.get(value, value) for value in body.outputs]
    return runs
