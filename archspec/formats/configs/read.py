"""Reading of untrusted JSON with the location of every value."""

from __future__ import annotations

import math
import re
from typing import NamedTuple, TypeAlias

from archspec.core.diagnostics import ArchError, Note, Source, Span, make_error

MAX_DEPTH = 16
MAX_VALUES = 50_000
MAX_NUMBER_LENGTH = 400

Plain: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, Member] | None"


class JsonValue(NamedTuple):
    """A value and its location."""

    span: Span
    plain: Plain

    def written(self) -> str:
        """Return the source of the value, on one line."""
        text = " ".join(self.span.source.text[self.span.start : self.span.end].split())
        return text if len(text) <= 60 else f"{text[:57]}..."

    def data(self) -> object:
        """Return the value as `json.loads` does."""
        if isinstance(self.plain, dict):
            return {name: member.value.data() for name, member in self.plain.items()}
        if isinstance(self.plain, list):
            return [item.data() for item in self.plain]
        return self.plain


class Member(NamedTuple):
    """A member of an object: the location of its name, and its value."""

    name: Span
    value: JsonValue


def read_json(source: Source) -> JsonValue:
    """Read the JSON value in a source. Raises ArchError (`syntax`, `duplicate-name`, `budget`)."""
    reader = _Reader(source)
    value = reader.value(0)
    reader.space()
    if reader.at < len(source.text):
        raise reader.wrong("unexpected text after the end of the JSON value")
    return value


_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?(?![0-9A-Za-z.+-])")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"[^\s,:\[\]{}]+")
_WORDS = {"null": None, "true": True, "false": False}


class _Reader:
    """A recursive-descent reader: the source and the current offset."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.at = 0
        self._values = 0

    def space(self) -> None:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def value(self, depth: int) -> JsonValue:
        self.space()
        start = self.at
        self._values += 1
        if self._values > MAX_VALUES:
            raise self.wrong(f"too many values: the limit is {MAX_VALUES:,}", code="budget")
        if depth > MAX_DEPTH:
            raise self.wrong(f"values are nested too deeply: the limit is {MAX_DEPTH} levels", code="budget")
        first = self.text[start : start + 1]
        if first == "{":
            plain = self._object(depth)
        elif first == "[":
            plain = self._list(depth)
        elif first == '"':
            plain = self._string()
        else:
            plain = self._scalar()
        return JsonValue(Span(self.source, start, self.at), plain)

    def wrong(self, message: str, *, code: str = "syntax", start: int | None = None) -> ArchError:
        """Return an error located at `start`, by default at the current offset."""
        at = min(self.at if start is None else start, max(len(self.text.rstrip()) - 1, 0))
        word = _WORD.match(self.text, at)
        return make_error(code, message, Span(self.source, at, max(word.end() if word else 0, at + 1)))

    def _object(self, depth: int) -> dict[str, Member]:
        opened, members = self.at, dict[str, Member]()
        self.at += 1
        while not self._closes("}", opened, bool(members)):
            start = self.at
            if not self.text.startswith('"', start):
                raise self.wrong("expected a member name in double quotes")
            name = self._string()
            span = Span(self.source, start, self.at)
            self.space()
            if not self.text.startswith(":", self.at):
                raise self.wrong(f"expected `:` after {name!r:.60}", start=start)
            self.at += 1
            if name in members:
                note = Note("first specified here", members[name].name)
                raise make_error("duplicate-name", f"member `{name}` is specified more than once", span, notes=(note,))
            members[name] = Member(span, self.value(depth + 1))
        return members

    def _list(self, depth: int) -> list[JsonValue]:
        opened, items = self.at, list[JsonValue]()
        self.at += 1
        while not self._closes("]", opened, bool(items)):
            items.append(self.value(depth + 1))
        return items

    def _closes(self, bracket: str, opened: int, has_items: bool) -> bool:
        """Advance to the next item, or past the closing bracket; return whether it was the bracket."""
        self.space()
        next = self.text[self.at : self.at + 1]
        if not next:
            raise self.wrong(f"unclosed `{self.text[opened]}`", start=opened)
        if next == bracket:
            self.at += 1
            return True
        if has_items:
            if next != ",":
                raise self.wrong(f"expected `,` or `{bracket}`")
            comma = self.at
            self.at += 1
            self.space()
            if self.text.startswith(bracket, self.at):
                raise self.wrong(f"trailing comma before `{bracket}`", start=comma)
        return False

    def _string(self) -> str:
        from json import loads

        found = _STRING.match(self.text, self.at)
        if found is None:
            raise self.wrong("unclosed string")
        try:
            text: str = loads(found[0])
        except ValueError:
            raise self.wrong("invalid escape sequence in this string") from None
        self.at = found.end()
        return text

    def _scalar(self) -> bool | int | float | None:
        found = _NUMBER.match(self.text, self.at)
        if found is not None:
            if len(found[0]) > MAX_NUMBER_LENGTH:
                raise self.wrong(f"number too long: the limit is {MAX_NUMBER_LENGTH} characters", code="budget")
            number = float(found[0]) if found[1] or found[2] else int(found[0])
            if number.__class__ is float and not math.isfinite(number):
                raise self.wrong("number too large to represent")
            self.at = found.end()
            return number
        word = _WORD.match(self.text, self.at)
        if word is None:
            raise self.wrong("expected a value")
        if word[0] not in _WORDS:
            raise self.wrong(f"invalid JSON value `{word[0][:60]}`")
        self.at = word.end()
        return _WORDS[word[0]]
