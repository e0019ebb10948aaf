"""Lines of text of at most a given width in columns of a terminal."""

from __future__ import annotations


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
