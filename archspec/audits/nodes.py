"""YAML as mappings, lists and texts with their places: no types, no tags, no references, nothing that can grow."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias, cast

from archspec.source import Note, Report, Source, Span

MOST_NODES = 20_000
DEEPEST = 8


class Text(NamedTuple):
    """A scalar as it is written; `span` covers it with its quotes."""

    span: Span
    text: str

    def part(self, start: int, end: int) -> Span:
        """The place of characters `start` to `end` of the text; the whole, where it was not written in one piece."""
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
    """A mapping: for each key its own place and its value."""

    span: Span
    entries: dict[str, tuple[Span, Node]]


Node: TypeAlias = Text | Items | Mapping


def read_nodes(source: Source, report: Report) -> Node | None:
    """The document in a text; None with a diagnostic where it is no YAML, or more than plain data."""
    import yaml

    reader = _Reader(source, report)
    try:
        for event in cast("Any", yaml).parse(source.text, Loader=yaml.SafeLoader):
            if not reader.take(event):
                return None
    except yaml.MarkedYAMLError as problem:
        mark: Any = problem.problem_mark or problem.context_mark
        if mark is not None and mark.index >= len(source.text.rstrip()) and problem.context_mark is not None:
            mark = problem.context_mark  # what is never closed is shown where it opens
        at = mark.index if mark is not None else 0
        said = " ".join(part for part in (problem.context, problem.problem) if part)
        help = _QUOTES if "alias" in said or "tag" in said or "%" in said else None
        report.error("syntax", f"this is no YAML: {said}", reader.point(at), help=help)
        return None
    except yaml.reader.ReaderError as problem:
        at: Any = problem.position
        report.error("syntax", "this character cannot stand in YAML", reader.point(at))
        return None
    except (ValueError, OverflowError) as problem:  # an escape beyond Unicode, a version that is no number
        report.error("syntax", f"this is no YAML: {problem}", reader.point(reader.last))
        return None
    if reader.root is None:
        report.error("syntax", f"{source.label} is empty", reader.point(0))
    return reader.root


_QUOTES = "text that begins with `*`, `!`, `&`, `%` or `@` is put in quotes"


class _Reader:
    """Builds nodes from events. A mapping under way keeps the key that waits for its value."""

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
        """Takes one event; False where that was reported as wrong."""
        import yaml

        start, end = event.start_mark.index, event.end_mark.index
        self.last = end
        span = Span(self.source, start, max(end, start + 1))
        if isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            return self._wrong("syntax", "a file holds one document", span)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) or getattr(event, "tag", None):
            return self._wrong("syntax", "references and tags of YAML are not used here", span, _QUOTES)
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
            return self._wrong("budget", f"this is nested more than {DEEPEST} deep", node.span)
        if not self._add(node):
            return False
        self._open.append(node)
        self._keys.append(None)
        return True

    def _add(self, node: Node) -> bool:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            return self._wrong("budget", f"there are more than {MOST_NODES:,} entries", node.span)
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
            return self._wrong("wrong-kind", "a key is a word", node.span)
        if node.text in around.entries:
            first = Note("it was first given here", around.entries[node.text][0])
            self.report.error("duplicate-name", f"the key `{node.text}` is given twice", node.span, notes=(first,))
            return False
        self._keys[-1] = node
        return True

    def _wrong(self, code: str, message: str, span: Span, help: str | None = None) -> bool:
        self.report.error(code, message, span, help=help)
        return False
