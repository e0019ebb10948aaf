"""Views: how reshapes, permutations and expansions together rearrange the axes of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.core.algebra import Dim, Polynomial
from archspec.core.record import Record


class Axis:
    """An axis, or a factor of one. A new axis repeats what is there."""

    def __init__(self, size: Dim, new: bool = False) -> None:
        self.size = size
        self.new = new
        self.parts: tuple[Axis, Axis] | None = None

    def leaves(self) -> list[Axis]:
        """Return the factors that it was divided into."""
        return [self] if self.parts is None else [leaf for part in self.parts for leaf in part.leaves()]


class Layout:
    """The axes of a tensor before and after views: each is a list of factors."""

    def __init__(self, shape: Sequence[Dim]) -> None:
        self.before = [[Axis(size)] if size != 1 else [] for size in shape]
        self.after = [[*group] for group in self.before]

    def copy(self) -> Layout:
        """Return another layout with the same axes, which can be divided further without an effect on this one."""
        made = Layout(())
        known: dict[Axis, Axis] = {}

        def copied(axis: Axis) -> Axis:
            if axis not in known:
                known[axis] = Axis(axis.size, axis.new)
            return known[axis]

        made.before = [[copied(leaf) for axis in group for leaf in axis.leaves()] for group in self.before]
        made.after = [[copied(leaf) for axis in group for leaf in axis.leaves()] for group in self.after]
        return made

    def reshape(self, shape: Sequence[Dim]) -> bool:
        """Divide and join axes; False if that is not possible axis by axis."""
        waiting = [leaf for group in self.after for axis in group for leaf in axis.leaves()]
        after: list[list[Axis]] = []
        for size in shape:
            group: list[Axis] = []
            found: Dim = 1
            while found != size:
                if not waiting:
                    return False
                axis = waiting.pop(0)
                if size % (found * axis.size) != 0:
                    rest = size // found
                    if isinstance(rest, Polynomial) or size % found != 0 or axis.size % rest != 0 or axis.new:
                        return False
                    axis.parts = Axis(rest), Axis(axis.size // rest)
                    waiting.insert(0, axis.parts[1])
                    axis = axis.parts[0]
                group.append(axis)
                found = found * axis.size
            after.append(group)
        self.after = after
        return not waiting

    def permute(self, order: Sequence[int]) -> bool:
        """Reorder the axes."""
        self.after = [self.after[axis] for axis in order]
        return True

    def expand(self, shape: Sequence[Dim]) -> bool:
        """Repeat along new leading axes and along axes of size 1."""
        leading: list[list[Axis]] = [[] for _ in range(len(shape) - len(self.after))]
        groups = leading + self.after
        self.after = [
            group if group or size == 1 else [Axis(size, True)] for group, size in zip(groups, shape, strict=True)
        ]
        return True

    def settled(self) -> tuple[list[list[Axis]], list[list[Axis]]]:
        """Return the axes before and after, as lists of the factors that are left whole."""
        before = [[leaf for axis in group for leaf in axis.leaves()] for group in self.before]
        after = [[leaf for axis in group for leaf in axis.leaves()] for group in self.after]
        return before, after


class Pattern(Record):
    """A pattern of `rearrange` or `repeat`, and the sizes that it needs by name."""

    text: str
    sizes: tuple[tuple[str, Dim], ...]
    repeats: bool


LETTERS = "dhwcnkmpqrtuvxyzaegijlofbs"


def pattern(before: Sequence[Sequence[Axis]], after: Sequence[Sequence[Axis]]) -> Pattern:
    """Return the pattern that takes the axes `before` to those `after`."""
    names: dict[Axis, str] = {}
    letters = f"h{LETTERS}" if any(len(group) > 1 for group in before) else LETTERS
    leaves = dict.fromkeys([axis for groups in (before, after) for group in groups for axis in group])
    for axis in leaves:
        wanted = axis.size.symbol[0] if isinstance(axis.size, Polynomial) and axis.size.symbol else ""
        free = [letter for letter in wanted.lower() + letters if letter not in names.values()]
        names[axis] = free[0]
    given = [axis for group in before for axis in group[:-1]] + [axis for axis in leaves if axis.new]
    text = f"{_side(before, names)} -> {_side(after, names)}"
    sizes = tuple([(names[axis], axis.size) for axis in given])
    return Pattern(text, sizes, any(axis.new for axis in leaves))


def _side(groups: Sequence[Sequence[Axis]], names: dict[Axis, str]) -> str:
    words = [" ".join([names[axis] for axis in group]) for group in groups]
    return " ".join(
        [
            "1" if not group else f"({word})" if len(group) > 1 else word
            for group, word in zip(groups, words, strict=True)
        ]
    )
