"""Search for the simplest conventions, small omissions and arithmetic errors that explain a number."""

from __future__ import annotations

import json
import os
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

from archspec.analysis.explain.conventions import Convention, Conventions
from archspec.analysis.explain.numbers import PublishedNumber, Reading, is_near, read_count
from archspec.analysis.explain.omissions import Counted, Omission, Omissions, iter_single_layers
from archspec.analysis.explain.tensor_groups import Base, TensorGroups, count_uses, find_table_types
from archspec.core import resources
from archspec.core.addresses import first_segment
from archspec.core.arguments import check_arguments
from archspec.core.reports.results import Result
from archspec.ir.table import PlainValue, Table
from archspec.pipeline.compile import as_model
from archspec.pipeline.family import Relative, relatives_of
from archspec.pipeline.index import read_index
from archspec.pipeline.model import Model, ModelLike, get_compilation

# Variants of a model: the other models of its file, and the model with a different published vocabulary.


class Variant(NamedTuple):
    """A variant of a base: its description, and the parameters that it adds to the count of the base.

    `is_close` is whether it can explain a rounded number, which other variants would often match by chance.
    """

    base: Base
    text: str
    params: int
    is_close: bool


def find_variants(table: Table, universe: TensorGroups) -> list[Variant]:
    """Return the variants of a model that have a different parameter count."""
    siblings = list(_iter_siblings(table, universe))
    known_counts = {(variant.base, variant.params) for variant in siblings}
    return siblings + [v for v in _iter_vocabularies(universe) if v.params and (v.base, v.params) not in known_counts]


def _iter_siblings(table: Table, universe: TensorGroups) -> Iterator[Variant]:
    """Yield the other bundled models of the model's file."""
    bundled = read_index() or []
    files = {model.file for model in bundled if model.name == table.model and not table.overrides}
    known_counts = {universe.total(base.counted) for base in universe.bases}
    for model in bundled:
        if model.file in files and model.params.total not in known_counts:
            difference = model.params.total - table.params.total
            yield Variant(universe.bases[0], f"instead the model `{model.name}`", difference, True)


def _iter_vocabularies(universe: TensorGroups) -> Iterator[Variant]:
    """Yield the model and its relatives with the vocabularies of published models."""
    size = _vocabulary_size(universe)
    if size is None:
        return
    published = _load_vocabularies()
    for published_size, name in published.items():
        is_close = name.partition(",")[0] == published[size].partition(",")[0]  # made for the same family
        for base in (base for base in universe.bases if base.rank == 0):
            rows = [
                group.times * group.each // size for _, group in universe.members(base.counted) if size in group.shape
            ]
            text = f"with the vocabulary of {name}, {published_size:,} instead of {size:,}"
            is_model = base.models != () or not base.parts
            yield Variant(base, text, (published_size - size) * sum(rows), is_close and is_model)


def _vocabulary_size(universe: TensorGroups) -> int | None:
    """Return the size of the vocabulary: the rows of the largest embedding table, if this is a published size."""
    tables = [group.shape[0] for _, group in universe.members(universe.bases[0].counted) if group.is_table]
    largest = max(tables, default=0)
    return largest if largest in _load_vocabularies() else None


def _load_vocabularies() -> dict[int, str]:
    path = os.path.join(resources.specs_root(), "vocabularies.json")
    try:
        with open(path, encoding="utf-8") as file:
            return {int(size): name for size, name in json.load(file).items()}
    except (OSError, ValueError):
        return {}


MAX_NEAREST_RANK = 1
VARIANT_RANK = 1
ONE_LAYER_RANK = 2
"""The only rank at which a rounded number may be one layer of a stack; at higher ranks, many match by chance."""
NEAR = Fraction(1, 100_000)
"""Relative distance of totals near a number."""
MAX_NEAR_TOTALS = 3
"""Maximum number of other totals near a number that a convention of several steps explains."""
MAX_MATCHES = 100
"""Maximum number of matches of one rank. With thousands of different tensors, any number has many matches."""
_NO_USES: Mapping[str, int] = {}


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
    """A combination of adjustments that evaluates to `params`.

    `kind` is "convention", "variant" (a similar published model), "coincidence" (a convention of several steps that
    the number does not determine), "omission" (a small omission in addition to a convention) or "arithmetic error";
    the last three are guesses. `rank` is the number of adjustments to a plain count of
    the model or of a relative. The `steps` sum to `params`, and so do the `parts`, except for the last step of an
    arithmetic error.
    """

    kind: str
    rank: int
    params: int
    steps: tuple[CountStep, ...]
    parts: tuple[Addend, ...]


class ReadingMatches(NamedTuple):
    """The matches for one reading of a number.

    `matches` are all matches of the lowest rank with a match, and `more` is the number of matches of the next rank;
    both are limited to MAX_MATCHES. Without a match, `nearest` are the conventions of at most one adjustment with the
    next smaller and the next larger count. `cut_off` is whether the plain count, which does not match, is the number
    if truncated instead of rounded; `active_cut_off` is the same for the count of parameters used for one token, and
    `active_without_tables_cut_off` for that count without the tables of which a token only reads rows.
    """

    reading: Reading
    matches: tuple[Match, ...]
    more: int
    nearest: tuple[Match, ...]
    cut_off: bool
    active_cut_off: bool
    active_without_tables_cut_off: bool


class Explanation(Result):
    """The answers for the readings of a number, coarsest first, and the `total` of the model.

    `active` is the number of parameters used for one token, and `active_without_tables` that number without the tables
    of which a token only reads rows; None if all are used, or if it is unknown. `conventions` is the number of searched
    conventions: all with up to `depth` adjustments.
    """

    model: str
    total: int
    number: PublishedNumber
    answers: tuple[ReadingMatches, ...]
    conventions: int
    depth: int
    active: int | None = None
    active_without_tables: int | None = None

    def __repr__(self) -> str:
        matches = "matches" if self.fits else "no match"
        return f"<Explanation of {self.number.text} by {self.model!r}: {matches}>"

    @property
    def fits(self) -> bool:
        """Whether any interpretation of the number has a match."""
        return any(answer.matches for answer in self.answers)


def create_explainer(model: Model) -> Explainer:
    """Create the explainer of a compiled model."""
    compilation = get_compilation(model)
    return Explainer(
        compilation.table, relatives_of(model), count_uses(compilation.body), find_table_types(compilation.body)
    )


class Explainer:
    """Explainer of numbers by a model and its relatives, whose conventions are enumerated rank by rank, once.

    `uses` has the numbers of applications of the model's layers, and `tables` the definitions of its embedding tables.
    """

    def __init__(
        self,
        table: Table,
        relatives: Sequence[Relative] = (),
        uses: Mapping[str, int] = _NO_USES,
        tables: Collection[str] = (),
    ) -> None:
        self.table = table
        self.uses = uses
        self.tables = tables
        self.universe = TensorGroups(table, relatives, uses, tables)
        self.conventions = Conventions(self.universe)
        self.omissions = Omissions(self.conventions)
        self.variants = find_variants(table, self.universe)
        self._totals: dict[int, list[int]] = {}

    @check_arguments
    def explain(self, number: PublishedNumber) -> Explanation:
        """Explain a parameter count."""
        idle = self.universe.select(lambda group: group.share == "idle") if number.is_active else 0
        answers = tuple([self._match_reading(reading, idle) for reading in number.readings])
        levels = self.conventions.levels
        tried = sum(map(len, levels))
        active = self.table.active[:2] if self.table.active is not None else (None, None)
        return Explanation(self.table.model, self.table.params.total, number, answers, tried, len(levels) - 1, *active)

    def _match_reading(self, reading: Reading, idle: int) -> ReadingMatches:
        """Return the matches for a reading that do not count the groups in `idle`."""
        active = self.table.active
        truncations = (
            not idle and reading.cuts(self.table.params.total),
            active is not None and reading.cuts(active.total),
            active is not None and reading.cuts(active.without_tables),
        )
        matches: list[Match] = []
        seen: set[Counted] = set()
        exact = reading.digits is None
        rank = 0
        while rank < len(self.conventions.levels) + 3:  # two omissions in the last rank, and `more`
            level = list(islice(self._iter_matches(rank, reading, seen, idle), MAX_MATCHES))
            if matches:
                matches = [self._mark_coincidence(match, matches) for match in matches] if exact else matches
                return ReadingMatches(reading, tuple(matches), len(level), (), *truncations)
            matches = level
            rank += 1
        return ReadingMatches(reading, (), 0, tuple(self._iter_nearest(reading, idle)), *truncations)

    def _iter_matches(self, rank: int, reading: Reading, seen: set[Counted], idle: int) -> Iterator[Match]:
        """Yield the matches of one rank."""
        for variant in self.variants if rank == VARIANT_RANK and not idle else ():
            is_candidate = reading.digits is None or variant.is_close
            if is_candidate and reading.fits(self.universe.total(variant.base.counted) + variant.params):
                yield self._build_variant_match(variant)
        level = (
            self.conventions.enumerate_rank(rank)
            if reading.digits is None
            else self.conventions.enumerate_delaying_guesses(rank)
        )
        fitting = [c for c in level if reading.fits(c.params) and not c.groups & idle]
        for convention in sorted(fitting, key=self._adjusts_relative):
            yield self._build_match("convention", rank, convention)
        if reading.digits is not None:
            for convention in self.conventions.enumerate_rank(rank - 1) if rank == ONE_LAYER_RANK else ():
                for omission in (
                    iter_single_layers(self.universe, convention.groups) if not convention.groups & idle else ()
                ):
                    if reading.fits(convention.params + omission.params):
                        yield self._build_match("convention", rank, convention, (omission,))
            return
        number = int(reading.low)
        for convention, omitted in self.omissions.enumerate_rank(rank, number, seen):
            if convention.groups & idle:
                continue
            kind = "convention" if omitted[0].part else "omission"
            yield self._build_match(kind, rank, convention, omitted)
        for convention, omission in self.omissions.iter_arithmetic_errors(rank, number):
            if convention.groups & idle:
                continue
            yield self._build_match("arithmetic error", rank, convention, (omission,))

    def _mark_coincidence(self, match: Match, matches: Sequence[Match]) -> Match:
        """Return a match of an exact number, as a coincidence if the number does not determine it.

        A count of a relative is known, and so is a single step. Several steps with an adjustment are credible if few
        other totals of at most as many adjustments are near the number; adjustments of a relative, of which there are
        many, only if no error is as simple.
        """
        if match.kind != "convention" or match.rank == 0 or len(match.steps) <= 2:
            return match
        adjusts_relative = len(match.steps) - 1 > match.rank
        has_error = adjusts_relative and any(other.kind in ("omission", "arithmetic error") for other in matches)
        is_credible = not has_error and self._count_near_totals(match) <= MAX_NEAR_TOTALS
        return match if is_credible else match._replace(kind="coincidence")

    def _count_near_totals(self, match: Match) -> int:
        """Return the number of other totals near a match, of conventions of at most as many adjustments."""
        totals = self._totals.get(match.rank)
        if totals is None:
            levels = self.conventions.levels[: match.rank + 1]
            totals = self._totals[match.rank] = sorted({c.params for level in levels for c in level})
        distance = int(NEAR * match.params)
        return bisect_right(totals, match.params + distance) - bisect_left(totals, match.params - distance) - 1

    def _adjusts_relative(self, convention: Convention) -> bool:
        """Whether a convention has adjustments to a relative of the model."""
        return convention.adjustments != () and convention.base is not self.universe.bases[0]

    def _iter_nearest(self, reading: Reading, idle: int) -> Iterator[Match]:
        """Yield the simplest conventions with the next smaller and the next larger count."""
        candidates = [
            c
            for rank in range(MAX_NEAREST_RANK + 1)
            for c in self.conventions.enumerate_rank(rank)
            if not c.groups & idle
        ]
        below = max((c for c in candidates if c.params < reading.low), key=lambda c: (c.params, -c.rank), default=None)
        above = min((c for c in candidates if c.params > reading.high), key=lambda c: (c.params, c.rank), default=None)
        for nearest in (below, above):
            if nearest is not None and is_near(nearest.params, reading):
                yield self._build_match("convention", nearest.rank, nearest)

    def _build_match(self, kind: str, rank: int, convention: Convention, omitted: Sequence[Omission] = ()) -> Match:
        steps = [*self._iter_steps(convention), *(CountStep(o.text, o.params) for o in omitted)]
        parts = self._iter_addends(convention.groups, omitted)
        return Match(kind, rank, sum(step.params for step in steps), tuple(steps), tuple(parts))

    def _build_variant_match(self, variant: Variant) -> Match:
        """Return the match of a variant, with a single addend, because its tensors are not tensors of the model."""
        base = variant.base
        steps = [*self._iter_steps(Convention(base, (), base.counted, 0, 0)), CountStep(variant.text, variant.params)]
        params = sum(step.params for step in steps)
        return Match("variant", VARIANT_RANK, params, tuple(steps), (Addend("", 1, params),))

    def _iter_steps(self, convention: Convention) -> Iterator[CountStep]:
        total, base = self.universe.total, convention.base
        model = self.universe.bases[0].counted
        yield CountStep(self._describe_plain_count(), total(model))
        if base.counted & ~model:
            names = f" ({_format_names(base.models or (base.name,))})" if base.name else ""
            yield CountStep(f"with {_format_names(base.parts)}{names}", total(base.counted & ~model))
        if model & ~base.counted:
            yield CountStep(f"without {_format_names(base.missing)}", -total(model & ~base.counted))
        groups = base.counted
        for index in convention.adjustments:
            adjusted = self.conventions.apply_adjustment(base, groups, index)
            yield CountStep(self.conventions.adjustments[index].text, total(adjusted) - total(groups))
            groups = adjusted

    def _describe_plain_count(self) -> str:
        """Describe the plain count of the model."""
        universe = self.universe
        base = universe.bases[0]
        text = "every tensor of the model, each counted once"
        frozen = universe.select(lambda group: not group.trainable, base.counted)
        if frozen:
            text += f"; {universe.total(frozen):,} frozen included"
        uncounted = [group for _, group in universe.members(base.more)]
        reapplied = [group.layer for group in uncounted if group.part == "use"]
        if reapplied:
            layers = _format_names_or_count(reapplied, universe.reapplied, "layers")
            text += f"; {layers} counted once, although applied repeatedly"
        shared = [group for group in uncounted if group.alias and group.part != "use"]
        if shared:
            count = sum(group.times for group in shared)
            names = _format_names_or_count([group.name for group in shared], count, "names of shared tensors")
            text += f"; {names} not counted again"
        return text

    def _iter_addends(self, groups: int, omitted: Sequence[Omission]) -> Iterator[Addend]:
        """Yield the addends of a count: one per stack and, outside the stacks, one per first segment of the address."""
        changes = {omission.group: omission.params for omission in omitted}
        addends: list[tuple[str, int, int]] = []
        uneven: dict[str, int] = {}
        for bit, group in self.universe.members(groups):
            address, params, change = (
                group.stack or first_segment(group.name),
                group.times * group.each,
                changes.get(bit, 0),
            )
            if change % params:  # only one layer changes
                uneven[address] = change
                change = 0
            addends.append((address, group.spread, params + change))
        for address, (times, each) in self.universe.equal_layers(addends).items():
            if address in uneven:
                times, each = 1, times * each + uneven[address]
            times += sum(omission.params // each for omission in omitted if omission.stack == address)
            if times * each:
                yield Addend(address, times, each)


def _format_names_or_count(names: Sequence[str], count: int, noun: str) -> str:
    """List up to two names, otherwise format their number."""
    return _format_names(list(dict.fromkeys(names))) if count <= 2 else f"{count:,} {noun}"


def _format_names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


# `archspec.explain`


def explain(model: ModelLike, number: str | int, /, **overrides: PlainValue) -> Explanation:
    """Find the counting conventions under which a model has a published parameter count.

    `model` is a Model or an argument of `archspec.load`, with `overrides`. `number` is exact (`108808704`,
    "108,808,704") or rounded ("110M", "0.34B", "about 110 million"). A rounded number is interpreted at each possible
    number of significant digits.

    Raises ArchError if `number` is not a number (`usage`), and as `archspec.load` does.
    """
    help = "write the number as 108808704, 108,808,704, 110M, 0.34B or `about 110 million`"
    published = read_count(number, "a parameter count", help)
    return create_explainer(as_model(model, overrides)).explain(published)
