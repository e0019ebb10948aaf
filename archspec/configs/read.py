"""JSON with the place of every value, from files that nobody has checked."""

from __future__ import annotations

import math
import re
from typing import NamedTuple, TypeAlias

from archspec.source import ArchError, Note, Source, Span, fail

DEEPEST = 16
MOST_VALUES = 50_000
LONGEST_NUMBER = 400

Plain: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, Member] | None"


class JsonValue(NamedTuple):
    """A value and the characters it is written with."""

    span: Span
    plain: Plain

    def written(self) -> str:
        """The value as it is written, on one line."""
        text = " ".join(self.span.source.text[self.span.start : self.span.end].split())
        return text if len(text) <= 60 else f"{text[:57]}..."

    def data(self) -> object:
        """The value as `json.loads` gives it."""
        if isinstance(self.plain, dict):
            return {name: member.value.data() for name, member in self.plain.items()}
        if isinstance(self.plain, list):
            return [item.data() for item in self.plain]
        return self.plain


class Member(NamedTuple):
    """One member of an object: the place of its name, and its value."""

    name: Span
    value: JsonValue


def read_json(source: Source) -> JsonValue:
    """The value in a text. Raises ArchError: `syntax`, `duplicate-name`, `budget`."""
    reader = _Reader(source)
    value = reader.value(0)
    reader.space()
    if reader.at < len(source.text):
        raise reader.wrong("there is something after the end of the value")
    return value


_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?(?![0-9A-Za-z.+-])")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"[^\s,:\[\]{}]+")
_WORDS = {"null": None, "true": True, "false": False}


class _Reader:
    """Where reading has come to."""

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
        if self._values > MOST_VALUES:
            raise self.wrong(f"there are more than {MOST_VALUES:,} values", code="budget")
        if depth > DEEPEST:
            raise self.wrong(f"this is nested more than {DEEPEST} deep", code="budget")
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
        """An error at `start`, or where reading has come to."""
        at = min(self.at if start is None else start, max(len(self.text.rstrip()) - 1, 0))
        word = _WORD.match(self.text, at)
        return fail(code, message, Span(self.source, at, max(word.end() if word else 0, at + 1)))

    def _object(self, depth: int) -> dict[str, Member]:
        opened, members = self.at, dict[str, Member]()
        self.at += 1
        while not self._closes("}", opened, bool(members)):
            start = self.at
            if self.text[start : start + 1] != '"':
                raise self.wrong("the name of a member, in quotes, belongs here")
            name = self._string()
            span = Span(self.source, start, self.at)
            self.space()
            if self.text[self.at : self.at + 1] != ":":
                raise self.wrong(f"`:` and a value belong after {name!r:.60}", start=start)
            self.at += 1
            if name in members:
                note = Note("it was first given here", members[name].name)
                raise fail("duplicate-name", f"the member `{name}` is given twice", span, notes=(note,))
            members[name] = Member(span, self.value(depth + 1))
        return members

    def _list(self, depth: int) -> list[JsonValue]:
        opened, items = self.at, list[JsonValue]()
        self.at += 1
        while not self._closes("]", opened, bool(items)):
            items.append(self.value(depth + 1))
        return items

    def _closes(self, bracket: str, opened: int, has_items: bool) -> bool:
        """Goes on to the next item; whether there is none, and the bracket is behind."""
        self.space()
        next = self.text[self.at : self.at + 1]
        if not next:
            raise self.wrong(f"`{self.text[opened]}` is never closed", start=opened)
        if next == bracket:
            self.at += 1
            return True
        if has_items:
            if next != ",":
                raise self.wrong(f"`,` or `{bracket}` belongs here")
            comma = self.at
            self.at += 1
            self.space()
            if self.text[self.at : self.at + 1] == bracket:
                raise self.wrong(f"nothing follows this comma before `{bracket}`", start=comma)
        return False

    def _string(self) -> str:
        from json import loads

        found = _STRING.match(self.text, self.at)
        if found is None:
            raise self.wrong("this string does not end on its line")
        try:
            text: str = loads(found[0])
        except ValueError:
            raise self.wrong("this string has an escape that JSON does not know") from None
        self.at = found.end()
        return text

    def _scalar(self) -> bool | int | float | None:
        found = _NUMBER.match(self.text, self.at)
        if found is not None:
            if len(found[0]) > LONGEST_NUMBER:
                raise self.wrong(f"this number has more than {LONGEST_NUMBER} characters", code="budget")
            number = float(found[0]) if found[1] or found[2] else int(found[0])
            if number.__class__ is float and not math.isfinite(number):
                raise self.wrong("this number is too large")
            self.at = found.end()
            return number
        word = _WORD.match(self.text, self.at)
        if word is None:
            raise self.wrong("a value belongs here")
        if word[0] not in _WORDS:
            raise self.wrong(f"`{word[0][:60]}` is no value of JSON")
        self.at = word.end()
        return _WORDS[word[0]]
