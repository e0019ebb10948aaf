"""How containers are filled: which are numbered from 0 without a gap, whatever numbers a class is given, so that they
can be lists; and which are filled by several loops, none of which can make what they hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from archspec.elaborate.trace import Trace
from archspec.pytorch.places import Pattern, pattern_of
from archspec.pytorch.plan import Branch, Owning, Plan, Repeat, plan_of
from archspec.pytorch.plan import names_in as words_in
from archspec.resolve.files import Definition
from archspec.syntax import tree


class Filled(NamedTuple):
    """Numbers that a statement owns something at, in order: from `first` up to `last`, as written; not `surely`: only
    some of them.
    """

    first: str
    last: str
    surely: bool


def is_steady(definition: Definition, trace: Trace, container: Pattern) -> bool:
    """Whether the numbers in a container follow each other from 0, in the order of the statements."""
    position, seen = "0", set[tuple[str, str]]()
    for filled in _Search(definition, trace, container).filled(plan_of(definition)):
        span = filled.first, filled.last
        if not filled.surely or (filled.first != position and span not in seen):
            return False
        if span not in seen:
            position = filled.last
        seen.add(span)
    return True


class _Search:
    """What fills a container in a definition."""

    def __init__(self, definition: Definition, trace: Trace, container: Pattern) -> None:
        self.source = definition.unit.source.text
        self.trace = trace
        self.truth = trace.truth
        self.container = container

    def filled(self, plan: Plan) -> Iterator[Filled]:
        for entry in plan:
            match entry:
                case Owning(loop=None):
                    number = self._number(entry)
                    if number is not None:
                        yield from self._literal(number, not self._open(entry))
                case Owning(loop=tree.Loop() as loop):
                    yield from self._rounds(loop, self._pairs(entry, plan))
                case Repeat(loop, body):
                    yield from self._rounds(loop, body)
                case Branch(condition, body, otherwise):
                    chosen = self.truth(condition)
                    for side in [body, otherwise] if chosen is None else [body if chosen else otherwise]:
                        for filled in self.filled(side):
                            yield filled._replace(surely=filled.surely and chosen is not None)
                case _:
                    pass

    def _literal(self, number: tree.Expr | str, surely: bool) -> Iterator[Filled]:
        if isinstance(number, str) and number.isdigit():
            yield Filled(number, str(int(number) + 1), surely)
        else:
            yield Filled("", "", False)  # a number that is worked out

    def _rounds(self, loop: tree.Loop, body: Plan) -> Iterator[Filled]:
        """What a loop fills: one number each round, or, further inside, the same in each."""
        if any(self._is_index(entry, loop.variable) for entry in _all(body)):
            yield Filled(self._text(loop.first), self._text(loop.last), self._covers(body, loop.variable))
        else:
            yield from self.filled([entry._replace(loop=None) if _loops(entry, loop) else entry for entry in body])  # pyright: ignore

    def _covers(self, plan: Plan, variable: str) -> bool:
        """Whether every round owns something at its number."""
        open_: set[tuple[int, bool]] = set()
        for entry in plan:
            if isinstance(entry, Branch):
                chosen = self.truth(entry.condition)
                sides = [entry.body, entry.otherwise] if chosen is None else [entry.body if chosen else entry.otherwise]
                if all(self._covers(side, variable) for side in sides):
                    return True
            elif isinstance(entry, Owning) and self._is_index(entry, variable):
                guards = self._open(entry)
                if not guards:
                    return True
                if len(guards) == 1:
                    condition, wanted = guards[0]
                    if (id(condition), not wanted) in open_:
                        return True
                    open_.add((id(condition), wanted))
        return False

    def _pairs(self, entry: Owning, plan: Plan) -> Plan:
        """What is owned in the rounds of the same loop: the two sides of a choice."""
        return tuple([other for other in plan if isinstance(other, Owning) and other.loop is entry.loop])

    def _open(self, entry: Owning) -> list[tuple[tree.Expr, bool]]:
        """The conditions that no model settles."""
        return [guard for guard in entry.guards if self.truth(guard[0]) is None]

    def _number(self, entry: Owning) -> tree.Expr | str | None:
        """The number in the container at which something is owned; None if that is elsewhere, or never."""
        if not self.trace.targets(entry.node):
            return None
        segments = entry.node.address.segments
        parts = [segment.text or "0" for segment in segments]
        size = len(self.container)
        if len(parts) <= size or pattern_of(parts[:size]) != self.container:
            return None
        return segments[size].number or segments[size].text

    def _is_index(self, entry: Owning, variable: str) -> bool:
        number = self._number(entry)
        return isinstance(number, tree.Name) and number.text == variable

    def _text(self, expr: tree.Expr) -> str:
        return " ".join(self.source[expr.start : expr.end].split())


def _loops(entry: object, loop: tree.Loop) -> bool:
    return isinstance(entry, Owning) and entry.loop is loop


def _all(plan: Sequence[object]) -> Iterator[Owning]:
    """Everything that a plan owns, loops inside left out."""
    for entry in plan:
        if isinstance(entry, Owning):
            yield entry
        elif isinstance(entry, Branch):
            yield from _all((*entry.body, *entry.otherwise))


# Containers that several loops fill -----------------------------------------------------------------------------------

Site = tuple[str | tuple[int, str], ...]
"""Where the parts of a container are made: each number of its address as text, or the loop it counts and its text."""


def is_split(definition: Definition, trace: Trace, numbered: Pattern) -> bool:
    """Whether what stands at a numbered place of a container may be filled more than once: in several loops, or in a
    loop around the one that counts.
    """
    sites: dict[Site, None] = {}
    for entry, loops in _under_loops(plan_of(definition), ()):
        segments = entry.node.address.segments
        parts = [segment.text or "0" for segment in segments]
        if len(parts) <= len(numbered) or pattern_of(parts[: len(numbered)]) != numbered:
            continue
        if not trace.targets(entry.node):
            continue
        site = _site(definition, segments[: len(numbered)], loops)
        if site is None:
            return True
        sites[site] = None
    return any(not _are_apart(one, other) for one, other in combinations(sites, 2))


def _under_loops(
    plan: Plan, loops: tuple[tuple[int, str], ...]
) -> Iterator[tuple[Owning, tuple[tuple[int, str], ...]]]:
    """Everything that a plan owns, with the loops around it: an identity and the variable of each, outermost first."""
    for entry in plan:
        match entry:
            case Owning(loop=loop):
                yield entry, loops if loop is None else (*loops, (id(entry), loop.variable))
            case Repeat(loop, body):
                yield from _under_loops(body, (*loops, (id(loop), loop.variable)))
            case Branch(_, body, otherwise):
                yield from _under_loops((*body, *otherwise), loops)
            case _:
                pass


def _site(definition: Definition, segments: Sequence[tree.Segment], loops: Sequence[tuple[int, str]]) -> Site | None:
    """The site of an address; None if two rounds of the loops around it could meet there."""
    found: list[str | tuple[int, str]] = []
    counted: set[int] = set()
    for segment in segments:
        if segment.number is None:
            found.append(segment.text)
            continue
        which = _counted(definition, segment.number, [variable for _, variable in loops])
        if which is None:
            return None
        counted.add(which)
        found.append((loops[which][0], definition.unit.source.text[segment.number.start : segment.number.end]))
    return tuple(found) if len(counted) == max(counted, default=-1) + 1 else None


def _counted(definition: Definition, number: tree.Expr, variables: Sequence[str]) -> int | None:
    """The loop that a number counts, which is another in each round; None if that is not plain to see."""
    match number:
        case tree.Name(text=text) if text in variables:
            return len(variables) - 1 - list(reversed(variables)).index(text)
        case tree.Binary(operator="+" | "-", left=left, right=right):
            for side, other in ((left, right), (right, left)):
                if set(words_in(other)) <= set(definition.hyperparameters):
                    return _counted(definition, side, variables)
            return None
        case _:
            return None


def _are_apart(one: Site, other: Site) -> bool:
    """Whether two sites have different numbers in some place."""
    return any(isinstance(a, str) and isinstance(b, str) and a != b for a, b in zip(one, other, strict=True))
