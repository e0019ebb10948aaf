"""Small omissions beside a convention: a kind of tensor forgotten or counted twice, a layer too few, one slip.

Each takes a rank, as a deviation does; what went wrong in a single layer only, or a slip of arithmetic, takes two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import gcd
from typing import NamedTuple

from archspec.explanations.arithmetic_errors import slip
from archspec.explanations.conventions import Convention, stack_of
from archspec.explanations.tensor_groups import Kind, Universe

MOST_LOOKED_AT = 1_000_000

Counts = Sequence[tuple[Convention, int]]


Counted = tuple[int, frozenset[tuple[int, int]]]
"""What is counted: a set of kinds, and what is added to it (or taken from it) for which kind."""


class Omission(NamedTuple):
    """What is forgotten or counted twice, and what that adds to the count.

    It is about a kind of tensor (its bit, else 0), or about a stack (its address, else ""). `part` says that nothing
    need be wrong: one layer alone is meant.
    """

    text: str
    params: int
    kind: int
    stack: str = ""
    part: bool = False


class Omissions:
    """The omissions beside the conventions that `level` gives for a rank; `reached` has the ranks of sets of kinds."""

    def __init__(self, universe: Universe, level: Callable[[int], Counts], reached: Mapping[int, int]) -> None:
        self.universe = universe
        self.level = level
        self.reached = reached
        members = universe.members((1 << len(universe.kinds)) - 1)
        self._everywhere = _by_params([_whole(bit, kind, sign) for bit, kind in members for sign in (-1, 1)])
        self._once = _by_params(
            [_single(bit, kind, sign) for bit, kind in members for sign in (-1, 1) if kind.times > 1]
        )

    def of_rank(self, rank: int, number: int, seen: set[Counted]) -> Iterator[tuple[Convention, tuple[Omission, ...]]]:
        """Conventions with one omission, or two of whole kinds, that give the number with `rank` deviations in all.

        Beside an omission there are at most three deviations, beside two at most one. What counts the same tensors as
        something `seen` before, or as a convention of no higher rank, is left out.
        """
        for convention, omitted in self._of_rank(rank, number):
            kinds, wrong = convention.kinds, list[tuple[int, int]]()
            for omission in omitted:
                if omission.kind and omission.params == -self._params(omission.kind):
                    kinds &= ~omission.kind
                else:
                    wrong.append((omission.kind, omission.params))
            counted = (kinds, frozenset(wrong))
            if counted not in seen and (wrong or self.reached.get(kinds, rank + 1) > rank):
                seen.add(counted)
                yield convention, omitted

    def slips(self, rank: int, number: int) -> Iterator[tuple[Convention, Omission]]:
        """Conventions that give the number if one line of their calculation has a slip."""
        for convention, total in self._few(rank - 2) if 2 <= rank <= 3 else ():
            for omission in _slips(self.universe, convention.kinds, number - total):
                yield convention, omission

    def _of_rank(self, rank: int, number: int) -> Iterator[tuple[Convention, tuple[Omission, ...]]]:
        for cost, known in ((1, self._everywhere), (2, self._once)):
            for convention, total in self.level(rank - cost) if cost <= rank <= 4 else ():
                for omission in known.get(number - total, ()):
                    if omission.kind & convention.kinds:
                        yield convention, (omission,)
        for convention, total in self._few(rank - 1) if 1 <= rank <= 4 else ():
            for omission in _layers(self.universe, convention.kinds, number - total):
                yield convention, (omission,)
        if 2 <= rank <= 3:
            yield from self._pairs(self._few(rank - 2), number)

    def _few(self, rank: int) -> Counts:
        """The conventions of a rank, unless looking at each of their kinds would take too long."""
        level = self.level(rank)
        return level if len(level) * len(self.universe.kinds) <= MOST_LOOKED_AT else ()

    def _pairs(self, conventions: Counts, number: int) -> Iterator[tuple[Convention, tuple[Omission, ...]]]:
        """Two kinds of tensors that are wrong in every layer."""
        for convention, total in conventions:
            members = self.universe.members(convention.kinds)
            seen: dict[int, list[Omission]] = {}
            for omission in [_whole(bit, kind, sign) for bit, kind in members for sign in (-1, 1)]:
                for other in seen.get(number - total - omission.params, ()):
                    if other.kind != omission.kind:
                        yield convention, (other, omission)
                seen.setdefault(omission.params, []).append(omission)

    def _params(self, kind: int) -> int:
        return self.universe.total(kind)


def _by_params(known: list[Omission]) -> dict[int, list[Omission]]:
    found: dict[int, list[Omission]] = {}
    for omission in known:
        found.setdefault(omission.params, []).append(omission)
    return found


def _whole(bit: int, kind: Kind, sign: int) -> Omission:
    everywhere = f", {kind.times} x {kind.each:,}" if kind.times > 1 else ""
    how = "left out" if sign < 0 else "counted twice"
    return Omission(f"`{kind.name}` {how}{everywhere}", sign * kind.times * kind.each, bit)


def _single(bit: int, kind: Kind, sign: int) -> Omission:
    how = "left out of" if sign < 0 else "counted twice in"
    return Omission(f"`{kind.name}` {how} one of {kind.times} layers", sign * kind.each, bit)


def _layers(universe: Universe, kinds: int, difference: int) -> Iterator[Omission]:
    """A stack with one layer too few or too many, or of which one layer alone is counted."""
    for address, (times, each) in stacks(universe, kinds).items():
        if times > 1:
            for how, wrong in (("left out", -1), ("too many", 1), ("alone", 1 - times)):
                if difference == wrong * each and not (wrong == 1 - times == -1 and how == "alone"):
                    yield Omission(f"one of {times} `{address}` {how}", difference, 0, address, how == "alone")


def one_layer(universe: Universe, kinds: int) -> Iterator[Omission]:
    """One layer alone, of kinds that are all of one stack."""
    if all(stack_of(kind) for _, kind in universe.members(kinds)):
        found = stacks(universe, kinds)
        for address, (times, each) in found.items() if len(found) == 1 else ():
            if times > 1:
                yield Omission(f"one of {times} `{address}` alone", (1 - times) * each, 0, address, True)


def stacks(universe: Universe, kinds: int) -> dict[str, tuple[int, int]]:
    """The stacks in a set of kinds: how many layers, and what each has."""
    totals: dict[str, tuple[int, int]] = {}
    for _, kind in universe.members(kinds):
        address = stack_of(kind)
        if address:
            times, total = totals.get(address, (0, 0))
            totals[address] = (gcd(times, kind.times), total + kind.times * kind.each)
    return {address: (times, total // times) for address, (times, total) in totals.items()}


def _slips(universe: Universe, kinds: int, difference: int) -> Iterator[Omission]:
    """Single lines of a calculation that with one slip make the count larger by `difference`."""
    lines: dict[tuple[int, int], list[str]] = {(1, universe.total(kinds)): ["the total"]}
    for address, (times, each) in stacks(universe, kinds).items():
        lines.setdefault((times, each), []).append(f"a layer of `{address}`")
    for _, kind in universe.members(kinds):
        lines.setdefault((kind.times, kind.each), []).append(f"`{kind.name}`")
    for (times, meant), names in lines.items():
        written = meant + difference // times
        found = slip(meant, written) if difference % times == 0 else None
        if found:
            where = names[0] if len(names) == 1 else f"one of {len(names)} lines of that size, as {names[0]}"
            yield Omission(f"a slip of arithmetic, {written:,} for {meant:,} ({found}), in {where}", difference, 0)
