"""Modules that keep something of a call, such as a mask, and are then as they were before."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from torch import nn


@contextmanager
def restore_attributes(module: nn.Module) -> Generator[None]:
    """Give the parts of a module the attributes again that they had before, and no others."""
    parts = [part for _, part in cast("Iterable[tuple[str, nn.Module]]", module.named_modules())]
    before = [(part, {name: (value, _items(value)) for name, value in vars(part).items()}) for part in parts]
    try:
        yield
    finally:
        for part, attributes in before:
            for name, (value, items) in attributes.items():
                _restore(value, items)
                vars(part)[name] = value
            for name in vars(part).keys() - attributes.keys():
                del vars(part)[name]


def _items(value: object) -> object:
    """Return the items of a list or dict."""
    if isinstance(value, list):
        return [*cast("list[object]", value)]
    return {**cast("dict[object, object]", value)} if isinstance(value, dict) else None


def _restore(value: object, items: object) -> None:
    """Give a list or dict its items again."""
    if isinstance(value, list):
        cast("list[object]", value)[:] = cast("list[object]", items)
    elif isinstance(value, dict):
        found = cast("dict[object, object]", value)
        found.clear()
        found.update(cast("dict[object, object]", items))
