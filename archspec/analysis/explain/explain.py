"""Search for the simplest conventions, small omissions and arithmetic errors that give a number."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

from archspec.analysis.explain.conventions import Convention, Conventions
from archspec.analysis.explain.numbers import PublishedNumber, Reading, read_number
from archspec.analysis.explain.omissions import Counted, Omission, Omissions, one_layer
from archspec.analysis.explain.tensor_groups import Base, TensorGroups, table_types, uses
from archspec.core import resources
from archspec.core.addresses import first_segment
from archspec.core.diagnostics import make_error
from archspec.core.reports.results import Result
from archspec.ir.table import PlainValue, Table
from archspec.pipeline.compile import as_model
from archspec.pipeline.family import Relative, relatives_of
from archspec.pipeline.index import read_index
from archspec.pipeline.model import Model, ModelLike, get_compilation

# Models that are easily mistaken for a model: those of its file, and itself with another published vocabulary.


class Variant(NamedTuple):
    """A variant of a base: its description, and the parameters that it adds to the count of the base.

    `is_close`: it can also explain a rounded number, which others would often match by chance.
    """

    base: Base
    text: str
    params: int
    is_close: bool


def variants(table: Table, universe: TensorGroups) -> list[Variant]:
    """Return the variants of a model, without those that have as many parameters."""
    siblings = list(_siblings(table, universe))
    known = {(variant.base, variant.params) for variant in siblings}
    return siblings + [v for v in _vocabularies(universe) if v.params and (v.base, v.params) not in known]


def _siblings(table: Table, universe: TensorGroups) -> Iterator[Variant]:
    """Yield the other bundled models of the model's file."""
    bundled = read_index() or []
    files = {model.file for model in bundled if model.name == table.model and not table.overrides}
    known = {universe.total(base.counted) for base in universe.bases}
    for model in bundled:
        if model.file in files and model.params.total not in known:
            more = model.params.total - table.params.total
            yield Variant(universe.bases[0], f"instead the model `{model.name}`", more, True)


def _vocabularies(universe: TensorGroups) -> Iterator[Variant]:
    """Yield the model and its relatives with the vocabularies of published models."""
    size = _vocabulary(universe)
    if size is None:
        return
    published = _published()
    for other, name in published.items():
        is_close = name.partition(",")[0] == published[size].partition(",")[0]  # made for the same family
        for base in (base for base in universe.bases if base.rank == 0):
            rows = [
                group.times * group.each // size for _, group in universe.members(base.counted) if size in group.shape
            ]
            text = f"with the vocabulary of {name}, {other:,} instead of {size:,}"
            is_model = base.models != () or not base.parts
            yield Variant(base, text, (other - size) * sum(rows), is_close and is_model)


def _vocabulary(universe: TensorGroups) -> int | None:
    """Return the size of the vocabulary: the rows of the largest embedding table, if it is one of published sizes."""
    tables = [group.shape[0] for _, group in universe.members(universe.bases[0].counted) if group.is_table]
    largest = max(tables, default=0)
    return largest if largest in _published() else None


def _published() -> dict[int, str]:
    path = os.path.join(resources.specs_root(), "vocabularies.json")
    try:
        with open(path, encoding="utf-8") as file:
            return {int(size): name for size, name in json.load(file).items()}
    except (OSError, ValueError):
        return {}


NEAREST_RANK = 1
MAX_RELATIVE_DIFFERENCE = Fraction(2, 100)
"""The largest relative difference of a count that is shown as the nearest one."""
VARIANT_RANK = 1
ONE_LAYER_RANK = 2
"""The rank at which a rounded number may be one layer of a stack; at higher ranks, many would match by chance."""
MAX_MATCHES = 100
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

    `kind` is "convention", "variant" (a similar published model), "omission" (a small one, in addition to a convention)
    or "arithmetic error"; the last two are guesses. `rank` is the number of adjustments to a plain count of the model,
    or of a relative of it. The `steps` sum to `params`, and so do the `parts`, except for the last step of an
    arithmetic error.
    """

    kind: str
    rank: int
    params: int
    steps: tuple[CountStep, ...]
    parts: tuple[Addend, ...]


class ReadingMatches(NamedTuple):
    """The matches for one reading of a number.

    `matches` are all matches of the lowest rank that has any, and `more` is the number of matches of the next rank;
    both are limited to MAX_MATCHES. Without a match, `nearest` are the conventions of at most one adjustment with the
    next smaller and the next larger count. `cut_off` is whether the plain count, which does not match, gives the
    number if it is truncated instead of rounded; `active_cut_off` is the same for the parameters used for one token.
    """

    reading: Reading
    matches: tuple[Match, ...]
    more: int
    nearest: tuple[Match, ...]
    cut_off: bool
    active_cut_off: bool


class Explanation(Result):
    """The answers for the readings of a number, coarsest first, and the `total` of the model. `active` is the number of
    parameters used for one token; None if these are all, or unknown.

    `conventions` is the number of conventions tried: all of those with up to `depth` adjustments.
    """

    model: str
    total: int
    number: PublishedNumber
    answers: tuple[ReadingMatches, ...]
    conventions: int
    depth: int
    active: int | None = None

    def __repr__(self) -> str:
        matches = "matches" if self.fits else "no match"
        return f"<Explanation of {self.number.text} by {self.model!r}: {matches}>"

    @property
    def fits(self) -> bool:
        """Whether any interpretation of the number has a match."""
        return any(answer.matches for answer in self.answers)


def explainer_of(model: Model) -> Explainer:
    """Return the explainer of a compiled model."""
    own = get_compilation(model)
    return Explainer(own.table, relatives_of(model), uses(own.body), table_types(own.body))


class Explainer:
    """Explains numbers by a model and its relatives; their conventions are enumerated rank by rank, once.

    `uses` is how often the model's layers are applied, and `tables` are the definitions of its embedding tables.
    """

    def __init__(
        self,
        table: Table,
        relatives: Sequence[Relative] = (),
        uses: Mapping[str, int] = _ONCE,
        tables: Collection[str] = (),
    ) -> None:
        self.table = table
        self.uses = uses
        self.tables = tables
        self.universe = TensorGroups(table, relatives, uses, tables)
        self.conventions = Conventions(self.universe)
        self.omissions = Omissions(self.conventions)
        self.variants = variants(table, self.universe)

    def explain(self, number: PublishedNumber) -> Explanation:
        """Explain a parameter count."""
        idle = self.universe.where(lambda group: group.share == "idle") if number.is_active else 0
        answers = tuple([self._answer(reading, idle) for reading in number.readings])
        levels = self.conventions.levels
        tried = sum(map(len, levels))
        active = self.table.active and self.table.active.total
        return Explanation(self.table.model, self.table.params.total, number, answers, tried, len(levels) - 1, active)

    def _answer(self, reading: Reading, idle: int) -> ReadingMatches:
        """Return the matches that do not count the groups in `idle`."""
        active = self.table.active
        cut_off = not idle and reading.cuts(self.table.params.total), active is not None and reading.cuts(active.total)
        found: list[Match] = []
        seen: set[Counted] = set()
        rank = 0
        while rank < len(self.conventions.levels) + 3:  # conventions of the last rank with two omissions, and one more
            level = list(islice(self._of_rank(rank, reading, seen, idle), MAX_MATCHES))
            if found:
                return ReadingMatches(reading, tuple(found), len(level), (), *cut_off)
            found = level
            rank += 1
        return ReadingMatches(reading, (), 0, tuple(self._nearest(reading, idle)), *cut_off)

    def _of_rank(self, rank: int, reading: Reading, seen: set[Counted], idle: int) -> Iterator[Match]:
        """Yield the matches of exactly this rank."""
        for variant in self.variants if rank == VARIANT_RANK and not idle else ():
            is_candidate = reading.digits is None or variant.is_close
            if is_candidate and reading.fits(self.universe.total(variant.base.counted) + variant.params):
                yield self._variant(variant)
        level = self.conventions.of_rank(rank) if reading.digits is None else self.conventions.settled(rank)
        fitting = [c for c in level if reading.fits(c.params) and not c.groups & idle]
        for convention in sorted(fitting, key=self._changes_twice):
            yield self._match("convention", rank, convention)
        if reading.digits is not None:
            for convention in self.conventions.of_rank(rank - 1) if rank == ONE_LAYER_RANK else ():
                for omission in one_layer(self.universe, convention.groups) if not convention.groups & idle else ():
                    if reading.fits(convention.params + omission.params):
                        yield self._match("convention", rank, convention, (omission,))
            return
        number = int(reading.low)
        for convention, omitted in self.omissions.of_rank(rank, number, seen):
            if convention.groups & idle:
                continue
            kind = "convention" if omitted[0].part else "omission"
            yield self._match(kind, rank, convention, omitted)
        for convention, omission in self.omissions.arithmetic_errors(rank, number):
            if convention.groups & idle:
                continue
            yield self._match("arithmetic error", rank, convention, (omission,))

    def _changes_twice(self, convention: Convention) -> bool:
        """Whether a convention adjusts a relative of the model, rather than the model or a whole relative."""
        return convention.adjustments != () and convention.base is not self.universe.bases[0]

    def _nearest(self, reading: Reading, idle: int) -> Iterator[Match]:
        """Yield the simplest conventions with the next smaller and the next larger count."""
        known = [c for rank in range(NEAREST_RANK + 1) for c in self.conventions.of_rank(rank) if not c.groups & idle]
        below = max((c for c in known if c.params < reading.low), key=lambda c: (c.params, -c.rank), default=None)
        above = min((c for c in known if c.params > reading.high), key=lambda c: (c.params, c.rank), default=None)
        value = (reading.low + reading.high) / 2
        for nearest in (below, above):
            if nearest is not None and abs(nearest.params - value) <= MAX_RELATIVE_DIFFERENCE * value:
                yield self._match("convention", nearest.rank, nearest)

    def _match(self, kind: str, rank: int, convention: Convention, omitted: Sequence[Omission] = ()) -> Match:
        steps = [*self._steps(convention), *(CountStep(o.text, o.params) for o in omitted)]
        parts = self._parts(convention.groups, omitted)
        return Match(kind, rank, sum(step.params for step in steps), tuple(steps), tuple(parts))

    def _variant(self, variant: Variant) -> Match:
        """Return the match of a variant; it is one addend, since its tensors are not those of the model."""
        base = variant.base
        steps = [*self._steps(Convention(base, (), base.counted, 0, 0)), CountStep(variant.text, variant.params)]
        params = sum(step.params for step in steps)
        return Match("variant", VARIANT_RANK, params, tuple(steps), (Addend("", 1, params),))

    def _steps(self, convention: Convention) -> Iterator[CountStep]:
        total, base = self.universe.total, convention.base
        model = self.universe.bases[0].counted
        yield CountStep(self._plainly(), total(model))
        if base.counted & ~model:
            named = f" ({_listed(base.models or (base.name,))})" if base.name else ""
            yield CountStep(f"with {_listed(base.parts)}{named}", total(base.counted & ~model))
        if model & ~base.counted:
            yield CountStep(f"without {_listed(base.missing)}", -total(model & ~base.counted))
        groups = base.counted
        for index in convention.adjustments:
            after = self.conventions.adjusted(base, groups, index)
            yield CountStep(self.conventions.adjustments[index].text, total(after) - total(groups))
            groups = after

    def _plainly(self) -> str:
        """Describe the plain count of the model."""
        universe = self.universe
        base = universe.bases[0]
        text = "every tensor of the model, each counted once"
        frozen = universe.where(lambda group: not group.trainable, base.counted)
        if frozen:
            text += f"; {universe.total(frozen):,} frozen included"
        more = [group for _, group in universe.members(base.more)]
        again = [group.layer for group in more if group.part == "use"]
        if again:
            text += f"; {_few(again, universe.again, 'layers')} counted once, although applied repeatedly"
        shared = [group for group in more if group.alias and group.part != "use"]
        if shared:
            names = sum(group.times for group in shared)
            text += f"; {_few([group.name for group in shared], names, 'names of shared tensors')} not counted again"
        return text

    def _parts(self, groups: int, omitted: Sequence[Omission]) -> Iterator[Addend]:
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
            if change % params:  # in one layer alone
                uneven[address] = change
                change = 0
            addends.append((address, group.spread, params + change))
        for address, (times, each) in self.universe.layers(addends).items():
            if address in uneven:
                times, each = 1, times * each + uneven[address]
            times += sum(omission.params // each for omission in omitted if omission.stack == address)
            if times * each:
                yield Addend(address, times, each)


def _few(names: Sequence[str], count: int, what: str) -> str:
    """List the names if they are few, otherwise their number."""
    return _listed(list(dict.fromkeys(names))) if count <= 2 else f"{count:,} {what}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


# `archspec.explain`: the counting conventions that give a published number.


def explain(model: ModelLike, number: str | int, /, **overrides: PlainValue) -> Explanation:
    """Find the counting conventions under which a model has a published number of parameters.

    `model` is a Model, or what `archspec.load` takes, with its `overrides`. `number` is exact (`108808704`,
    "108,808,704") or rounded ("110M", "0.34B", "about 110 million"); a rounded number is interpreted at each number of
    significant digits that it may have.

    Raises ArchError if `number` is not a number (`usage`), and as `archspec.load` does.
    """
    text = str(number)
    try:
        read = read_number(text)
        if text.strip().endswith("%"):
            raise ValueError(f"`{text.strip():.60}` is a percentage, not a parameter count")
    except ValueError as problem:
        help = "write it as 108808704, 108,808,704, 110M, 0.34B or `about 110 million`"
        raise make_error("usage", str(problem), help=help) from None
    return explainer_of(as_model(model, overrides)).explain(read)
