"""Text in cells of a given width: measured, shortened in the middle, wrapped."""

from __future__ import annotations

# Bars of block characters, with a resolution of an eighth of a character.

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


def width_of(text: str) -> int:
    """Return the number of characters of a terminal that a text takes; a Chinese one takes two."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def padded(text: str, width: int, right: bool) -> str:
    """Fill a text up to a width with spaces."""
    spaces = " " * (width - width_of(text))
    return spaces + text if right else text + spaces


def shortened(text: str, width: int, mark: str = "…") -> str:
    """Replace the middle of a text that is too long with a mark; the spaces that indent it stay."""
    if width_of(text) <= width:
        return text
    start = text.lstrip(" ")
    indent = text[: min(len(text) - len(start), max(width - 8, 0))]
    room = width - len(indent) - width_of(mark)
    ahead = _cut(start, room // 2)
    behind = _cut(start[::-1], room - width_of(ahead))[::-1]
    return f"{indent}{ahead}{mark}{behind}"


def wrapped(text: str, width: int) -> list[str]:
    """Break a text into lines: at spaces; in a word that is longer than a line, after punctuation; else anywhere."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if width_of(longer) <= width:
            line = longer
            continue
        if line.strip():
            lines.append(line)
        while width_of(word) > width:
            piece = _cut(word, width)
            end = max(piece.rfind(sign) for sign in "-_./*(") + 1 or len(piece)
            lines.append(word[:end])
            word = word[end:]
        line = word
    return [*lines, line] if line or not lines else lines


def _cut(text: str, width: int) -> str:
    """Return the longest start of a text that fits."""
    if text.isascii():
        return text[: max(width, 0)]
    end = len(text)
    while end and width_of(text[:end]) > width:
        end -= 1
    return text[:end]
