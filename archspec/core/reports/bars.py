"""Bars of block characters, with a resolution of an eighth of a character."""

from __future__ import annotations

_EIGHTHS = " ▏▎▍▌▋▊▉"
_FULL = "█"


def bar(value: int, most: int, width: int, encoding: str) -> str:
    """Draw a bar of at most `width` characters for a value of at most `most`; small positive values remain visible.

    If the encoding has no block characters, it consists of `#`.
    """
    eighths = -(-8 * width * value // most) if most else 0
    full, rest = divmod(eighths, 8)
    text = _FULL * full + (_EIGHTHS[rest] if rest else "")
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return "#" * (full + bool(rest))
    return text
