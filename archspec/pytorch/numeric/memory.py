"""The values that an evaluation keeps, within a limit of memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from archspec.ir.normal.nodes import Element

if TYPE_CHECKING:
    import torch

MAX_BYTES = 2**30
"""Evaluation stops at a value that needs more memory, unless it is that of a reduction."""

MAX_TOTAL_BYTES = 2**32
"""Limit on the memory of all cached values; beyond it, the largest are evicted and recomputed."""

REDUCTION = 4
"""A reduction is forgotten like another value with so many times fewer bytes, as it takes longer to compute again."""


class EvaluationError(Exception):
    """A normal form has an operation that the interpreter lacks, or values that need too much memory or time."""


class Values:
    """Values of elements, with an axis for each of their indices. `most` limits the bytes that are computed."""

    def __init__(self, most: int | None) -> None:
        self._values: dict[Element, torch.Tensor] = {}
        self._reductions: set[Element] = set()
        self._held = 0
        """The most memory that these values may need, in bytes."""
        self._left = math.inf if most is None else most

    def get(self, element: Element) -> torch.Tensor | None:
        """Return the values of an element, if they are kept."""
        return self._values.get(element)

    def keep(self, element: Element, value: torch.Tensor, is_reduction: bool = False) -> torch.Tensor:
        """Keep the values of an element, whose memory is counted, and return them."""
        self._values[element] = value
        if is_reduction:
            self._reductions.add(element)
        return value

    def counted(self, value: torch.Tensor) -> torch.Tensor:
        """Count the memory of a value, and make room for it. Raises Unevaluated if too many are computed."""
        size = value.untyped_storage().nbytes()
        self._left -= 0 if value._is_view() else size
        if self._left < 0:
            raise EvaluationError("its values take too long to compute")
        if self._held + size > MAX_TOTAL_BYTES:
            self._held = self._forget_largest(MAX_TOTAL_BYTES // 2)
        self._held += size
        return value

    def storages(self) -> dict[int, int]:
        """Return the bytes of each storage that the kept values use, by its address."""
        storages = (value.untyped_storage() for value in self._values.values())
        return {storage.data_ptr(): storage.nbytes() for storage in storages}

    def forget(self, is_stale: Callable[[Element], bool]) -> None:
        """Forget the values of some elements."""
        self._values = {element: value for element, value in self._values.items() if not is_stale(element)}

    def _forget_largest(self, most: int) -> int:
        """Forget the largest values until the others need at most this memory; return what they need.

        Small ones, such as hidden states, are what computing the others again takes; reductions, such as convolutions,
        take longer than others of their size.
        """
        users: dict[int, list[Element]] = {}
        for element, value in self._values.items():
            users.setdefault(value.untyped_storage().data_ptr(), []).append(element)
        sizes = self.storages()
        held = sum(sizes.values())

        def cost(pointer: int) -> float:
            is_reduction = any(element in self._reductions for element in users[pointer])
            return sizes[pointer] / (REDUCTION if is_reduction else 1)

        for pointer in sorted(sizes, key=cost, reverse=True):
            if held <= most:
                break
            held -= sizes[pointer]
            for element in users[pointer]:
                del self._values[element]
        return held
