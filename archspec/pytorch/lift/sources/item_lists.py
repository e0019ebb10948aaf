"""Lists of integers among the arguments of a factory: each item is a field, and a spec has the list again."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeGuard, cast

from archspec.core.diagnostics import ArchError
from archspec.language.format.api import format
from archspec.pipeline.compile import loads
from archspec.pipeline.model import Model
from archspec.pytorch.lift.sources.fields import Fields, is_integer
from archspec.pytorch.lift.spec_text import add_requirements

MAX_ITEMS = 8
"""Longer lists are no hyperparameters: most of them name layers."""

HEADER = re.compile(r"^(?:block|layer) \w+\s*\(([^()]*)\)(?=\s*\()", re.MULTILINE)
"""The beginning of a definition up to its hyperparameters."""


class ItemList(NamedTuple):
    """A list: the name of its hyperparameter, what the names of its items begin with, and these items."""

    name: str
    prefix: str
    items: Sequence[int]

    def fields(self) -> Fields:
        """Return the items by their names."""
        return {f"{self.prefix}{turn}": item for turn, item in enumerate(self.items)}

    def replaced(self, values: Mapping[str, object]) -> Sequence[object]:
        """Return the list with other values of its items, of the type that it has."""
        changed = [values.get(name, item) for name, item in self.fields().items()]
        return tuple(changed) if isinstance(self.items, tuple) else changed


def item_list(name: str, items: Sequence[int], words: Collection[str]) -> ItemList:
    """Return a list whose items have other names than all these words."""
    prefix = f"{name}_"
    while any(re.fullmatch(f"{prefix}[0-9]+", word) for word in words):
        prefix += "_"
    return ItemList(name, prefix, items)


def items_of(lists: Sequence[ItemList]) -> Fields:
    """Return the items of lists by their names."""
    return {name: item for each in lists for name, item in each.fields().items()}


def is_list_of_sizes(value: object) -> TypeGuard[Sequence[int]]:
    """Whether a value is a list of a few positive integers."""
    if not isinstance(value, list | tuple):
        return False
    items = cast("Sequence[object]", value)
    return 0 < len(items) <= MAX_ITEMS and all(is_integer(item) and item > 0 for item in items)


def join_items(spec: str, lists: Sequence[ItemList]) -> str:
    """Return a spec that has lists in the place of their items, where it has all items of a list as hyperparameters."""
    if not lists:
        return spec
    model = loads(spec)
    complete = [each for each in lists if {*each.fields()} <= model.hyperparameters.keys()]
    for joined in (complete, *[[each] for each in complete]) if complete else ():
        text = _joined(spec, joined)
        with suppress(ArchError):  # two definitions would have a list, or a list the name of something else
            if _shapes(loads(text)) == _shapes(model):
                return text
    return spec


def _shapes(model: Model) -> dict[str, Sequence[int]]:
    return {tensor.name: tensor.shape for tensor in model.tensors}


def _joined(spec: str, lists: Sequence[ItemList]) -> str:
    """Return a spec with lists, of their lengths alone, in the place of their items."""
    places = {name: f"{each.name}[{turn}]" for each in lists for turn, name in enumerate(each.fields())}
    names = {name: each for each in lists for name in each.fields()}

    def header(match: re.Match[str]) -> str:
        declared: dict[str, None] = {}
        for text in match[1].split(","):
            each = names.get(text.partition("=")[0].strip())
            listed = "" if each is None else f"{each.name} = {[*each.items]}" if "=" in text else each.name
            declared[listed or text.strip()] = None
        start, end = match.span(1)
        return f"{spec[match.start() : start]}{', '.join(declared)}{spec[end : match.end()]}"

    text = re.sub(r"\b\w+\b", lambda match: places.get(match[0], match[0]), HEADER.sub(header, spec))
    return format(add_requirements(text, [f"len({each.name}) == {len(each.items)}" for each in lists]))
