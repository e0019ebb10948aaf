"""Detection of the line ends that end statements: one scan that handles strings, comments and brackets.

The result has the same length as the input, so that all offsets remain valid.
"""

from __future__ import annotations

import re

from archspec.core.record import Record
from archspec.language.syntax.machine import ArchSyntaxError
from archspec.language.syntax.tree import Comment

MAX_DEPTH = 64
"""The maximum nesting of brackets."""

MAX_ERRORS = 20
"""The number of errors after which the remainder of a file is skipped."""

_NO_OFFSET = -1
"""No offset."""

_PIECE = re.compile(
    r"""
      (?P<comment> \#[^\n]* )
    | (?P<string> "(?:[^"\\\n]|\\[^\n])*" )
    | (?P<quote> "[^\n]* )
    | (?P<bracket> [()\[\]{}] )
    | (?P<line> \n )
    | (?P<text> [^\s\#"()\[\]{}] [^\n\#"()\[\]{}]* )
    """,
    re.VERBOSE,
)
_CONTINUATION = re.compile(r"\|>|->|\(|\{|else\b")
_ELSE = re.compile(r"else\b")
_ITEM = re.compile(r"(?:import|export)\s+[\w\"]|(?:fn|layer|block)\s+\w+\s*\(|model\s*\"|dim\s+\w")
_STATEMENT = re.compile(r"(?:return|require|tie|role|expect)\b|label\s*\"")
_IMPORT = re.compile(r"(?:import|export)\b")
_HEADER = re.compile(r"(?:if|for|else|elif|while|fn|layer|block|model|def|class)\b")
_LINE_END = re.compile(r"[ \t\r\f]*(?:\#|\n|\Z)")
_INDENT = re.compile(r"[ \t\r\f]*")
_ALLOWED_AFTER_BRACE = re.compile(r"[ \t\r\f]*(?:\#|//|\n|\Z|\}|(?:else|elif)\b)")
_SLASHES = re.compile(r"(?://[^\n]*\s*)+|/\*(?s:.*?)(?:\*/|\Z)")
_OPENERS = {")": "(", "]": "[", "}": "{"}
_CLOSERS = {opener: closer for closer, opener in _OPENERS.items()}


class ScanResult(Record):
    """The result of a scan.

    In `text`, comments, `broken` ranges and the line ends inside statements are replaced by spaces; `blanked` are the
    offsets of these line ends. `closers` are the offsets at which a `}` is missing. `surplus` are the errors for
    unmatched `}`, `errors` all others.
    """

    text: str
    comments: list[Comment]
    errors: list[ArchSyntaxError]
    broken: list[tuple[int, int]]
    closers: list[int]
    surplus: list[ArchSyntaxError]
    blanked: list[int]


class _OpenBracket(Record):
    """An open bracket, in the statement that starts at `statement`.

    Line ends in it are not significant if `spans_lines` is set: for all brackets except the braces of bodies.
    """

    bracket: str
    offset: int
    statement: int
    spans_lines: bool


def begins_statement(text: str, start: int = 0) -> bool:
    """Whether a line in brackets that begins at `start` shows that the bracket is unclosed: it begins a statement."""
    return bool(_STATEMENT.match(text, start) or _ITEM.match(text, start))


def scan(text: str) -> ScanResult:
    """Scan `text`; after an unclosed bracket, resume at the following line."""
    scanner = _LineScanner(text)
    position = 0
    while position >= 0:
        position = scanner.resume(position)
    return ScanResult(
        "".join(scanner.characters),
        scanner.comments,
        scanner.errors,
        scanner.broken,
        scanner.closers,
        scanner.surplus,
        scanner.blanked,
    )


class _LineScanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.characters = list(text)
        if text.startswith("\ufeff"):  # a byte order mark
            self.characters[0] = " "
        self.comments: list[Comment] = []
        self.errors: list[ArchSyntaxError] = []
        self.broken: list[tuple[int, int]] = []
        self.closers: list[int] = []
        self.surplus: list[ArchSyntaxError] = []
        self.blanked: list[int] = []
        self._stack: list[_OpenBracket] = []
        self._first = 0  # offset of the first token of the line
        self._statement = _NO_OFFSET  # offset of the current statement, or _NO_OFFSET before its first token
        self._has_headless_brace = False  # whether a `{` without a header was treated as the brace of a body
        self._failed_statement = _NO_OFFSET  # offset of the current statement if it has an error, else _NO_OFFSET

    def resume(self, position: int) -> int:
        """Scan from `position`. Return the offset to resume at after an error, or _NO_OFFSET at the end of the text."""
        text = self.text
        lines: list[int] = []  # line ends since the last token
        for match in _PIECE.finditer(text, position):
            kind, start = match.lastgroup, match.start()
            if kind == "line":
                lines.append(start)
                continue
            if kind == "comment":
                comment = match[0].rstrip()
                self.comments.append(Comment(start, start + len(comment), comment))
                self._blank(start, match.end())
                continue
            if lines:
                self._first = start
                resume_offset = self._begin_line(lines, start)
                if resume_offset is not None:
                    return resume_offset
                lines = []
            if self._statement < 0:
                self._statement = start
            resume_offset = None
            if kind == "bracket":
                resume_offset = (
                    self._open_bracket(match[0], start) if match[0] in "([{" else self._close_bracket(match[0], start)
                )
            elif kind == "quote":
                self._add_error("unclosed string", start, match.end(), "close the string on the line where it begins")
            elif kind == "text" and self._statement == start and text.startswith(("//", "/*"), start):
                resume_offset = self._report_slashes(start)
            if resume_offset is not None:
                return resume_offset
            if len(self.errors) + len(self.surplus) >= MAX_ERRORS:
                return self._stop(match.end())
        return self._finish()

    def _begin_line(self, lines: list[int], start: int) -> int | None:
        """Handle the first token of a line, at `start`."""
        in_brackets = bool(self._stack) and self._stack[-1].spans_lines
        if in_brackets and begins_statement(self.text, start):
            return self._report_unclosed(start)
        continuation = _CONTINUATION if self._statement >= 0 else _ELSE
        if in_brackets or continuation.match(self.text, start):
            for offset in lines:
                self.characters[offset] = " "
            self.blanked += lines
            return None
        self._end_statement(lines[0])
        item = self._stack and _ITEM.match(self.text, start)
        # An item that is indented further than the open statement is misplaced.
        if item and self._indentation(start) <= self._indentation(self._stack[-1].statement):
            self._report_missing_brace(start)
        return None

    def _open_bracket(self, bracket: str, offset: int) -> int | None:
        in_brackets = bool(self._stack) and self._stack[-1].spans_lines
        if bracket == "{" and in_brackets and _LINE_END.match(self.text, offset + 1):
            return self._report_unclosed(offset)
        spans_lines = in_brackets or bracket != "{" or not self._is_body(offset)
        self._stack.append(_OpenBracket(bracket, offset, self._statement, spans_lines))
        if len(self._stack) > MAX_DEPTH:
            return self._report_depth(offset)
        if not spans_lines:
            self._end_statement(offset)
        return None

    def _is_body(self, offset: int) -> bool:
        """Whether the `{` at `offset` begins a body rather than an import list or a misplaced brace."""
        if not self._stack:
            return not _IMPORT.match(self.text, self._statement)
        if _HEADER.match(self.text, self._statement):
            return True
        ends_line = bool(_LINE_END.match(self.text, offset + 1))
        self._has_headless_brace = self._has_headless_brace or ends_line
        return ends_line

    def _close_bracket(self, bracket: str, offset: int) -> int | None:
        opener = _OPENERS[bracket]
        depth = self._statement_depth()
        if bracket == "}" and not (len(self._stack) > depth and self._stack[-1].bracket == "{"):
            if self._is_misplaced(offset):
                self._add_error("unexpected `}` inside a statement", offset, offset + 1)
                self.characters[offset] = " "
                return None
            if len(self._stack) > depth:
                return self._report_unclosed(offset)
        if bracket == "}" and self._stack:
            if not self._stack.pop().spans_lines:
                self._end_statement(offset)
            return None
        if depth == len(self._stack):
            message = f"unmatched `{bracket}`"
            if bracket == "}":
                self.surplus.append(ArchSyntaxError(message, offset, offset + 1))
                self.characters[offset] = " "
                self._statement = _NO_OFFSET if self._statement == offset else self._statement
            else:
                self._add_error(message, offset, offset + 1, f"remove it, or add the `{opener}` that it closes")
            return None
        index = next((i for i in range(len(self._stack) - 1, depth - 1, -1) if self._stack[i].bracket == opener), None)
        opened = self._stack[-1]
        start, closer = opened.offset, _CLOSERS[opened.bracket]
        if index is None:
            message = f"mismatched brackets: `{opened.bracket}` is closed by `{bracket}`"
            self._add_error(message, start, start + 1, f"write `{closer}` in place of `{bracket}`")
        elif index < len(self._stack) - 1:
            message = f"unclosed `{opened.bracket}` before `{bracket}`"
            self._add_error(message, start, start + 1, f"add `{closer}` before `{bracket}`")
        del self._stack[index if index is not None else -1 :]
        return None

    def _is_misplaced(self, offset: int) -> bool:
        """Whether a `}` is inside a statement, without a `{` before it on its line."""
        depth = self._statement_depth()
        if self._statement < 0 or self._first == offset or _ALLOWED_AFTER_BRACE.match(self.text, offset + 1):
            return False
        return depth == 0 or self._stack[depth - 1].offset < self._first

    def _indentation(self, offset: int) -> int:
        """Return the indentation of the line at `offset`."""
        line = self.text.rfind("\n", 0, offset) + 1
        return _INDENT.match(self.text, line).end() - line  # pyright: ignore[reportOptionalMemberAccess]

    def _line_end(self, start: int, end: int) -> int:
        """Return the offset of the first line end between two offsets; `end` if there is none."""
        offset = self.text.find("\n", start, end)
        return end if offset < 0 else offset

    def _statement_depth(self) -> int:
        """Return the number of open braces of bodies that enclose the current statement."""
        return next((i for i, opened in enumerate(self._stack) if opened.spans_lines), len(self._stack))

    def _report_unclosed(self, offset: int) -> int:
        """Report the first open bracket of the current statement, which is not closed before `offset`."""
        opened = self._stack[self._statement_depth()]
        resume_offset = self._abandon(opened, offset)
        help = f"add the `{_CLOSERS[opened.bracket]}` that closes it"
        self._add_error(f"unclosed `{opened.bracket}`", opened.offset, opened.offset + 1, help)
        return resume_offset

    def _abandon(self, opened: _OpenBracket, offset: int) -> int:
        """Discard results after the line of `opened`, or after `offset` if earlier; return the offset to resume at."""
        del self._stack[self._statement_depth() :]
        end = self._line_end(opened.offset, offset)
        while self.blanked and self.blanked[-1] >= end:
            self.characters[self.blanked.pop()] = "\n"
        while self.comments and self.comments[-1].start >= end:
            self.comments.pop()
        self.errors = [error for error in self.errors if error.start < end]
        self._statement = opened.statement
        reported = any(error.start >= opened.statement for error in self.errors)
        self._failed_statement = opened.statement if reported else _NO_OFFSET
        return end

    def _report_depth(self, offset: int) -> int:
        message = f"brackets are nested too deeply: the limit is {MAX_DEPTH} levels"
        depth = self._statement_depth()
        if depth < len(self._stack):
            end = self._line_end(offset, len(self.text))
            self._abandon(self._stack[depth], end)
            self._add_error(message, offset, offset + 1, code="budget")
            return end
        self._add_error(message, offset, offset + 1, code="budget")
        self._stack.pop()
        return self._stop(offset)

    def _report_missing_brace(self, offset: int) -> None:
        opened = self._stack[-1]
        at_end = offset == len(self.text)
        location = "at the end of the file" if at_end else f"before line {self.text.count(chr(10), 0, offset) + 1}"
        message, help = "unclosed `{`", f"add `}}` {location}"
        if not self._has_headless_brace:  # else the `{` without a header is the cause, and is reported by the parser
            self.errors.append(ArchSyntaxError(message, opened.offset, opened.offset + 1, help))
        self._has_headless_brace = False
        self.closers += [offset] * len(self._stack)
        self._stack.clear()

    def _report_slashes(self, start: int) -> int:
        slashes = _SLASHES.match(self.text, start)
        assert slashes
        message = f"`{slashes[0][:2]}` does not begin a comment"
        self.errors.append(ArchSyntaxError(message, start, start + 2, "use `#` for comments"))
        end = start + len(slashes[0].rstrip())
        self._blank(start, end)
        self._statement = _NO_OFFSET
        return end

    def _add_error(self, message: str, start: int, end: int, help: str | None = None, code: str = "syntax") -> None:
        """Report an error that makes the current statement unparsable; only the first one per statement is reported."""
        if self._failed_statement < 0:
            self.errors.append(ArchSyntaxError(message, start, end, help, code))
            self._failed_statement = self._statement

    def _end_statement(self, offset: int) -> None:
        """End a statement or a header at `offset`."""
        if self._failed_statement >= 0:
            self.broken.append((self._failed_statement, offset))
            self._blank(self._failed_statement, offset)
        self._statement = self._failed_statement = _NO_OFFSET

    def _blank(self, start: int, end: int) -> None:
        self.characters[start:end] = [c if c == "\n" else " " for c in self.characters[start:end]]

    def _stop(self, position: int) -> int:
        """Skip the text from `position` on."""
        self._end_statement(position)
        self.broken.append((position, len(self.text)))
        self._blank(position, len(self.text))
        self.closers += [position] * len(self._stack)
        return _NO_OFFSET

    def _finish(self) -> int:
        if self._statement_depth() < len(self._stack):
            return self._report_unclosed(len(self.text))
        self._end_statement(len(self.text))
        if self._stack:
            self._report_missing_brace(len(self.text))
        return _NO_OFFSET
