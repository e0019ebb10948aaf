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
"""The number of errors after which the rest of a file is skipped."""

_NONE = -1
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
_CONTINUES = re.compile(r"\|>|->|\(|\{|else\b")
_ELSE = re.compile(r"else\b")
_ITEM = re.compile(r"(?:import|export)\s+[\w\"]|(?:fn|layer|block)\s+\w+\s*\(|model\s*\"|dim\s+\w")
_STATEMENT = re.compile(r"(?:return|require|tie|role|expect)\b")
_IMPORT = re.compile(r"(?:import|export)\b")
_HEAD = re.compile(r"(?:if|for|else|elif|while|fn|layer|block|model|def|class)\b")
_LAST = re.compile(r"[ \t\r\f]*(?:\#|\n|\Z)")
_INDENT = re.compile(r"[ \t\r\f]*")
_AFTER = re.compile(r"[ \t\r\f]*(?:\#|//|\n|\Z|\}|(?:else|elif)\b)")
_SLASHES = re.compile(r"(?://[^\n]*\s*)+|/\*(?s:.*?)(?:\*/|\Z)")
_OPENERS = {")": "(", "]": "[", "}": "{"}


class ScanResult(Record):
    """The result of a scan.

    In `text`, comments, `broken` ranges and the line ends inside statements are replaced by spaces; `blanked` are the
    offsets of those line ends. `faults` are the errors. `closers` are the offsets at which a `}` is missing. `surplus`
    are the errors for unmatched `}`.
    """

    text: str
    comments: list[Comment]
    faults: list[ArchSyntaxError]
    broken: list[tuple[int, int]]
    closers: list[int]
    surplus: list[ArchSyntaxError]
    blanked: list[int]


class _OpenBracket(Record):
    """An open bracket, in the statement that starts at `statement`.

    Line ends are not significant if `lists` is set, as it is for all brackets except the braces of bodies.
    """

    bracket: str
    offset: int
    statement: int
    lists: bool


def begins_statement(text: str, start: int = 0) -> bool:
    """Whether a line in brackets that begins at `start` is taken for a statement after an unclosed bracket."""
    return bool(_STATEMENT.match(text, start) or _ITEM.match(text, start))


def scan(text: str) -> ScanResult:
    """Scan `text`; after an unclosed bracket, resume at the following line."""
    walk = _LineScanner(text)
    position = 0
    while position >= 0:
        position = walk.resume(position)
    return ScanResult(
        "".join(walk.kept), walk.comments, walk.faults, walk.broken, walk.closers, walk.surplus, walk.blanked
    )


class _LineScanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.kept = list(text)
        if text.startswith("\ufeff"):  # a byte order mark
            self.kept[0] = " "
        self.comments: list[Comment] = []
        self.faults: list[ArchSyntaxError] = []
        self.broken: list[tuple[int, int]] = []
        self.closers: list[int] = []
        self.surplus: list[ArchSyntaxError] = []
        self.blanked: list[int] = []
        self._stack: list[_OpenBracket] = []
        self._first = 0  # offset of the first token of the line
        self._statement = _NONE  # offset of the current statement, or _NONE before its first token
        self._doubtful = False  # whether a `{` that does not follow a header was taken for that of a body
        self._damaged = _NONE  # the same if the statement has an error, else _NONE

    def resume(self, position: int) -> int:
        """Scan from `position`. Return where to resume after an error, or _NONE at the end of the text."""
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
                back = self._line(lines, start)
                if back is not None:
                    return back
                lines = []
            if self._statement < 0:
                self._statement = start
            back = None
            if kind == "bracket":
                back = self._open(match[0], start) if match[0] in "([{" else self._close(match[0], start)
            elif kind == "quote":
                self._fault("unclosed string", start, match.end(), "close the string on the line where it begins")
            elif kind == "text" and self._statement == start and text.startswith(("//", "/*"), start):
                back = self._slashes(start)
            if back is not None:
                return back
            if len(self.faults) + len(self.surplus) >= MAX_ERRORS:
                return self._stop(match.end())
        return self._finish()

    def _line(self, lines: list[int], start: int) -> int | None:
        """Handle the first token of a line, at `start`."""
        inside = bool(self._stack) and self._stack[-1].lists
        if inside and begins_statement(self.text, start):
            return self._unclosed(start)
        goes_on = _CONTINUES if self._statement >= 0 else _ELSE
        if inside or goes_on.match(self.text, start):
            for offset in lines:
                self.kept[offset] = " "
            self.blanked += lines
            return None
        self._end(lines[0])
        item = self._stack and _ITEM.match(self.text, start)
        if item and self._column(start) <= self._column(
            self._stack[-1].statement
        ):  # if it is indented further, it is misplaced
            self._missing(start)
        return None

    def _open(self, bracket: str, offset: int) -> int | None:
        inside = bool(self._stack) and self._stack[-1].lists
        if bracket == "{" and inside and _LAST.match(self.text, offset + 1):
            return self._unclosed(offset)
        lists = inside or bracket != "{" or not self._is_body(offset)
        self._stack.append(_OpenBracket(bracket, offset, self._statement, lists))
        if len(self._stack) > MAX_DEPTH:
            return self._too_deep(offset)
        if not lists:
            self._end(offset)
        return None

    def _is_body(self, offset: int) -> bool:
        """Whether the `{` at `offset` begins a body, not an import list or a misplaced brace."""
        if not self._stack:
            return not _IMPORT.match(self.text, self._statement)
        if _HEAD.match(self.text, self._statement):
            return True
        last = bool(_LAST.match(self.text, offset + 1))
        self._doubtful = self._doubtful or last
        return last

    def _close(self, bracket: str, offset: int) -> int | None:
        wanted = _OPENERS[bracket]
        depth = self._statement_depth()
        if bracket == "}" and not (len(self._stack) > depth and self._stack[-1].bracket == "{"):
            if self._is_misplaced(offset):
                self._fault("unexpected `}` inside a statement", offset, offset + 1)
                self.kept[offset] = " "
                return None
            if len(self._stack) > depth:
                return self._unclosed(offset)
        if bracket == "}" and self._stack:
            if not self._stack.pop().lists:
                self._end(offset)
            return None
        if depth == len(self._stack):
            message = f"unmatched `{bracket}`"
            if bracket == "}":
                self.surplus.append(ArchSyntaxError(message, offset, offset + 1))
                self.kept[offset] = " "
                self._statement = _NONE if self._statement == offset else self._statement
            else:
                self._fault(message, offset, offset + 1)
            return None
        index = next((i for i in range(len(self._stack) - 1, depth - 1, -1) if self._stack[i].bracket == wanted), None)
        opened = self._stack[-1]
        if index is None:
            self._fault(
                f"mismatched brackets: `{opened.bracket}` is closed by `{bracket}`", opened.offset, opened.offset + 1
            )
        elif index < len(self._stack) - 1:
            self._fault(f"unclosed `{opened.bracket}` before `{bracket}`", opened.offset, opened.offset + 1)
        del self._stack[index if index is not None else -1 :]
        return None

    def _is_misplaced(self, offset: int) -> bool:
        """Whether a `}` is inside a statement, without a `{` before it on its line."""
        depth = self._statement_depth()
        if self._statement < 0 or self._first == offset or _AFTER.match(self.text, offset + 1):
            return False
        return depth == 0 or self._stack[depth - 1].offset < self._first

    def _column(self, offset: int) -> int:
        """Return the indentation of the line at `offset`."""
        line = self.text.rfind("\n", 0, offset) + 1
        return _INDENT.match(self.text, line).end() - line  # pyright: ignore[reportOptionalMemberAccess]

    def _line_end(self, start: int, end: int) -> int:
        """Return the offset of the first line end between two offsets; `end` if there is none."""
        found = self.text.find("\n", start, end)
        return end if found < 0 else found

    def _statement_depth(self) -> int:
        """Return the number of open braces of bodies around the current statement."""
        return next((i for i, opened in enumerate(self._stack) if opened.lists), len(self._stack))

    def _unclosed(self, offset: int) -> int:
        """Report the first open bracket of the current statement, which must have been closed before `offset`."""
        opened = self._stack[self._statement_depth()]
        back = self._abandon(opened, offset)
        self._fault(f"unclosed `{opened.bracket}`", opened.offset, opened.offset + 1)
        return back

    def _abandon(self, opened: _OpenBracket, offset: int) -> int:
        """Discard results after the line of `opened`, or after `offset` if earlier; return where to resume."""
        del self._stack[self._statement_depth() :]
        end = self._line_end(opened.offset, offset)
        while self.blanked and self.blanked[-1] >= end:
            self.kept[self.blanked.pop()] = "\n"
        while self.comments and self.comments[-1].start >= end:
            self.comments.pop()
        self.faults = [fault for fault in self.faults if fault.start < end]
        self._statement = opened.statement
        reported = any(fault.start >= opened.statement for fault in self.faults)
        self._damaged = opened.statement if reported else _NONE
        return end

    def _too_deep(self, offset: int) -> int:
        message = f"brackets are nested too deeply: the limit is {MAX_DEPTH} levels"
        depth = self._statement_depth()
        if depth < len(self._stack):
            end = self._line_end(offset, len(self.text))
            self._abandon(self._stack[depth], end)
            self._fault(message, offset, offset + 1, code="budget")
            return end
        self._fault(message, offset, offset + 1, code="budget")
        self._stack.pop()
        return self._stop(offset)

    def _missing(self, offset: int) -> None:
        opened = self._stack[-1]
        at_end = offset == len(self.text)
        where = "at the end of the file" if at_end else f"before line {self.text.count(chr(10), 0, offset) + 1}"
        message, help = "unclosed `{`", f"add `}}` {where}"
        if not self._doubtful:  # otherwise the `{` without a header will be reported, and is the reason
            self.faults.append(ArchSyntaxError(message, opened.offset, opened.offset + 1, help))
        self._doubtful = False
        self.closers += [offset] * len(self._stack)
        self._stack.clear()

    def _slashes(self, start: int) -> int:
        found = _SLASHES.match(self.text, start)
        assert found
        message = f"`{found[0][:2]}` does not begin a comment"
        self.faults.append(ArchSyntaxError(message, start, start + 2, "use `#` for comments"))
        end = start + len(found[0].rstrip())
        self._blank(start, end)
        self._statement = _NONE
        return end

    def _fault(self, message: str, start: int, end: int, help: str | None = None, code: str = "syntax") -> None:
        """Report an error that makes the current statement unparsable; only the first per statement is kept."""
        if self._damaged < 0:
            self.faults.append(ArchSyntaxError(message, start, end, help, code))
            self._damaged = self._statement

    def _end(self, offset: int) -> None:
        """End a statement, or the header of one, at `offset`."""
        if self._damaged >= 0:
            self.broken.append((self._damaged, offset))
            self._blank(self._damaged, offset)
        self._statement = self._damaged = _NONE

    def _blank(self, start: int, end: int) -> None:
        self.kept[start:end] = [c if c == "\n" else " " for c in self.kept[start:end]]

    def _stop(self, position: int) -> int:
        """Skip the rest of the text from `position`."""
        self._end(position)
        self.broken.append((position, len(self.text)))
        self._blank(position, len(self.text))
        self.closers += [position] * len(self._stack)
        return _NONE

    def _finish(self) -> int:
        if self._statement_depth() < len(self._stack):
            return self._unclosed(len(self.text))
        self._end(len(self.text))
        if self._stack:
            self._missing(len(self.text))
        return _NONE
