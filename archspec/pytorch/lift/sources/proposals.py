"""Proposals of small configurations, and the values that they choose from."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


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

OTHER_LAYERS = (5, 3, 4), (3, 7, 5)
"""Layers with which twice as many are not the heads of both configurations."""

LIGHT_SECOND_SIZES = 2, 5, (21, 5, 3, 2)
"""The scale, the width and the experts of a second configuration with fewer parameters."""
