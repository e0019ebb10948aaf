"""Runs: layers that are applied one after the other, which become one step with a loop."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple, cast

from archspec.core.algebra import Dim, symbol
from archspec.pytorch.lift.notation.conditions import Varying, is_regular, progressions
from archspec.pytorch.values.numbers import ABSENT
from archspec.pytorch.values.values import Value

MAX_KINDS = 4
"""Layers of more kinds do not become one loop."""


class LayerRun(NamedTuple):
    """A chain of values, each computed from the previous one by the same layer or by layers that differ only in
    numbers.

    If layers of several kinds alternate, `kinds` are the numbers of these. `slices` are arguments that are slices of a
    value at the indices of the iterations, which nothing else uses.
    """

    values: list[Value]
    address: str
    start: int
    slices: list[Value]
    kinds: tuple[int, ...] = ()

    def of_kind(self, kind: int) -> list[Value]:
        """Return the values that are made by layers of one kind."""
        return [value for turn, value in enumerate(self.values) if not self.kinds or self.kinds[turn] == kind]

    @property
    def repeated(self) -> list[Value]:
        """The slices of a value after its first one."""
        parts = [find_slice(value) for value in self.slices]
        seen = [(part.value, part.axis) for part in parts if part is not None]
        return [value for turn, value in enumerate(self.slices) if seen[turn] in seen[:turn]]

    @property
    def is_shared(self) -> bool:
        """Whether all applications are of one layer."""
        return self.values[0].address == self.values[-1].address


class Slice(NamedTuple):
    """A slice: the sliced value, the axis and the index."""

    value: Value
    axis: int
    place: Dim


def find_slice(arg: object) -> Slice | None:
    """Return what an argument is the slice of."""
    if isinstance(arg, Value) and arg.kind == "ops" and arg.op == "pick":
        return Slice(arg.operands[0], arg.integer("axis"), arg.size("index"))
    if isinstance(arg, Value) and arg.kind == "std" and arg.op == "first":
        return Slice(arg.operands[0], 1, 0)
    return None


def are_alike(keys: Sequence[object]) -> bool:
    """Whether the layers of several kinds, by their keys, are equal, or two that differ in a setting that one lacks."""
    first, *others = dict.fromkeys(keys)
    if len(others) != 1:
        return not others
    rows = [[*_leaves(key)] for key in (first, *others)]
    differing = [*{(a, b) for a, b in zip(*rows, strict=False) if a != b}]
    return len(rows[0]) == len(rows[1]) and len(differing) == 1 and ABSENT in differing[0]


def _leaves(key: object) -> Iterator[object]:
    if not isinstance(key, tuple):
        yield key
        return
    for item in cast("tuple[object, ...]", key):
        yield from _leaves(item)


def find_layer_runs(
    values: Sequence[Value], outputs: Sequence[Value], key: Callable[[Value], Hashable], path: str, loops: bool
) -> dict[Value, LayerRun]:
    """Return the runs among the values of a body, at the address `path`, by their last value. Layers with equal keys
    only differ in numbers. With `loops`, numbers in keys may progress from layer to layer.
    """
    uses = Counter([operand for value in values for operand in value.operands] + list(outputs))
    found: dict[Value, LayerRun] = {}
    for chain in _chains(values, uses, lambda first, second: _follows(first, second, key)):
        found |= _divided(chain, uses)
    chains = [*_chains(values, uses, _succeeds)]
    for chain in [[*part] for whole in chains for _, part in groupby(whole, _pattern)]:
        run = _alternating(_of_two_kinds(chain, key), key, uses) if len(chain) > 1 else None
        run = run or (_progressing(chain, key, uses) if loops else None)
        if run is not None:
            inside = set(run.values)
            found = {last: other for last, other in found.items() if last not in inside} | {run.values[-1]: run}
    # no address begins with the index of a loop
    return {last: run for last, run in found.items() if not run.address.startswith(f"{path}[")}


def _chains(
    values: Sequence[Value], uses: Mapping[Value, int], follows: Callable[[Value, Value], bool]
) -> Iterator[list[Value]]:
    """Yield values each of which only the next one uses, and follows it."""
    before: dict[Value, Value] = {}
    inside = set(values)
    for value in values:
        operands = [arg for arg in value.operands if arg in inside and uses[arg] == 1]
        previous = next((arg for arg in operands if follows(arg, value)), None)
        if previous is not None:
            before[value] = previous
    followed = {*before.values()}
    for value in [value for value in before if value not in followed]:
        chain = [value]
        while chain[0] in before:
            chain.insert(0, before[chain[0]])
        yield chain


def _succeeds(previous: Value, value: Value) -> bool:
    return value.kind == previous.kind == "block" and value.args[0] is previous


def _pattern(value: Value) -> str:
    return without_numbers(value.address)


def without_numbers(address: str) -> str:
    """Return an address with a sign in the place of each of its numbers."""
    return re.sub("[0-9]+", "#", address)


def _of_two_kinds(chain: list[Value], key: Callable[[Value], Hashable]) -> list[Value]:
    """Return the last values of a chain, which are made by layers of at most two kinds: as many as a step can have."""
    keys = [key(value) for value in chain]
    return next(chain[first:] for first in range(len(chain)) if len({*keys[first:]}) <= 2)


def _alternating(chain: list[Value], key: Callable[[Value], Hashable], uses: Mapping[Value, int]) -> LayerRun | None:
    """Return a run in which layers of several kinds alternate, or the same ones with other arguments."""
    address, start, length = address_pattern([value.address for value in chain])
    sorts = [(key(value), *_shared_arguments(value, turn, uses)) for turn, value in enumerate(chain[:length], start)]
    order = list(dict.fromkeys(sorts))
    kinds = tuple([order.index(sort) for sort in sorts])
    changes = sum([first != second for first, second in pairwise(kinds)])
    if "[" not in address or not 1 < len(order) <= min(MAX_KINDS, changes) or not is_regular(kinds, start):
        return None
    if len(order) > 2 and len({sort[0] for sort in sorts}) > 1:  # a step has at most two layers
        return None
    return LayerRun(chain[:length], address, start, _slices(chain[:length], start, uses), kinds)


def _progressing(
    chain: Sequence[Value], key: Callable[[Value], Hashable], uses: Mapping[Value, int]
) -> LayerRun | None:
    """Return the run of the last blocks of a chain, whose numbers are progressions, or the same in all."""
    for first in range(len(chain) - 1):
        values = chain[first:]
        types = {(each.shape, each.dtype) for value in values for each in (value, value.operands[0])}
        address, start, length = address_pattern([value.address for value in values])
        arguments = [_shared_arguments(value, turn, uses) for turn, value in enumerate(values, start)]
        is_run = (
            len(types) == 1
            and "[" in address
            and length == len(values)
            and all(own == arguments[0] for own in arguments)
        )
        if is_run and progress([key(value) for value in values], start):
            return LayerRun([*values], address, start, _slices(values, start, uses))
    return None


def progress(keys: Sequence[Hashable], start: int) -> bool:
    """Whether the keys of blocks, which begin with their definitions, are equal or differ in progressions alone."""
    rows = [[*_leaves(key)] for key in keys]
    if len({(row[0], len(row)) for row in rows}) > 1:
        return False
    columns = zip(*rows, strict=True)
    return all(len({*column}) == 1 or any(progressions(Varying(column, start))) for column in columns)


def _shared_arguments(value: Value, index: int, uses: Mapping[Value, int]) -> list[object]:
    """Return what is equal for the arguments of layers, after the first one, if these are the same values, or the
    slices of the same values at the index of each layer.
    """
    found: list[object] = []
    for arg in value.args[1:]:
        part = find_slice(arg)
        found.append(("slice", id(part.value), part.axis) if part and _is_own(arg, index, uses) else id(arg))
    return found


def _is_own(arg: object, index: int, uses: Mapping[Value, int]) -> bool:
    """Whether an argument is the slice of a value at an index, and that of one layer only."""
    part = find_slice(arg)
    return isinstance(arg, Value) and part is not None and part.place == index and uses[arg] == 1


def _slices(values: Sequence[Value], start: int, uses: Mapping[Value, int]) -> list[Value]:
    given = [(turn, arg) for turn, value in enumerate(values, start) for arg in value.args[1:]]
    return [arg for turn, arg in given if isinstance(arg, Value) and _is_own(arg, turn, uses)]


def _divided(run: list[Value], uses: Mapping[Value, int]) -> dict[Value, LayerRun]:
    """Return a run as one or more in which all addresses follow one pattern."""
    found: dict[Value, LayerRun] = {}
    while len(run) > 1:
        address, start, length = address_pattern([value.address for value in run])
        given = [_shared_arguments(value, turn, uses) for turn, value in enumerate(run[:length], start)]
        length = next((turn for turn, own in enumerate(given) if own != given[0]), length)
        if length > 1:
            found[run[length - 1]] = LayerRun(run[:length], address, start, _slices(run[:length], start, uses))
        run = run[length:]
    return found


def _follows(previous: Value, value: Value, key: Callable[[Value], Hashable]) -> bool:
    if not value.is_module or previous.kind != value.kind or key(previous) != key(value):
        return False
    if len(previous.args) != len(value.args):
        return False
    pairs = [*zip(previous.args[1:], value.args[1:], strict=True)]
    return value.args[0] is previous and all(a is b or _are_slices(a, b) for a, b in pairs)


def _are_slices(first: object, second: object) -> bool:
    """Whether two arguments are slices of one value, at indices that follow each other."""
    a, b = find_slice(first), find_slice(second)
    return a is not None and b is not None and b == a._replace(place=a.place + 1)


def address_pattern(addresses: Sequence[str], begin: int | None = None) -> tuple[str, int, int]:
    """Return the pattern of the first addresses, the first index, and how many addresses follow the pattern.

    It has `[i]` for the number that counts up, or `[2 * i + 1]` for one that does so in steps of 2, and then the first
    index is the least possible one, or `begin`. The pattern of equal addresses is the address itself.
    """
    first = addresses[0].split(".")
    same = next((turn for turn, address in enumerate(addresses) if address != addresses[0]), len(addresses))
    if same > 1:
        return addresses[0], 0, same
    second = addresses[1].split(".")
    places = [turn for turn, (a, b) in enumerate(zip(first, second, strict=False)) if a != b]
    if len(first) != len(second) or len(places) != 1:
        return addresses[0], 0, 1
    (place,) = places
    numbers = [word for word in (first[place], second[place]) if re.fullmatch("[0-9]+", word)]
    start, step = (int(numbers[0]), int(numbers[1]) - int(numbers[0])) if len(numbers) == 2 else (0, 0)
    if step < 1:
        return addresses[0], 0, 1
    index = begin if begin is not None else start // step
    if start < step * index:
        return addresses[0], 0, 1
    length = 0
    for turn, address in enumerate(addresses):
        if address.split(".") != [*first[:place], str(start + step * turn), *first[place + 1 :]]:
            break
        length = turn + 1
    number = str(step * symbol("i") + (start - step * index))
    pattern = ".".join(first[:place]) + f"[{number}]" + "".join([f".{word}" for word in first[place + 1 :]])
    return pattern, index, length
