"""Error recovery: parses an invalid file statement by statement, so that each error is reported exactly once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

from archspec.language.syntax.lines import MAX_ERRORS, ScanResult
from archspec.language.syntax.machine import ArchSyntaxError, Parser, Token, UnexpectedTokenError
from archspec.language.syntax.messages import explain

_ITEMS = frozenset(("import", "export", "dim", "fn", "layer", "block", "model"))
_OPENERS = frozenset("([{")
_CLOSERS = frozenset(")]}")
_UNFINISHED = frozenset((",", "=", ":", "->", "+", "-", "*", "/", "//", "%", "**", "and", "or", "|>", "return"))
_LISTED = frozenset(("return", "require"))
_BODIED = frozenset(("fn", "layer", "block", "model", "if", "for"))


class Recovery:
    """The rest of a file without the statements that cannot be parsed."""

    def __init__(self, machine: Parser, tokens: Sequence[Token], found: ScanResult) -> None:
        self.faults: list[ArchSyntaxError] = []
        self.broken: list[tuple[int, int]] = []
        self._surplus = found.surplus
        self._heads = {end for _, end in found.broken}
        self._text = found.text
        self._blanked = found.blanked
        self._machine = machine
        self._tokens = tokens
        self._partner = _partners(tokens)
        self._dangling = False  # whether the last statement ends where something must follow
        self.file = machine.run(self._items(), "file")
        self.faults += self._surplus

    def _items(self) -> list[Token]:
        kept: list[Token] = []
        misplaced = False  # a surplus `}` can leave several statements outside any body
        ended: Token | None = None  # the `}` of the last definition
        for first, last in self._pieces(0, len(self._tokens)):
            begins = self._tokens[first].kind in _ITEMS
            sound = self._kept(first, last, "item", not begins and misplaced)
            misplaced = not begins and not sound
            if misplaced:
                self._merge_surplus(last, ended)
            elif begins:
                ended = self._tokens[last - 1] if self._tokens[last - 1].kind == "}" else None
            kept += sound
        return kept

    def _merge_surplus(self, last: int, ended: Token | None) -> None:
        """Drop the error of a surplus `}` after statements outside any body: it has the same cause.

        `ended` is the `}` before these statements, which is the one to remove.
        """
        start = self._tokens[last - 1].end
        end = self._tokens[last + 1].start if last + 1 < len(self._tokens) else len(self._text)
        blamed = [fault for fault in self._surplus if start <= fault.start < end]
        if not blamed or not self.faults:
            return
        self._surplus = [fault for fault in self._surplus if fault not in blamed]
        self.faults[-1].help = "check for an extra `}` above: statements go inside the braces of a definition"
        if ended is not None:
            message = "this `}` ends a definition, but statements follow it"
            self.faults[-1] = ArchSyntaxError(message, ended.start, ended.end, "remove it")
            self.broken.append((ended.start, start))

    def _pieces(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges of `_split` without the further lines of a statement that a line end broke.

        The caller handles each range before it takes the next.
        """
        broken: Token | None = None
        for start, end in self._split(first, last):
            token = self._tokens[start]
            if broken is not None and self._column(token) > self._column(broken):
                self.broken.append((token.start, self._tokens[end - 1].end))
                continue
            self._dangling = False
            yield start, end
            broken = token if self._dangling else None

    def _column(self, token: Token) -> int:
        return token.start - self._text.rfind("\n", 0, token.start)

    def _split(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the ranges of tokens between line ends outside braces."""
        pieces: list[tuple[int, int]] = []
        start = index = first
        while index < last:
            kind = self._tokens[index].kind
            if kind == "_NL":
                if start < index:
                    pieces.append((start, index))
                start = index + 1
            index = self._partner.get(index, index) + 1
        if start < last:
            pieces.append((start, last))
        return pieces

    def _kept(self, first: int, last: int, start: str, silent: bool = False) -> list[Token]:
        """Return the tokens of an item or statement that can be parsed; none if its header cannot."""
        tokens = self._tokens
        kind = tokens[first].kind
        head: list[Token] = []  # all tokens except the contents of braces
        bodies: list[tuple[int, int, int]] = []  # position in the head, first and last token
        index = first
        while index < last:
            head.append(tokens[index])
            partner = self._partner.get(index)
            if partner is not None and kind not in ("import", "export"):
                if kind in _BODIED or tokens[index + 1].kind == "_NL":
                    bodies.append((len(head), index + 1, partner))
                head.append(tokens[partner])
                index = partner
            index += 1
        sound = self._parses(head, () if bodies else tokens[last : last + 1], start, silent)
        kept: list[Token] = []
        done = 0
        for position, begin, end in bodies:
            kept += head[done:position]
            for piece in self._pieces(begin, end):
                kept += self._kept(*piece, "expect" if kind == "model" and start == "item" else "statement")
            done = position
        end = tokens[last - 1].end
        return [*kept, *head[done:], Token(end, end, "_NL", "\n")] if sound else []

    def _parses(self, tokens: list[Token], following: Sequence[Token], start: str, silent: bool) -> bool:
        """Whether `tokens` can be parsed as a `start`; reports an error if not."""
        error = self._error(tokens, start)
        if error is None:
            return True
        self.broken.append((tokens[0].start, tokens[-1].end))
        self._dangling = tokens[-1].kind in _UNFINISHED
        headless = tokens[0].start in self._heads  # the error in its head has been reported
        if not silent and not headless and len(self.faults) < MAX_ERRORS:  # more are not shown
            errors = self._each_step(tokens, following, start) or [self._fault(error, start, following)]
            self.faults += errors[:MAX_ERRORS]
        return False

    def _error(self, tokens: Sequence[Token], start: str) -> ArchSyntaxError | UnexpectedTokenError | None:
        try:
            self._machine.run(tokens, start)
        except (ArchSyntaxError, UnexpectedTokenError) as error:
            return error
        return None

    def _fault(
        self, error: ArchSyntaxError | UnexpectedTokenError, start: str, following: Sequence[Token]
    ) -> ArchSyntaxError:
        return error if isinstance(error, ArchSyntaxError) else explain(self._machine, error, start, following)

    def _next_on_line(self, last: Token, following: Token) -> Sequence[Token]:
        """Return the token after `last` if it is on the same line."""
        ends = bisect_left(self._blanked, last.end)
        return () if ends < len(self._blanked) and self._blanked[ends] < following.start else (following,)

    def _each_step(self, tokens: list[Token], following: Sequence[Token], start: str) -> list[ArchSyntaxError]:
        """Return the errors in the head and the steps of a chain, each parsed separately.

        So is each further value of a `return` or `require`, and of a statement that may be one because its head cannot
        be parsed.
        """
        depth = 0
        cuts = [0]
        listed = tokens[0].kind in _LISTED
        for index, token in enumerate(tokens):
            depth += (token.kind in _OPENERS) - (token.kind in _CLOSERS)
            if depth or not index:
                continue
            if token.kind == "|>":
                listed = listed or (len(cuts) == 1 and self._error(tokens[:index], start) is not None)
                cuts.append(index)
            elif token.kind == "," and listed and len(cuts) > 1 and _begins_value(tokens, index + 1):
                cuts.append(index)
        if start != "statement":
            return []
        found: list[ArchSyntaxError] = []
        for begin, end in pairwise((*cuts, len(tokens))):
            separator = begin > 0 and tokens[begin].kind == ","
            piece = "expr" if separator else "step" if begin else start
            error = self._error(tokens[begin + separator : end], piece)
            if error is not None and len(found) < MAX_ERRORS:
                after = self._next_on_line(tokens[end - 1], tokens[end]) if end < len(tokens) else following
                found.append(self._fault(error, piece, after))
        return found


def _begins_value(tokens: Sequence[Token], index: int) -> bool:
    """Whether the token after a comma, at `index`, may begin another value."""
    return index < len(tokens) and tokens[index].kind not in (",", "|>")


def _partners(tokens: Sequence[Token]) -> dict[int, int]:
    """Map the index of each `{` to that of its `}`."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind == "{":
            opened.append(index)
        elif token.kind == "}" and opened:
            found[opened.pop()] = index
    return found
