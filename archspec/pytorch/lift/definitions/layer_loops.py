"""Repeated layers, and operations between them that no module around them has a call for, as loops: residuals that the
parent adds, lists whose elements are lists, and what layers compute side by side and is put in one stack.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, islice
from typing import cast

from archspec.core.algebra import index
from archspec.pytorch.lift.definitions.blocks import Body, replace_operands
from archspec.pytorch.lift.definitions.runs import MAX_KINDS, LayerRun, address_pattern, progress
from archspec.pytorch.values.values import LAYER, Argument, LoopValue, Setting, Value, live_values

Key = Callable[[Value], Hashable]
"""What is equal for layers that compute the same."""


def rewrite_layer_loops(body: Body, key: Key, excluded: Collection[Value]) -> dict[Value, LayerRun]:
    """Write repeated layers in a body as loops. Return those of all iterations by the one that stands for them.

    Values that are `excluded` stay as they are.
    """
    found: dict[Value, LayerRun] = {}
    while True:
        values, taken = _in_order(body), {*excluded, *found}
        sequences, stacks = (loops(values, body.outputs, key, taken) for loops in (_sequences, _stacks))
        loop = next(chain(sequences, stacks), None)
        if loop is None:
            return found
        found |= loop.runs()
        loop.replace(body)


class _IterationsDifferError(Exception):
    """Iterations do not compute the same."""


class _LayerLoop:
    """A loop in place of what all of its iterations compute. A column has the values, or numbers, of all iterations.

    `index` is that of the first iteration, which is also the number in the addresses of its layers. In a sequence,
    iterations follow one after the other: `iterations` are their values, each in the same order, at these `places`.
    """

    def __init__(
        self,
        key: Key,
        index: int,
        iterations: Sequence[Sequence[Value]] = (),
        places: Mapping[Value, int] | None = None,
    ) -> None:
        self.key = key
        self.index = index
        self.iterations = iterations
        self.made: dict[tuple[Value, ...], Value] = {}
        """What stands for values that each iteration computes, each after its arguments."""
        self.starts: dict[int, Value] = {}
        """What is carried into the first iteration, by the place in an iteration of what is carried on."""
        self.carried: dict[int, Value] = {}
        self.collected: list[tuple[Value, Value]] = []
        """What stands for values that become a stack, and that stack."""
        self._places = places or {}
        self._first = self._places[iterations[0][0]] if iterations else 0

    def is_sequence(self, users: Sequence[Value]) -> bool:
        """Whether the iterations compute the same, each of the one before, and `users` need only what is carried."""
        try:
            for column in zip(*self.iterations, strict=True):
                self.made[column] = self._made(column)
        except _IterationsDifferError:
            return False
        carried = {self.iterations[-1][place] for place in self.starts}
        inside = {value for iteration in self.iterations for value in iteration}
        return self._is_short() and bool(carried) and all(value in carried for value in users if value in inside)

    def is_stack(self, stack: Value, users: Mapping[Value, Sequence[Value | None]]) -> bool:
        """Whether the iterations compute what is stacked, and nothing else uses what they compute."""
        try:
            self.collected = [(self.value(stack.operands), stack)]
        except _IterationsDifferError:
            return False
        inside = {value for column in self.made for value in column}
        return self._is_short() and all(
            user is stack or user in inside for value in inside if value.op != "tensor" for user in users[value]
        )

    def _is_short(self) -> bool:
        """Whether a loop is shorter than its iterations, unlike that of one layer, applied twice."""
        layers = [(value.kind, len(column)) for column, value in self.made.items() if value.is_module]
        return len(layers) > 1 or any(kind == "block" or count > 2 for kind, count in layers)

    def shifts(self) -> int:
        """Return how many layers have another number than the iteration, as `norms[i + 1]` has."""
        return sum([value.is_module and "[i]" not in value.address for value in self.made.values()])

    def runs(self) -> dict[Value, LayerRun]:
        """Return the layers of all iterations, by what stands for them."""
        layers = [(value, [*column]) for column, value in self.made.items() if value.is_module]
        return {value: LayerRun(column, value.address, self.index, []) for value, column in layers}

    def replace(self, body: Body) -> None:
        """Put the loop in the place of its iterations."""
        columns = [*zip(*self.iterations, strict=True)]
        last = [columns[place][-1] for place in self.starts]
        afters = [self.made[columns[place]] for place in self.starts]
        collected = [value for value, _ in self.collected]
        axes = [stack.integer("axis") % len(stack.shape) for _, stack in self.collected]
        carried = [self.carried[place] for place in self.starts]
        starts, inner, count = [*self.starts.values()], [*self.made.values()], len(next(iter(self.made)))
        loop = LoopValue(starts, carried, afters, collected, axes, count, body.frame, inner, self.index)
        replaced = [*last, *(stack for _, stack in self.collected)]
        loop.results = [_like("part", "part", value, [loop], index=turn) for turn, value in enumerate(replaced)]
        results = dict(zip(replaced, loop.results, strict=True))
        for value in live_values(body.outputs):
            replace_operands(value, results)
        body.outputs = [results.get(value, value) for value in body.outputs]

    # What stands for the values of all iterations ---------------------------------------------------------------------

    def value(self, column: Sequence[Value]) -> Value:
        """Return what stands for values. Raises _Differs if the iterations do not compute the same."""
        last = column[-1]
        places = [self._places.get(value, -1) - self._first for value in column]
        if any(place >= 0 for place in places):
            return self._in_sequence(column, places)
        if all(value is last for value in column):
            return last
        if last.op != "tensor" and len({(value.op, value.array, value.dtype) for value in column}) == 1:
            return last
        known = tuple(column)
        if known not in self.made:
            self.made[known] = self._made(column)
        return self.made[known]

    def _in_sequence(self, column: Sequence[Value], places: Sequence[int]) -> Value:
        """Return what stands for values of the iterations, or of those before them."""
        length = len(self.iterations[0])
        relative = [place - turn * length for turn, place in enumerate(places)]
        if places[0] >= 0 and len({*relative}) == 1:
            return self.made[tuple(column)]
        place, start = relative[1] + length, column[0]
        if places[0] >= 0 or len({*relative[1:]}) > 1 or not 0 <= place < length or start.op == "tensor":
            raise _IterationsDifferError
        if self.starts.setdefault(place, start) is not start:
            raise _IterationsDifferError
        if place not in self.carried:
            self.carried[place] = _like("carried", "carried", self.iterations[-1][place])
        return self.carried[place]

    def _made(self, column: Sequence[Value]) -> Value:
        last = column[-1]
        shown = {(value.op, value.kind, value.dtype, value.shape) for value in column}
        is_known = last.kind in ("ops", "std", "part", "tensor", "layer", "block")
        if len(shown) > 1 or not is_known or not _have_keys_alike(column, self.key, self.index):
            raise _IterationsDifferError
        value = _like(last.op, last.kind, last)
        if last.kind in ("layer", "block", "tensor"):
            value.address, _, length = address_pattern([value.address for value in column], self.index)
            if "[" not in value.address or length < len(column):
                raise _IterationsDifferError
        value.args, value.settings = self._arguments([value.args for value in column]), last.settings
        if last.kind == "part" and value.operands[0].kind == "carried":  # several results are not carried as one
            raise _IterationsDifferError
        return value

    def _arguments(self, rows: Sequence[Sequence[Argument]]) -> list[Argument]:
        if len({len(row) for row in rows}) > 1:
            raise _IterationsDifferError
        return [self._argument(column) for column in zip(*rows, strict=True)]

    def _argument(self, column: Sequence[Argument]) -> Argument:
        lists = [item for item in column if isinstance(item, Sequence)]
        values = [item for item in column if isinstance(item, Value)]
        if len(lists) == len(column):
            return cast("list[Value | None]", self._arguments(lists))
        if len(values) == len(column):
            return self.value(values)
        if all(item == column[0] and type(item) is type(column[0]) for item in column):
            return column[0]
        if [*column] != [self.index + turn for turn in range(len(column))]:
            raise _IterationsDifferError
        return index(LAYER)


def _like(op: str, kind: str, value: Value, args: Sequence[Argument] = (), **settings: Setting) -> Value:
    """Return a value with the name and type of another one."""
    found = Value(op, args, settings, array=value.array, dtype=value.dtype, frame=value.frame, kind=kind)
    found.names = value.names
    return found


def _in_order(body: Body) -> list[Value]:
    """Return the values that layers compute, and what is computed of these, each after its arguments.

    What several of those with numbers use that no layer with a number computes, such as a bias, is left out.
    """
    found: dict[Value, None] = {}
    numbered: dict[Value, None] = {}
    for value in body.values():
        if value.is_module or any(operand in found for operand in value.operands):
            found[value] = None
        if _is_numbered(value) or any(operand in numbered for operand in value.operands):
            numbered[value] = None
    uses = Counter(operand for value in numbered for operand in {*value.operands})
    shared = {*live_values([value for value in found if value not in numbered and uses[value] > 1])}
    return [value for value in found if value not in shared]


def _sequences(
    values: Sequence[Value], outputs: Sequence[Value], key: Key, excluded: AbstractSet[Value]
) -> Iterator[_LayerLoop]:
    """Yield loops whose iterations follow one after the other, in the order of their first layers."""

    def are_alike(first: int, second: int) -> bool:
        both = values[first], values[second]
        return not any(value in excluded for value in both) and _are_alike(*both, key)

    places = {value: place for place, value in enumerate(values)}
    numbered = [place for place, value in enumerate(values) if _is_numbered(value)]
    for first, second in _pairs(numbered, are_alike):
        length = second - first
        alike = [
            place
            for place in range(max(0, first - length + 1), len(values) - length)
            if are_alike(place, place + length)
        ]
        begin, end = _around(first, alike)
        counts = [(start, (end + 1 + length - start) // length) for start in range(begin, begin + length)]
        found = [_longest(key, values, places, outputs, start, length, count) for start, count in counts]
        loops = [loop for loop in found if loop is not None]
        yield from sorted(loops, key=lambda loop: (-len(loop.iterations), loop.shifts(), len(loop.starts)))


def _pairs(places: Sequence[int], are_alike: Callable[[int, int], bool]) -> Iterator[tuple[int, int]]:
    """Yield each place with the next ones that are alike: the first of these may be of a layer of another kind."""
    for turn, first in enumerate(places):
        others = (place for place in places[turn + 1 :] if are_alike(first, place))
        yield from ((first, other) for other in islice(others, MAX_KINDS))


def _is_numbered(value: Value) -> bool:
    """Whether a value is made by a layer with a number in its address."""
    return value.is_module and any(word.isdigit() for word in value.address.split("."))


def _longest(
    key: Key,
    values: Sequence[Value],
    places: Mapping[Value, int],
    outputs: Sequence[Value],
    start: int,
    length: int,
    most: int,
) -> _LayerLoop | None:
    """Return the loop of the most iterations of so many values from a place on."""
    for count in range(most, 1, -1):
        end = start + length * count
        iterations = [values[place : place + length] for place in range(start, end, length)]
        found = _LayerLoop(key, _first_index(zip(*iterations, strict=True)), iterations, places)
        if found.is_sequence([*outputs, *(operand for value in values[end:] for operand in value.operands)]):
            return found
    return None


def _first_index(columns: Iterable[Sequence[Value]]) -> int:
    """Return the number in the address of the first layer; 0 if there is no layer with one."""
    first = next((column for column in columns if _is_numbered(column[0])), None)
    return address_pattern([value.address for value in first])[1] if first is not None else 0


def _stacks(
    values: Sequence[Value], outputs: Sequence[Value], key: Key, excluded: AbstractSet[Value]
) -> Iterator[_LayerLoop]:
    """Yield loops that compute the items of a stack."""
    users: dict[Value, list[Value | None]] = defaultdict(list, {value: [None] for value in outputs})
    for value in values:
        for operand in value.operands:
            users[operand].append(value)
    for value in values:
        items = value.operands if value.op == "stack" and value.kind == "ops" else []
        if len(items) > 1 and not excluded & {value, *items}:
            loop = _LayerLoop(key, _first_index(_columns(items)))
            if loop.is_stack(value, users):
                yield loop


def _columns(items: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """Yield values, and those in the same places among what they are computed of, while these have as many."""
    waiting = [[*items]]
    for column in waiting:
        yield column
        operands = [value.operands for value in column]
        if len({len(row) for row in operands}) == 1:
            waiting += [[*row] for row in zip(*operands, strict=True) if row[0] is not row[-1]]


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
    own = [(value.op, value.kind, value.dtype, value.shape, len(value.args)) for value in (first, second)]
    if own[0] != own[1] or not _have_keys_alike((first, second), key, 0):
        return False
    if not first.is_module:
        return first.address == second.address
    pattern, _, length = address_pattern([first.address, second.address])
    return length == 2 and "[" in pattern and not pattern.startswith("[")


def _have_keys_alike(values: Sequence[Value], key: Key, start: int) -> bool:
    """Whether values have equal keys, or are blocks whose numbers progress."""
    keys = [key(value) for value in values]
    return len({*keys}) == 1 or (values[0].kind == "block" and progress(keys, start))
