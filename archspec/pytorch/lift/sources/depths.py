"""Small numbers of layers that are of all kinds."""

from __future__ import annotations

from collections.abc import Mapping

from archspec.pytorch.lift.sources.fields import is_list, scopes_of
from archspec.pytorch.lift.sources.patterns import shows_rule

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
