"""Proposals of small configurations, and the values that they choose from."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from archspec.pytorch.lift.sources.fields import is_list, scopes_of, shows_rule

# Small numbers of layers that are of all kinds.

_MAX_LAYERS = 6
"""A kind of layers is to be there twice if it is among so many: a single layer is written differently."""

_MAX_LAYER_RUN = 6
"""So many more layers are tried for some of one kind in a row."""


class Depths:
    """Small numbers of layers for those of a configuration, lists of which name the kinds of layers."""

    def __init__(self, actual: Mapping[str, object]) -> None:
        self._actual = actual
        self._chosen: dict[int, int] = {}
        """Numbers of layers of some kinds, by the small ones in their place."""
        self._used: set[tuple[int, int]] = set()
        """Numbers of layers, and the small ones in their place."""

    def small(self, count: int, least: int, is_second: bool, ends_alike: bool) -> int:
        """Return a small number of layers, of all kinds, and another one for each field with that `count` if possible;
        the second one shows the rule which kinds follow, if some more layers do.
        """
        first = few = self._showing(count, least, is_second, ends_alike)
        while (count, few) in self._used and least < count:
            least = max(least, few) + 1 + is_second
            few = self._showing(count, least, is_second, ends_alike)
        few = first if (count, few) in self._used else few
        self._used.add((count, few))
        return few

    def _showing(self, count: int, least: int, is_second: bool, ends_alike: bool) -> int:
        few = self._of_all_kinds(count, least, is_second, ends_alike)
        kinds = [*zip(*self._lists_of(count), strict=True)]
        more = range(few, min(few + _MAX_LAYER_RUN, count)) if kinds and is_second else ()
        return next((most for most in more if shows_rule(kinds, most)), few)

    def _of_all_kinds(self, count: int, least: int, is_second: bool, ends_alike: bool) -> int:
        """Return a small number of layers, of all kinds. The last ones are of one kind in both configurations, so that
        both are the same loops, if there are as many of one kind in a row.
        """
        several = self._kinds_within(count)
        few = max(least, several + 1 + is_second)
        if not several:
            return few
        for kinds in self._lists_of(count):
            if count == several + 2 and kinds[-3] != kinds[-2] == kinds[-1]:  # without the last one, no two in a row
                return count
            ends = [most for most in range(several + 1, count) if kinds[most - 1] == kinds[-1]]
            if ends_alike and len(ends) > 1:
                return ends[is_second]
            taken = [most for most, other in self._chosen.items() if other != count]
            longest = several + _MAX_LAYER_RUN * (1 + len(taken))
            for most in range(several + 1, min(longest, count)):
                is_run = len({*kinds}) > 1 and kinds[most - 2] == kinds[most - 1] == kinds[most]
                if is_run and most + 1 >= least and most + is_second not in taken:
                    self._chosen[most + is_second] = count
                    return most + is_second
        return min(count, few)

    def _lists_of(self, count: int) -> list[list[str]]:
        """Return the lists of so many items, which are kinds of layers."""
        lists = [value for scope in scopes_of(self._actual) for value in scope.values() if is_list(value)]
        return [[*map(str, items)] for items in lists if len(items) == count]

    def _kinds_within(self, count: int) -> int:
        """Return the number of first layers that have all kinds that a list names, and those twice that recur soon.

        It is 0 if no list has that many items.
        """
        found = 0
        for items in self._lists_of(count):
            once = max(items.index(kind) + 1 for kind in items)
            twice = [turn + 1 for turn, kind in enumerate(items) if items[:turn].count(kind) == 1]
            found = max(found, once, *[turn for turn in twice if turn <= _MAX_LAYERS])
        return found


class Proposal(NamedTuple):
    """How far a small configuration is from the actual one.

    `is_distinct`: no two sizes are equal; otherwise, those stay equal that are in the configuration. `has_own_heads`:
    the size of a head does not follow from the width. `is_cropped`: images and patches are small. `unit` divides all
    widths; 0 leaves sizes of heads as they are, and widths as well unless they have their own heads. `is_scaled`: all
    widths are divided by the same number, and so are the sizes of heads, or else their numbers if these have their own
    size; that keeps what they add up to and are multiples of. `ends_alike`: the last layer is of the kind that the last
    one of all is. `is_shallow`: only the layers are fewer. `has_equal_heads`: there are as many heads of keys as of
    queries if that is so in the actual configuration. `separate`: the names of fields that are equal to no others even
    where the rest is not distinct; with the part of the configuration before it, one that differs from those of the
    same name in other parts.
    """

    is_distinct: bool
    has_own_heads: bool
    is_cropped: bool
    unit: int
    is_scaled: bool = False
    ends_alike: bool = False
    is_shallow: bool = False
    has_equal_heads: bool = False
    separate: tuple[str, ...] = ()


PROPOSALS = (
    Proposal(True, True, True, 8),
    Proposal(True, False, True, 8),
    Proposal(True, False, False, 8),
    Proposal(True, True, True, 8, ends_alike=True),
    Proposal(True, True, True, 8, has_equal_heads=True),
    Proposal(False, True, True, 8),
    Proposal(False, False, False, 8),
    Proposal(True, False, True, 32),
    Proposal(False, False, False, 32),
    Proposal(False, False, True, 0, is_scaled=True),
    Proposal(False, False, False, 0, is_scaled=True),
    Proposal(False, True, False, 0, is_scaled=True),
    Proposal(False, True, False, 0),
    Proposal(False, False, False, 0),
)

SHALLOW = Proposal(False, False, False, 0, is_shallow=True)


class Choices(NamedTuple):
    """Small values, in the order in which they are used. Without `layers`, there are as many as there are. `are_apart`:
    sizes of different parts differ, also those that have the same name, and are equal in the configuration, except
    for vocabularies, from which ids are drawn.
    """

    layers: tuple[int, ...]
    scale: int
    heads: tuple[int, ...]
    groups: int
    patches: tuple[int, int]
    vocabulary: int
    positions: int
    width: int
    experts: tuple[int, int, int, int]
    steps: tuple[int, ...]
    head_steps: tuple[int, ...]
    are_apart: bool = False
    multiples: Mapping[str, int] = MappingProxyType({})


CHOICES = (
    Choices((3, 4, 5), 1, (6, 4, 12), 2, (5, 4), 97, 44, 5, (20, 3, 5, 4), (0, 1, 3, 6, 10), (1, 3, 6, 10)),
    Choices((4, 5, 6), 3, (8, 16, 32), 4, (4, 6), 113, 68, 7, (36, 5, 3, 2), (0, 2, 1, 4, 5), (2, 1, 4, 5)),
    Choices((), 1, (6, 4, 12), 2, (5, 4), 97, 44, 5, (20, 3, 5, 4), (0, 1, 3, 6, 10), (1, 3, 6, 10)),
)
"""The first and the second configuration, and the first one with all layers.

Widths are multiples of `scale`, and exceed the least one by `steps`; sizes of heads do so by `head_steps`. Groups
divide heads. Experts are all, those of a token, their groups, and the groups of a token.
"""

THIRD = Choices((5, 6, 7), 1, (8, 4, 16), 4, (7, 4), 131, 76, 4, (12, 2, 3, 2), (0, 2, 1, 3, 5), (2, 5, 1, 3))
"""A third configuration, for which a spec of the first and the second one has to hold."""

OTHER_HEADS = 16, 8, 32
"""Numbers of heads for the second configuration if those of each part differ, so that the sizes of heads do."""

OTHER_STEPS = (0, 11, 3, 6, 9, 1, 2), (0, 5, 3, 7, 2)
"""Steps for the second configuration with which no two sums of a width and a head are equal in both, nor two sums or
differences of heads, and no difference of two sizes is that of the first configuration. Its sizes are larger.
"""

OTHER_LAYERS = (5, 3, 4), (7, 3, 5)
"""Layers with which twice as many are not the heads of both configurations."""

LIGHT_SECOND_SIZES = 2, 5, (21, 5, 3, 2)
"""The scale, the width and the experts of a second configuration with fewer parameters."""
