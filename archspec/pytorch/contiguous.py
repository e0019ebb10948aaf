"""How containers are filled: which are numbered from 0 without a gap for every size, so that they can be lists; and
which are filled by several loops, none of which can make what they hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from archspec.elaborate.trace import Trace
from archspec.pytorch.attribute_paths import Pattern, pattern_of
from archspec.resolve import nodes, walk
from archspec.resolve.definition import Resolved
from archspec.resolve.unit import Definition

Guard = tuple[nodes.Expr, bool]


class Filled(NamedTuple):
    """Numbers at which a statement declares something, in order: from `first` up to `last`, as written; not `surely`:
    only some of them.
    """

    first: str
    last: str
    surely: bool


def texts(address: nodes.Address) -> list[str]:
    """The segments of an address as text; an index that is an expression is 0."""
    return [segment if isinstance(segment, str) else "0" for segment in address.segments]


def is_contiguous(form: Resolved, trace: Trace, container: Pattern) -> bool:
    """Whether the numbers in a container follow each other from 0, in the order of the statements."""
    position, seen = "0", set[tuple[str, str]]()
    for filled in _Search(form, trace, container).filled(form.body):
        span = filled.first, filled.last
        if not filled.surely or (filled.first != position and span not in seen):
            return False
        if span not in seen:
            position = filled.last
        seen.add(span)
    return True


class _Search:
    """What fills a container in a definition."""

    def __init__(self, form: Resolved, trace: Trace, container: Pattern) -> None:
        self.source = form.scope.unit.source.text
        self.trace = trace
        self.truth = trace.truth
        self.container = container

    def filled(self, statements: Sequence[nodes.Statement]) -> Iterator[Filled]:
        for statement in statements:
            match statement:
                case nodes.Bind() | nodes.Declare() | nodes.Return():
                    yield from self._declared(statement.declares)
                case nodes.For(loop=loop, body=body):
                    if any(self._is_index(inside, loop.variable) for inside in _outside_loops(body)):
                        yield self._counted(loop, self._fills(body, loop.variable))
                    else:
                        yield from self.filled(body)  # the same numbers in each iteration
                case nodes.If(condition=condition, body=body, otherwise=otherwise):
                    chosen = self.truth(condition)
                    for side in [body, otherwise] if chosen is None else [body if chosen else otherwise]:
                        for filled in self.filled(side):
                            yield filled._replace(surely=filled.surely and chosen is not None)
                case _:
                    pass

    def _declared(self, declarations: Sequence[nodes.Declaration]) -> Iterator[Filled]:
        for declaration in declarations:
            loop = declaration.loop
            if loop is None:
                yield from self._single(declaration)
                continue
            together = [other for other in declarations if other.loop is loop]  # the two sides of a choice
            if any(self._is_index(other, loop.variable) for other in together):
                yield self._counted(loop, self._covers(together, loop.variable))
            else:
                for other in together:
                    yield from self._single(other)

    def _single(self, declaration: nodes.Declaration) -> Iterator[Filled]:
        number = self._number(declaration)
        if isinstance(number, str) and number.isdigit():
            yield Filled(number, str(int(number) + 1), not self._open(declaration))
        elif number is not None:
            yield Filled("", "", False)  # a number that is computed

    def _counted(self, loop: nodes.Loop, surely: bool) -> Filled:
        return Filled(self._text(loop.first), self._text(loop.last), surely)

    def _fills(self, statements: Sequence[nodes.Statement], variable: str) -> bool:
        """Whether every iteration declares something at its number."""
        for statement in statements:
            match statement:
                case nodes.Bind() | nodes.Declare() | nodes.Return() if self._covers(statement.declares, variable):
                    return True
                case nodes.If(condition=condition, body=body, otherwise=otherwise):
                    chosen = self.truth(condition)
                    sides = [body, otherwise] if chosen is None else [body if chosen else otherwise]
                    if all(self._fills(side, variable) for side in sides):
                        return True
                case _:
                    pass
        return self._covers(list(_outside_loops(statements, branches=False)), variable)

    def _covers(self, declarations: Sequence[nodes.Declaration], variable: str) -> bool:
        """Whether one of some declarations, or both sides of a choice, are at the index of the loop."""
        open_: set[tuple[int, bool]] = set()
        for declaration in declarations:
            if not self._is_index(declaration, variable):
                continue
            guards = self._open(declaration)
            if not guards:
                return True
            if len(guards) == 1:
                condition, wanted = guards[0]
                if (id(condition), not wanted) in open_:
                    return True
                open_.add((id(condition), wanted))
        return False

    def _open(self, declaration: nodes.Declaration) -> list[Guard]:
        """The conditions that no model settles."""
        return [guard for guard in declaration.guards if self.truth(guard[0]) is None]

    def _number(self, declaration: nodes.Declaration) -> nodes.Expr | str | None:
        """The number in the container at which something is declared; None if that is elsewhere, or never."""
        if not self.trace.targets(declaration.what):
            return None
        address, size = declaration.what.address, len(self.container)
        parts = texts(address)
        if len(parts) <= size or pattern_of(parts[:size]) != self.container:
            return None
        return address.segments[size]

    def _is_index(self, declaration: nodes.Declaration, variable: str) -> bool:
        number = self._number(declaration)
        return isinstance(number, nodes.Local) and number.name == variable

    def _text(self, expr: nodes.Expr) -> str:
        return " ".join(self.source[expr.at.start : expr.at.end].split())


def _outside_loops(statements: Sequence[nodes.Statement], branches: bool = True) -> Iterator[nodes.Declaration]:
    """Everything that statements declare, loops inside left out."""
    for statement in statements:
        match statement:
            case nodes.Bind() | nodes.Declare() | nodes.Return():
                yield from statement.declares
            case nodes.If() if branches:
                yield from _outside_loops((*statement.body, *statement.otherwise))
            case _:
                pass


# Containers that several loops fill -----------------------------------------------------------------------------------

Site = tuple[str | tuple[int, str], ...]
"""Where the parts of a container are made: each number of its address as text, or the loop it counts and its text."""

Loops = tuple[tuple[int, str], ...]
"""Loops around something, outermost first: the identity and the variable of each."""


def is_split(definition: Definition, form: Resolved, trace: Trace, numbered: Pattern) -> bool:
    """Whether what stands at a numbered place of a container may be filled more than once: in several loops, or in a
    loop around the one that counts.
    """
    sites: dict[Site, None] = {}
    for declaration, loops in _under_loops(form.body, ()):
        address = declaration.what.address
        parts = texts(address)
        if len(parts) <= len(numbered) or pattern_of(parts[: len(numbered)]) != numbered:
            continue
        if not trace.targets(declaration.what):
            continue
        site = _site(definition, address.segments[: len(numbered)], loops)
        if site is None:
            return True
        sites[site] = None
    return any(not _are_apart(one, other) for one, other in combinations(sites, 2))


def _under_loops(statements: Sequence[nodes.Statement], loops: Loops) -> Iterator[tuple[nodes.Declaration, Loops]]:
    """Everything that statements declare, with the loops around it."""
    for statement in statements:
        match statement:
            case nodes.Bind() | nodes.Declare() | nodes.Return():
                for declaration in statement.declares:
                    loop = declaration.loop
                    yield declaration, loops if loop is None else (*loops, (id(declaration), loop.variable))
            case nodes.For(loop=loop, body=body):
                yield from _under_loops(body, (*loops, (id(loop), loop.variable)))
            case nodes.If(body=body, otherwise=otherwise):
                yield from _under_loops((*body, *otherwise), loops)
            case _:
                pass


def _site(definition: Definition, segments: Sequence[str | nodes.Expr], loops: Loops) -> Site | None:
    """The site of an address; None if two iterations of the loops around it could meet there."""
    found: list[str | tuple[int, str]] = []
    counted: set[int] = set()
    for segment in segments:
        if isinstance(segment, str):
            found.append(segment)
            continue
        which = _counted(definition, segment, [variable for _, variable in loops])
        if which is None:
            return None
        counted.add(which)
        node = segment.at
        found.append((loops[which][0], definition.unit.source.text[node.start : node.end]))
    return tuple(found) if len(counted) == max(counted, default=-1) + 1 else None


def _counted(definition: Definition, number: nodes.Expr, variables: Sequence[str]) -> int | None:
    """The loop that a number counts, which is another in each iteration; None if that is not plain to see."""
    match number:
        case nodes.Local(name=text) if text in variables:
            return len(variables) - 1 - list(reversed(variables)).index(text)
        case nodes.Binary(operator="+" | "-", left=left, right=right):
            for side, other in ((left, right), (right, left)):
                if set(walk.local_names(other)) <= set(definition.hyperparameters):
                    return _counted(definition, side, variables)
            return None
        case _:
            return None


def _are_apart(one: Site, other: Site) -> bool:
    """Whether two sites have different numbers in some place."""
    return any(isinstance(a, str) and isinstance(b, str) and a != b for a, b in zip(one, other, strict=True))
