"""A model's family: the definitions of its file with the same body and hyperparameters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from archspec.elaborate.models import Compiled, compile_definition, compile_model, defaults
from archspec.elaborate.program import Frame, Program
from archspec.elaborate.values import key_of
from archspec.explanations.relative import Relative
from archspec.ir import Module, uncollected
from archspec.model import Model, compiled_table, internals
from archspec.resolve.unit import Definition, Unit
from archspec.source import Enough, Report
from archspec.syntax import tree

MOST_CANDIDATES = 8


class Related(NamedTuple):
    """A definition compiled with a model's hyperparameters, and the address of the shared body in it and in the model
    (`home`). `models` are the models of the file that compile to the same module. It is `guessed` if it has a size
    that is not a hyperparameter of the model, at its default.
    """

    compiled: Compiled
    models: tuple[str, ...]
    body: str
    home: str
    guessed: bool


def family(program: Program, unit: Unit, model: tree.Model, compiled: Compiled) -> list[Related]:
    """Yield the definitions that declare the model's definition, or its body, with the model's hyperparameters.

    They are searched for in the file of the model or, if it has none, in the file of its definition. If one redeclares
    a hyperparameter (`(..Body, option = false)`), it is compiled both with the model's value and with its own default.
    A definition that does not compile with these hyperparameters is skipped without a diagnostic. Each is compiled in
    a separate program, so that no failed one leaves anything behind.
    """
    binding = unit.names.get(model.callee.text)
    definition = binding.target if binding is not None else None
    if not isinstance(definition, Definition):
        return []
    bodies = {"": definition, **_bodies(definition, compiled.module, program)}
    for home in dict.fromkeys((unit, definition.unit)):
        found = [
            related
            for candidate in _candidates(home, definition, bodies)
            for related in _related(home, candidate, bodies, compiled, _anew(definition))
        ]
        if found:
            return found
    return []


def _bodies(definition: Definition, module: Module, program: Program) -> dict[str, Definition]:
    """Return the modules that a definition declares directly and whose hyperparameters it inherits, by address."""
    taken = {
        e.default.text for e in definition.node.hyperparameters if e.name == ".." and isinstance(e.default, tree.Name)
    }
    owned = {
        address: program.definitions[member.target]
        for address, member in module.members.items()
        if isinstance(member.target, Module) and member.target in program.definitions
    }
    return {address: body for address, body in owned.items() if body.name in taken}


def _candidates(unit: Unit, definition: Definition, bodies: dict[str, Definition]) -> list[Definition]:
    """Yield the definitions of a file whose source contains the name of one of the bodies."""
    found: list[Definition] = []
    for binding in unit.names.values():
        target = binding.target
        if binding.imported or not isinstance(target, Definition) or target.kind == "fn" or target is definition:
            continue
        text = unit.source.text[target.node.start : target.node.end]
        if any(re.search(rf"\b{body.name}\b", text) for body in bodies.values()):
            found.append(target)
    return found[:MOST_CANDIDATES]


def _related(
    unit: Unit, candidate: Definition, bodies: dict[str, Definition], model: Compiled, anew: set[str]
) -> Iterator[Related]:
    """Compile a candidate with the model's hyperparameters: all, or those that neither redeclares (`anew`: model)."""
    seen: list[list[Any]] = []
    for kept in (set[str](), _anew(candidate), _anew(candidate) | anew):
        program = Program()
        compiled = _compile(program, unit, candidate, {n: v for n, v in model.hyperparameters.items() if n not in kept})
        values = list(map(key_of, compiled.hyperparameters.values())) if compiled is not None else []
        if compiled is None or values in seen:
            continue
        seen.append(values)
        for home, body in bodies.items():
            places = [a for a, m in compiled.module.members.items() if program.definitions.get(m.target) is body]  # pyright: ignore[reportArgumentType]
            if len(places) == 1:
                models = _models(program, unit, candidate, compiled.module)
                sizes = {n for n, value in compiled.hyperparameters.items() if type(value) is int}
                yield Related(compiled, models, places[0], home, not sizes <= set(model.hyperparameters))
                break


def _anew(definition: Definition) -> set[str]:
    """Return the hyperparameters with defaults that a definition declares in addition to the inherited ones."""
    entries = definition.node.hyperparameters
    if all(entry.name != ".." for entry in entries):
        return set()
    return {entry.name for entry in entries if entry.name != ".." and entry.default is not None}


def _compile(program: Program, unit: Unit, definition: Definition, given: dict[str, Any]) -> Compiled | None:
    """Compile a definition with those of the hyperparameters `given` that it has, or return None if that fails."""
    declared = definition.hyperparameters
    if any(name not in given and parameter.default is None for name, parameter in declared.items()):
        return None
    report = Report()
    program.begin(report, unit.source)
    with suppress(Enough):
        own = {name: value for name, value in given.items() if name in declared}
        node = definition.node.name
        values = defaults(program, unit, definition, own)
        made = (
            compile_definition(program, definition, values, Frame(definition, unit, node))
            if values is not None
            else None
        )
        if values is not None and made is not None and not report.failed:
            return Compiled(definition.name, values, *made, definition.node.doc, 0)
    return None


def _models(program: Program, unit: Unit, definition: Definition, module: Module) -> tuple[str, ...]:
    """Return the models of a file that compile to this module."""
    found: list[str] = []
    for name, node in unit.models.items():
        target = unit.names.get(node.callee.text)
        if target is not None and target.target is definition:
            program.begin(Report(), unit.source)
            with suppress(Enough):
                compiled = compile_model(program, unit, node, {})
                if compiled is not None and compiled.module is module:
                    found.append(name)
    return tuple(found)


def relatives_of(model: Model) -> tuple[Relative, ...]:
    """Return the relatives of a model: the definitions of its file with the same body and hyperparameters."""
    own = internals(model)
    with uncollected():
        related = family(own.program, own.unit, own.node, own.compiled)
        tables = [compiled_table(r.compiled, ()) for r in related]
    pairs = zip(related, tables, strict=True)
    return tuple([Relative(r.compiled.name, r.models, table, r.body, r.home, r.guessed) for r, table in pairs])
