"""Small errors on top of a convention: a tensor group omitted or counted twice, a missing layer, an arithmetic error.

Each adds one to the rank, as an adjustment does; an error in a single layer and an arithmetic error add two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from archspec.analysis.explain.conventions import Convention, Conventions
from archspec.analysis.explain.tensor_groups import TensorGroup, TensorGroups

# Arithmetic errors: how a written number differs from the intended one.


def arithmetic_error(meant: int, written: int) -> str | None:
    """Return the single error that turns `meant` into `written` (wrong digit, swapped digits, carry), or None."""
    if meant <= 0 or written <= 0 or meant == written:
        return None
    a, b = str(meant), str(written)
    places = [i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y]
    if len(a) == len(b) and len(places) == 1:
        return f"one digit is wrong: {b[places[0]]} for {a[places[0]]}"
    if len(a) == len(b) and len(places) == 2:
        both = slice(places[0], places[1] + 1)
        if a[both] == b[both][::-1] and len(a[both]) == 2:
            return f"two digits are swapped: {b[both]} for {a[both]}"
    difference = str(abs(written - meant))
    if len(difference) > 1 and difference.strip("0") == "1":
        return f"a carry is {'added' if written > meant else 'lost'}: {int(difference):,}"
    return None


def describe(meant: int, written: int) -> str | None:
    """Describe how the digits of two numbers differ; None if that is not informative."""
    found = arithmetic_error(meant, written)
    if found is not None or min(meant, written) <= 0:
        return found
    a, b = str(meant), str(written)
    differing = sum(x != y for x, y in zip(a, b, strict=False))
    return f"two of its {len(a)} digits differ" if len(a) == len(b) >= 4 and differing == 2 else None


MAX_EXAMINED = 1_000_000

Counted = tuple[int, frozenset[tuple[int, int]]]
"""The tensors counted: a set of groups, and the parameters added or subtracted for a group."""


class Omission(NamedTuple):
    """An omission or a repetition, and the parameters that it adds to the count.

    It concerns a tensor group (its bit, otherwise 0) or a stack (its address, otherwise ""). `part` means that it need
    not be an error: the number may be that of a single layer.
    """

    text: str
    params: int
    group: int = 0
    stack: str = ""
    part: bool = False


class Omissions:
    """Omissions on top of conventions."""

    def __init__(self, conventions: Conventions) -> None:
        self.conventions = conventions
        self.universe = universe = conventions.universe
        self._undivided = universe.where(lambda group: not group.share)
        members = universe.members(self._undivided)
        self._everywhere = _by_params(_whole(members))
        self._once = _by_params(_single(members))

    def of_rank(self, rank: int, number: int, seen: set[Counted]) -> Iterator[tuple[Convention, tuple[Omission, ...]]]:
        """Yield the conventions with one omission, or two of whole groups, that give the number at this total rank.

        One omission is combined with at most three adjustments, two with at most one. A combination that counts the
        same tensors as one `seen` before, or as a convention of the same or a lower rank, is dropped.
        """
        for convention, omitted in self._of_rank(rank, number):
            groups, wrong = convention.groups, list[tuple[int, int]]()
            for omission in omitted:
                if omission.group and omission.params == -self.universe.total(omission.group):
                    groups &= ~omission.group
                else:
                    wrong.append((omission.group, omission.params))
            counted = (groups, frozenset(wrong))
            if counted not in seen and (wrong or self.conventions.reached.get(groups, rank + 1) > rank):
                seen.add(counted)
                yield convention, omitted

    def arithmetic_errors(self, rank: int, number: int) -> Iterator[tuple[Convention, Omission]]:
        """Yield the conventions that give the number if one line of their calculation has an arithmetic error."""
        for convention in self._few(rank - 2) if 2 <= rank <= 3 else ():
            for omission in _arithmetic_errors(self.universe, convention, number - convention.params):
                yield convention, omission

    def _of_rank(self, rank: int, number: int) -> Iterator[tuple[Convention, tuple[Omission, ...]]]:
        for cost, known in ((1, self._everywhere), (2, self._once)):
            for convention in self.conventions.settled(rank - cost) if cost <= rank <= 4 else ():
                for omission in known.get(number - convention.params, ()):
                    if omission.group & convention.groups:
                        yield convention, (omission,)
        for convention in self._few(rank - 1) if 1 <= rank <= 4 else ():
            for omission in _layers(self.universe, convention.groups, number - convention.params):
                yield convention, (omission,)
        for convention in self._few(rank - 2) if 2 <= rank <= 3 else ():
            for pair in _pairs(self.universe.members(convention.groups & self._undivided), number - convention.params):
                yield convention, pair

    def _few(self, rank: int) -> Sequence[Convention]:
        """Return the conventions of a rank, or none if examining each of their groups would take too long."""
        level = self.conventions.settled(rank)
        return level if len(level) * len(self.universe.groups) <= MAX_EXAMINED else ()


def one_layer(universe: TensorGroups, groups: int) -> Iterator[Omission]:
    """Yield one layer alone, if all groups are in one stack."""
    found = _stacks(universe, groups)
    if len(found) == 1 and all(group.stack for _, group in universe.members(groups)):
        ((address, (times, each)),) = found.items()
        if times > 1:
            yield _layer(address, times, "alone", (1 - times) * each)


def _pairs(members: Sequence[tuple[int, TensorGroup]], difference: int) -> Iterator[tuple[Omission, Omission]]:
    """Yield pairs of tensor groups that are wrong in every layer."""
    seen: dict[int, list[Omission]] = {}
    for omission in _whole(members):
        for other in seen.get(difference - omission.params, ()):
            if other.group != omission.group:
                yield other, omission
        seen.setdefault(omission.params, []).append(omission)


def _by_params(known: Iterator[Omission]) -> dict[int, list[Omission]]:
    found: dict[int, list[Omission]] = {}
    for omission in known:
        found.setdefault(omission.params, []).append(omission)
    return found


def _whole(members: Sequence[tuple[int, TensorGroup]]) -> Iterator[Omission]:
    """Yield each group left out, and counted twice."""
    for bit, group in members:
        everywhere = f", {group.times} x {group.each:,}" if group.times > 1 else ""
        for sign, how in ((-1, "left out"), (1, "counted twice")):
            yield Omission(f"`{group.name}` {how}{everywhere}", sign * group.times * group.each, bit)


def _single(members: Sequence[tuple[int, TensorGroup]]) -> Iterator[Omission]:
    """Yield each group left out of one layer, and counted twice in one."""
    for bit, group in members:
        for sign, how in ((-1, "left out of"), (1, "counted twice in")) if group.times > 1 else ():
            yield Omission(f"`{group.name}` {how} one of {group.times} layers", sign * group.each, bit)


def _layers(universe: TensorGroups, groups: int, difference: int) -> Iterator[Omission]:
    """Yield stacks with one layer too few or too many, and single layers of stacks."""
    for address, (times, each) in _stacks(universe, groups).items():
        wrong = {"left out": -1, "too many": 1, "alone": 1 - times}
        if times == 2:
            del wrong["alone"]  # the same as one left out
        for how, layers in wrong.items() if times > 1 else ():
            if difference == layers * each:
                yield _layer(address, times, how, difference)


def _layer(address: str, times: int, how: str, params: int) -> Omission:
    return Omission(f"one of {times} `{address}` {how}", params, stack=address, part=how == "alone")


def _stacks(universe: TensorGroups, groups: int) -> dict[str, tuple[int, int]]:
    """Return the stacks in a set of groups: how many equal layers, and the elements of one."""
    members = [group for _, group in universe.members(groups)]
    return universe.layers((group.stack, group.spread, group.times * group.each) for group in members if group.stack)


def _arithmetic_errors(universe: TensorGroups, convention: Convention, difference: int) -> Iterator[Omission]:
    """Yield the single lines of a calculation in which one arithmetic error changes the count by `difference`."""
    lines: dict[tuple[int, int], list[str]] = {(1, convention.params): ["the total"]}
    for address, (times, each) in _stacks(universe, convention.groups).items():
        if times > 1:
            lines.setdefault((times, each), []).append(f"a layer of `{address}`")
    for _, group in universe.members(convention.groups):
        if group.share:
            continue
        lines.setdefault((group.times, group.each), []).append(f"`{group.name}`")
    for (times, meant), names in lines.items():
        written = meant + difference // times
        found = arithmetic_error(meant, written) if difference % times == 0 else None
        if found:
            where = names[0] if len(names) == 1 else f"one of {len(names)} lines of that size, such as {names[0]}"
            yield Omission(f"an arithmetic error in {where}, {written:,} for {meant:,} ({found})", difference)
