"""The values of an argument at which a factory may make another module, by the comparisons that it makes."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import CodeType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from torch import nn

MULTIPLES = (1, 2, 4, 8, 16, 64)
"""An argument is tried with so many times its values, and with values around what it is compared with."""

MAX_TRIED = 64

ORDER = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}
ARITHMETIC = ("add", "sub", "mul", "floordiv", "mod", "pow", "neg", "abs", "radd", "rsub", "rmul", "rfloordiv", "rmod")


class Comparisons:
    """The comparisons of an integer, and of integers that are computed from it, in a factory."""

    def __init__(self) -> None:
        self.results: set[tuple[CodeType, int, object]] = set()
        """The places in the code of the factory, with the results."""
        self.own: dict[tuple[str, int], None] = {}
        """The comparisons of the integer itself: their names, and with what."""

    def results_at(self, value: int) -> tuple[bool, ...]:
        """Return the results that the comparisons of the integer itself have for another value."""
        return tuple([ORDER[name](value, other) for name, other in self.own])


class ComparedInteger(int):
    """An integer that records its comparisons."""

    comparisons: Comparisons
    is_computed: bool

    def __new__(cls, value: int, comparisons: Comparisons, is_computed: bool = False) -> Self:
        integer = super().__new__(cls, value)
        integer.comparisons, integer.is_computed = comparisons, is_computed
        return integer

    def record(self, name: str, other: int, result: object) -> None:
        frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
        self.comparisons.results.add((frame.f_code, frame.f_lasti, result))
        if not self.is_computed and not isinstance(other, ComparedInteger):
            self.comparisons.own[name, int(other)] = None

    def __bool__(self) -> bool:
        result = int.__bool__(self)
        self.record("ne", 0, result)
        return result

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)  # its copies record nothing

    __hash__ = int.__hash__


def _comparison(name: str) -> Callable[[ComparedInteger, object], object]:
    operation: Callable[[int, object], object] = getattr(int, f"__{name}__")

    def compare(self: ComparedInteger, other: object) -> object:
        result = operation(self, other)
        if isinstance(other, int):
            self.record(name, other, result)
        return result

    return compare


def _arithmetic(name: str) -> Callable[..., object]:
    operation: Callable[..., object] = getattr(int, f"__{name}__")

    def compute(self: ComparedInteger, *others: object) -> object:
        result = operation(self, *others)
        return ComparedInteger(result, self.comparisons, True) if isinstance(result, int) else result

    return compute


for _name in ORDER:
    setattr(ComparedInteger, f"__{_name}__", _comparison(_name))
for _name in ARITHMETIC:
    setattr(ComparedInteger, f"__{_name}__", _arithmetic(_name))


def branching_values(build: Callable[[int], nn.Module], small: int, actual: int, most: int) -> Iterator[int]:
    """Yield values of an argument for which its comparisons have results that they do not have for the small value: a
    factory may make something else of them. Values for which it makes nothing are left out.
    """
    comparisons = Comparisons()

    def builds_with(value: int) -> bool:
        before = {*comparisons.results}
        with suppress(Exception):  # of any class, as it comes from the factory
            build(ComparedInteger(value, comparisons))
            return True
        comparisons.results = before  # those before a refusal may be new ones of another value
        return False

    multiples = {factor * value for factor in MULTIPLES for value in (small, actual)}
    tried, built = {small}, [small]
    builds_with(small)
    while len(tried) < MAX_TRIED:
        seen = {comparisons.results_at(value) for value in built}
        others = [other for _, other in comparisons.own]
        near = {other + step for other in others for step in (-1, 0, 1)}
        near |= {(other // value + 1) * value for other in others for value in (small, actual)}
        values = {value for value in near if comparisons.results_at(value) not in seen} | multiples
        possible = [value for value in values - tried if 0 < value <= most]
        value = min(possible, key=lambda value: (value not in multiples, value), default=None)
        if value is None:
            return
        tried.add(value)
        before = len(comparisons.results)
        if builds_with(value):
            is_new = comparisons.results_at(value) not in {comparisons.results_at(other) for other in built}
            built.append(value)
            if is_new or len(comparisons.results) > before:
                yield value
