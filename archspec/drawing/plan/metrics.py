"""Widths of text in Helvetica and the fonts with its metrics, such as Arial and Liberation Sans."""

from __future__ import annotations

import unicodedata
from functools import cache

# fmt: off
_REGULAR = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556,
    833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500,
    556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500,
    334, 260, 334, 584,
)
_BOLD = (
    278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 333, 333, 584, 584, 584, 611, 975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556, 333, 556, 611, 556, 611,
    556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611, 611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389,
    280, 389, 584,
)
# fmt: on
"""Widths of the characters from the space to the tilde, in thousandths of the size of the font."""

_OTHERS = {
    "\N{MULTIPLICATION SIGN}": 584,
    "\N{RIGHTWARDS ARROW}": 1000,
    "\N{EN DASH}": 556,
    "\N{HORIZONTAL ELLIPSIS}": 1000,
}
_WIDE = 1000
_UNKNOWN = 700


def is_known(text: str) -> bool:
    """Whether the widths of all characters are exact."""
    return all(" " <= c <= "~" or c in _OTHERS for c in text)


@cache
def width(text: str, size: float, bold: bool = False) -> float:
    """Return the width of a text; that of characters without metrics is an estimate."""
    widths = _BOLD if bold else _REGULAR
    total = 0
    for c in text:
        place = ord(c) - 32
        total += widths[place] if 0 <= place < len(widths) else _other(c)
    return round(total * size / 1000, 1)


@cache
def shorten_text(text: str, size: float, most: float, bold: bool = False) -> str:
    """Return a text, shortened in the middle if it is wider than `most`; characters that do not print are replaced."""
    text = "".join([c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text])
    if width(text, size, bold) <= most:
        return text
    kept = len(text) - 1
    while kept > 2:
        kept -= 1
        head = (kept + 1) // 2
        shorter = f"{text[:head]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - (kept - head) :]}"
        if width(shorter, size, bold) <= most:
            return shorter
    return text[:1] + "\N{HORIZONTAL ELLIPSIS}"


def _other(c: str) -> int:
    return _OTHERS.get(c) or (_WIDE if unicodedata.east_asian_width(c) in "WF" else _UNKNOWN)
