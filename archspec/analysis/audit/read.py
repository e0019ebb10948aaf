"""Audit files: a published calculation as lines, each with its claim and the facts to judge it by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from archspec.analysis.audit.arithmetic import Arithmetic, read_arithmetic
from archspec.analysis.audit.nodes import Items, Mapping, Node, Text, read_nodes
from archspec.analysis.count.select import SelectionRule
from archspec.analysis.explain.numbers import UNITS, PublishedNumber, read_number
from archspec.core.diagnostics import ArchError, Note, Report, Source, Span, make_error, suggest
from archspec.ir.table import PlainValue
from archspec.pipeline.overrides import parse_override

MAX_LINES = 1_000

_FILE = ("title", "where", "note", "spec", "set", "units", "lines")
_LINE = ("line", "says", "where", "spec", "set", "claimed", "arithmetic", "select", "of")


class AuditLine(NamedTuple):
    """One line of a calculation.

    `says` is its wording, and `where` its location in the publication. `claimed` has the number, and other notations of
    it. The line is judged by its own `arithmetic`, and by the tensors that `select` matches (as a share of those that
    `of` matches) in the model `spec` with `overrides`. `spans` locates its keys and patterns in the file.
    """

    name: str
    says: str
    where: str
    spec: str
    overrides: dict[str, PlainValue]
    claimed: tuple[PublishedNumber, ...]
    arithmetic: Arithmetic | None
    select: tuple[SelectionRule, ...]
    of: tuple[SelectionRule, ...]
    spans: dict[str, Span]


class AuditFile(NamedTuple):
    """A calculation: its title, its place of publication, a note, and its lines."""

    title: str
    where: str
    note: str
    lines: tuple[AuditLine, ...]


def read_audit(source: Source) -> AuditFile:
    """Parse an audit. Raises ArchError with every error in it."""
    root = read_nodes(source)
    if not isinstance(root, Mapping):
        message = "expected an audit as a mapping: `title: ...`, `spec: ...`, `lines: ...`"
        raise make_error("wrong-kind", message, root.span)
    report = Report()
    audit = _Reader(report).file(root)
    report.check()
    return audit


class _Reader:
    """Converts nodes to an audit, and reports their errors."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.units: dict[str, int] = dict(UNITS)
        self.names: dict[str, Span] = {}

    def file(self, node: Mapping) -> AuditFile:
        is_known = self._known(node, _FILE, "an audit")
        self.units |= self._units(node)
        title, where, note = (self._text(node, key) for key in ("title", "where", "note"))
        for key in ("title", "lines"):
            if is_known and key not in node.entries:
                self.report.error("missing-argument", f"missing key `{key}` in audit file", _start(node))
        entry = node.get("lines")
        items = entry.items if isinstance(entry, Items) else []
        if entry is not None and not isinstance(entry, Items):
            self._wrong("`lines` expects a list", entry.span)
        if len(items) > MAX_LINES:
            self.report.error("budget", f"too many lines: the limit is {MAX_LINES:,}", items[MAX_LINES].span)
            items = []
        lines: list[AuditLine] = []
        for item in items:
            if isinstance(item, Mapping):
                lines.append(self._line(item, node, is_known))
            else:
                self._wrong("expected a line as a mapping: `line: ...`, `claimed: ...`", item.span)
        if entry is not None and not items and not self.report.failed:
            self._wrong("`lines` is empty", entry.span)
        return AuditFile(title, where, note, tuple(lines))

    def _line(self, node: Mapping, file: Mapping, is_known: bool) -> AuditLine:
        is_line_known = self._known(node, _LINE, "a line")
        name = self._text(node, "line")
        claimed = self._claimed(node)
        arithmetic = self._arithmetic(node)
        select, of = self._rules(node, "select"), self._rules(node, "of")
        overrides = {**self._overrides(file), **self._overrides(node)}
        if is_line_known:
            self._check_line(node, name)
        spans = {key: value.span for key, (_, value) in (file.entries | node.entries).items()}
        for key in ("select", "of"):
            value = node.get(key)
            texts = [item for item in value.items if isinstance(item, Text)] if isinstance(value, Items) else []
            spans |= {f"{key} {text.text.removeprefix('!')}": text.span for text in texts}
        if "spec" not in spans and is_known and is_line_known:
            self.report.error("missing-argument", "missing key `spec`, in this line or in the file", _start(node))
        spec = self._text(node, "spec") or self._text(file, "spec")
        says, where = self._text(node, "says"), self._text(node, "where")
        return AuditLine(name, says, where, spec, overrides, claimed, arithmetic, select, of, spans)

    def _check_line(self, node: Mapping, name: str) -> None:
        """Check that a line has a unique name, and something to judge it by."""
        at, named = _start(node), node.get("line")
        if named is None:
            self.report.error("missing-argument", "missing name of a line: `line: ...`", at)
        elif name in self.names:
            note = Note("first defined here", self.names[name])
            self.report.error("duplicate-name", f"line `{name}` is already defined", named.span, notes=(note,))
        elif name:  # otherwise it is not text, which has been reported
            self.names[name] = named.span
        if sum(key in node.entries for key in ("claimed", "arithmetic", "select")) < 2:
            help = "specify two of `claimed`, `arithmetic` and `select`"
            self.report.error("missing-argument", f"line `{name}` has nothing to judge it by", at, help=help)
        if "of" in node.entries and "select" not in node.entries:
            self.report.error("missing-argument", "`of` requires `select`", at)

    # Values

    def _claimed(self, node: Mapping) -> tuple[PublishedNumber, ...]:
        numbers: list[PublishedNumber] = []
        for text in self._texts(node.get("claimed"), "`claimed` expects a number or a list"):
            try:
                numbers.append(read_number(text.text, self.units))
            except ValueError as problem:
                help = "write it as 108808704, 108,808,704, 110M or about 20 %; in a [list], quote a number with commas"
                self._wrong(str(problem), text.span, help)
        return tuple(numbers)

    def _arithmetic(self, node: Mapping) -> Arithmetic | None:
        text = self._scalar(node.get("arithmetic"), "`arithmetic` expects text")
        arithmetic = read_arithmetic(text, self.report) if text is not None else None
        if arithmetic is not None:
            for name, part in arithmetic.lines():
                if name not in self.names:
                    help = suggest(name, list(self.names)) or "use the name, in quotes, of a line above this one"
                    self.report.error("unknown-name", f"unknown line `{name}`", arithmetic.span(part), help=help)
        return arithmetic

    def _rules(self, node: Mapping, key: str) -> tuple[SelectionRule, ...]:
        texts = self._texts(node.get(key), f"`{key}` expects a pattern of tensor names or a list of patterns")
        for text in texts:
            if not text.text.lstrip("!"):
                self._wrong("expected a pattern of tensor names", text.span)
        return tuple([SelectionRule(not text.text.startswith("!"), text.text.removeprefix("!")) for text in texts])

    def _overrides(self, node: Mapping) -> dict[str, PlainValue]:
        values: dict[str, PlainValue] = {}
        for key, at, value in self._entries(node.get("set")):
            text = self._scalar(value, "expected the value of a hyperparameter as text; a list must be quoted")
            if not key.isidentifier():
                self._wrong("expected the name of a hyperparameter", at)
            elif text is not None:
                try:
                    values[key] = parse_override(f"{key}={text.text}")[1]
                except ArchError as error:
                    found = error.diagnostics[0]
                    self._wrong(found.message, value.span, found.help)
        return values

    def _units(self, node: Mapping) -> dict[str, int]:
        units: dict[str, int] = {}
        expected = "expected a positive integer as the value of a unit, such as `M: 1024 * 1024`"
        for key, at, value in self._entries(node.get("units")):
            text = self._scalar(value, expected)
            arithmetic = read_arithmetic(text, self.report) if text is not None else None
            if not key.isascii() or not key.isalpha():
                self._wrong("expected a unit name that consists of letters", at)
            if arithmetic is not None:
                worth = _constant(arithmetic)
                if worth is None:
                    self._wrong(expected, value.span)
                units[key] = worth or 1
        return units

    # Nodes

    def _wrong(self, message: str, at: Span, help: str | None = None) -> None:
        self.report.error("wrong-kind", message, at, help=help)

    def _known(self, node: Mapping, keys: Sequence[str], what: str) -> bool:
        """Whether all keys of a mapping are in `keys`; reports the others."""
        unknown = {key: span for key, (span, _) in node.entries.items() if key not in keys}
        for key, span in unknown.items():
            help = suggest(key, list(keys)) or f"expected keys: {', '.join(f'`{k}`' for k in keys)}"
            self.report.error("unknown-name", f"unknown key `{key}` in {what}", span, help=help)
        return not unknown

    def _text(self, node: Mapping, key: str) -> str:
        text = self._scalar(node.get(key), f"`{key}` expects text")
        return " ".join(text.text.split()) if text is not None else ""

    def _texts(self, node: Node | None, message: str) -> list[Text]:
        items = node.items if isinstance(node, Items) else [node]
        if node is not None and not items:
            self._wrong(message, node.span)
        return [text for item in items if (text := self._scalar(item, message)) is not None]

    def _scalar(self, node: Node | None, message: str) -> Text | None:
        if isinstance(node, Text) and node.text.strip():
            return node
        if node is not None:
            self._wrong(message, node.span)
        return None

    def _entries(self, node: Node | None) -> list[tuple[str, Span, Node]]:
        if isinstance(node, Mapping):
            return [(key, at, value) for key, (at, value) in node.entries.items()]
        if node is not None:
            self._wrong("expected a mapping of names to values", node.span)
        return []


def _start(node: Mapping) -> Span:
    """Return the location of a mapping's first key."""
    return next((at for at, _ in node.entries.values()), node.span)


def _constant(arithmetic: Arithmetic) -> int | None:
    """Return the positive integer that an expression without names evaluates to, or None."""

    def unknown(node: object) -> NoReturn:
        raise ArchError([])

    try:
        value = arithmetic.evaluate(unknown, unknown)
    except ArchError:
        return None
    return int(value) if value.denominator == 1 and value > 0 else None
