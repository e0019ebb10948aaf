"""The width of the terminal, and lines of text that fit it."""

from __future__ import annotations

import os

DEFAULT_WIDTH = 100
"""Width of tables if neither `COLUMNS` nor a terminal sets one."""


def line_width(descriptor: int) -> int | None:
    """Return the maximum width of lines on a terminal at a descriptor.

    None for a file or pipe, unless `COLUMNS` asks for less than the default.
    """
    columns = _environment_width()
    width = columns or _terminal_width(descriptor)
    return width if os.isatty(descriptor) or (columns or DEFAULT_WIDTH) < DEFAULT_WIDTH else None


def output_width() -> int:
    """Return the width from `COLUMNS`, else the width of the terminal, else DEFAULT_WIDTH."""
    # if output is piped, standard error is usually a terminal
    return _environment_width() or _terminal_width(1) or _terminal_width(2) or DEFAULT_WIDTH


def _environment_width() -> int | None:
    columns = os.environ.get("COLUMNS", "")
    return (int(columns) or None) if columns.isdecimal() else None


def _terminal_width(descriptor: int) -> int | None:
    try:
        return os.get_terminal_size(descriptor).columns or None
    except OSError:
        return None


def text_width(text: str) -> int:
    """Return the width of a text in columns of a terminal; wide characters, such as Chinese ones, have two."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def wrap_line(line: str, width: int | None) -> list[str]:
    """Break a line of text at spaces, if it is longer than a width; the following lines are indented."""
    if width is None or text_width(line) <= width:
        return [line]
    content = line.lstrip(" ")
    indent = " " * min(len(line) - len(content), width // 2)
    first, *others = wrap(content, max(width - len(indent) - 2, 1))
    return [indent + first, *(f"{indent}  {other}" for other in others)]


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines at spaces; words longer than a line break after punctuation, or else anywhere."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        extended = f"{line} {word}" if line else word
        if text_width(extended) <= width:
            line = extended
            continue
        if line.strip():
            lines.append(line)
        while text_width(word) > width:
            piece = longest_prefix(word, width)
            end = max(piece.rfind(sign) for sign in "-_./*(") + 1 or len(piece)
            lines.append(word[:end])
            word = word[end:]
        line = word
    return [*lines, line] if line or not lines else lines


def longest_prefix(text: str, width: int) -> str:
    """Return the longest prefix of a text that fits."""
    if text.isascii():
        return text[: max(width, 0)]
    end = len(text)
    while end and text_width(text[:end]) > width:
        end -= 1
    return text[:end]
