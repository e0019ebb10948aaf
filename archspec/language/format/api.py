"""`archspec.format`: the text of a spec in its canonical layout."""

from __future__ import annotations

import codecs
import re

from archspec.core.diagnostics import Report, Source, decode
from archspec.language.format.file import FileRows
from archspec.language.format.rows import write
from archspec.language.syntax.concrete import parse_concrete
from archspec.language.syntax.lines import scan

_LINE_END = re.compile(r"\r\n?|\n")


def format(text: str, /) -> str:
    """Return the text of a spec in its canonical layout, with the line ends of its first line.

    Statements and definitions with syntax errors stay as they are.
    """
    formatted = _formatted(Source("<text>", _LINE_END.sub("\n", text)), Report())
    return formatted.replace("\n", _line_end(text))


def format_bytes(data: bytes, label: str, report: Report) -> bytes:
    """Return the contents of a file in its canonical layout; syntax errors are reported.

    Contents that are not text are reported and returned unchanged.
    """
    text = decode(data, label, report)
    if text is None:
        return data
    formatted = _formatted(Source(label, text), report)
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    return mark + formatted.replace("\n", _line_end(data.decode())).encode()


def _line_end(text: str) -> str:
    end = _LINE_END.search(text)
    return end[0] if end else "\n"


def _formatted(source: Source, report: Report) -> str:
    once = _laid_out(source, report)
    if not report.failed:
        return once
    # Where there are errors, the layout can decide how the text is read: without a fixed point, it stays as it is.
    twice = _laid_out(Source(source.label, once), Report())
    return once if twice == once else source.text


def _laid_out(source: Source, report: Report) -> str:
    text = write(FileRows(source.text, parse_concrete(source, report)).rows)
    return text if _content(text) == _content(source.text) else source.text


def _content(text: str) -> tuple[str, list[str]]:
    """Return what formatting must not change: all but white space and commas before brackets; and the comments."""
    comments = scan(text).comments
    ends = [0, *(comment.end for comment in comments)]
    starts = [*(comment.start for comment in comments), len(text)]
    code = "".join(text[start:end] for start, end in zip(ends, starts, strict=True))
    return re.sub(r",(?=[)\]}])", "", "".join(code.split())), sorted(comment.text for comment in comments)
