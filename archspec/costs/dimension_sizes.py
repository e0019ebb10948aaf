"""Sizes of dimensions, as functions take them."""

from __future__ import annotations

from collections.abc import Mapping

from archspec.source import fail


def given_sizes(dims: Mapping[str, int] | None, batch: int | None, seq: int | None) -> dict[str, int]:
    """The sizes in `dims` and those given on their own. Raises ArchError for two sizes of one dimension."""
    sizes = dict(dims or {})
    for name, size in (("batch", batch), ("seq", seq)):
        if size is not None and sizes.setdefault(name, size) != size:
            raise fail("usage", f"the dimension `{name}` is given as {size} and as {sizes[name]}")
    return sizes
