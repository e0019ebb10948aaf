"""`archspec.format`: the text of a spec in its canonical layout."""

from __future__ import annotations

import codecs
import re

from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import Report, Source, decode
from archspec.language.format.file import FileRows
from archspec.language.format.rows import write
from archspec.language.syntax.concrete import parse_concrete
from archspec.language.syntax.lines import scan

_LINE_END = re.compile(r"\r\n?|\n")


@check_arguments
def format(text: str, /) -> str:
    """Return the text of a spec in its canonical layout, with the line ends of its first line.

    Statements and definitions with syntax errors stay unchanged.
    """
    formatted = _format_source(Source("<text>", _LINE_END.sub("\n", text)), Report())
    return formatted.replace("\n", _line_end(text))


def format_bytes(data: bytes, label: str, report: Report) -> bytes:
    """Return the contents of a file in its canonical layout; syntax errors are reported.

    Contents that cannot be decoded are reported and returned unchanged.
    """
    text = decode(data, label, report)
    if text is None:
        return data
    formatted = _format_source(Source(label, text), report)
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    return mark + formatted.replace("\n", _line_end(data.decode())).encode()


def _line_end(text: str) -> str:
    end = _LINE_END.search(text)
    return end[0] if end else "\n"


def _format_source(source: Source, report: Report) -> str:
    first = _lay_out(source, report)
    if not report.failed:
        return first
    # With syntax errors, the layout can change how the text is parsed: without a fixed point, it stays unchanged.
    second = _lay_out(Source(source.label, first), Report())
    return first if second == first else source.text


def _lay_out(source: Source, report: Report) -> str:
    text = write(FileRows(source.text, parse_concrete(source, report)).rows)
    return text if _invariant_content(text) == _invariant_content(source.text) else source.text


def _invariant_content(text: str) -> tuple[str, list[str]]:
    """Return the code without white space and commas before brackets, and the comments: formatting keeps both."""
    comments = scan(text).comments
    ends = [0, *(comment.end for comment in comments)]
    starts = [*(comment.start for comment in comments), len(text)]
    code = "".join(text[start:end] for start, end in zip(ends, starts, strict=True))
    return re.sub(r",(?=[)\]}])", "", "".join(code.split())), sorted(comment.text for comment in comments)
