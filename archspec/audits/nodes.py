"""YAML as mappings, lists and texts with locations; no types, tags or references, and thus no expansion."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias, cast

from archspec.source import Note, Report, Source, Span

MOST_NODES = 20_000
DEEPEST = 8


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


Node: TypeAlias = Text | Items | Mapping


def read_nodes(source: Source, report: Report) -> Node | None:
    """Parse a document; None with a diagnostic if it is not YAML, or not plain data."""
    import yaml

    reader = _Reader(source, report)
    try:
        for event in cast("Any", yaml).parse(source.text, Loader=yaml.SafeLoader):
            if not reader.take(event):
                return None
    except yaml.MarkedYAMLError as problem:
        mark: Any = problem.problem_mark or problem.context_mark
        if mark is not None and mark.index >= len(source.text.rstrip()) and problem.context_mark is not None:
            mark = problem.context_mark  # an unclosed construct is reported where it opens
        at = mark.index if mark is not None else 0
        described = " ".join(part for part in (problem.context, problem.problem) if part)
        help = _QUOTES if "alias" in described or "tag" in described or "%" in described else None
        report.error("syntax", f"invalid YAML: {described}", reader.point(at), help=help)
        return None
    except yaml.reader.ReaderError as problem:
        at: Any = problem.position
        report.error("syntax", "this character is not allowed in YAML", reader.point(at))
        return None
    except (ValueError, OverflowError) as problem:  # an escape beyond Unicode, an invalid version number
        report.error("syntax", f"invalid YAML: {problem}", reader.point(reader.last))
        return None
    if reader.root is None:
        report.error("syntax", f"{source.label} is empty", reader.point(0))
    return reader.root


_QUOTES = "quote text that begins with `*`, `!`, `&`, `%` or `@`"


class _Reader:
    """Builds nodes from events. An unfinished mapping stores the key that waits for its value."""

    def __init__(self, source: Source, report: Report) -> None:
        self.source = source
        self.report = report
        self.root: Node | None = None
        self.last = 0
        self._open: list[Node] = []
        self._keys: list[Text | None] = []
        self._nodes = 0

    def point(self, at: int) -> Span:
        at = min(at, len(self.source.text))
        return Span(self.source, at, at + 1)

    def take(self, event: Any) -> bool:
        """Process one event; False after reporting an error."""
        import yaml

        start, end = event.start_mark.index, event.end_mark.index
        self.last = end
        span = Span(self.source, start, max(end, start + 1))
        if isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            return self._wrong("syntax", "expected a single YAML document", span)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) or getattr(event, "tag", None):
            return self._wrong("syntax", "YAML anchors, aliases and tags are not supported", span, _QUOTES)
        if isinstance(event, yaml.ScalarEvent):
            text: Any = event.value
            return self._add(Text(span, text))
        if isinstance(event, yaml.SequenceStartEvent):
            return self._begin(Items(span, []))
        if isinstance(event, yaml.MappingStartEvent):
            return self._begin(Mapping(span, {}))
        if isinstance(event, yaml.CollectionEndEvent):
            self._open.pop()
            self._keys.pop()
        return True

    def _begin(self, node: Items | Mapping) -> bool:
        if len(self._open) >= DEEPEST:
            return self._wrong("budget", f"nesting is too deep: the limit is {DEEPEST}", node.span)
        if not self._add(node):
            return False
        self._open.append(node)
        self._keys.append(None)
        return True

    def _add(self, node: Node) -> bool:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            return self._wrong("budget", f"too many entries: the limit is {MOST_NODES:,}", node.span)
        if not self._open:
            self.root = node
            return True
        around, key = self._open[-1], self._keys[-1]
        if isinstance(around, Items):
            around.items.append(node)
        elif isinstance(around, Mapping) and key is not None:
            around.entries[key.text] = (key.span, node)
            self._keys[-1] = None
        elif isinstance(around, Mapping):
            return self._key(around, node)
        return True

    def _key(self, around: Mapping, node: Node) -> bool:
        if not isinstance(node, Text):
            return self._wrong("wrong-kind", "expected a scalar key", node.span)
        if node.text in around.entries:
            first = Note("first specified here", around.entries[node.text][0])
            message = f"key `{node.text}` is specified more than once"
            self.report.error("duplicate-name", message, node.span, notes=(first,))
            return False
        self._keys[-1] = node
        return True

    def _wrong(self, code: str, message: str, span: Span, help: str | None = None) -> bool:
        self.report.error(code, message, span, help=help)
        return False
