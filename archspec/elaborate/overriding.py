"""Values of hyperparameters that are set outside a spec, instead of those in it."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.algebra import Polynomial
from archspec.elaborate.hyperparameters import Evaluator
from archspec.elaborate.program import Program
from archspec.elaborate.values import POISON, Value, accepts, describe, kind_of
from archspec.literals import expression
from archspec.ops import OPS, Op
from archspec.resolve.expressions import Expressions
from archspec.resolve.scope import Scope
from archspec.resolve.unit import Binding, Definition, Unit
from archspec.source import Source, Span, suggest
from archspec.table import Plain


def overriding(program: Program, unit: Unit, name: str, written: Value, given: Plain | Polynomial) -> Value:
    """Convert an override to a static value; POISON after reporting an error.

    A name stands for a definition, an operation or a string; `Name(n = 4)` for a definition with hyperparameters bound.
    """
    value = _frozen(given)
    if isinstance(value, str) and not isinstance(written, str):
        word, parenthesis, _ = value.partition("(")
        target = _target(program, unit, word.strip(), is_definition=kind_of(written) in ("layer", "block", "function"))
        if target is POISON:
            return POISON
        if target is not None:
            value = _bound(program, unit, name, value) if parenthesis else target
    if value is not POISON and not accepts(written, value):
        message = f"hyperparameter `{name}` expects type {kind_of(written)}, found {describe(value)}"
        program.report.error("wrong-kind", message)
        return POISON
    return value


def _target(program: Program, unit: Unit, word: str, is_definition: bool) -> Value:
    """Return what a word names; None for a string, POISON after reporting that no definition has the name."""
    binding = unit.names.get(word)
    target = binding.target if binding else OPS.get(word)
    if target is None and is_definition:
        target = unit.lent.get(word)
        if target is None:
            near = suggest(word, [*unit.names, *OPS, *unit.lent])
            program.report.error("unknown-name", f"unknown name `{word}` in {unit.source.label}", help=near)
            return POISON
    return target


def _bound(program: Program, unit: Unit, name: str, text: str) -> Value:
    """Evaluate a definition with hyperparameters bound, as in a file with the names of `unit`."""
    source = Source(f"--set {name}", text)
    expr = expression(source, program.report)
    if expr is None:
        return POISON
    file = Unit(source, unit.tree, None, None)
    lent: dict[str, Definition | Op] = unit.lent
    file.names = {word: Binding(target, Span(source, 0, 0), True) for word, target in lent.items()} | unit.names
    return Evaluator(program, file, None, {}).value(Expressions(Scope(file, None, program.report)).resolve(expr))


def _frozen(value: Plain | Polynomial) -> Value:
    """Convert lists in a Python value to tuples."""
    return value if isinstance(value, str) or not isinstance(value, Sequence) else tuple(map(_frozen, value))
