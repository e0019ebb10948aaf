"""Small errors in addition to a convention: an omitted or repeated tensor group or layer, an arithmetic error.

Each adds one to the rank, as an adjustment does. An error in a single layer and an arithmetic error add two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from archspec.analysis.explain.conventions import Convention, Conventions
from archspec.analysis.explain.tensor_groups import TensorGroup, TensorGroups

# Arithmetic errors ----------------------------------------------------------------------------------------------------


def describe_arithmetic_error(meant: int, written: int) -> str | None:
    """Describe the single error that turns `meant` into `written` (wrong digit, swapped digits, carry); else None."""
    if meant <= 0 or written <= 0 or meant == written:
        return None
    a, b = str(meant), str(written)
    positions = [i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y]
    if len(a) == len(b) and len(positions) == 1:
        return f"one digit is wrong: {b[positions[0]]} for {a[positions[0]]}"
    if len(a) == len(b) and len(positions) == 2:
        swapped = slice(positions[0], positions[1] + 1)
        if a[swapped] == b[swapped][::-1] and len(a[swapped]) == 2:
            return f"two digits are swapped: {b[swapped]} for {a[swapped]}"
    difference = str(abs(written - meant))
    if len(difference) > 1 and difference.strip("0") == "1":
        return f"a carry is {'added' if written > meant else 'lost'}: {int(difference):,}"
    return None


def describe_digit_difference(meant: int, written: int) -> str | None:
    """Describe the difference between the digits of two numbers; None if too many differ."""
    error = describe_arithmetic_error(meant, written)
    if error is not None or min(meant, written) <= 0:
        return error
    a, b = str(meant), str(written)
    differing = sum(x != y for x, y in zip(a, b, strict=False))
    return f"two of its {len(a)} digits differ" if len(a) == len(b) >= 4 and differing == 2 else None


# Omissions ------------------------------------------------------------------------------------------------------------

MAX_EXAMINED = 1_000_000
"""Maximum number of groups of conventions that are examined one by one."""

Counted = tuple[int, frozenset[tuple[int, int]]]
"""The counted tensors: a set of groups, and pairs of a group and the parameters that are added or subtracted for it."""


class Omission(NamedTuple):
    """An omission or a repetition, and the parameters that it adds to the count.

    It concerns a tensor group (its bit, otherwise 0) or a stack (its address, otherwise ""). `part` is whether it may
    be intended: the number may count a single layer.
    """

    text: str
    params: int
    group: int = 0
    stack: str = ""
    part: bool = False


class Omissions:
    """Omissions in addition to conventions."""

    def __init__(self, conventions: Conventions) -> None:
        self.conventions = conventions
        self.universe = universe = conventions.universe
        self._undivided = universe.select(lambda group: not group.share)
        members = universe.members(self._undivided)
        self._group_omissions = _index_by_params(_iter_group_omissions(members))
        self._layer_omissions = _index_by_params(_iter_layer_omissions(members))

    def enumerate_rank(
        self, rank: int, number: int, seen: set[Counted]
    ) -> Iterator[tuple[Convention, tuple[Omission, ...]]]:
        """Yield the conventions with one omission, or two of complete groups, that give the number at this total rank.

        One omission is combined with at most three adjustments, two omissions with at most one. A combination is
        dropped if an earlier one in `seen`, or a convention of at most this rank, counts the same tensors.
        """
        for convention, omitted in self._iter_candidates(rank, number):
            groups, changed_counts = convention.groups, list[tuple[int, int]]()
            for omission in omitted:
                if omission.group and omission.params == -self.universe.total(omission.group):
                    groups &= ~omission.group
                else:
                    changed_counts.append((omission.group, omission.params))
            counted = (groups, frozenset(changed_counts))
            if counted not in seen and (changed_counts or self.conventions.rank_by_groups.get(groups, rank + 1) > rank):
                seen.add(counted)
                yield convention, omitted

    def iter_arithmetic_errors(self, rank: int, number: int) -> Iterator[tuple[Convention, Omission]]:
        """Yield the conventions that give the number if one line of their calculation has an arithmetic error."""
        for convention in self._examinable_conventions(rank - 2) if 2 <= rank <= 3 else ():
            for omission in _iter_arithmetic_errors(self.universe, convention, number - convention.params):
                yield convention, omission

    def _iter_candidates(self, rank: int, number: int) -> Iterator[tuple[Convention, tuple[Omission, ...]]]:
        for cost, omissions in ((1, self._group_omissions), (2, self._layer_omissions)):
            for convention in self.conventions.enumerate_delaying_guesses(rank - cost) if cost <= rank <= 4 else ():
                for omission in omissions.get(number - convention.params, ()):
                    if omission.group & convention.groups:
                        yield convention, (omission,)
        for convention in self._examinable_conventions(rank - 1) if 1 <= rank <= 4 else ():
            for omission in _iter_stack_omissions(self.universe, convention.groups, number - convention.params):
                yield convention, (omission,)
        for convention in self._examinable_conventions(rank - 2) if 2 <= rank <= 3 else ():
            for pair in _iter_pairs(
                self.universe.members(convention.groups & self._undivided), number - convention.params
            ):
                yield convention, pair

    def _examinable_conventions(self, rank: int) -> Sequence[Convention]:
        """Return the conventions of a rank; none if they have more than MAX_EXAMINED groups."""
        level = self.conventions.enumerate_delaying_guesses(rank)
        return level if len(level) * len(self.universe.groups) <= MAX_EXAMINED else ()


def iter_single_layers(universe: TensorGroups, groups: int) -> Iterator[Omission]:
    """Yield the omission of all layers but one, if all groups are in one stack."""
    stacks = _find_stacks(universe, groups)
    if len(stacks) == 1 and all(group.stack for _, group in universe.members(groups)):
        ((address, (times, each)),) = stacks.items()
        if times > 1:
            yield _layer_omission(address, times, "alone", (1 - times) * each)


def _iter_pairs(members: Sequence[tuple[int, TensorGroup]], difference: int) -> Iterator[tuple[Omission, Omission]]:
    """Yield pairs of omitted or repeated tensor groups."""
    seen: dict[int, list[Omission]] = {}
    for omission in _iter_group_omissions(members):
        for earlier in seen.get(difference - omission.params, ()):
            if earlier.group != omission.group:
                yield earlier, omission
        seen.setdefault(omission.params, []).append(omission)


def _index_by_params(omissions: Iterator[Omission]) -> dict[int, list[Omission]]:
    result: dict[int, list[Omission]] = {}
    for omission in omissions:
        result.setdefault(omission.params, []).append(omission)
    return result


def _iter_group_omissions(members: Sequence[tuple[int, TensorGroup]]) -> Iterator[Omission]:
    """Yield the omission and the repetition of each group."""
    for bit, group in members:
        product = f", {group.times} x {group.each:,}" if group.times > 1 else ""
        for sign, verb in ((-1, "left out"), (1, "counted twice")):
            yield Omission(f"`{group.name}` {verb}{product}", sign * group.times * group.each, bit)


def _iter_layer_omissions(members: Sequence[tuple[int, TensorGroup]]) -> Iterator[Omission]:
    """Yield the omission and the repetition of each group in one layer."""
    for bit, group in members:
        for sign, verb in ((-1, "left out of"), (1, "counted twice in")) if group.times > 1 else ():
            yield Omission(f"`{group.name}` {verb} one of {group.times} layers", sign * group.each, bit)


def _iter_stack_omissions(universe: TensorGroups, groups: int, difference: int) -> Iterator[Omission]:
    """Yield stacks with one layer too few or too many, and single layers."""
    for address, (times, each) in _find_stacks(universe, groups).items():
        errors = {"left out": -1, "too many": 1, "alone": 1 - times}
        if times == 2:
            del errors["alone"]  # equal to "left out"
        for verb, layers in errors.items() if times > 1 else ():
            if difference == layers * each:
                yield _layer_omission(address, times, verb, difference)


def _layer_omission(address: str, times: int, verb: str, params: int) -> Omission:
    return Omission(f"one of {times} `{address}` {verb}", params, stack=address, part=verb == "alone")


def _find_stacks(universe: TensorGroups, groups: int) -> dict[str, tuple[int, int]]:
    """Return the stacks in a set of groups by address: the number of equal layers, and the elements of one layer."""
    members = [group for _, group in universe.members(groups)]
    return universe.equal_layers(
        (group.stack, group.spread, group.times * group.each) for group in members if group.stack
    )


def _iter_arithmetic_errors(universe: TensorGroups, convention: Convention, difference: int) -> Iterator[Omission]:
    """Yield the single lines of a calculation in which one arithmetic error changes the count by `difference`."""
    lines: dict[tuple[int, int], list[str]] = {(1, convention.params): ["the total"]}
    for address, (times, each) in _find_stacks(universe, convention.groups).items():
        if times > 1:
            lines.setdefault((times, each), []).append(f"a layer of `{address}`")
    for _, group in universe.members(convention.groups):
        if group.share:
            continue
        lines.setdefault((group.times, group.each), []).append(f"`{group.name}`")
    for (times, meant), names in lines.items():
        written = meant + difference // times
        error = describe_arithmetic_error(meant, written) if difference % times == 0 else None
        if error:
            location = names[0] if len(names) == 1 else f"one of {len(names)} lines of that size, such as {names[0]}"
            yield Omission(f"an arithmetic error in {location}, {written:,} for {meant:,} ({error})", difference)
