"""Unused tensors of equal layers as one declaration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

Owned = tuple[str, str, tuple[int, ...]]
"""A tensor: its address, what is written before its shape, and the shape."""


class Declaration(NamedTuple):
    """A tensor of each of so many `layers`, with the index `i` in its address; or one tensor."""

    address: str
    modifiers: str
    shape: tuple[int, ...]
    layers: int | None = None


def stacked(owned: Sequence[Owned]) -> Iterator[Declaration]:
    """Yield declarations of tensors. Those that are not used are declared for several layers if these are equal."""
    unused = [item for item in owned if item[1].startswith("unused")]
    yield from [Declaration(*item) for item in owned if item not in unused]
    yield from _stacked(unused)


def _stacked(owned: Sequence[Owned], prefix: str = "") -> Iterator[Declaration]:
    """Yield declarations of tensors whose addresses begin with a prefix."""
    for name, group in groupby(owned, lambda item: item[0][len(prefix) :].partition(".")[0]):
        items = [*group]
        path = f"{prefix}{name}."
        if not items[0][0].startswith(path):
            yield from [Declaration(*item) for item in items]
            continue
        layers = _layers(items, path)
        if layers is not None:
            first, count = layers
            for rest, modifiers, shape in first:
                yield Declaration(f"{path[:-1]}[i].{rest}", modifiers, shape, count)
        else:
            yield from _stacked(items, path)


def _layers(owned: Sequence[Owned], path: str) -> tuple[list[Owned], int] | None:
    """Return the tensors of a layer, and the number of layers, if all layers under a path are equal."""
    found: dict[str, list[Owned]] = {}
    for address, modifiers, shape in owned:
        number, _, rest = address[len(path) :].partition(".")
        found.setdefault(number, []).append((rest, modifiers, shape))
    first = next(iter(found.values()))
    is_equal = all(layer == first for layer in found.values()) and all(rest for rest, _, _ in first)
    is_list = [*found] == [str(i) for i in range(len(found))] and len(found) > 1
    return (first, len(found)) if is_equal and is_list else None
