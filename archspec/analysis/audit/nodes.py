"""YAML as mappings, lists and texts with locations; no types, tags or references, and thus no expansion."""

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
        """Return the location of characters `start` to `end`, or of the whole if it was not written in one piece."""
        source, at, stop = self.span
        written = source.text[at:stop]
        for skipped in (0, 1):
            if written[skipped : len(written) - skipped] == self.text:
                return Span(source, at + skipped + start, at + skipped + end)
        return self.span


class Items(NamedTuple):
    """A list."""

    span: Span
    items: list[Node]


class Mapping(NamedTuple):
    """A mapping: for each key its location and its value."""

    span: Span
    entries: dict[str, tuple[Span, Node]]

    def get(self, key: str) -> Node | None:
        """Return the value of a key, if it has one."""
        return self.entries[key][1] if key in self.entries else None


Node: TypeAlias = Text | Items | Mapping


def read_nodes(source: Source) -> Node:
    """Parse a document. Raises ArchError if it is not YAML, or not plain data."""
    import yaml

    events = cast("Iterator[Event]", cast("Any", yaml).parse(source.text, Loader=yaml.SafeLoader))
    reader = _Reader(source, events)
    try:
        return reader.document()
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        if mark is not None and mark.index >= len(source.text.rstrip()) and problem.context_mark is not None:
            mark = problem.context_mark  # an unclosed construct is reported where it opens
        at = mark.index if mark is not None else 0
        described = " ".join(part for part in (problem.context, problem.problem) if part)
        help = _QUOTES if "alias" in described or "tag" in described or "%" in described else None
        raise make_error("syntax", f"invalid YAML: {described}", reader.point(at), help=help) from None
    except yaml.reader.ReaderError as problem:
        at = problem.position
        raise make_error("syntax", "this character is not allowed in YAML", reader.point(at)) from None
    except (ValueError, OverflowError):  # an escape beyond Unicode, an invalid version number
        raise make_error("syntax", "invalid YAML: a number is out of range", reader.point(reader.last)) from None


_QUOTES = "quote text that begins with `*`, `!`, `&`, `%` or `@`"


class _Reader:
    """Builds nodes from events; `last` is where the last one ended."""

    def __init__(self, source: Source, events: Iterator[Event]) -> None:
        self.source = source
        self.last = 0
        self._events = events
        self._nodes = 0

    def point(self, at: int) -> Span:
        at = min(at, len(self.source.text))
        return Span(self.source, at, at + 1)

    def document(self) -> Node:
        """Return the only document."""
        from yaml import StreamEndEvent

        self._next()  # the beginning of the stream
        if isinstance(self._next(), StreamEndEvent):
            raise make_error("syntax", f"{self.source.label} is empty", self.point(0))
        root = self._node(self._next(), 0)
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

    def _node(self, event: Event, depth: int, *, is_key: bool = False) -> Node:
        """Return the node that begins with an event."""
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
            return Mapping(span, self._entries(depth + 1))
        items: list[Node] = []
        while not isinstance(event := self._next(), SequenceEndEvent):
            items.append(self._node(event, depth + 1))
        return Items(span, items)

    def _entries(self, depth: int) -> dict[str, tuple[Span, Node]]:
        from yaml import MappingEndEvent

        entries: dict[str, tuple[Span, Node]] = {}
        while not isinstance(event := self._next(), MappingEndEvent):
            key = self._node(event, depth, is_key=True)
            assert isinstance(key, Text)
            if key.text in entries:
                first = Note("first specified here", entries[key.text][0])
                message = f"key `{key.text}` is specified more than once"
                raise make_error("duplicate-name", message, key.span, notes=(first,))
            entries[key.text] = key.span, self._node(self._next(), depth)
        return entries
