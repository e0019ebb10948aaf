"""Conversion of syntax trees to and from plain data for JSON.

A node is a list: the index of its class, then its fields. Tuples, which have nodes or texts, are lists, too. The cache,
which has the data, compares its checksum.
"""

from __future__ import annotations

from typing import TypeAlias, cast

from archspec.core.record import from_values, is_tuple
from archspec.language.syntax import tree
from archspec.language.syntax.tree import File, SyntaxNode

_CLASSES: list[type[SyntaxNode]] = [c for c in vars(tree).values() if isinstance(c, type) and SyntaxNode in c.__bases__]
_CLASS_INDICES: dict[type, int] = {c: number for number, c in enumerate(_CLASSES)}

_Data: TypeAlias = "list[_Data] | str | int | float | None"
"""A node or a tuple as a list, or a plain value."""


def dump(file: File) -> object:
    """Convert `file` to plain data."""
    return _to_plain(file)


def load(data: object) -> File:
    """Convert plain data from `dump` to a tree."""
    file = _from_plain(cast("list[_Data]", data))
    assert isinstance(file, File)
    return file


def _to_plain(value: object) -> object:
    if isinstance(value, SyntaxNode):
        return [_CLASS_INDICES[type(value)], *map(_to_plain, value)]
    return list(map(_to_plain, value)) if is_tuple(value) else value


def _from_plain(items: list[_Data]) -> object:
    values = [_from_plain(item) if isinstance(item, list) else item for item in items]
    number = items[0] if items else None
    return from_values(_CLASSES[number], values[1:]) if isinstance(number, int) else tuple(values)
