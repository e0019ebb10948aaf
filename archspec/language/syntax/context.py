"""The context of a syntax error, and the advice that a rule gives on it."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.core.record import Record
from archspec.language.syntax.machine import Token

ENDS = ("_NL", "$END")
"""The kinds of tokens that end a statement."""


class ErrorContext(Record):
    """The context of an error: the tokens before it, the one `found`, those after it, and the kinds `accepted`."""

    before: Sequence[Token]
    found: Token
    after: Sequence[Token]
    accepted: set[str]
    start: str
    keywords: frozenset[str]

    @property
    def previous(self) -> Token:
        return self.before[-1] if self.before else Token(self.found.start, self.found.start, "", "")

    @property
    def first(self) -> Token:
        return self.before[0] if self.before else self.found

    @property
    def next(self) -> Token:
        return self.after[0] if self.after else Token(self.found.end, self.found.end, "$END", "")

    @property
    def at_end(self) -> bool:
        return self.found.kind in ENDS

    @property
    def wants_value(self) -> bool:
        """Whether an expression can begin here."""
        return {"INT", "["} <= self.accepted

    @property
    def has_value(self) -> bool:
        """Whether an expression can end here."""
        return "+" in self.accepted and not self.wants_value

    @property
    def joined(self) -> str:
        """The unexpected token joined to the previous one, if they are adjacent."""
        return self.previous.text + self.found.text if self.previous.end == self.found.start else ""


class Advice(Record):
    """A more specific message, help or span from a rule; None keeps the general one."""

    message: str | None = None
    help: str | None = None
    span: tuple[int, int] | None = None
