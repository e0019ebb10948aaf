"""Statements without bodies, and heads of definitions and models, as rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from archspec.core.pretty import LINE, Align, Doc, Group, Nest
from archspec.core.record import Record
from archspec.language.format.expressions import Layout, copy_of, own_and_rest
from archspec.language.format.rows import WIDTH, Row
from archspec.language.syntax.concrete import ConcretePart, RuleNode

INDENT = 2
"""The indentation of a body in its definition, and of the steps in their chain."""

_ALL = 1_000
"""More columns than there are."""


class _Columns(Record):
    """The columns of a statement in one line; those of consecutive statements of a `kind` are aligned."""

    kind: Hashable
    cells: list[str]
    rest: Doc


class Statements:
    """Makes rows; consecutive statements of a kind have the same columns."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._kind: Hashable = None
        self._run = object()

    def separate(self) -> None:
        """Let the columns of the next statement be independent of those before."""
        self._kind = None

    def rows(self, statement: RuleNode, indent: int, in_steps: bool = False) -> list[Row]:
        """Return the rows of a statement; `in_steps`: the steps of its chains are in rows of their own anyway."""
        flat = None if in_steps else self._layout.flat(statement)
        is_short = flat is not None and indent + len(flat) <= WIDTH
        columns = self._columns(statement) if is_short or statement.rule == "imports" else None
        if columns is not None:
            return [self._aligned(columns, indent)]
        if not is_short and any(isinstance(part, RuleNode) and part.rule == "chain" for part in statement.children):
            return self._in_steps(statement, indent)
        self.separate()
        return [Row(indent, (), self._layout.doc(statement))]

    def model(self, parts: Sequence[ConcretePart], only: RuleNode | None, tail: str = "") -> Row:
        """Return the row of a model: with its `only` expectation, or with a `tail` after its arguments."""
        layout = self._layout
        head = layout.docs("model", parts[2:])
        doc: Doc = [*head, tail]
        if only is not None:
            expectation = layout.doc(only)
            broken: Doc = [*head, " {", Nest([LINE, expectation], INDENT), LINE, "}"]
            flat = self._flat("model", parts[2:])
            doc = Group(flat and f"{flat} {{ {expectation.flat} }}", lambda: [broken])
        return self._aligned(_Columns("model", [self._text("model", parts[:2]) + " "], doc), 0)

    def opening(self, before: str, rule: str, parts: Sequence[ConcretePart], indent: int) -> Row:
        """Return the row that opens the body of a branch or a loop."""
        self.separate()
        return Row(indent, (), [before, *self._layout.docs(rule, parts), " {"])

    def head(self, parts: Sequence[ConcretePart], tail: str) -> Row:
        """Return the row of the head of a definition: in one line, or its lists below each other."""
        self.separate()
        layout = self._layout
        start = self._text("definition", parts[:2])
        lists = [part for part in parts[2:] if isinstance(part, RuleNode) and part.rule == "entries"]
        results: list[Doc] = [LINE, layout.doc(parts[-1])] if len(lists) + 2 < len(parts) else []

        def broken() -> list[Doc]:
            first, *inputs = [layout.doc(entries) for entries in lists]
            if not inputs:
                return [[start, Align([first, *results])]]
            if _is_taken_over(lists[1]):
                return [[start, Align([first, *inputs, *results])]]
            second = Group(self._flat("definition", parts[3:]), lambda: [[inputs[0], *results]])
            return [[start, Align([first, LINE, second])]]

        return Row(0, (), [Group(self._flat("definition", parts), broken), tail])

    def _aligned(self, columns: _Columns, indent: int) -> Row:
        if columns.kind != self._kind:
            self._kind = columns.kind
            self._run = object()
        numbers = (_ALL, 2, 1, 0) if columns.kind != "model" else (_ALL,)
        return Row(indent, columns.cells, columns.rest, [(self._run, number) for number in numbers])

    def _columns(self, statement: RuleNode) -> _Columns | None:
        """Return the columns of a statement that is in one line; None if it has none."""
        layout, rule, parts = self._layout, statement.rule, statement.children
        match rule, parts:
            case "bind", [name, sign, value]:
                cells, rest = self._value(layout.flat(sign) or "", value)
                return _Columns(("bind", own_and_rest(value) is None), [f"{layout.flat(name)} ", *cells], rest)
            case "declare", [first, *loop]:
                found = own_and_rest(first)
                if found is None:
                    return None
                return _Columns("declaration", [self._address(found[0])], layout.docs(rule, [found[1], *loop]))
            case "param", [_, _, *rest]:
                return _Columns("declaration", [self._address(statement)], layout.docs(rule, rest))
            case "expect", [word, RuleNode("binary", [left, *others])]:
                return _Columns(rule, [self._text(rule, [word, left]) + " "], layout.docs("binary", others))
            case (("tie" | "role"), [first, second, *others]):
                return _Columns(rule, [self._text(rule, [first, second]) + " "], layout.docs(rule, others))
            case "imports", [first, second, *others] if layout.flat(first) == "export":
                names = layout.doc(copy_of(statement, others))
                return _Columns(rule, [self._text(rule, [first, second]) + " "], names)
            case _:
                return None

    def _value(self, sign: str, value: ConcretePart) -> tuple[list[str], Doc]:
        """Return the columns of the value of a name: the address, and each step but the last of a chain."""
        found = own_and_rest(value)
        cells = [f"{sign} {self._address(found[0])}"] if found else []
        before = "" if found else f"{sign} "
        match found[1] if found else value:
            case RuleNode("chain", [head, *steps, last]) if found or _is_reference(head):
                texts = [self._text("chain", [part]) + " " for part in (head, *steps)]
                return [*cells, before + texts[0], *texts[1:]], self._layout.doc(last)
            case rest:
                return cells, [before, self._layout.doc(rest)]

    def _in_steps(self, statement: RuleNode, indent: int) -> list[Row]:
        """Return the rows of a statement with chains: one for each step."""
        layout = self._layout
        if self._kind != "chain":
            self._kind = "chain"
            self._run = object()
        rows: list[Row] = []
        begun: list[Doc] = []
        for i, part in enumerate(statement.children):
            gap = "" if i == 0 or layout.flat(part) == "," else " "
            if not (isinstance(part, RuleNode) and part.rule == "chain"):
                begun += [gap, layout.doc(part)]
                continue
            head, *steps = part.children
            rows.append(Row(indent, (), [*begun, gap, layout.doc(head)]))
            if len(rows) > 1:  # what follows a chain is in the line of its last step
                ended, row = rows[-2:]
                rows[-2:] = [Row(ended.indent, ended.cells, [ended.doc, row.doc], ended.runs)]
            chain = object()
            rows += [self._step(step, indent + INDENT, chain) for step in steps]
            begun = []
        if begun:
            rows[-1].doc = [rows[-1].doc, *begun]
        return rows

    def _step(self, step: ConcretePart, indent: int, chain: object) -> Row:
        assert isinstance(step, RuleNode)
        arrow, value, *others = step.children
        found = own_and_rest(value)
        if found is None or self._layout.flat(found[0].children[0]) is None:
            return Row(indent, (), self._layout.doc(step))
        rest = copy_of(step, [found[1], *others])
        cell = f"{self._text('step', [arrow])} {self._address(found[0])}"
        return Row(indent, [cell], self._layout.doc(rest), [(self._run, _ALL), (chain, _ALL)])

    def _address(self, declaration: RuleNode) -> str:
        return self._text("own", declaration.children[:2]) + " "

    def _text(self, rule: str, parts: Sequence[ConcretePart]) -> str:
        """Return parts of a rule, none of them a list, in one line."""
        return self._flat(rule, parts) or ""

    def _flat(self, rule: str, parts: Sequence[ConcretePart]) -> str | None:
        return self._layout.flat(RuleNode(rule, [*parts], parts[0].start, parts[-1].end, 0))


def _is_taken_over(entries: ConcretePart) -> bool:
    return isinstance(entries, RuleNode) and all(
        part.rule == "takeover" for part in entries.children if isinstance(part, RuleNode)
    )


def _is_reference(head: ConcretePart) -> bool:
    return isinstance(head, RuleNode) and (
        head.rule == "reference" or (head.rule == "call" and _is_reference(head.children[0]))
    )
