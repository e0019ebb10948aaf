"""Search for the simplest conventions, small omissions and arithmetic errors that give a number."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from archspec.addresses import first
from archspec.explanations.conventions import Convention, Conventions, stack_of
from archspec.explanations.numbers import PublishedNumber, Reading
from archspec.explanations.omissions import Counted, Omission, Omissions, one_layer
from archspec.explanations.relative import Relative
from archspec.explanations.tensor_groups import TensorGroups
from archspec.table import Table

NEAREST_RANK = 1
ONE_LAYER_RANK = 2
"""The rank at which a rounded number may be one layer of a stack; at higher ranks, many would match by chance."""
MOST_MATCHES = 100
"""The limit on the matches of one rank, because with thousands of different tensors any number matches."""
_ONCE: Mapping[str, int] = {}


class CountStep(NamedTuple):
    """One step of a count: its description, and the parameters that it adds (or subtracts)."""

    text: str
    params: int


class Addend(NamedTuple):
    """One addend of a count: `times` components of `each` parameters at an address, with `*` for indices."""

    address: str
    times: int
    each: int


class Match(NamedTuple):
    """A combination of adjustments that gives `params`.

    `kind` is "convention", "omission" (a small one, in addition to a convention) or "arithmetic error"; the last two
    are guesses. `rank` is the number of adjustments to a plain count of the model, or of a relative of it. The `steps`
    sum to `params`, and so do the `parts`, except for the last step of an arithmetic error.
    """

    kind: str
    rank: int
    params: int
    steps: tuple[CountStep, ...]
    parts: tuple[Addend, ...]


class Answer(NamedTuple):
    """The matches for one reading of a number.

    `matches` are all matches of the lowest rank that has any, and `more` is the number of matches of the next rank;
    both are limited to MOST_MATCHES. Without a match, `nearest` are the conventions of at most one adjustment with the
    next smaller and the next larger count. `cut_off` is whether the plain count, which does not match, gives the
    number if it is truncated instead of rounded.
    """

    reading: Reading
    matches: tuple[Match, ...]
    more: int
    nearest: tuple[Match, ...]
    cut_off: bool = False


class Explanation(NamedTuple):
    """The answers for the readings of a number, coarsest first, and the `total` of the model.

    `conventions` is the number of conventions tried: all of those with up to `depth` adjustments.
    """

    model: str
    total: int
    number: PublishedNumber
    answers: tuple[Answer, ...]
    conventions: int
    depth: int

    @property
    def fits(self) -> bool:
        """Whether any interpretation of the number has a match."""
        return any(answer.matches for answer in self.answers)


def explain(
    table: Table,
    number: PublishedNumber,
    relatives: Sequence[Relative] = (),
    uses: Mapping[str, int] = _ONCE,
    tables: Collection[str] = (),
) -> Explanation:
    """Explain a parameter count by a model and its relatives. `uses` is how often its layers are applied, and `tables`
    the definitions of its embedding tables.
    """
    return Explainer(table, relatives, uses, tables).explain(number)


class Explainer:
    """Explains numbers by the same model; its conventions are enumerated rank by rank, once."""

    def __init__(
        self,
        table: Table,
        relatives: Sequence[Relative] = (),
        uses: Mapping[str, int] = _ONCE,
        tables: Collection[str] = (),
    ) -> None:
        self.table = table
        self.universe = universe = TensorGroups(table, relatives, uses, tables)
        self.conventions = Conventions(universe)
        self.omissions = Omissions(universe, self._settled, self.conventions.reached)
        self.tried = 0
        self.depth = 0
        self._totals: list[list[int]] = []

    def explain(self, number: PublishedNumber) -> Explanation:
        """Explain a parameter count."""
        answers = tuple([self._answer(reading) for reading in number.readings])
        return Explanation(self.table.model, self.table.params.total, number, answers, self.tried, self.depth)

    def _answer(self, reading: Reading) -> Answer:
        found: list[Match] = []
        seen: set[Counted] = set()
        for rank in range(64):
            level = list(islice(self._of_rank(rank, reading, seen), MOST_MATCHES))
            if found:
                return Answer(reading, tuple(found), len(level), (), reading.cuts(self.table.params.total))
            found = level
            if not found and self._ends(rank):
                break
        nearest = () if found else tuple(self._nearest(reading))
        return Answer(reading, tuple(found), 0, nearest, reading.cuts(self.table.params.total))

    def _ends(self, rank: int) -> bool:
        """Whether no rank after `rank` can have conventions, with or without omissions."""
        return rank > self.depth + 2

    def _of_rank(self, rank: int, reading: Reading, seen: set[Counted]) -> Iterator[Match]:
        """Yield the matches of exactly this rank."""
        for convention, total in self._level(rank) if reading.digits is None else self._settled(rank):
            if reading.fits(total):
                yield self._match("convention", rank, convention)
        if reading.digits is not None:
            for convention, total in self._level(rank - 1) if rank == ONE_LAYER_RANK else ():
                for omission in one_layer(self.universe, convention.groups):
                    if reading.fits(total + omission.params):
                        yield self._match("convention", rank, convention, (omission,))
            return
        number = int(reading.low)
        for convention, omitted in self.omissions.of_rank(rank, number, seen):
            kind = "convention" if all(o.part for o in omitted) else "omission"
            yield self._match(kind, rank, convention, omitted)
        for convention, omission in self.omissions.arithmetic_errors(rank, number):
            yield self._match("arithmetic error", rank, convention, (omission,))

    def _level(self, rank: int) -> list[tuple[Convention, int]]:
        """Return the conventions of a rank with their counts."""
        level = self.conventions.of_rank(rank) if rank >= 0 else None
        if level is None:
            return []
        if rank >= len(self._totals):
            self._totals.append([self.universe.total(convention.groups) for convention in level])
            self.tried += len(level)
            self.depth = rank
        return list(zip(level, self._totals[rank], strict=True))

    def _settled(self, rank: int) -> list[tuple[Convention, int]]:
        """Return a rank's conventions, with guesses that need no adjustment one rank later: they match easily."""
        if rank > 1:
            return self._level(rank)
        late = [(c, n) for c, n in self._level(rank - 1) if c.base.guess and not c.adjustments]
        return [(c, n) for c, n in self._level(rank) if not c.base.guess or c.adjustments] + late

    def _nearest(self, reading: Reading) -> Iterator[Match]:
        """Yield the simplest conventions with the next smaller and the next larger count."""
        known = [(total, c) for rank in range(NEAREST_RANK + 1) for c, total in self._level(rank)]
        below = max((e for e in known if e[0] < reading.low), key=lambda e: (e[0], -e[1].rank), default=None)
        above = min((e for e in known if e[0] > reading.high), key=lambda e: (e[0], e[1].rank), default=None)
        for nearest in (below, above):
            if nearest is not None:
                yield self._match("convention", nearest[1].rank, nearest[1])

    def _match(self, kind: str, rank: int, convention: Convention, omitted: Sequence[Omission] = ()) -> Match:
        steps = [*self._steps(convention), *(CountStep(o.text, o.params) for o in omitted)]
        parts = self._parts(convention.groups, omitted)
        return Match(kind, rank, sum(step.params for step in steps), tuple(steps), tuple(parts))

    def _steps(self, convention: Convention) -> Iterator[CountStep]:
        universe, base = self.universe, convention.base
        model = universe.bases[0].counted
        yield CountStep(self._plainly(), universe.total(model))
        if base.counted & ~model:
            named = f" ({_listed(base.models or (base.name,))})" if base.name else ""
            yield CountStep(f"with {_listed(base.parts)}{named}", universe.total(base.counted & ~model))
        if model & ~base.counted:
            yield CountStep(f"without {_listed(base.missing)}", -universe.total(model & ~base.counted))
        groups = base.counted
        for index in convention.adjustments:
            text, adds, removes = self.conventions.adjustments[index]
            after = (groups | (adds & base.more)) & ~removes
            yield CountStep(text, universe.total(after) - universe.total(groups))
            groups = after

    def _plainly(self) -> str:
        """Describe the plain count of the model."""
        universe = self.universe
        base = universe.bases[0]
        frozen = sum(bit for bit, group in universe.members(base.counted) if not group.trainable)
        text = "every tensor of the model, each counted once"
        if frozen:
            text += f"; {universe.total(frozen):,} frozen included"
        again = [group.layer for _, group in universe.members(base.more) if group.part == "use"]
        if again:
            text += f"; {_few(again, universe.again, 'layers')} counted once, although applied repeatedly"
        shared = [group for _, group in universe.members(base.more) if group.alias and group.part != "use"]
        if shared:
            names = sum(group.times for group in shared)
            text += f"; {_few([group.name for group in shared], names, 'names of shared tensors')} not counted again"
        return text

    def _parts(self, groups: int, omitted: Sequence[Omission]) -> Iterator[Addend]:
        """Yield the addends of a count: one per stack and, outside the stacks, one per first segment of the address."""
        changed = {omission.group: omission.params for omission in omitted if omission.group}
        totals: dict[str, dict[int, int]] = {}
        uneven: dict[str, int] = {}
        for bit, group in self.universe.members(groups):
            stack = stack_of(group)
            found = totals.setdefault(stack or first(group.name), {})
            found[group.spread] = found.get(group.spread, 0) + group.times * group.each
            change = changed.pop(bit, 0)
            if change % (group.times * group.each):  # in one layer alone
                uneven[stack] = change
            else:
                found[group.spread] += change
        for address, found in totals.items():
            times, each = self.universe.layers(found)
            if address in uneven:
                times, each = 1, times * each + uneven[address]
            for omission in omitted:
                if omission.stack == address:
                    times += omission.params // each
            if times * each:
                yield Addend(address, times, each)


def _few(names: Sequence[str], count: int, what: str) -> str:
    """List the names if they are few, otherwise their number."""
    return _listed(list(dict.fromkeys(names))) if count <= 2 else f"{count:,} {what}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
