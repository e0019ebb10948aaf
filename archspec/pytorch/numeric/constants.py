"""Constants of a module as what a spec computes instead of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.nodes import Element, children
from archspec.pytorch.numeric.evaluate import Evaluation, EvaluationError

if TYPE_CHECKING:
    import torch

CONSTANT_TOLERANCE = 2e-6
"""Relative tolerance for elements of constants that a module may compute in float32."""


class Constants:
    """The arrays that a spec computes of numbers alone, such as masks and places of a window. A module that has or
    computes a constant with the same values, up to rounding, has this array.
    """

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self._noted: dict[int, dict[Array, None]] = {}
        """Arrays of fixed shapes by their numbers of elements."""
        self._values: dict[Array, torch.Tensor | None] = {}
        self._numbers: set[Element] = set()
        """Elements that are known to need no input and no tensor."""

    def note(self, arrays: Iterable[Array | None]) -> None:
        """Note the results of an operation."""
        for array in arrays:
            sizes = [size for size in array.shape if isinstance(size, int)] if array is not None else []
            if array is not None and len(sizes) == len(array.shape):
                self._noted.setdefault(math.prod(sizes), {})[array] = None

    def find(self, value: torch.Tensor, type: Type) -> Array | None:
        """Return the array with the values of a constant that is a `type`."""
        for array in self._noted.get(value.numel(), ()):
            if self._arrays.dtype(array) != type.dtype:
                continue
            values = self._of(array)
            if values is not None and are_same(values.flatten(), value.flatten()):
                return self._arrays.reshape(array, type.shape)
        return None

    def _of(self, array: Array) -> torch.Tensor | None:
        if array not in self._values:
            self._values[array] = self._computed(array) if self._has_no_inputs(array.element) else None
        return self._values[array]

    def _computed(self, array: Array) -> torch.Tensor | None:
        try:
            return Evaluation(self._arrays, {}, {}).array(array)
        except (EvaluationError, ValueError):  # ValueError: a dimension of an input
            return None

    def _has_no_inputs(self, element: Element) -> bool:
        table = self._arrays.elements.table
        seen, waiting = set[Element](), [element]
        while waiting:
            current = waiting.pop()
            if current in seen or current in self._numbers:
                continue
            if table.nodes[current].kind in ("input", "tensor", "carried"):
                return False
            seen.add(current)
            waiting += children(table, current)
        self._numbers |= seen
        return True


def are_same(values: torch.Tensor, constant: torch.Tensor) -> bool:
    """Whether a constant has these values, up to the rounding of each real."""
    if not constant.is_floating_point():
        return values.equal(constant.to(values.dtype))
    rounded = (values.to(constant.dtype) == constant) & (constant != 0.0) & constant.isfinite()
    errors = (values.double() - constant.double()).abs()
    is_near = (values == constant) | (errors <= CONSTANT_TOLERANCE * values.abs())
    return bool((rounded | is_near & (constant.isfinite() == values.isfinite())).all())
