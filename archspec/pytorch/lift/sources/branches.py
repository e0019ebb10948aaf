"""For which values of an argument a factory may make another kind of module: what it compares the argument with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from torch import nn

MULTIPLES = (2, 4, 8, 16, 64)
"""An argument is tried with so many times its value, and with what it is compared with."""

MAX_TRIED = 48

ARITHMETIC = ("add", "sub", "mul", "floordiv", "mod", "pow", "neg", "abs", "radd", "rsub", "rmul", "rfloordiv", "rmod")


class Comparisons:
    """The comparisons of an integer, and of integers that are computed from it: their places, results, and others."""

    def __init__(self) -> None:
        self.results: set[tuple[CodeType, int, object]] = set()
        self.others: set[int] = set()

    def add(self, result: object, other: int) -> None:
        frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
        self.results.add((frame.f_code, frame.f_lasti, result))
        self.others.add(int(other))


class ComparedInteger(int):
    """An integer that records its comparisons."""

    def __new__(cls, value: int, comparisons: Comparisons) -> Self:
        integer = super().__new__(cls, value)
        integer.comparisons = comparisons
        return integer

    comparisons: Comparisons

    def __bool__(self) -> bool:
        result = int.__bool__(self)
        self.comparisons.add(result, 0)
        return result

    __hash__ = int.__hash__


def _comparison(name: str) -> Callable[[ComparedInteger, object], object]:
    operation: Callable[[int, object], object] = getattr(int, name)

    def compare(self: ComparedInteger, other: object) -> object:
        result = operation(self, other)
        if isinstance(other, int):
            self.comparisons.add(result, other)
        return result

    return compare


def _arithmetic(name: str) -> Callable[..., object]:
    operation: Callable[..., object] = getattr(int, name)

    def compute(self: ComparedInteger, *others: object) -> object:
        result = operation(self, *others)
        return ComparedInteger(result, self.comparisons) if isinstance(result, int) else result

    return compute


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(ComparedInteger, f"__{_name}__", _comparison(f"__{_name}__"))
for _name in ARITHMETIC:
    setattr(ComparedInteger, f"__{_name}__", _arithmetic(f"__{_name}__"))


def branching_values(
    build: Callable[[int], nn.Module], small: int, actual: int, most: int
) -> Iterator[tuple[int, nn.Module]]:
    """Yield values of an argument for which its comparisons have results that they do not have for the small and the
    actual value, with the modules: a factory may make something else of them.
    """
    seen: set[tuple[CodeType, int, object]] = set()
    others: set[int] = set()

    def try_value(value: int) -> tuple[nn.Module | None, Comparisons]:
        comparisons = Comparisons()
        try:
            return build(ComparedInteger(value, comparisons)), comparisons
        except Exception:  # of any class, as it comes from the factory
            return None, comparisons

    for value in {small, actual}:
        _, comparisons = try_value(value)
        seen |= comparisons.results
        others |= comparisons.others
    near = {other + step for other in others for step in (-1, 0, 1)}
    values = sorted(near | {factor * actual for factor in MULTIPLES})
    for value in [value for value in values if 0 < value <= most][:MAX_TRIED]:
        module, comparisons = try_value(value)
        if module is not None and comparisons.results - seen:
            seen |= comparisons.results
            yield value, module
