"""Hints at the end of statements and steps: the shape of the result, and the parameters of what is declared."""

from __future__ import annotations

from collections.abc import Iterator

from archspec.app.lsp.descriptions import value_text
from archspec.app.lsp.observations import parameters
from archspec.app.lsp.workspace import Analysis
from archspec.compiler.evaluate.values import MultipleOutputs, Tensor
from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.definition import resolve_definition
from archspec.compiler.resolve.unit import Definition
from archspec.core.diagnostics import Report
from archspec.core.record import Record


class Hint(Record):
    """A text to show after the character before `offset`, and in which model that is so ("" for the defaults)."""

    offset: int
    text: str
    model: str


def hints(analysis: Analysis, start: int, end: int) -> Iterator[Hint]:
    """The hints between two offsets of a file."""
    for binding in analysis.unit.names.values() if analysis.unit is not None else ():
        target = binding.target
        if isinstance(target, Definition) and not binding.imported and target.node.outputs:
            for statement in walk.iter_statements(resolve_definition(target, Report()).body):
                if statement.at.start < end and statement.at.end >= start:
                    yield from _of_statement(analysis, statement)


def _of_statement(analysis: Analysis, statement: nodes.Statement) -> Iterator[Hint]:
    if isinstance(statement, nodes.Declare):
        for declaration in statement.declares:
            yield from _hint(analysis, None, declaration.what, declaration.what.at.end)
    elif isinstance(statement, nodes.Assign):
        if isinstance(statement.value, nodes.Chain):
            yield from _of_chain(analysis, statement.value)
        else:
            yield from _hint(analysis, statement.value, statement.value, statement.at.end)
    elif isinstance(statement, nodes.Return):
        for value in statement.values:
            yield from _of_chain(analysis, value) if isinstance(value, nodes.Chain) else ()


def _of_chain(analysis: Analysis, chain: nodes.Chain) -> Iterator[Hint]:
    if not isinstance(chain.head, nodes.Local):
        yield from _hint(analysis, chain.head, chain.head, chain.head.at.end)
    for step in chain.steps:
        yield from _hint(analysis, step, step.value, step.at.end)


def _hint(
    analysis: Analysis,
    valued: nodes.Expr | nodes.Step | None,
    declared: nodes.Expr | nodes.TensorDeclaration,
    offset: int,
) -> Iterator[Hint]:
    value = analysis.observed.values.get(id(valued)) if valued is not None else None
    made = analysis.observed.made.get(id(declared))
    parts: list[str] = []
    if value is not None and isinstance(value.what, Tensor | MultipleOutputs):
        parts.append(value_text(value.what))
    if made is not None and parameters(made.what):
        parts.append(f"{parameters(made.what):,}")
    first = value or made
    if parts and first is not None:
        yield Hint(offset, "  ".join(parts), first.model)
