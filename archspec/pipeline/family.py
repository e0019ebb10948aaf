"""A model's family: the definitions of its file with the same body and hyperparameters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from archspec.compiler.elaborate.models import CompiledModel, compile_definition, compile_model, defaults
from archspec.compiler.evaluate.program import Frame, Program
from archspec.compiler.evaluate.values import Value, value_key
from archspec.compiler.resolve.unit import Definition, Unit
from archspec.core.diagnostics import Report, StopCompilation
from archspec.ir.module import Module, gc_paused
from archspec.ir.table import Table
from archspec.language.syntax import tree
from archspec.pipeline.model import Model, build_model_table, get_compilation

MAX_CANDIDATES = 8


class Relative(NamedTuple):
    """A model that shares its body with another model but has different task heads.

    `definition` is the name of its definition, and `models` are the models in the file that compile to the same module.
    The address of the shared body is `body` in its own table and `home` in the other model ("" if that model is the
    body). It is `guessed` if it has a size that is not a hyperparameter of the other model, at its default.
    """

    definition: str
    models: tuple[str, ...]
    table: Table
    body: str
    home: str
    guessed: bool


def relatives_of(model: Model) -> tuple[Relative, ...]:
    """Return the definitions that declare a model's definition, or its body, with the model's hyperparameters.

    They are searched for in the file of the model or, if it has none, in the file of its definition. If one redeclares
    a hyperparameter (`(..Body, option = false)`), it is compiled both with the model's value and with its own default.
    A definition that does not compile with these hyperparameters is skipped without a diagnostic. Each is compiled in
    a separate program, so that no failed one leaves anything behind.
    """
    own = get_compilation(model)
    definition = own.unit.names[own.node.callee.text].target
    assert isinstance(definition, Definition)  # otherwise, the model would not have been compiled
    bodies = {"": definition, **_bodies(definition, own.compiled.module, own.program)}
    with gc_paused():
        for unit in dict.fromkeys((own.unit, definition.unit)):
            relatives = [
                relative
                for candidate in _candidates(unit, definition, bodies)
                for relative in _related(unit, candidate, bodies, own.values, redeclared(definition))
            ]
            if relatives:
                return tuple(relatives)
    return ()


def _bodies(definition: Definition, module: Module, program: Program) -> dict[str, Definition]:
    """Return the modules that a definition declares directly and whose hyperparameters it inherits, by address."""
    entries = definition.node.hyperparameters
    inherited = {e.default.text for e in entries if e.name == ".." and isinstance(e.default, tree.Name)}
    return {
        address: body
        for address, member in module.members.items()
        if isinstance(member.target, Module)
        and (body := program.definitions.get(member.target)) is not None
        and body.name in inherited
    }


def _candidates(unit: Unit, definition: Definition, bodies: dict[str, Definition]) -> list[Definition]:
    """Return the definitions of a file whose source contains the name of one of the bodies."""
    names = re.compile(rf"\b({'|'.join(body.name for body in bodies.values())})\b")
    targets = [binding.target for binding in unit.names.values() if not binding.imported]
    return [
        target
        for target in targets
        if isinstance(target, Definition) and target.kind != "fn" and target is not definition
        if names.search(unit.source.text, target.node.start, target.node.end)
    ][:MAX_CANDIDATES]


def _related(
    unit: Unit,
    candidate: Definition,
    bodies: dict[str, Definition],
    values: dict[str, Value],
    excluded_in_model: set[str],
) -> Iterator[Relative]:
    """Compile a candidate with the `values` of the model: with all, without those that the candidate redeclares, and
    without those that either of them redeclares.
    """
    seen: list[list[object]] = []
    tried: list[set[str]] = []
    for excluded in (set[str](), redeclared(candidate), redeclared(candidate) | excluded_in_model):
        names = (values.keys() & candidate.hyperparameters) - excluded
        if names in tried:
            continue
        tried.append(names)
        program = Program()
        compiled = compile_with(program, unit, candidate, {n: v for n, v in values.items() if n in names})
        if compiled is None:
            continue
        keys: list[object] = [*map(value_key, compiled.hyperparameters.values())]
        if keys in seen:
            continue
        seen.append(keys)
        members = compiled.module.members.items()
        owned = {a: program.definitions.get(m.target) for a, m in members if isinstance(m.target, Module)}
        for home, body in bodies.items():
            addresses = [address for address, owner in owned.items() if owner is body]
            if len(addresses) == 1:
                models = _models(program, unit, candidate, compiled.module)
                sizes = {n for n, value in compiled.hyperparameters.items() if type(value) is int}
                table = build_model_table(compiled, ())
                yield Relative(compiled.name, models, table, addresses[0], home, not sizes <= values.keys())
                break


def redeclared(definition: Definition) -> set[str]:
    """Return the hyperparameters with defaults that a definition declares in addition to the inherited ones."""
    entries = definition.node.hyperparameters
    declared = {entry.name for entry in entries if entry.name != ".." and entry.default is not None}
    return declared if any(entry.name == ".." for entry in entries) else set()


def compile_with(
    program: Program, unit: Unit, definition: Definition, hyperparameters: dict[str, Value]
) -> CompiledModel | None:
    """Compile a definition with the `hyperparameters` that it declares; return None if that fails."""
    declared = definition.hyperparameters
    report = Report()
    program.begin(report, unit.source)
    with suppress(StopCompilation):
        values = defaults(program, unit, definition, {n: v for n, v in hyperparameters.items() if n in declared})
        use = Frame(definition, unit, definition.node.name)
        result = compile_definition(program, definition, values, use) if values is not None else None
        if values is not None and result is not None and not report.failed:
            return CompiledModel(definition.name, values, *result, definition.node.doc, 0)
    return None


def _models(program: Program, unit: Unit, definition: Definition, module: Module) -> tuple[str, ...]:
    """Return the models of a file that compile to this module."""
    names: list[str] = []
    for name, node in unit.models.items():
        target = unit.names.get(node.callee.text)
        if target is not None and target.target is definition:
            program.begin(Report(), unit.source)
            with suppress(StopCompilation):
                compiled = compile_model(program, unit, node, {})
                if compiled is not None and compiled.module is module:
                    names.append(name)
    return tuple(names)
