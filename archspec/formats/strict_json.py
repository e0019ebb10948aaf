"""Reading untrusted JSON: as data, or with the location of every value. Errors have their location in both cases."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from archspec.core.diagnostics import ArchError, Note, Source, Span, make_error

if TYPE_CHECKING:
    from json import JSONDecoder

MAX_DEPTH = 16
MAX_VALUES = 500_000
"""Maximum number of values. Lists of layers that are not quantized have up to 100,000 in 4 MiB."""

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
    return _Reader(source).read()


def read_data(source: Source) -> object:
    """Return the data of the JSON value in a source, without locations and thus fast. Raises ArchError.

    NaN and infinities are errors. The caller limits the size; nesting is limited as in `json.loads`.
    """
    from json import JSONDecoder

    decoder = JSONDecoder(object_pairs_hook=_build_object, parse_constant=_reject_constant)
    try:
        return decoder.decode(source.text)
    except (ValueError, RecursionError):
        _Reader(source, decoder).read()  # raises the error with its location
        raise


def _build_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("duplicate name")
    return members


def _reject_constant(word: str) -> object:
    raise ValueError(word)


_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?(?![0-9A-Za-z.+-])")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"[^\s,:\[\]{}]+")
_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""Floats that JSON does not have, but `json.dumps` writes."""

_FLOAT_TAG = "__float__"
"""Name of the only member of an object with which `transformers` 5 writes one of these floats."""

_WORDS = {"null": None, "true": True, "false": False}


def _decode_float(members: dict[str, Member]) -> float | dict[str, Member]:
    """Return the float that an object stands for, or the object."""
    tagged = members[_FLOAT_TAG].value.plain if members.keys() == {_FLOAT_TAG} else None
    return _FLOATS.get(tagged, members) if isinstance(tagged, str) else members


class _Reader:
    """A recursive-descent reader: the source and the current offset.

    With a `decoder`, whose error it locates, it skips the objects and lists that the decoder accepts.
    """

    def __init__(self, source: Source, decoder: JSONDecoder | None = None) -> None:
        self.source = source
        self.text = source.text
        self.offset = 0
        self._decoder = decoder
        self._words = _WORDS if decoder is not None else {**_WORDS, **_FLOATS}
        self._values = 0

    def read(self) -> JsonValue:
        """Read the only value of the source."""
        value = self.value(0)
        self.skip_space()
        if self.offset < len(self.text):
            raise self.syntax_error("unexpected text after the end of the JSON value")
        return value

    def skip_space(self) -> None:
        match = _SPACE.match(self.text, self.offset)
        self.offset = match.end() if match else self.offset

    def value(self, depth: int) -> JsonValue:
        self.skip_space()
        start = self.offset
        self._values += 1
        if self._values > MAX_VALUES:
            if self._decoder is not None:
                raise self.syntax_error("syntax error or duplicate name in this value or after it")
            raise self.syntax_error(f"too many values: the limit is {MAX_VALUES:,}", code="budget")
        if depth > MAX_DEPTH:
            raise self.syntax_error(f"values are nested too deeply: the limit is {MAX_DEPTH} levels", code="budget")
        first = self.text[start : start + 1]
        if self._decoder is not None and depth and first in ("{", "[") and self._skip(self._decoder):
            plain = None
        elif first == "{":
            plain = _decode_float(self._object(depth))
        elif first == "[":
            plain = self._list(depth)
        elif first == '"':
            plain = self._string()
        else:
            plain = self._scalar()
        return JsonValue(Span(self.source, start, self.offset), plain)

    def syntax_error(self, message: str, *, code: str = "syntax", start: int | None = None) -> ArchError:
        """Return the error to raise, located at `start` (default: the current offset)."""
        location = min(self.offset if start is None else start, max(len(self.text.rstrip()) - 1, 0))
        word = _WORD.match(self.text, location)
        end = max(word.end() if word else 0, location + 1)
        return make_error(code, message, Span(self.source, location, end))

    def _skip(self, decoder: JSONDecoder) -> bool:
        """Advance past the next value if the decoder accepts it."""
        try:
            _, self.offset = decoder.raw_decode(self.text, self.offset)
        except (ValueError, RecursionError):
            return False
        return True

    def _object(self, depth: int) -> dict[str, Member]:
        opening, members = self.offset, dict[str, Member]()
        self.offset += 1
        while not self._closes("}", opening, bool(members)):
            start = self.offset
            if not self.text.startswith('"', start):
                raise self.syntax_error("expected a member name in double quotes")
            name = self._string()
            span = Span(self.source, start, self.offset)
            self.skip_space()
            if not self.text.startswith(":", self.offset):
                raise self.syntax_error(f"expected `:` after {name!r:.60}", start=start)
            self.offset += 1
            if name in members:
                note = Note("first specified here", members[name].name)
                raise make_error("duplicate-name", f"member `{name}` is specified more than once", span, notes=(note,))
            members[name] = Member(span, self.value(depth + 1))
        return members

    def _list(self, depth: int) -> list[JsonValue]:
        opening, items = self.offset, list[JsonValue]()
        self.offset += 1
        while not self._closes("]", opening, bool(items)):
            items.append(self.value(depth + 1))
        return items

    def _closes(self, bracket: str, opening: int, has_items: bool) -> bool:
        """Advance to the next item or past the closing bracket; return whether it was the bracket."""
        self.skip_space()
        next = self.text[self.offset : self.offset + 1]
        if not next:
            raise self.syntax_error(f"unclosed `{self.text[opening]}`", start=opening)
        if next == bracket:
            self.offset += 1
            return True
        if has_items:
            if next != ",":
                raise self.syntax_error(f"expected `,` or `{bracket}`")
            comma = self.offset
            self.offset += 1
            self.skip_space()
            if self.text.startswith(bracket, self.offset):
                raise self.syntax_error(f"trailing comma before `{bracket}`", start=comma)
        return False

    def _string(self) -> str:
        from json import loads

        match = _STRING.match(self.text, self.offset)
        if match is None:
            raise self.syntax_error("unclosed string")
        try:
            text: str = loads(match[0])
        except ValueError:
            raise self.syntax_error("invalid escape sequence in this string") from None
        self.offset = match.end()
        return text

    def _scalar(self) -> bool | int | float | None:
        match = _NUMBER.match(self.text, self.offset)
        if match is not None:
            if len(match[0]) > MAX_NUMBER_LENGTH:
                raise self.syntax_error(f"number too long: the limit is {MAX_NUMBER_LENGTH} characters", code="budget")
            number = float(match[0]) if match[1] or match[2] else int(match[0])
            if number.__class__ is float and not math.isfinite(number):
                raise self.syntax_error("number too large to represent")
            self.offset = match.end()
            return number
        word = _WORD.match(self.text, self.offset)
        if word is None:
            raise self.syntax_error("expected a value")
        if word[0] not in self._words:
            raise self.syntax_error(f"invalid JSON value `{word[0][:60]}`")
        self.offset = word.end()
        return self._words[word[0]]
