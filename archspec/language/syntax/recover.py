"""Error recovery: parses an invalid file statement by statement, so that each error is reported exactly once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

from archspec.language.syntax.lines import MAX_ERRORS, ScanResult
from archspec.language.syntax.machine import ArchSyntaxError, Parser, Token, UnexpectedTokenError
from archspec.language.syntax.messages import explain

_ITEM_KEYWORDS = frozenset(("import", "export", "dim", "fn", "layer", "block", "model"))
_OPENERS = frozenset("([{")
_CLOSERS = frozenset(")]}")
_UNFINISHED = frozenset((",", "=", ":", "->", "+", "-", "*", "/", "//", "%", "**", "and", "or", "|>", "return"))
_LIST_STATEMENTS = frozenset(("return", "require"))
_WITH_BODY = frozenset(("fn", "layer", "block", "model", "if", "for"))


class Recovery:
    """The tree of a file without the statements that cannot be parsed, and their errors."""

    def __init__(self, machine: Parser, tokens: Sequence[Token], scanned: ScanResult) -> None:
        self.errors: list[ArchSyntaxError] = []
        self.broken: list[tuple[int, int]] = []
        self._surplus = scanned.surplus
        self._reported_headers = {end for _, end in scanned.broken}
        self._text = scanned.text
        self._blanked = scanned.blanked
        self._machine = machine
        self._tokens = tokens
        self._closing_index = _match_braces(tokens)
        self._is_dangling = False  # whether the last statement ends with a token that requires another
        self.file = machine.run(self._parsable_items(), "file")
        self.errors += self._surplus

    def _parsable_items(self) -> list[Token]:
        parsable: list[Token] = []
        misplaced = False  # a surplus `}` can leave several statements outside any body
        closing_brace: Token | None = None  # the `}` of the last definition
        for first, last in self._statement_ranges(0, len(self._tokens)):
            begins_item = self._tokens[first].kind in _ITEM_KEYWORDS
            item_tokens = self._parsable_tokens(first, last, "item", not begins_item and misplaced)
            misplaced = not begins_item and not item_tokens
            if misplaced:
                self._merge_surplus(last, closing_brace)
            elif begins_item:
                closing_brace = self._tokens[last - 1] if self._tokens[last - 1].kind == "}" else None
            parsable += item_tokens
        return parsable

    def _merge_surplus(self, last: int, closing_brace: Token | None) -> None:
        """Drop the error of a surplus `}` after statements outside any body: it has the same cause.

        `closing_brace` is the `}` before these statements, which must be removed.
        """
        start = self._tokens[last - 1].end
        end = self._tokens[last + 1].start if last + 1 < len(self._tokens) else len(self._text)
        consequences = [error for error in self._surplus if start <= error.start < end]
        if not consequences or not self.errors:
            return
        self._surplus = [error for error in self._surplus if error not in consequences]
        self.errors[-1].help = "check for an extra `}` above: statements go inside the braces of a definition"
        if closing_brace is not None:
            message = "this `}` ends a definition, but statements follow it"
            self.errors[-1] = ArchSyntaxError(message, closing_brace.start, closing_brace.end, "remove it")
            self.broken.append((closing_brace.start, start))

    def _statement_ranges(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges of `_line_ranges` without the continuation lines of a statement that a line end broke.

        The caller handles each range before it requests the next.
        """
        dangling: Token | None = None
        for start, end in self._line_ranges(first, last):
            token = self._tokens[start]
            if dangling is not None and self._column(token) > self._column(dangling):
                self.broken.append((token.start, self._tokens[end - 1].end))
                continue
            self._is_dangling = False
            yield start, end
            dangling = token if self._is_dangling else None

    def _column(self, token: Token) -> int:
        return token.start - self._text.rfind("\n", 0, token.start)

    def _line_ranges(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the ranges of tokens between line ends outside braces."""
        pieces: list[tuple[int, int]] = []
        start = index = first
        while index < last:
            kind = self._tokens[index].kind
            if kind == "_NL":
                if start < index:
                    pieces.append((start, index))
                start = index + 1
            index = self._closing_index.get(index, index) + 1
        if start < last:
            pieces.append((start, last))
        return pieces

    def _parsable_tokens(self, first: int, last: int, start: str, silent: bool = False) -> list[Token]:
        """Return the parsable tokens of an item or statement; none if its header cannot be parsed."""
        tokens = self._tokens
        kind = tokens[first].kind
        header: list[Token] = []  # all tokens except the contents of braces
        bodies: list[tuple[int, int, int]] = []  # position in the header, first and last token
        index = first
        while index < last:
            header.append(tokens[index])
            closing = self._closing_index.get(index)
            if closing is not None and kind not in ("import", "export"):
                if kind in _WITH_BODY or tokens[index + 1].kind == "_NL":
                    bodies.append((len(header), index + 1, closing))
                header.append(tokens[closing])
                index = closing
            index += 1
        is_parsable = self._try_parse(header, () if bodies else tokens[last : last + 1], start, silent)
        parsable: list[Token] = []
        copied = 0
        for position, begin, end in bodies:
            parsable += header[copied:position]
            for span in self._statement_ranges(begin, end):
                parsable += self._parsable_tokens(
                    *span, "expect" if kind == "model" and start == "item" else "statement"
                )
            copied = position
        end = tokens[last - 1].end
        return [*parsable, *header[copied:], Token(end, end, "_NL", "\n")] if is_parsable else []

    def _try_parse(self, tokens: list[Token], following: Sequence[Token], start: str, silent: bool) -> bool:
        """Whether `tokens` can be parsed as a `start`; reports an error if not."""
        error = self._find_error(tokens, start)
        if error is None:
            return True
        self.broken.append((tokens[0].start, tokens[-1].end))
        self._is_dangling = tokens[-1].kind in _UNFINISHED
        is_reported = tokens[0].start in self._reported_headers  # the error in its header has been reported
        if not silent and not is_reported and len(self.errors) < MAX_ERRORS:
            errors = self._step_errors(tokens, following, start) or [self._to_syntax_error(error, start, following)]
            self.errors += errors[:MAX_ERRORS]
        return False

    def _find_error(self, tokens: Sequence[Token], start: str) -> ArchSyntaxError | UnexpectedTokenError | None:
        try:
            self._machine.run(tokens, start)
        except (ArchSyntaxError, UnexpectedTokenError) as error:
            return error
        return None

    def _to_syntax_error(
        self, error: ArchSyntaxError | UnexpectedTokenError, start: str, following: Sequence[Token]
    ) -> ArchSyntaxError:
        return error if isinstance(error, ArchSyntaxError) else explain(self._machine, error, start, following)

    def _next_on_line(self, last: Token, following: Token) -> Sequence[Token]:
        """Return the token after `last` if it is on the same line."""
        ends = bisect_left(self._blanked, last.end)
        return () if ends < len(self._blanked) and self._blanked[ends] < following.start else (following,)

    def _step_errors(self, tokens: list[Token], following: Sequence[Token], start: str) -> list[ArchSyntaxError]:
        """Return the errors in the head and the steps of a chain, each parsed separately.

        The values after the first of a `return` or `require` are parsed separately, too, and also the values of a chain
        whose head cannot be parsed, because its statement may be a `return` or `require`.
        """
        depth = 0
        cuts = [0]
        has_values = tokens[0].kind in _LIST_STATEMENTS
        for index, token in enumerate(tokens):
            depth += (token.kind in _OPENERS) - (token.kind in _CLOSERS)
            if depth or not index:
                continue
            if token.kind == "|>":
                has_values = has_values or (len(cuts) == 1 and self._find_error(tokens[:index], start) is not None)
                cuts.append(index)
            elif token.kind == "," and has_values and len(cuts) > 1 and _begins_value(tokens, index + 1):
                cuts.append(index)
        if start != "statement":
            return []
        errors: list[ArchSyntaxError] = []
        for begin, end in pairwise((*cuts, len(tokens))):
            separator = begin > 0 and tokens[begin].kind == ","
            symbol = "expr" if separator else "step" if begin else start
            error = self._find_error(tokens[begin + separator : end], symbol)
            if error is not None and len(errors) < MAX_ERRORS:
                after = self._next_on_line(tokens[end - 1], tokens[end]) if end < len(tokens) else following
                errors.append(self._to_syntax_error(error, symbol, after))
        return errors


def _begins_value(tokens: Sequence[Token], index: int) -> bool:
    """Whether the token after a comma, at `index`, may begin another value."""
    return index < len(tokens) and tokens[index].kind not in (",", "|>")


def _match_braces(tokens: Sequence[Token]) -> dict[int, int]:
    """Map the index of each `{` to the index of its `}`."""
    result: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind == "{":
            opened.append(index)
        elif token.kind == "}" and opened:
            result[opened.pop()] = index
    return result
