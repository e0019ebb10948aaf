"""Layout of documents in lines of limited width (Wadler, 2003: "A prettier printer").

A group is on one line if it fits; otherwise it is broken, in the first of its alternatives whose lines all fit, or else
in the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple, TypeAlias


class TrailingText(str):
    """Trailing text, such as a comment, that ends its line and does not count toward the line width."""


class Nest(NamedTuple):
    """A document indented by `columns` more columns."""

    doc: Doc
    columns: int = 4


class Align(NamedTuple):
    """A document whose lines all begin in the column of its first character."""

    doc: Doc


class Group(NamedTuple):
    """`flat` on one line, or one of the alternatives of `broken`; without `flat`, always broken."""

    flat: str | None
    broken: Callable[[], Sequence[Doc]]


class Fill(NamedTuple):
    """Groups separated by spaces, with line breaks only where the next group does not fit."""

    items: Sequence[Group]


class _FillRemainder(NamedTuple):
    """The items of a Fill from index `first`."""

    items: Sequence[Group]
    first: int


Doc: TypeAlias = "str | list[Doc] | Nest | Align | Group | Fill | _FillRemainder"
"""Text, a sequence of documents, or one of the above. LINE ends a line."""

LINE = "\n"


def render(doc: Doc, width: int, indent: int, start: str | None = None) -> list[str]:
    """Render a document as lines; the first line starts with `start` (default: the indentation)."""
    lines = [" " * indent if start is None else start]
    stack: list[tuple[int, Doc]] = [(indent, doc)]
    is_ended = False
    while stack:
        indent, doc = stack.pop()
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
                stack += [(indent, part) for part in reversed(doc)]
            case Nest():
                stack.append((indent + doc.columns, doc.doc))
            case Align():
                stack.append((len(lines[-1]), doc.doc))
            case Fill():
                stack += [(indent, _FillRemainder(doc.items, 1)), (indent, doc.items[0])]
            case _FillRemainder(items, index) if index < len(items):
                item = items[index]
                suffix_width = 0 if index + 1 < len(items) else _width_until_break(stack)
                fits = item.flat is not None and len(lines[-1]) + 1 + len(item.flat) + suffix_width <= width
                separator = " " if fits else LINE
                stack += [(indent, _FillRemainder(items, index + 1)), (indent, item), (indent, separator)]
            case _FillRemainder():
                pass
            case Group():
                suffix_width = _width_until_break(stack)
                if doc.flat is not None and len(lines[-1]) + len(doc.flat) + suffix_width <= width:
                    lines[-1] += doc.flat
                    continue
                *alternatives, last = doc.broken()
                fitting = (
                    doc for doc in alternatives if _fits(render(doc, width, indent, lines[-1]), width, suffix_width)
                )
                stack.append((indent, next(fitting, last)))
    return lines


def _begins_line(doc: Doc) -> bool:
    """Whether a document that follows a finished line begins the next line."""
    if isinstance(doc, str):
        return bool(doc.strip()) and not isinstance(doc, TrailingText)
    return isinstance(doc, Align | Group)


def lines_between(parts: Sequence[Doc], end: str = "") -> Doc:
    """Put each part, followed by `end`, on its own line."""
    return [piece for i, part in enumerate(parts) for piece in ([LINE] if i else []) + [part, end]]


def _width_until_break(stack: Sequence[tuple[int, Doc]]) -> int:
    """Return the minimum width of the text that follows on the same line."""
    texts = _first_line_texts(part for _, part in reversed(stack))
    return sum(map(len, takewhile(lambda text: text != LINE and not isinstance(text, TrailingText), texts)))


def _fits(lines: Sequence[str], width: int, suffix_width: int) -> bool:
    return max(map(len, lines)) <= width and len(lines[-1]) + suffix_width <= width


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
                case Nest(nested, _) | Align(nested):
                    pending.append(nested)
                case Group(_, broken):
                    pending.append(broken()[-1])
                case Fill(items):
                    pending += [_FillRemainder(items, 1), items[0]]
                case _FillRemainder(items, index):
                    pending += [LINE] if index < len(items) else []
