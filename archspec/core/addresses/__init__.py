"""Addresses: dotted paths of modules and tensors, such as `encoder.layer.0.output.dense.weight`.

An address is a plain string, because a model may have hundreds of thousands of them; "" is the model itself. Its
segments are names and indices. An index is a decimal integer as Python writes it: `0` and `11`, but not `00`.

A pattern is an address in which `*` stands for any index: `encoder.layer.*.output.dense.weight`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

Pattern: TypeAlias = str
"""An address in which the segment `*` stands for any index."""

ANY_INDEX = "*"

INDEX = re.compile(r"(?<![^.])(0|[1-9][0-9]{0,17})(?![^.])")
"""An index in an address; a longer number is a name."""


def segments(address: str) -> list[str]:
    """Split an address into its segments; "" has none."""
    return address.split(".") if address else []


def join(*parts: str) -> str:
    """Join relative addresses, outermost first; empty ones are skipped."""
    return ".".join([part for part in parts if part])


def prefixes(address: str) -> Iterator[str]:
    """Yield an address and its enclosing addresses except "", outermost first: `a`, `a.b` and `a.b.c` for `a.b.c`."""
    end = address.find(".")
    while end >= 0:
        yield address[:end]
        end = address.find(".", end + 1)
    if address:
        yield address


def first_segment(address: str) -> str:
    """Return the first segment."""
    return address.partition(".")[0]


def last_segment(address: str) -> str:
    """Return the last segment."""
    return address.rpartition(".")[2]


def parent(address: str) -> str:
    """Return the address without its last segment."""
    return address.rpartition(".")[0]


def is_inside(address: str, outer: str) -> bool:
    """Whether an address is `outer` or inside it; all are inside ""."""
    return not outer or address == outer or address.startswith(f"{outer}.")


def is_below(address: str, outer: str) -> bool:
    """Whether an address is inside `outer` and is not `outer` itself."""
    return address != outer and is_inside(address, outer)


def relative(address: str, outer: str) -> str:
    """Return an address relative to `outer`: "" for `outer` itself; an address outside `outer` is unchanged."""
    return address[len(outer) + 1 :] if outer and is_inside(address, outer) else address


def ends_with(address: str, end: str) -> bool:
    """Whether an address ends with the segments of `end`, after at least one more segment."""
    return address.endswith(f".{end}")


def is_index(segment: str) -> bool:
    """Whether a segment is an index."""
    return INDEX.fullmatch(segment) is not None


def address_pattern(address: str) -> Pattern:
    """Replace each index in an address by `*`."""
    return INDEX.sub(ANY_INDEX, address)


def format_ranges(indices: Sequence[int], max_ranges: int | None = None) -> str:
    """Format ascending integers as ranges: `0-2,5` for 0, 1, 2, 5. Beyond `max_ranges`, `...` replaces the middle."""
    ranges: list[list[int]] = []
    for index in indices:
        if ranges and index == ranges[-1][-1] + 1:
            ranges[-1][1:] = [index]
        else:
            ranges.append([index])
    texts = ["-".join(map(str, ends)) for ends in ranges]
    if max_ranges is not None and len(texts) > max_ranges:
        texts[max_ranges - 2 : -1] = ["..."]
    return ",".join(texts)
