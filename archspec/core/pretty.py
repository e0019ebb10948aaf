"""Documents, and their layout in lines of limited width (Wadler, 2003: "A prettier printer").

A group is in one line if it fits there; otherwise it is broken, in the first of some ways in which all lines fit, or in
the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple, TypeAlias


class TrailingText(str):
    """Trailing text, such as a comment, that ends its line and does not count toward the line width."""


class Nest(NamedTuple):
    """A document indented by `by` more columns."""

    doc: Doc
    by: int = 4


class Align(NamedTuple):
    """A document whose lines begin in the column in which it begins."""

    doc: Doc


class Group(NamedTuple):
    """`flat` in one line, or broken in one of some ways; without `flat`, it is always broken."""

    flat: str | None
    broken: Callable[[], Sequence[Doc]]


class Fill(NamedTuple):
    """Groups with spaces between them, as many in each line as fit."""

    items: Sequence[Group]


class _FillRest(NamedTuple):
    """The items of a Fill from the `first` on."""

    items: Sequence[Group]
    first: int


Doc: TypeAlias = "str | list[Doc] | Nest | Align | Group | Fill | _FillRest"
"""Text, parts one after the other, or one of the above. LINE ends a line."""

LINE = "\n"


def render(doc: Doc, width: int, indent: int, start: str | None = None) -> list[str]:
    """Render a document as lines; the first line starts with `start` (default: the indentation)."""
    lines = [" " * indent if start is None else start]
    waiting: list[tuple[int, Doc]] = [(indent, doc)]
    is_ended = False
    while waiting:
        indent, doc = waiting.pop()
        if is_ended and _begins_line(doc):
            lines.append(" " * indent)
            is_ended = False
        match doc:
            case "\n":
                lines.append(" " * indent)
                is_ended = False
            case " " if is_ended:
                pass
            case TrailingText():
                lines[-1] += doc
                is_ended = True
            case str():
                lines[-1] += doc
            case list():
                waiting += [(indent, part) for part in reversed(doc)]
            case Nest():
                waiting.append((indent + doc.by, doc.doc))
            case Align():
                waiting.append((len(lines[-1]), doc.doc))
            case Fill():
                waiting += [(indent, _FillRest(doc.items, 1)), (indent, doc.items[0])]
            case _FillRest(items, number) if number < len(items):
                item = items[number]
                after = 0 if number + 1 < len(items) else _width_until_break(waiting)
                fits = item.flat is not None and len(lines[-1]) + 1 + len(item.flat) + after <= width
                gap = " " if fits else LINE
                waiting += [(indent, _FillRest(items, number + 1)), (indent, item), (indent, gap)]
            case _FillRest():
                pass
            case Group():
                after = _width_until_break(waiting)
                if doc.flat is not None and len(lines[-1]) + len(doc.flat) + after <= width:
                    lines[-1] += doc.flat
                    continue
                *ways, last = doc.broken()
                fitting = (way for way in ways if _fits(render(way, width, indent, lines[-1]), width, after))
                waiting.append((indent, next(fitting, last)))
    return lines


def _begins_line(doc: Doc) -> bool:
    """Whether a document after the end of a line begins the next one."""
    if isinstance(doc, str):
        return bool(doc.strip()) and not isinstance(doc, TrailingText)
    return isinstance(doc, Align | Group)


def lines_between(parts: Sequence[Doc], end: str = "") -> Doc:
    """Parts in a line each."""
    return [piece for i, part in enumerate(parts) for piece in ([LINE] if i else []) + [part, end]]


def _width_until_break(waiting: Sequence[tuple[int, Doc]]) -> int:
    """The width of what at least follows in the same line."""
    rest = _first_line_texts(part for _, part in reversed(waiting))
    return sum(map(len, takewhile(lambda text: text != LINE and not isinstance(text, TrailingText), rest)))


def _fits(lines: Sequence[str], width: int, after: int) -> bool:
    return max(map(len, lines)) <= width and len(lines[-1]) + after <= width


def _first_line_texts(docs: Iterable[Doc]) -> Iterator[str]:
    """Yield the texts on the first line, up to LINE, if all groups are broken."""
    for doc in docs:
        pending = [doc]
        while pending:
            match pending.pop():
                case str() as text:
                    yield text
                case list() as parts:
                    pending += reversed(parts)
                case Nest(inner, _) | Align(inner):
                    pending.append(inner)
                case Group(_, broken):
                    pending.append(broken()[-1])
                case Fill(items):
                    pending += [_FillRest(items, 1), items[0]]
                case _FillRest(items, number):
                    pending += [LINE] if number < len(items) else []
