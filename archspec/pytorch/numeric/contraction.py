"""Sums of products of tensors, two at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain, combinations
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import torch

Operand: TypeAlias = "tuple[torch.Tensor, list[int]]"
"""A factor, and the index that each of its axes has."""


def contract(operands: Sequence[Operand], kept: Sequence[int]) -> torch.Tensor:
    """Return the sum of a product over all indices but those that are `kept`, which are the axes of the result.

    Those two factors are multiplied first whose product has the fewest elements, summed over the indices that no other
    has: all of them at once, or others first, may need far more memory.
    """
    import torch

    rest: list[Operand] = [*operands]
    while len(rest) > 2:
        a, b = min(combinations(rest, 2), key=lambda pair: _elements(rest, pair, kept))
        indices = _indices(rest, (a, b), kept)
        product = torch.einsum(*a, *b, indices)
        rest = [operand for operand in rest if operand is not a and operand is not b]
        rest.append((product, indices))
    return torch.einsum(*chain.from_iterable(rest), kept)


def _indices(operands: Sequence[Operand], pair: tuple[Operand, Operand], kept: Sequence[int]) -> list[int]:
    """Return the indices of the product of a pair that are kept, or that another factor has."""
    a, b = pair
    others = [operand[1] for operand in operands if operand is not a and operand is not b]
    return sorted({*a[1], *b[1]} & {*chain.from_iterable(others), *kept})


def _elements(operands: Sequence[Operand], pair: tuple[Operand, Operand], kept: Sequence[int]) -> int:
    sizes = {index: size for value, indices in pair for index, size in zip(indices, value.shape, strict=True)}
    return math.prod([sizes[index] for index in _indices(operands, pair, kept)])
