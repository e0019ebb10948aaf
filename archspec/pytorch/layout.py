"""Statements as text, in lines of at most 88 characters."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Sequence

WIDTH = 88


def lines_of(body: Sequence[ast.stmt], indent: int) -> list[str]:
    """The lines of statements, `indent` levels in."""
    lines: list[str] = []
    for statement in body:
        match statement:
            case ast.If():
                lines += _if(statement, indent, "if")
            case ast.For():
                head = f"for {ast.unparse(statement.target)} in {ast.unparse(statement.iter)}:"
                lines += [*wrapped(head, indent), *lines_of(statement.body, indent + 1)]
            case _:
                lines += _simple(statement, indent)
    return lines


def _simple(statement: ast.stmt, indent: int) -> list[str]:
    """An assignment or the like; a choice that is too long for a line is one of three lines in parentheses."""
    text = ast.unparse(statement)
    value = statement.value if isinstance(statement, ast.Assign | ast.Return) else None
    if not isinstance(value, ast.IfExp) or 4 * indent + len(text) <= WIDTH:
        return wrapped(text, indent)
    head = text[: len(text) - len(ast.unparse(value))]
    parts = [ast.unparse(value.body), f"if {ast.unparse(value.test)}", f"else {ast.unparse(value.orelse)}"]
    inside = [line for part in parts for line in wrapped(part, indent + 1)]
    margin = "    " * indent
    return [f"{margin}{head}(", *inside, f"{margin})"]


def _if(statement: ast.If, indent: int, word: str) -> list[str]:
    lines = [*wrapped(f"{word} {ast.unparse(statement.test)}:", indent), *lines_of(statement.body, indent + 1)]
    match statement.orelse:
        case []:
            pass
        case [ast.If() as inner]:
            lines += _if(inner, indent, "elif")
        case otherwise:
            lines += ["    " * indent + "else:", *lines_of(otherwise, indent + 1)]
    return lines


def wrapped(text: str, indent: int) -> list[str]:
    """A statement in lines that fit, broken inside its widest brackets, or if need be at each of its commas."""
    return _fitted(_as_written(text), indent)


_HABITS = (
    (re.compile(r"\*\* \((-[\w.]+)\)"), r"** \1"),
    (re.compile(r"(?<![\w\])])([\w.]+) \*\* (-?[\w.]+)(?![\w(\[])"), r"\1**\2"),
    (re.compile(r"\b(\d+(?:\.\d+)?)e([-+]?)0+(\d)"), r"\1e\2\3"),
    (re.compile(r"(nn\.ModuleList)\(\((.*)\)\)$"), r"\1(\2)"),
)
"""Where `ast.unparse` writes otherwise than people do: powers, small numbers, a generator as the only argument."""


def _as_written(text: str) -> str:
    for pattern, replacement in _HABITS:
        text = pattern.sub(replacement, text)
    return double_quoted(text)


def _fitted(text: str, indent: int) -> list[str]:
    margin = "    " * indent
    if len(margin) + len(text) <= WIDTH:
        return [margin + text]
    pair = _widest_pair(text)
    if pair is None:
        return _parenthesized(text, indent) or [margin + text]
    first, last = pair
    head, inside, tail = text[: first + 1], text[first + 1 : last], text[last:]
    items = _split(inside)
    rounds = _top_level(inside, " for ") if len(items) == 1 else None
    if rounds is not None and len(margin) + 4 + len(inside) > WIDTH:
        middle = [*_fitted(inside[:rounds], indent + 1), *_fitted(inside[rounds + 1 :], indent + 1)]
    elif len(margin) + 4 + len(inside) <= WIDTH or (len(items) == 1 and not inside.endswith(",")):
        middle = _fitted(inside, indent + 1)
    else:
        middle: list[str] = []
        for item in items:
            *front, end = _fitted(item, indent + 1)
            middle += [*front, end + ","]
    return [*_fitted(head, indent), *middle, margin + tail]


def _parenthesized(text: str, indent: int) -> list[str] | None:
    """An assignment or return in parentheses of its own."""
    for head in ("return ", " = "):
        before, found, after = text.partition(head)
        if found and (head == " = " or not before):
            return ["    " * indent + before + head + "(", *["    " * (indent + 1) + after], "    " * indent + ")"]
    return None


def _widest_pair(text: str) -> tuple[int, int] | None:
    """The outermost brackets with most between them, if there is anything."""
    pairs: list[tuple[int, int]] = []
    opened: list[int] = []
    for place, token in _symbols(text):
        if token in "([{":
            opened.append(place)
        else:
            first = opened.pop()
            if not opened and place > first + 1:
                pairs.append((first, place))
    return max(pairs, key=lambda pair: pair[1] - pair[0]) if pairs else None


def _split(text: str) -> list[str]:
    """The items between the outermost commas."""
    items: list[str] = []
    depth = start = 0
    for place, token in _symbols(text, ","):
        if token == ",":
            if depth == 0:
                items.append(text[start:place].strip())
                start = place + 1
        else:
            depth += 1 if token in "([{" else -1
    rest = text[start:].strip()
    return [*items, rest] if rest else items


def _top_level(text: str, word: str) -> int | None:
    """Where a word stands outside all brackets."""
    depth = 0
    symbols = dict(_symbols(text))
    for place in range(len(text)):
        if place in symbols:
            depth += 1 if symbols[place] in "([{" else -1
        elif depth == 0 and text.startswith(word, place):
            return place
    return None


def _symbols(text: str, more: str = "") -> list[tuple[int, str]]:
    """Brackets, and the characters in `more`, outside strings: (place, character)."""
    found: list[tuple[int, str]] = []
    quote = ""
    for place, character in enumerate(text):
        if quote:
            if character == quote and text[place - 1] != "\\":
                quote = ""
        elif character in "\"'":
            quote = character
        elif character in "([{)]}" or (more and character in more):
            found.append((place, character))
    return found


def double_quoted(text: str) -> str:
    """Python text with its strings in double quotes, where that needs no escapes."""
    if "'" not in text:
        return text
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, IndentationError):
        return text
    shift = [t for t in tokens if t.type == tokenize.STRING and "'" in t.string and '"' not in t.string]
    for token in reversed(shift):
        prefix, _, rest = token.string.partition("'")
        if rest.endswith("'") and "\\" not in rest:
            text = f'{text[: token.start[1]]}{prefix}"{rest[:-1]}"{text[token.end[1] :]}'
    return text


def docstring(paragraphs: Sequence[str], indent: int) -> list[str]:
    """A docstring of paragraphs, filled to the width; nothing for none."""
    margin = "    " * indent
    paragraphs = [p.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') for p in paragraphs if p]
    if not paragraphs:
        return []
    filled: list[str] = []
    for i, paragraph in enumerate(paragraphs):
        body = textwrap.wrap(paragraph, WIDTH - len(margin) - (3 if i == 0 else 0), break_long_words=False)
        filled += [*([""] if filled else []), *body]
    if filled[-1].endswith('"'):
        filled[-1] += " "
    if len(filled) == 1 and len(margin) + len(filled[0]) + 6 <= WIDTH:
        return [f'{margin}"""{filled[0]}"""']
    return [margin + '"""' + filled[0], *[(margin + line).rstrip() for line in filled[1:]], margin + '"""']
