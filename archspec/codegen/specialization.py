"""Translation of a model whose definitions may need several classes or functions in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from archspec.compiler.elaborate.trace import Trace
from archspec.compiler.evaluate.program import specialization_key
from archspec.compiler.resolve.unit import Definition
from archspec.core.diagnostics import ArchError
from archspec.pipeline.model import Compilation

Text = TypeVar("Text")


def translate(compilation: Compilation, write: Callable[[Trace], Text]) -> Text:
    """Apply `write` to the trace of a model.

    A definition that has no form in Python for all of its uses is written once for each combination of the layers,
    functions and settings that it is used with. Raises the first ArchError if that does not help.
    """
    specialized: list[Definition] = []
    first: ArchError | None = None
    while True:
        trace = compilation.trace(specialized)
        try:
            return write(trace)
        except ArchError as problem:
            first = first or problem
            definition = _find_definition(trace, problem)
            if definition is None or len({specialization_key(use.values) for use in trace.uses[definition]}) < 2:
                raise first from None
            specialized.append(definition)


def _find_definition(trace: Trace, problem: ArchError) -> Definition | None:
    """Return the definition that has a form in Python for some of its uses only."""
    span = problem.diagnostics[0].span
    for definition in trace.uses if span is not None else ():
        node, unit = definition.node, definition.unit
        if span is not None and unit.source is span.source and node.start <= span.start < node.end:
            return definition
    return None
