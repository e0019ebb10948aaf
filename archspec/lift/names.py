"""Names that are free in a definition."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Sequence

RESERVED = frozenset(
    "if else for in return tie require role param buffer const unused expect and or not true false none inf as pi i".split()
)
"""Words that cannot be names, `pi`, and the index of loops."""

FALLBACKS = ("h", "g", "y", "z", "u", "w", "a", "b", "c", "d", "e", "f", "k", "n", "p", "q", "r", "s", "t", "v")
"""Names for values that the source does not name."""


class Names:
    """The names of one definition."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = {*taken}

    def take(self, wanted: Sequence[str]) -> str:
        """Return the first free name among those wanted; a short one if none is free."""
        for name in [*[identifier(name) for name in wanted], *FALLBACKS]:
            if name and name not in self._taken:
                self._taken.add(name)
                return name
        raise AssertionError("a definition with too many values")


def identifier(text: str) -> str:
    """Return a text as a name of the language; empty if it cannot be one."""
    name = re.sub(r"\W", "_", text).strip("_")
    if not name or name[0].isdigit() or name in RESERVED:
        return ""
    return f"{name}_" if keyword.iskeyword(name) and name in RESERVED else name
