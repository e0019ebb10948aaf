"""Lists of integers among the arguments of a factory: each item is a field, and a spec has the list again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeGuard, cast

from archspec.core.diagnostics import ArchError
from archspec.language.format.api import format
from archspec.pipeline.compile import loads
from archspec.pytorch.lift.sources.fields import Fields, is_integer

MAX_ITEMS = 8
"""Longer lists are no hyperparameters: most of them name layers."""

HEADER = re.compile(r"^(?:block|layer) \w+\s*\(([^()]*)\)(?=\s*\()", re.MULTILINE)
"""The beginning of a definition up to its hyperparameters."""

OPENED = re.compile(r"^(?:block|layer) [^{}]*\{\n", re.MULTILINE)
"""A definition up to its first statement."""


def is_list_of_sizes(value: object) -> TypeGuard[Sequence[int]]:
    """Whether a value is a list of a few positive integers."""
    if not isinstance(value, list | tuple):
        return False
    items = cast("Sequence[object]", value)
    return 0 < len(items) <= MAX_ITEMS and all(is_integer(item) and item > 0 for item in items)


def items_of(lists: Mapping[str, Sequence[int]]) -> Fields:
    """Return the items of lists, by the name of each list and the number of the item."""
    return {f"{name}_{turn}": item for name, items in lists.items() for turn, item in enumerate(items)}


def replace_items(name: str, items: Sequence[int], values: Mapping[str, object]) -> Sequence[object]:
    """Return a list with other values of its items, of the type that it has."""
    changed = [values.get(f"{name}_{turn}", item) for turn, item in enumerate(items)]
    return tuple(changed) if isinstance(items, tuple) else changed


def join_items(spec: str, lists: Mapping[str, Sequence[int]]) -> str:
    """Return a spec that has lists in the place of their items, where it has all items of a list as hyperparameters."""
    for name, items in lists.items():
        if {*items_of({name: items})} <= loads(spec).hyperparameters.keys():
            joined = _joined(spec, name, items)
            try:
                loads(joined)
            except ArchError:  # two definitions would have the list
                continue
            spec = joined
    return spec


def _joined(spec: str, name: str, items: Sequence[int]) -> str:
    """Return a spec with a list of this length alone in the place of its items."""
    item = re.compile(rf"\b{name}_([0-9]+)\b")

    def header(match: re.Match[str]) -> str:
        names: dict[str, None] = {}
        for text in match[1].split(","):
            listed = f"{name} = {[*items]}" if "=" in text else name
            names[listed if item.match(text.strip()) else text.strip()] = None
        start, end = match.span(1)
        return f"{spec[match.start() : start]}{', '.join(names)}{spec[end : match.end()]}"

    text = item.sub(rf"{name}[\1]", HEADER.sub(header, spec))
    *_, main = OPENED.finditer(text)
    return format(f"{text[: main.end()]}  require len({name}) == {len(items)}\n{text[main.end() :]}")
