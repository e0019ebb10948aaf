"""Source files, locations in them, and diagnostics with their rendering."""

from __future__ import annotations

import os
import re
import stat
from bisect import bisect_right
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from itertools import accumulate, groupby

from archspec.core.record import Record
from archspec.core.wrapping import wrap_line

MAX_FILE_BYTES = 256 * 1024


class Source:
    """The text of a file, and the label shown to the user (a path, a bundled name, `<stdin>`)."""

    __slots__ = ("_starts", "label", "text")

    def __init__(self, label: str, text: str) -> None:
        self.label = label
        self.text = text
        self._starts: list[int] | None = None

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and column of a character offset, both counted from 1."""
        starts = self.line_starts()
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line_starts(self) -> list[int]:
        """Return the offsets at which lines begin."""
        if self._starts is None:
            lengths = [len(line) + 1 for line in self.text.split("\n")]
            self._starts = list(accumulate(lengths[:-1], initial=0))
        return self._starts

    def line(self, number: int) -> str:
        """Return line `number` (counted from 1) without its line end."""
        starts = self.line_starts()
        start = starts[number - 1]
        end = starts[number] - 1 if number < len(starts) else len(self.text)
        return self.text[start:end].rstrip("\r")


class Span(Record):
    """Characters `start` to `end` (exclusive) of a source."""

    source: Source
    start: int
    end: int

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.label}:{line}:{column}"

    @property
    def location(self) -> str:
        """The file and line, as in the attributes of graph nodes."""
        return f"{self.source.label}:{self.source.position(self.start)[0]}"


class Note(Record):
    """A secondary message of a diagnostic, such as the location where a name was first defined."""

    text: str
    span: Span | None = None


class Diagnostic(Record):
    """An error or warning: a stable code, a one-clause message, its location, notes and help.

    `further` are the other locations of warnings that `combine_warnings` has combined.
    """

    code: str
    message: str
    span: Span | None = None
    notes: tuple[Note, ...] = ()
    help: str | None = None
    severity: str = "error"
    further: tuple[Span, ...] = ()

    def render(self, width: int | None = None) -> str:
        """Format the diagnostic as text: message, location, source line with a caret, notes, help.

        With the width of a terminal, lines are wrapped and source lines cut.
        """
        lines: list[str] = []

        def add(label: str, text: str, spans: Sequence[Span | None] = (), mark: str = "") -> None:
            lines.extend(wrap_line(f"{label}: {escape_for_terminal(text)}", width))
            for _, group in groupby(filter(None, spans), _line_of):
                lines.extend(_excerpt([*group], mark, width))

        add(f"{self.severity}[{self.code}]", self.message, [self.span, *self.further], "^")
        for note in self.notes:
            add("note", note.text, [note.span], "-")
        if self.help is not None:
            add("help", self.help)
        return "\n".join(lines)


class ArchError(Exception):
    """The only exception raised for invalid input; `diagnostics` lists the causes."""

    __module__ = "archspec"  # the public location, which tracebacks show

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        self.diagnostics = diagnostics
        super().__init__("\n\n".join(d.render() for d in diagnostics))

    def __reduce__(self) -> tuple[type[ArchError], tuple[list[Diagnostic]]]:
        return self.__class__, (self.diagnostics,)  # makes it picklable for other processes

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows in place of a traceback: the message alone."""
        return str(self).splitlines()


MAX_DIAGNOSTICS = 100
MAX_CANDIDATES = 1_000
MAX_COMPARED_NAME_LENGTH = 200


class StopCompilation(Exception):
    """Raised when a report has reached the maximum number of diagnostics."""


class Report:
    """Collector of diagnostics. Only the first diagnostic of each severity is kept for a span: one error, one report.

    After MAX_DIAGNOSTICS it adds a final diagnostic about the limit, and raises StopCompilation.
    """

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._seen: set[tuple[str, str, int, int] | tuple[str, str]] = set()

    def add(self, diagnostic: Diagnostic) -> None:
        span = diagnostic.span
        key = (
            (diagnostic.severity, span.source.label, span.start, span.end)
            if span
            else (diagnostic.code, diagnostic.message)
        )
        if key not in self._seen:
            self._seen.add(key)
            if len(self.diagnostics) >= MAX_DIAGNOSTICS:
                message = f"too many diagnostics: only the first {MAX_DIAGNOSTICS} are shown"
                self.diagnostics.append(Diagnostic("budget", message))
                raise StopCompilation
            self.diagnostics.append(diagnostic)

    def error(
        self,
        code: str,
        message: str,
        span: Span | None = None,
        *,
        notes: tuple[Note, ...] = (),
        help: str | None = None,
    ) -> None:
        self.add(Diagnostic(code, message, span, notes, help))

    def warn(self, code: str, message: str, span: Span | None = None, *, help: str | None = None) -> None:
        self.add(Diagnostic(code, message, span, (), help, "warning"))

    @property
    def errors(self) -> int:
        return sum(d.severity == "error" for d in self.diagnostics)

    @property
    def failed(self) -> bool:
        return self.errors > 0

    def sort(self) -> None:
        """Sort the diagnostics by file and location: errors first, then warnings."""
        self.diagnostics.sort(key=_sort_key)

    def check(self) -> None:
        """Raise ArchError with all diagnostics so far if one of them is an error."""
        if self.failed:
            self.sort()
            raise ArchError(self.diagnostics)


def combine_warnings(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Combine the warnings of one kind in a file into one, for readers who would lose sight of the errors."""
    groups: dict[tuple[object, ...], list[Diagnostic]] = {}
    for number, diagnostic in enumerate(diagnostics):
        label = diagnostic.span.source.label if diagnostic.span is not None else ""
        key = (number,) if diagnostic.severity == "error" else (diagnostic.code, diagnostic.help, label)
        groups.setdefault(key, []).append(diagnostic)
    return [group[0] if len(group) == 1 else _combine(group) for group in groups.values()]


def _combine(warnings: Sequence[Diagnostic]) -> Diagnostic:
    first, *others = warnings
    matches = [re.fullmatch(r"(unused \w+) (`[^`]*`)", warning.message) for warning in warnings]
    names = [match[2] for match in matches if match]
    if matches[0] is None or len(names) < len(warnings):
        return first._replace(notes=(*first.notes, *(Note(other.message, other.span) for other in others)))
    message = f"{matches[0][1]}s {', '.join(names[:-1])} and {names[-1]}"
    help = first.help and first.help.replace(" it", " them")
    further = tuple(other.span for other in others if other.span is not None)
    return first._replace(message=message, help=help, further=further)


def make_error(
    code: str,
    message: str,
    span: Span | None = None,
    *,
    notes: tuple[Note, ...] = (),
    help: str | None = None,
) -> ArchError:
    """Return an ArchError with one diagnostic, for the caller to raise."""
    return ArchError([Diagnostic(code, message, span, notes, help)])


def internal_error(message: str) -> ArchError:
    """Return an ArchError about a contradiction in archspec itself, for the caller to raise."""
    return make_error("internal", f"{message}; this is a bug in archspec; please report it")


def missing_package_error(message: str, extra: str) -> ArchError:
    """Return an ArchError about a package that an extra adds, for the caller to raise."""
    return make_error("missing-package", message, help=install_hint(extra))


def install_hint(extra: str) -> str:
    """Return help on how to install an extra.

    The command works for every installed archspec, published or not: pip finds the packages in its metadata.
    """
    return f"run `pip install 'archspec-dsl[{extra}]'`"


def closest_match(name: str, candidates: list[str], min_similarity: float = 0.6) -> str | None:
    """Return the candidate that `name` is most likely a typo for; None if no candidate is similar enough."""
    from difflib import get_close_matches

    candidates = candidates[:MAX_CANDIDATES]
    matches = get_close_matches(name[:MAX_COMPARED_NAME_LENGTH], candidates, n=1, cutoff=min_similarity)
    if matches:
        return matches[0]
    return {c.lower(): c for c in candidates}.get(name.lower())


def suggest(name: str, candidates: list[str]) -> str | None:
    """Return a `did you mean` help for the closest candidate, or None without a close match."""
    match = closest_match(name, candidates)
    return f"did you mean `{match}`?" if match is not None else None


def escape_for_terminal(text: str) -> str:
    """Return `text` with control characters escaped and very long words truncated, for display in a terminal."""
    text = " ".join(
        word if len(word) <= MAX_COMPARED_NAME_LENGTH else f"{word[: MAX_COMPARED_NAME_LENGTH - 3]}..."
        for word in text.split(" ")
    )
    return escape_controls(text)


def escape_controls(text: str) -> str:
    """Return `text` with control characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _sort_key(diagnostic: Diagnostic) -> tuple[bool, bool, str, int]:
    is_warning, span = diagnostic.severity == "warning", diagnostic.span
    return (is_warning, False, span.source.label, span.start) if span else (is_warning, True, "", 0)


_MAX_EXCERPT_WIDTH = 160


def _line_of(span: Span) -> tuple[str, int]:
    return span.source.label, span.source.position(span.start)[0]


def _excerpt(spans: Sequence[Span], mark: str, line_width: int | None) -> list[str]:
    """Format a line of a file with marks below the spans, which all begin in it."""
    source = spans[0].source
    number, column = source.position(spans[0].start)
    text = source.line(number)
    first, offset = column - 1, 0
    gutter = " " * len(str(number))
    max_width = _MAX_EXCERPT_WIDTH if line_width is None else max(line_width - len(gutter) - len(" | "), 20)
    if len(text) > max_width:
        offset = max(0, min(first - max_width // 4, len(text) - max_width))
        is_cut = offset + max_width < len(text)
        text = text[offset : offset + max_width]
        if line_width is not None:
            text = f"{'...' if offset else text[:3]}{text[3:-3]}{'...' if is_cut else text[-3:]}"
    marks = ""
    for span in spans:
        start = source.position(span.start)[1] - 1 - offset
        if start <= len(text):
            marks = marks.ljust(start) + mark * max(1, min(span.end - span.start, len(text) - start))
    printable = "".join(c if c.isprintable() else " " for c in text)
    return [
        f"{gutter}--> {escape_controls(str(spans[0]))}",
        f"{gutter} |",
        f"{number} | {printable}",
        f"{gutter} | {marks}",
    ]


@contextmanager
def open_regular_file(path: str, label: str, span: Span | None = None) -> Generator[BufferedReader]:
    """Open a regular file. Raises ArchError if it cannot be read, also in the body of the `with` statement."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise make_error("unreadable", f"expected a file, found the directory {label}", span)
        if not stat.S_ISREG(mode):  # opening a pipe would block
            raise make_error("unreadable", f"{label} is not a regular file", span)
        with open(path, "rb") as file:
            yield file
    except FileNotFoundError:
        raise make_error("missing-file", f"file not found: {label}", span) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        raise unreadable_error(label, error, span) from None


def unreadable_error(label: str, error: Exception, span: Span | None = None) -> ArchError:
    """Return the error to raise for a file or directory that cannot be read."""
    reason = str(getattr(error, "strerror", None) or error).lower()
    return make_error("unreadable", f"cannot read {label}: {reason}", span)


def too_large_error(label: str, max_bytes: int, span: Span | None = None) -> ArchError:
    """Return the error to raise for a text that exceeds a size limit in bytes."""
    return make_error("budget", f"{label} exceeds the size limit of {max_bytes // 1024:,} KiB", span)


def read_bytes(
    path: str, label: str, report: Report, span: Span | None = None, max_bytes: int = MAX_FILE_BYTES
) -> bytes | None:
    """Read at most `max_bytes` + 1 bytes of a file; None after a diagnostic (missing or unreadable)."""
    try:
        with open_regular_file(path, label, span) as file:
            return file.read(max_bytes + 1)
    except ArchError as error:
        report.add(error.diagnostics[0])
        return None


def decode(
    data: bytes, label: str, report: Report, span: Span | None = None, max_bytes: int = MAX_FILE_BYTES
) -> str | None:
    """Decode the contents of a file; None after a diagnostic (too large or not text)."""
    if len(data) > max_bytes:
        report.add(too_large_error(label, max_bytes, span).diagnostics[0])
        return None
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        report.error("not-text", f"{label} is not UTF-8 text: invalid byte at offset {error.start}", span)
        return None
    if "\0" in text:
        report.error("not-text", f"{label} is not text: it contains a NUL byte", span)
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n")
