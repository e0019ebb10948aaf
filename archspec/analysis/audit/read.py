"""Audit files: a published calculation as lines, each with its claim and the data for its verdict."""

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

    `says` is its wording, and `where` its location in the publication. `claimed` has the number, followed by further
    notations of it. The line is judged by its own `arithmetic`, and by the tensors that `select` matches (as a share of
    the tensors that `of` matches) in the model `spec` with `overrides`. `spans` locates its keys and patterns in the
    file.
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
    """Parse an audit. Raises ArchError with all its errors."""
    root = read_nodes(source)
    if not isinstance(root, Mapping):
        message = "expected an audit as a mapping: `title: ...`, `spec: ...`, `lines: ...`"
        raise make_error("wrong-kind", message, root.span)
    report = Report()
    audit = _Reader(report).read_file(root)
    report.check()
    return audit


class _Reader:
    """Converter from nodes to an audit; reports their errors."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.units: dict[str, int] = dict(UNITS)
        self.names: dict[str, Span] = {}

    def read_file(self, node: Mapping) -> AuditFile:
        is_known = self._report_unknown_keys(node, _FILE, "an audit")
        self.units |= self._read_units(node)
        title, where, note = (self._read_text(node, key) for key in ("title", "where", "note"))
        for key in ("title", "lines"):
            if is_known and key not in node.entries:
                self.report.error("missing-argument", f"missing key `{key}` in audit file", _first_key_span(node))
        entry = node.get("lines")
        items = entry.items if isinstance(entry, Items) else []
        if entry is not None and not isinstance(entry, Items):
            self._report_wrong_kind("`lines` expects a list", entry.span)
        if len(items) > MAX_LINES:
            self.report.error("budget", f"too many lines: the limit is {MAX_LINES:,}", items[MAX_LINES].span)
            items = []
        lines: list[AuditLine] = []
        for item in items:
            if isinstance(item, Mapping):
                lines.append(self._read_line(item, node, is_known))
            else:
                self._report_wrong_kind("expected a line as a mapping: `line: ...`, `claimed: ...`", item.span)
        if entry is not None and not items and not self.report.failed:
            self._report_wrong_kind("`lines` is empty", entry.span)
        return AuditFile(title, where, note, tuple(lines))

    def _read_line(self, node: Mapping, file: Mapping, is_known: bool) -> AuditLine:
        is_line_known = self._report_unknown_keys(node, _LINE, "a line")
        name = self._read_text(node, "line")
        claimed = self._read_claimed(node)
        arithmetic = self._read_arithmetic(node)
        select, of = self._read_rules(node, "select"), self._read_rules(node, "of")
        overrides = {**self._read_overrides(file), **self._read_overrides(node)}
        if is_line_known:
            self._report_line_errors(node, name)
        spans = {key: value.span for key, (_, value) in (file.entries | node.entries).items()}
        for key in ("select", "of"):
            value = node.get(key)
            texts = [item for item in value.items if isinstance(item, Text)] if isinstance(value, Items) else []
            spans |= {f"{key} {text.text.removeprefix('!')}": text.span for text in texts}
        if "spec" not in spans and is_known and is_line_known:
            self.report.error(
                "missing-argument", "missing key `spec`, in this line or in the file", _first_key_span(node)
            )
        spec = self._read_text(node, "spec") or self._read_text(file, "spec")
        says, where = self._read_text(node, "says"), self._read_text(node, "where")
        return AuditLine(name, says, where, spec, overrides, claimed, arithmetic, select, of, spans)

    def _report_line_errors(self, node: Mapping, name: str) -> None:
        """Report a missing or repeated name, and a line without data for a verdict."""
        span, name_node = _first_key_span(node), node.get("line")
        if name_node is None:
            self.report.error("missing-argument", "missing name of a line: `line: ...`", span)
        elif name in self.names:
            note = Note("first defined here", self.names[name])
            self.report.error("duplicate-name", f"line `{name}` is already defined", name_node.span, notes=(note,))
        elif name:  # otherwise it is not text, which is already reported
            self.names[name] = name_node.span
        if sum(key in node.entries for key in ("claimed", "arithmetic", "select")) < 2:
            help = "specify two of `claimed`, `arithmetic` and `select`"
            self.report.error("missing-argument", f"line `{name}` has too few keys for a verdict", span, help=help)
        if "of" in node.entries and "select" not in node.entries:
            self.report.error("missing-argument", "`of` requires `select`", span)

    # Values

    def _read_claimed(self, node: Mapping) -> tuple[PublishedNumber, ...]:
        numbers: list[PublishedNumber] = []
        for text in self._read_texts(node.get("claimed"), "`claimed` expects a number or a list"):
            try:
                numbers.append(read_number(text.text, self.units))
            except ValueError as error:
                help = "write the number as 108808704, 108,808,704, 110M or about 20 %"
                help += "; in a [list], quote numbers with commas"
                self._report_wrong_kind(str(error), text.span, help)
        return tuple(numbers)

    def _read_arithmetic(self, node: Mapping) -> Arithmetic | None:
        text = self._read_scalar(node.get("arithmetic"), "`arithmetic` expects text")
        arithmetic = read_arithmetic(text, self.report) if text is not None else None
        if arithmetic is not None:
            for name, part in arithmetic.iter_lines():
                if name not in self.names:
                    help = suggest(name, list(self.names)) or "use the name, in quotes, of a line above this one"
                    self.report.error("unknown-name", f"unknown line `{name}`", arithmetic.span(part), help=help)
        return arithmetic

    def _read_rules(self, node: Mapping, key: str) -> tuple[SelectionRule, ...]:
        texts = self._read_texts(node.get(key), f"`{key}` expects a pattern of tensor names or a list of patterns")
        for text in texts:
            if not text.text.lstrip("!"):
                self._report_wrong_kind("expected a pattern of tensor names", text.span)
        return tuple([SelectionRule(not text.text.startswith("!"), text.text.removeprefix("!")) for text in texts])

    def _read_overrides(self, node: Mapping) -> dict[str, PlainValue]:
        values: dict[str, PlainValue] = {}
        for key, key_span, value in self._read_entries(node.get("set")):
            text = self._read_scalar(value, "expected the value of a hyperparameter as text; a list must be quoted")
            if not key.isidentifier():
                self._report_wrong_kind("expected the name of a hyperparameter", key_span)
            elif text is not None:
                try:
                    values[key] = parse_override(f"{key}={text.text}")[1]
                except ArchError as error:
                    diagnostic = error.diagnostics[0]
                    self._report_wrong_kind(diagnostic.message, value.span, diagnostic.help)
        return values

    def _read_units(self, node: Mapping) -> dict[str, int]:
        units: dict[str, int] = {}
        expected = "expected a positive integer as the value of a unit, such as `M: 1024 * 1024`"
        for key, key_span, value in self._read_entries(node.get("units")):
            text = self._read_scalar(value, expected)
            arithmetic = read_arithmetic(text, self.report) if text is not None else None
            if not key.isascii() or not key.isalpha():
                self._report_wrong_kind("expected a unit name that consists of letters", key_span)
            if arithmetic is not None:
                unit_value = _evaluate_constant(arithmetic)
                if unit_value is None:
                    self._report_wrong_kind(expected, value.span)
                units[key] = unit_value or 1
        return units

    # Nodes

    def _report_wrong_kind(self, message: str, span: Span, help: str | None = None) -> None:
        self.report.error("wrong-kind", message, span, help=help)

    def _report_unknown_keys(self, node: Mapping, keys: Sequence[str], container: str) -> bool:
        """Report the keys of a mapping that are not in `keys`. Returns whether there are none."""
        unknown = {key: span for key, (span, _) in node.entries.items() if key not in keys}
        for key, span in unknown.items():
            help = suggest(key, list(keys)) or f"expected keys: {', '.join(f'`{k}`' for k in keys)}"
            self.report.error("unknown-name", f"unknown key `{key}` in {container}", span, help=help)
        return not unknown

    def _read_text(self, node: Mapping, key: str) -> str:
        text = self._read_scalar(node.get(key), f"`{key}` expects text")
        return " ".join(text.text.split()) if text is not None else ""

    def _read_texts(self, node: Node | None, message: str) -> list[Text]:
        items = node.items if isinstance(node, Items) else [node]
        if node is not None and not items:
            self._report_wrong_kind(message, node.span)
        return [text for item in items if (text := self._read_scalar(item, message)) is not None]

    def _read_scalar(self, node: Node | None, message: str) -> Text | None:
        if isinstance(node, Text) and node.text.strip():
            return node
        if node is not None:
            self._report_wrong_kind(message, node.span)
        return None

    def _read_entries(self, node: Node | None) -> list[tuple[str, Span, Node]]:
        if isinstance(node, Mapping):
            return [(key, key_span, value) for key, (key_span, value) in node.entries.items()]
        if node is not None:
            self._report_wrong_kind("expected a mapping of names to values", node.span)
        return []


def _first_key_span(node: Mapping) -> Span:
    """Return the location of a mapping's first key."""
    return next((key_span for key_span, _ in node.entries.values()), node.span)


def _evaluate_constant(arithmetic: Arithmetic) -> int | None:
    """Evaluate an expression without names; None if its value is not a positive integer."""

    def refuse(node: object) -> NoReturn:
        raise ArchError([])

    try:
        value = arithmetic.evaluate(refuse, refuse)
    except ArchError:
        return None
    return int(value) if value.denominator == 1 and value > 0 else None
