"""YAML as mappings, lists and texts with locations, without types, tags or references, and thus without expansion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from archspec.core.diagnostics import Note, Source, Span, make_error

if TYPE_CHECKING:
    from yaml import Event

MAX_NODES = 20_000
MAX_DEPTH = 8


class Text(NamedTuple):
    """A scalar, verbatim; `span` includes its quotes."""

    span: Span
    text: str

    def part(self, start: int, end: int) -> Span:
        """Return the location of characters `start` to `end`; of the full text if it is escaped or on several lines."""
        source, first, end_offset = self.span
        raw = source.text[first:end_offset]
        for quote_width in (0, 1):
            if raw[quote_width : len(raw) - quote_width] == self.text:
                return Span(source, first + quote_width + start, first + quote_width + end)
        return self.span


class Items(NamedTuple):
    """A list."""

    span: Span
    items: list[Node]


class Mapping(NamedTuple):
    """A mapping from keys to their locations and values."""

    span: Span
    entries: dict[str, tuple[Span, Node]]

    def get(self, key: str) -> Node | None:
        """Return the value of a key; None if the key is missing."""
        return self.entries[key][1] if key in self.entries else None


Node: TypeAlias = Text | Items | Mapping


def read_nodes(source: Source) -> Node:
    """Parse a document. Raises ArchError if it is not YAML, or not plain data."""
    import yaml

    events = cast("Iterator[Event]", cast("Any", yaml).parse(source.text, Loader=yaml.SafeLoader))
    reader = _Reader(source, events)
    try:
        return reader.read_document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if mark is not None and mark.index >= len(source.text.rstrip()) and error.context_mark is not None:
            mark = error.context_mark  # an unclosed construct is reported where it opens
        offset = mark.index if mark is not None else 0
        description = " ".join(part for part in (error.context, error.problem) if part)
        help = _QUOTES if "alias" in description or "tag" in description or "%" in description else None
        raise make_error("syntax", f"invalid YAML: {description}", reader.point(offset), help=help) from None
    except yaml.reader.ReaderError as error:
        offset = error.position
        raise make_error("syntax", "this character is not allowed in YAML", reader.point(offset)) from None
    except (ValueError, OverflowError):  # an escape beyond Unicode, an invalid version number
        raise make_error("syntax", "invalid YAML: a number is out of range", reader.point(reader.last)) from None


_QUOTES = "quote text that begins with `*`, `!`, `&`, `%` or `@`"


class _Reader:
    """Reader of nodes from events; `last` is the end offset of the last event."""

    def __init__(self, source: Source, events: Iterator[Event]) -> None:
        self.source = source
        self.last = 0
        self._events = events
        self._nodes = 0

    def point(self, offset: int) -> Span:
        offset = min(offset, len(self.source.text))
        return Span(self.source, offset, offset + 1)

    def read_document(self) -> Node:
        """Read the only document."""
        from yaml import StreamEndEvent

        self._next()  # the beginning of the stream
        if isinstance(self._next(), StreamEndEvent):
            raise make_error("syntax", f"{self.source.label} is empty", self.point(0))
        root = self._read_node(self._next(), 0)
        self._next()  # the end of the document
        event = self._next()
        if not isinstance(event, StreamEndEvent):
            raise make_error("syntax", "expected a single YAML document", self._span(event))
        return root

    def _next(self) -> Event:
        event = next(self._events)
        self.last = event.end_mark.index
        return event

    def _span(self, event: Event) -> Span:
        start = event.start_mark.index
        return Span(self.source, start, max(event.end_mark.index, start + 1))

    def _read_node(self, event: Event, depth: int, *, is_key: bool = False) -> Node:
        """Read the node that begins with an event."""
        from yaml import AliasEvent, ScalarEvent, SequenceEndEvent, SequenceStartEvent

        span = self._span(event)
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None) or getattr(event, "tag", None):
            raise make_error("syntax", "YAML anchors, aliases and tags are not supported", span, help=_QUOTES)
        is_scalar = isinstance(event, ScalarEvent)
        if not is_scalar and depth >= MAX_DEPTH:
            raise make_error("budget", f"nesting is too deep: the limit is {MAX_DEPTH}", span)
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise make_error("budget", f"too many entries: the limit is {MAX_NODES:,}", span)
        if is_scalar:
            return Text(span, event.value)
        if is_key:
            raise make_error("wrong-kind", "expected a scalar key", span)
        if not isinstance(event, SequenceStartEvent):
            return Mapping(span, self._read_entries(depth + 1))
        items: list[Node] = []
        while not isinstance(event := self._next(), SequenceEndEvent):
            items.append(self._read_node(event, depth + 1))
        return Items(span, items)

    def _read_entries(self, depth: int) -> dict[str, tuple[Span, Node]]:
        from yaml import MappingEndEvent

        entries: dict[str, tuple[Span, Node]] = {}
        while not isinstance(event := self._next(), MappingEndEvent):
            key = self._read_node(event, depth, is_key=True)
            assert isinstance(key, Text)
            if key.text in entries:
                first = Note("first specified here", entries[key.text][0])
                message = f"key `{key.text}` is specified more than once"
                raise make_error("duplicate-name", message, key.span, notes=(first,))
            entries[key.text] = key.span, self._read_node(self._next(), depth)
        return entries
