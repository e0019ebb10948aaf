"""Loops over a length, of which a program has one iteration."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.core.algebra import Dim
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.pytorch.calls.values import Handler


def carried(n: Arrays, types: Sequence[Type], start: Array, place: int) -> Array:
    """Return what an iteration takes from the one before."""
    return n.stored("carried", (0, place), types[0].shape, types[0].dtype)


def looped(n: Arrays, types: Sequence[Type], starts: list[Array], inner: list[Array], afters: list[Array],
           collected: list[Array], axes: list[int], count: Dim) -> list[Array]:  # fmt: skip
    """Return what a loop carries in the end, and what it collects; `inner` is what is carried in an iteration."""
    results = [(type.shape, type.dtype) for type in types]
    return n.loop((0, axes, 0, count), [*starts, *afters, *collected], results)


NAMES: dict[Handler, str] = {carried: "carried", looped: "looped"}
"""The names of the operations that each function is for."""
