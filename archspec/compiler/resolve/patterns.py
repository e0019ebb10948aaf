"""Address patterns in source: an index matches any number."""

from __future__ import annotations

from collections.abc import Iterator

from archspec.core.diagnostics import closest_match
from archspec.language.syntax import tree
from archspec.language.syntax.walk import iter_nodes

Pattern = tuple[str | None, ...]
"""An address with None for each index."""


def address_pattern(address: tree.Address) -> Pattern:
    """Convert an address to a pattern."""
    words: list[str | None] = []
    for segment in address.segments:
        if segment.text:
            words.append(segment.text)
        if segment.number is not None:
            words.append(None)
    return tuple(words)


def reference_suffixes(file: tree.File) -> Iterator[Pattern]:
    """Return the ends of each `.address` in a file, which a nested definition may declare."""
    for node in iter_nodes(file):
        if isinstance(node, tree.AddressReference):
            whole = without_indices(address_pattern(node.address))
            yield from (whole[k:] for k in range(1, len(whole)))


def without_indices(pattern: Pattern) -> Pattern:
    """Replace the numbers in a pattern by None, too."""
    return tuple(None if word is None or word.isdecimal() else word for word in pattern)


def by_first_word(patterns: list[Pattern]) -> dict[str | None, list[Pattern]]:
    """Group distinct patterns by their first segment."""
    found: dict[str | None, list[Pattern]] = {}
    for pattern in dict.fromkeys(patterns):
        found.setdefault(pattern[0], []).append(pattern)
    return found


def covers(outer: Pattern, inner: Pattern) -> bool:
    """Whether `inner` may be equal to `outer` or inside it."""
    return len(inner) >= len(outer) and all(
        a is None or b is None or a == b for a, b in zip(outer, inner, strict=False)
    )


def pattern_text(pattern: Pattern) -> str:
    """Format a pattern for messages."""
    words = ""
    for word in pattern:
        words += "[...]" if word is None else f"{'.' if words else ''}{word}"
    return words


def nearest_address(text: str, owned: list[str]) -> str | None:
    """Suggest a similar address whose first segments are in `owned`."""
    words = text.split(".")
    for end in range(len(words), 0, -1):
        beginnings = owned if end == len(words) else [known for known in owned if known.count(".") == end - 1]
        near = closest_match(".".join(words[:end]), beginnings)
        if near is not None:
            return f"did you mean `{'.'.join([near, *words[end:]])}`?"
    return None
