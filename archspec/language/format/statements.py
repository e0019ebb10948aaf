"""Rows of statements without bodies, and of the signatures of definitions and models."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from archspec.core.pretty import LINE, Align, Doc, Group, Nest
from archspec.core.record import Record
from archspec.language.format.expressions import Layout, copy_with_children, split_declaration
from archspec.language.format.rows import MAX_LINE_LENGTH, Row
from archspec.language.syntax.concrete import ConcretePart, RuleNode

INDENT = 2
"""The indentation of a body in its definition, and of the steps in their chain."""

_ALL_COLUMNS = 1_000
"""A number of columns that no row reaches."""


class _Columns(Record):
    """The columns of a one-line statement; the columns of consecutive statements of the same `kind` are aligned."""

    kind: Hashable
    cells: list[str]
    doc: Doc


class Statements:
    """Creates rows; consecutive statements of the same kind have the same columns."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._kind: Hashable = None
        self._run = object()

    def separate(self) -> None:
        """Make the columns of the next statement independent of the previous ones."""
        self._kind = None

    def rows(self, statement: RuleNode, indent: int, in_steps: bool = False) -> list[Row]:
        """Return the rows of a statement; `in_steps` puts each step of its chains in a separate row."""
        flat = None if in_steps else self._layout.flat(statement)
        is_short = flat is not None and indent + len(flat) <= MAX_LINE_LENGTH
        columns = self._find_columns(statement) if is_short or statement.rule == "imports" else None
        if columns is not None:
            return [self._align_with_previous(columns, indent)]
        if not is_short and any(isinstance(part, RuleNode) and part.rule == "chain" for part in statement.children):
            return self._step_rows(statement, indent)
        self.separate()
        return [Row(indent, (), self._layout.doc(statement))]

    def model(self, parts: Sequence[ConcretePart], only: RuleNode | None, suffix: str = "") -> Row:
        """Return the row of a model: with its `only` expectation, or with a `suffix` after its arguments."""
        layout = self._layout
        signature = layout.docs("model", parts[2:])
        doc: Doc = [*signature, suffix]
        if only is not None:
            expectation = layout.doc(only)
            broken: Doc = [*signature, " {", Nest([LINE, expectation], INDENT), LINE, "}"]
            flat = self._flat("model", parts[2:])
            doc = Group(flat and f"{flat} {{ {expectation.flat} }}", lambda: [broken])
        return self._align_with_previous(_Columns("model", [self._text("model", parts[:2]) + " "], doc), 0)

    def opening(self, before: str, rule: str, parts: Sequence[ConcretePart], indent: int) -> Row:
        """Return the row that opens the body of a branch or a loop."""
        self.separate()
        return Row(indent, (), [before, *self._layout.docs(rule, parts), " {"])

    def signature(self, parts: Sequence[ConcretePart], suffix: str) -> Row:
        """Return the row of the signature of a definition: one line, or its lists below each other."""
        self.separate()
        layout = self._layout
        start = self._text("definition", parts[:2])
        lists = [part for part in parts[2:] if isinstance(part, RuleNode) and part.rule == "entries"]
        results: list[Doc] = [LINE, layout.doc(parts[-1])] if len(lists) + 2 < len(parts) else []

        def broken() -> list[Doc]:
            first, *inputs = [layout.doc(entries) for entries in lists]
            if not inputs:
                return [[start, Align([first, *results])]]
            if _is_inherited(lists[1]):
                return [[start, Align([first, *inputs, *results])]]
            second = Group(self._flat("definition", parts[3:]), lambda: [[inputs[0], *results]])
            return [[start, Align([first, LINE, second])]]

        return Row(0, (), [Group(self._flat("definition", parts), broken), suffix])

    def _align_with_previous(self, columns: _Columns, indent: int) -> Row:
        if columns.kind != self._kind:
            self._kind = columns.kind
            self._run = object()
        numbers = (_ALL_COLUMNS, 2, 1, 0) if columns.kind != "model" else (_ALL_COLUMNS,)
        return Row(indent, columns.cells, columns.doc, [(self._run, number) for number in numbers])

    def _find_columns(self, statement: RuleNode) -> _Columns | None:
        """Return the columns of a one-line statement; None if it has none."""
        layout, rule, parts = self._layout, statement.rule, statement.children
        match rule, parts:
            case "bind", [name, sign, value]:
                cells, doc = self._value_columns(layout.flat(sign) or "", value)
                return _Columns(("bind", split_declaration(value) is None), [f"{layout.flat(name)} ", *cells], doc)
            case "declare", [first, *loop]:
                split = split_declaration(first)
                if split is None:
                    return None
                return _Columns("declaration", [self._address_text(split[0])], layout.docs(rule, [split[1], *loop]))
            case "param", [_, _, *suffix]:
                return _Columns("declaration", [self._address_text(statement)], layout.docs(rule, suffix))
            case "expect", [word, RuleNode("binary", [left, *suffix])]:
                return _Columns(rule, [self._text(rule, [word, left]) + " "], layout.docs("binary", suffix))
            case "label", [_, _]:  # of the definition, which is often longer than those of entries
                return None
            case (("tie" | "role" | "label"), [first, second, *suffix]):
                return _Columns(rule, [self._text(rule, [first, second]) + " "], layout.docs(rule, suffix))
            case "imports", [first, second, *suffix] if layout.flat(first) == "export":
                names = layout.doc(copy_with_children(statement, suffix))
                return _Columns(rule, [self._text(rule, [first, second]) + " "], names)
            case _:
                return None

    def _value_columns(self, sign: str, value: ConcretePart) -> tuple[list[str], Doc]:
        """Return the columns of the value of a name: the address, and all steps of a chain except the last."""
        split = split_declaration(value)
        cells = [f"{sign} {self._address_text(split[0])}"] if split else []
        before = "" if split else f"{sign} "
        match split[1] if split else value:
            case RuleNode("chain", [head, *steps, last]) if split or _is_reference(head):
                texts = [self._text("chain", [part]) + " " for part in (head, *steps)]
                return [*cells, before + texts[0], *texts[1:]], self._layout.doc(last)
            case remainder:
                return cells, [before, self._layout.doc(remainder)]

    def _step_rows(self, statement: RuleNode, indent: int) -> list[Row]:
        """Return the rows of a statement with chains: one row for each step."""
        layout = self._layout
        if self._kind != "chain":
            self._kind = "chain"
            self._run = object()
        rows: list[Row] = []
        prefix: list[Doc] = []
        for i, part in enumerate(statement.children):
            gap = "" if i == 0 or layout.flat(part) == "," else " "
            if not (isinstance(part, RuleNode) and part.rule == "chain"):
                prefix += [gap, layout.doc(part)]
                continue
            head, *steps = part.children
            rows.append(Row(indent, (), [*prefix, gap, layout.doc(head)]))
            if len(rows) > 1:  # the text after a chain is on the line of its last step
                ended, row = rows[-2:]
                rows[-2:] = [Row(ended.indent, ended.cells, [ended.doc, row.doc], ended.runs)]
            chain = object()
            rows += [self._step_row(step, indent + INDENT, chain) for step in steps]
            prefix = []
        if prefix:
            rows[-1].doc = [rows[-1].doc, *prefix]
        return rows

    def _step_row(self, step: ConcretePart, indent: int, chain: object) -> Row:
        assert isinstance(step, RuleNode)
        arrow, value, *suffix = step.children
        split = split_declaration(value)
        if split is None or self._layout.flat(split[0].children[0]) is None:
            return Row(indent, (), self._layout.doc(step))
        remainder = copy_with_children(step, [split[1], *suffix])
        cell = f"{self._text('step', [arrow])} {self._address_text(split[0])}"
        return Row(indent, [cell], self._layout.doc(remainder), [(self._run, _ALL_COLUMNS), (chain, _ALL_COLUMNS)])

    def _address_text(self, declaration: RuleNode) -> str:
        return self._text("own", declaration.children[:2]) + " "

    def _text(self, rule: str, parts: Sequence[ConcretePart]) -> str:
        """Return parts of a rule, none of them a list, in one line."""
        return self._flat(rule, parts) or ""

    def _flat(self, rule: str, parts: Sequence[ConcretePart]) -> str | None:
        return self._layout.flat(RuleNode(rule, [*parts], parts[0].start, parts[-1].end, 0))


def _is_inherited(entries: ConcretePart) -> bool:
    return isinstance(entries, RuleNode) and all(
        part.rule == "takeover" for part in entries.children if isinstance(part, RuleNode)
    )


def _is_reference(part: ConcretePart) -> bool:
    return isinstance(part, RuleNode) and (
        part.rule == "reference" or (part.rule == "call" and _is_reference(part.children[0]))
    )
