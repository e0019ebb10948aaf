"""Loops over a length."""

from __future__ import annotations

from archspec.core.algebra import Dim
from archspec.pytorch.calls.recurrent import carried, looped
from archspec.pytorch.lift.operations.handlers import Handler, Types
from archspec.pytorch.lift.values.builder import Builder
from archspec.pytorch.lift.values.values import LoopValue, Value, inside_loop


def _carried(b: Builder, types: Types, start: Value, place: int) -> Value:
    return b.made("carried", [], carried(b.arrays, types, start.array, place), kind="carried")


def _looped(b: Builder, types: Types, starts: list[Value], inner: list[Value], afters: list[Value],
            collected: list[Value], axes: list[int], count: Dim) -> list[Value]:  # fmt: skip
    starts, afters, collected = [[*map(b.written, values)] for values in (starts, afters, collected)]
    computed = inside_loop([*afters, *collected], inner)
    whole = LoopValue(starts, inner, afters, collected, axes, count, b.frame, computed)
    given = [[value.array for value in values] for values in (starts, afters, collected)]
    arrays = looped(b.arrays, types, given[0], [], given[1], given[2], axes, count)
    whole.results = [b.made("part", [whole], array, {"index": turn}, "part") for turn, array in enumerate(arrays)]
    return whole.results


NAMES: dict[Handler, str] = {_carried: "carried", _looped: "looped"}
"""The names of the operations that each function is for."""
