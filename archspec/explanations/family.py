"""A model's family: what else its file makes of the same body, with the same hyperparameters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from archspec.elaborate.limits import OverLimit
from archspec.elaborate.models import Compiled, compile_definition, compile_model, defaults
from archspec.elaborate.program import Frame, Program
from archspec.elaborate.values import key_of
from archspec.explanations.relative import Relative
from archspec.ir import Module, uncollected
from archspec.model import Model, compiled_table, internals
from archspec.resolve.files import Definition, Unit
from archspec.source import Enough, Report
from archspec.syntax import tree

MOST_CANDIDATES = 8


class Related(NamedTuple):
    """A definition compiled with a model's hyperparameters, and where the body is that both have: its address in
    this one, and in the model (`home`). `models` are the models of the file that compile to the same. It is `guessed`
    if it has a size that is no hyperparameter of the model, at its default.
    """

    compiled: Compiled
    models: tuple[str, ...]
    body: str
    home: str
    guessed: bool


def family(program: Program, unit: Unit, model: tree.Model, compiled: Compiled) -> list[Related]:
    """The definitions that own the model's own definition, or the body that it owns itself, with its hyperparameters.

    They are looked for in the file of the model, or if there are none in that of its definition. A hyperparameter that
    one of them declares anew (`(..Body, option = false)`) it has once as the model has it, and once as it is declared.
    What cannot be compiled with these hyperparameters is no relative; nothing is reported of it, and nothing of it is
    kept: each is compiled in a program of its own.
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
    """What a definition owns directly and takes the hyperparameters of over (`..Body`), by address."""
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
    """Definitions of a file in whose text one of the bodies is named."""
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
    """A candidate with the model's hyperparameters: all, or those that neither declares anew (`anew`: the model)."""
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
    """The hyperparameters that a definition gives a default besides those that it takes over."""
    entries = definition.node.hyperparameters
    if all(entry.name != ".." for entry in entries):
        return set()
    return {entry.name for entry in entries if entry.name != ".." and entry.default is not None}


def _compile(program: Program, unit: Unit, definition: Definition, given: dict[str, Any]) -> Compiled | None:
    """A definition with those of the hyperparameters `given` that it has, and its defaults; None where that fails."""
    declared = definition.hyperparameters
    if any(name not in given and parameter.default is None for name, parameter in declared.items()):
        return None
    report = Report()
    program.begin(report, unit.source)
    with suppress(Enough, OverLimit):
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
    """The models of a file that are this module."""
    found: list[str] = []
    for name, node in unit.models.items():
        target = unit.names.get(node.callee.text)
        if target is not None and target.target is definition:
            program.begin(Report(), unit.source)
            with suppress(Enough, OverLimit):
                compiled = compile_model(program, unit, node, {})
                if compiled is not None and compiled.module is module:
                    found.append(name)
    return tuple(found)


def relatives_of(model: Model) -> tuple[Relative, ...]:
    """The relatives of a model: what else its file makes of the same body and hyperparameters."""
    own = internals(model)
    with uncollected():
        related = family(own.program, own.unit, own.node, own.compiled)
        tables = [compiled_table(r.compiled, ()) for r in related]
    pairs = zip(related, tables, strict=True)
    return tuple([Relative(r.compiled.name, r.models, table, r.body, r.home, r.guessed) for r, table in pairs])
