"""The filling of containers: those that are numbered from 0 without a gap for every size can be lists; those that
several loops fill cannot be made by any one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from archspec.codegen.scope.attribute_paths import Pattern, pattern_of
from archspec.compiler.elaborate.trace import Trace
from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.definition import ResolvedDefinition
from archspec.compiler.resolve.unit import Definition
from archspec.compiler.resolve.walk import DeclarationSite, EnclosingLoop, Guard


def texts(address: nodes.Address) -> list[str]:
    """The segments of an address as text; an index that is an expression is 0."""
    return [segment if isinstance(segment, str) else "0" for segment in address.segments]


def iter_word_containers(form: ResolvedDefinition) -> Iterator[Pattern]:
    """Yield the containers of what is declared at a word with an index in it, `"bucket_{i}"`."""
    for site in walk.iter_declaration_sites(form.body):
        address = site.declaration.what.address
        for end, segment in enumerate(address.segments):
            if isinstance(segment, nodes.WordWithIndex):
                yield pattern_of(texts(address)[:end])
                break


def _inside(form: ResolvedDefinition, trace: Trace, pattern: Pattern) -> Iterator[DeclarationSite]:
    """What is declared at, or inside, addresses of a pattern in some use."""
    for site in walk.iter_declaration_sites(form.body):
        what = site.declaration.what
        parts = texts(what.address)
        is_inside = len(parts) > len(pattern) and pattern_of(parts[: len(pattern)]) == pattern
        merges = isinstance(what, nodes.ModuleDeclaration) and what.merges
        if is_inside and not merges and trace.targets(what):
            yield site


# Lists ----------------------------------------------------------------------------------------------------------------


def is_contiguous(form: ResolvedDefinition, trace: Trace, container: Pattern) -> bool:
    """Whether the numbers in a container follow each other from 0, in the order of the statements."""
    spans: dict[tuple[str, str], None] = {}
    counted: dict[int, tuple[nodes.Loop, list[list[Guard]]]] = {}  # by loop, what its index is the number of
    source = form.scope.unit.source.text
    for site in _inside(form, trace, container):
        number = site.declaration.what.address.segments[len(container)]
        if isinstance(number, str):
            if not number.isdigit() or _open(trace, site.guards):
                return False
            spans[number, str(int(number) + 1)] = None
            continue
        around = next((a for a in reversed(site.loops) if _is_index(number, a.loop)), None)
        if around is None or _open(trace, site.guards[: around.guards]):
            return False
        first, last = (" ".join(source[e.at.start : e.at.end].split()) for e in (around.loop.first, around.loop.last))
        spans[first, last] = None
        guards = counted.setdefault(id(around.loop), (around.loop, []))[1]
        inner = site.loops[site.loops.index(around) + 1 :]
        if all(loop.is_own for loop in inner):  # any other may have no iterations
            guards.append(_open(trace, site.guards[around.guards :]))
    position = "0"
    for first, last in spans:
        if first != position:
            return False
        position = last
    return all(_covers(guards) for _, guards in counted.values())


def _is_index(number: nodes.Expr | nodes.WordWithIndex, loop: nodes.Loop) -> bool:
    return isinstance(number, nodes.Local) and number.name == loop.variable


def _open(trace: Trace, guards: Sequence[Guard]) -> list[Guard]:
    """The conditions that no model settles."""
    return [guard for guard in guards if trace.truth(guard[0]) is None]


def _covers(choices: Sequence[Sequence[Guard]]) -> bool:
    """Whether the guards of at least one choice hold for every combination of conditions."""
    if any(not guards for guards in choices):
        return True
    if not choices:
        return False
    condition, _ = choices[0][0]

    def given(truth: bool) -> list[list[Guard]]:
        """The choices that are left where the condition is true, or false."""
        possible = [guards for guards in choices if not any(c is condition and t is not truth for c, t in guards)]
        return [[guard for guard in guards if guard[0] is not condition] for guards in possible]

    return _covers(given(True)) and _covers(given(False))


# Containers that several loops fill -----------------------------------------------------------------------------------

Numbers = tuple[str | tuple[int, str], ...]
"""Where the parts of a container are made: each number of its address as text, or the loop it counts and its text."""


def is_split(definition: Definition, form: ResolvedDefinition, trace: Trace, numbered: Pattern) -> bool:
    """Whether what stands at a numbered place of a container may be filled more than once: in several loops, or in a
    loop around the one that counts.
    """
    found: dict[Numbers, None] = {}
    for site in _inside(form, trace, numbered):
        numbers = _numbers(definition, site.declaration.what.address.segments[: len(numbered)], site.loops)
        if numbers is None:
            return True
        found[numbers] = None
    return any(not _are_apart(one, other) for one, other in combinations(found, 2))


def _numbers(
    definition: Definition, segments: Sequence[str | nodes.Expr | nodes.WordWithIndex], loops: Sequence[EnclosingLoop]
) -> Numbers | None:
    """The numbers in an address; None if two iterations of the loops around it could meet there."""
    found: list[str | tuple[int, str]] = []
    counted: set[int] = set()
    for segment in segments:
        if isinstance(segment, str):
            found.append(segment)
            continue
        if isinstance(segment, nodes.WordWithIndex):
            return None
        which = _counted(definition, segment, [around.loop.variable for around in loops])
        if which is None:
            return None
        counted.add(which)
        node = segment.at
        found.append((id(loops[which].node), definition.unit.source.text[node.start : node.end]))
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


def _are_apart(one: Numbers, other: Numbers) -> bool:
    """Whether two addresses have different numbers in some place."""
    return any(isinstance(a, str) and isinstance(b, str) and a != b for a, b in zip(one, other, strict=True))
