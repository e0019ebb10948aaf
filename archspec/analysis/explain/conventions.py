"""Counting conventions: adjustments to a plain parameter count, and their combinations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from archspec.analysis.explain.tensor_groups import Base, TensorGroup, TensorGroups
from archspec.core.addresses import first_segment

# Limits of the search: of the adjustments in a convention, the conventions of a rank, and the possible removals.
MAX_ADJUSTMENTS = 4
MAX_STATES = 150_000
MAX_REMOVALS = 500


class Adjustment(NamedTuple):
    """One change of a count, described by `text`; `adds` and `removes` are sets of groups."""

    text: str
    adds: int
    removes: int


class Convention(NamedTuple):
    """A base with adjustments: `groups` is the counted set, with `params` elements.

    `rank` is the number of adjustments to the count of a complete model.
    """

    base: Base
    adjustments: tuple[int, ...]
    groups: int
    params: int
    rank: int


class Conventions:
    """All combinations of up to MAX_ADJUSTMENTS adjustments, by rank; the simplest of those that count equal groups.

    A rank is enumerated completely or, if it has too many combinations, not at all. `levels` are the ranks enumerated
    so far, and `rank_by_groups` maps their sets of groups to the lowest ranks.
    """

    def __init__(self, universe: TensorGroups) -> None:
        self.universe = universe
        self.adjustments = _find_adjustments(universe)
        self.levels: list[list[Convention]] = []
        self.rank_by_groups: dict[int, int] = {}
        self._is_complete = False
        self._last_level: list[Convention] = []
        self._expanded: dict[Base, set[int]] = {base: set() for base in universe.bases}

    def enumerate_rank(self, rank: int) -> list[Convention]:
        """Return the combinations of `rank` adjustments, in order; none from the first rank that is not enumerated."""
        while len(self.levels) <= rank and not self._is_complete:
            level = self._enumerate_next() if len(self.levels) <= MAX_ADJUSTMENTS else None
            if level is None:
                self._is_complete = True
            else:
                self.levels.append(level)
        return self.levels[rank] if 0 <= rank < len(self.levels) else []

    def enumerate_delaying_guesses(self, rank: int) -> list[Convention]:
        """Return the conventions of a rank, but guesses without adjustments one rank later: they match easily."""
        level = self.enumerate_rank(rank)
        if rank > 1:
            return level
        delayed = [c for c in self.enumerate_rank(rank - 1) if c.base.guess and not c.adjustments]
        return [c for c in level if not c.base.guess or c.adjustments] + delayed

    def _enumerate_next(self) -> list[Convention] | None:
        rank = len(self.levels)
        words = 1 + len(self.universe.groups) // 64  # the cost of combining two sets
        if len(self._last_level) * len(self.adjustments) * words > 8 * MAX_STATES:
            return None
        bases = self.universe.bases
        extended = [self._build_convention(base, (), base.counted) for base in bases if base.rank + base.guess == rank]
        for convention in extended:
            self._expanded[convention.base].add(convention.groups)
        for convention in self._last_level:
            self._extend(extended, convention)
        if len(extended) > MAX_STATES:
            return None
        self._last_level = extended
        level: list[Convention] = []
        plain = [self._build_convention(base, (), base.counted) for base in bases if base.rank == rank]
        for convention in (*plain, *extended):
            if convention.groups not in self.rank_by_groups:
                self.rank_by_groups[convention.groups] = rank
                level.append(convention)
        return level

    def _extend(self, extended: list[Convention], convention: Convention) -> None:
        """Add each convention with one more adjustment after its last one (additions come before removals)."""
        base, used, groups, _, _ = convention
        reached = self._expanded[base]
        for index in range(used[-1] + 1 if used else 0, len(self.adjustments)):
            adjusted = self.apply_adjustment(base, groups, index)
            if adjusted and adjusted not in reached:
                reached.add(adjusted)
                extended.append(self._build_convention(base, (*used, index), adjusted))

    def apply_adjustment(self, base: Base, groups: int, index: int) -> int:
        """Return the counted groups after an adjustment."""
        _, adds, removes = self.adjustments[index]
        return (groups | (adds & base.more)) & ~removes

    def _build_convention(self, base: Base, adjustments: tuple[int, ...], groups: int) -> Convention:
        return Convention(base, adjustments, groups, self.universe.total(groups), len(self.levels))


def _find_adjustments(universe: TensorGroups) -> list[Adjustment]:
    """Return the adjustments that change the count, additions first. The first of equal adjustments is kept."""
    texts: dict[tuple[int, int], str] = {}
    for text, groups in _iter_additions(universe):
        if groups:
            texts.setdefault((groups, 0), text)
    for text, groups in islice(_iter_removals(universe), MAX_REMOVALS):
        if groups and groups != universe.everything:
            texts.setdefault((0, groups), text)
    return [Adjustment(text, adds, removes) for (adds, removes), text in texts.items()]


def _iter_additions(universe: TensorGroups) -> Iterator[tuple[str, int]]:
    uses = universe.select(lambda group: group.part == "use")
    aliases = universe.select(lambda group: group.alias) & ~uses
    yield "with shared tensors counted once per name", aliases
    for bit, group in universe.members(aliases):
        yield f"with `{group.name}` counted although it is shared", bit
    yield "with each layer counted once per application", uses
    yield "with the buffers", universe.select(lambda group: group.part == "buffer")


def _iter_removals(universe: TensorGroups) -> Iterator[tuple[str, int]]:
    params = universe.select(lambda group: group.part != "buffer")
    roles = universe.group_by(lambda group: [group.role] if group.role else [], params)
    norms, embeddings = roles.get("norm", 0), roles.get("embedding", 0)
    tables = universe.select(lambda group: group.is_table and not group.share, params)  # a row for each id, not experts
    biases = universe.select(lambda group: group.is_bias, params)
    role_texts = {role: f"the tensors with role `{role}`" for role in roles} | _ROLES
    if embeddings & ~tables:
        role_texts["embedding"] = "the tensors with role `embedding`"
    idle = universe.select(lambda group: group.share == "idle")
    yield "without the experts that a token does not use", idle
    read = tables & ~universe.select(lambda group: group.alias)
    if idle and universe.total(universe.bases[0].counted & ~(idle | read)) == universe.active_without_tables:
        yield "without the experts that a token does not use, and the tables that are only read", idle | read
    heads = universe.heads
    if len(heads) > 1:
        yield "without the heads", sum(heads.values())
    for address, head in heads.items():
        yield f"without the head `{address}`", head
    for role, groups in roles.items():
        yield f"without {role_texts[role]}", groups
    yield "without the embedding tables", tables
    yield "without the biases", biases
    yield "without the biases outside the norms", biases & ~norms
    for role, groups in roles.items():
        yield f"without the biases of the role `{role}`", biases & groups
    for layer, groups in universe.group_by(lambda group: [group.layer], embeddings | norms).items():
        yield f"without `{layer}`", groups
    for stack, groups in universe.group_by(lambda group: [group.stack], norms).items():
        yield f"without the norms {f'in `{stack}`' if stack else 'outside the repeated layers'}", groups
    yield "without the frozen tensors", universe.select(lambda group: not group.trainable, params)
    yield "without the one-dimensional tensors", universe.select(lambda group: len(group.shape) == 1, params)
    for address, groups in universe.group_by(lambda group: [first_segment(group.name)], params).items():
        yield f"without all of `{address}`", groups

    def components(group: TensorGroup) -> Iterator[str]:
        yield from (f"`{address}`" for address in (group.stack, first_segment(group.name)) if address)
        if group.role is not None:
            yield role_texts[group.role]
        if group.role == "embedding":
            yield f"`{group.layer}`"

    for name, groups in universe.group_by(components, params).items():
        yield f"{name} alone", universe.everything & ~groups


_ROLES = {"norm": "the norms", "embedding": "the embedding tables", "pooler": "the pooler"}
"""Descriptions of the tensors of common roles."""
