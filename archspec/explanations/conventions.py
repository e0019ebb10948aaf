"""Counting conventions: adjustments to a plain parameter count, and their combinations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from archspec.addresses import first
from archspec.explanations.tensor_groups import Base, TensorGroup, TensorGroups

DEEPEST = 4
MOST_STATES = 150_000
MOST_REMOVALS = 500


class Adjustment(NamedTuple):
    """One change to a count, described by `text`; `adds` and `removes` are sets of groups."""

    text: str
    adds: int
    removes: int


class Convention(NamedTuple):
    """A base with adjustments: `groups` is the counted set, `rank` the number of adjustments to a whole model."""

    base: Base
    adjustments: tuple[int, ...]
    groups: int
    rank: int


class Conventions:
    """All combinations of up to DEEPEST adjustments, by rank; of those that count the same groups, the simplest.

    A rank is enumerated completely or, if that would take too long, not at all. `reached` maps the sets of groups found
    so far to their ranks.
    """

    def __init__(self, universe: TensorGroups) -> None:
        self.universe = universe
        self.adjustments = _adjustments(universe)
        self._levels: list[list[Convention]] = []
        self._frontier: dict[int, list[Convention]] = {}
        self.reached: dict[int, int] = {}
        self._expanded: list[set[int]] = [set() for _ in universe.bases]

    def of_rank(self, rank: int) -> list[Convention] | None:
        """Return the combinations of `rank` adjustments, in order; None from the first rank that is not enumerated."""
        while len(self._levels) <= rank:
            if len(self._levels) > DEEPEST or (level := self._next()) is None:
                return None
            self._levels.append(level)
        return self._levels[rank]

    def _next(self) -> list[Convention] | None:
        rank = len(self._levels)
        before = self._frontier.get(rank - 1, [])
        words = 1 + len(self.universe.groups) // 64  # the cost of combining two sets
        if len(before) * len(self.adjustments) * words > 8 * MOST_STATES:
            return None
        fresh: list[Convention] = []
        for base, done in zip(self.universe.bases, self._expanded, strict=True):
            if base.rank + base.guess == rank:
                done.add(base.counted)
                fresh.append(Convention(base, (), base.counted, rank))
        for state in before:
            self._extend(fresh, state, rank)
        if len(fresh) > MOST_STATES:
            return None
        self._frontier[rank] = fresh
        level: list[Convention] = []
        plain = [Convention(base, (), base.counted, rank) for base in self.universe.bases if base.rank == rank]
        for state in (*plain, *fresh):
            if state.groups not in self.reached:
                self.reached[state.groups] = rank
                level.append(state)
        return level

    def _extend(self, fresh: list[Convention], state: Convention, rank: int) -> None:
        """Add each state with one more adjustment after its last one (additions come before removals)."""
        base, groups = state.base, state.groups
        done = self._expanded[self.universe.bases.index(base)]
        for index in range(state.adjustments[-1] + 1 if state.adjustments else 0, len(self.adjustments)):
            _, adds, removes = self.adjustments[index]
            after = (groups | (adds & base.more)) & ~removes
            if after and after not in done:
                done.add(after)
                fresh.append(Convention(base, (*state.adjustments, index), after, rank))


def _adjustments(universe: TensorGroups) -> list[Adjustment]:
    """Return the adjustments that change the count, additions first; of equal ones, the one described most simply."""
    found: dict[tuple[int, int], str] = {}
    for text, groups in _additions(universe):
        if groups:
            found.setdefault((groups, 0), text)
    everything = sum(1 << i for i in range(len(universe.groups)))
    for text, groups in islice(_removals(universe), MOST_REMOVALS):
        if groups and groups != everything:
            found.setdefault((0, groups), text)
    return [Adjustment(text, adds, removes) for (adds, removes), text in found.items()]


def _additions(universe: TensorGroups) -> Iterator[tuple[str, int]]:
    groups = universe.members(_everything(universe))
    aliases = [(bit, group) for bit, group in groups if group.alias and group.part != "use"]
    yield "with shared tensors counted once per name", _set(aliases)
    if len(aliases) > 1:
        for bit, group in aliases:
            yield f"with `{group.name}` counted although it is shared", bit
    yield "with each layer counted once per application", _set([e for e in groups if e[1].part == "use"])
    yield "with the buffers", _set([(bit, group) for bit, group in groups if group.part == "buffer"])


def _removals(universe: TensorGroups) -> Iterator[tuple[str, int]]:
    groups = [(bit, group) for bit, group in universe.members(_everything(universe)) if group.part != "buffer"]
    roles = dict.fromkeys(group.role for _, group in groups if group.role)
    heads = universe.heads
    if len(heads) > 1:
        yield "without the heads", sum(heads.values())
    for address, head in heads.items():
        yield f"without the head `{address}`", head
    for role in roles:
        yield f"without {_role_text(groups, role)}", _set([e for e in groups if e[1].role == role])
    yield "without the embedding tables", _set([e for e in groups if e[1].is_table])
    biases = [(bit, group) for bit, group in groups if group.is_bias]
    yield "without the biases", _set(biases)
    yield "without the biases outside the norms", _set([e for e in biases if e[1].role != "norm"])
    for role in roles:
        yield f"without the biases of the role `{role}`", _set([e for e in biases if e[1].role == role])
    for layer, inside in _grouped([(e[1].layer, e[0]) for e in groups if e[1].role in ("embedding", "norm")]).items():
        yield f"without `{layer}`", inside
    norms = [(bit, group) for bit, group in groups if group.role == "norm"]
    for stack, inside in _grouped([(stack_of(group), bit) for bit, group in norms]).items():
        yield f"without the norms {f'in `{stack}`' if stack else 'outside the repeated layers'}", inside
    yield "without the frozen tensors", _set([e for e in groups if not e[1].trainable])
    yield "without the one-dimensional tensors", _set([e for e in groups if e[1].dimensions == 1])
    for address, inside in _grouped([(first(group.name), bit) for bit, group in groups]).items():
        yield f"without all of `{address}`", inside
    yield from _alone(universe, groups)


def _alone(universe: TensorGroups, groups: list[tuple[int, TensorGroup]]) -> Iterator[tuple[str, int]]:
    """Yield the adjustments that count one component only."""
    parts: list[tuple[str, int]] = []
    for bit, group in groups:
        names = [f"`{address}`" for address in (stack_of(group), first(group.name)) if address]
        if group.role is not None:
            names.append(_role_text(groups, group.role))
        if group.role == "embedding":
            names.append(f"`{group.layer}`")
        parts += [(name, bit) for name in names]
    for name, part in _grouped(parts).items():
        yield f"{name} alone", _everything(universe) & ~part


def _role_text(groups: list[tuple[int, TensorGroup]], role: str) -> str:
    """Words for the tensors of a role; not all of the role `embedding` need be tables."""
    if role == "embedding" and not all(group.is_table for _, group in groups if group.role == role):
        return "the tensors with role `embedding`"
    return _ROLES.get(role, f"the tensors with role `{role}`")


_ROLES = {"norm": "the norms", "embedding": "the embedding tables", "pooler": "the pooler"}


def stack_of(group: TensorGroup) -> str:
    """Return the address of the repeated layers that contain a group (`encoder.layer.*`), or ""."""
    head, star, _ = group.name.partition("*")
    return head + star if star else ""


def _everything(universe: TensorGroups) -> int:
    return (1 << len(universe.groups)) - 1


def _grouped(bits: list[tuple[str, int]]) -> dict[str, int]:
    """Combine the bits with equal names into sets."""
    found: dict[str, int] = {}
    for name, bit in bits:
        found[name] = found.get(name, 0) | bit
    return found


def _set(members: list[tuple[int, TensorGroup]]) -> int:
    return sum(bit for bit, _ in members)
