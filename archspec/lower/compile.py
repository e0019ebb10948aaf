"""A model of a file, compiled: its hyperparameters, what it owns, what it computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from archspec.dims import symbol
from archspec.ir import Body, Leaf, Module, Type, Weight, canonical, find, leaves, prefixes
from archspec.lower.check import check_unit
from archspec.lower.evaluate import Evaluator
from archspec.lower.flow import Target, body_of
from archspec.lower.own import instantiate
from archspec.lower.plan import names_in
from archspec.lower.program import Frame, Program
from archspec.lower.units import Definition, Library, Unit
from archspec.lower.unused import report_unused
from archspec.lower.values import (
    DYNAMIC,
    POISON,
    accepts,
    describe,
    is_number,
    kind_of,
)
from archspec.ops import OPS, Op
from archspec.source import Span, suggest
from archspec.syntax import tree

_HARMLESS = {"unused-import", "unused-dimension", "expect"}
"""Codes of errors that say nothing against a model's numbers."""


class Compiled(NamedTuple):
    """A compiled model. `body` is what it computes when every optional input is given.

    `expectations` are how many `expect` lines it has.
    """

    name: str
    hyperparameters: dict[str, Any]
    module: Module
    body: Body
    doc: str
    expectations: int


def check_files(program: Program, library: Library, root: Unit) -> None:
    """Checks the file `root` and those it imports that are not bundled (`root` may be), once for a program."""
    for unit in dict.fromkeys((*library.units.values(), root)):
        if unit is None or unit in program.checked or (unit is not root and unit.root == library.specs):
            continue
        library.check_exports(unit, program.report)
        check_unit(program, unit)
        if not program.report.diagnostics:
            program.checked.add(unit)


def compile_model(program: Program, unit: Unit, model: tree.Model, overrides: dict[str, Any]) -> Compiled | None:
    """Compiles a model; None where what is in the program's report kept it from being compiled."""
    before = program.report.errors
    target = unit.names.get(model.callee.text)
    definition = target.target if target else None
    if not isinstance(definition, Definition) or definition.kind == "fn":
        return None  # check_unit said why
    values = hyperparameters(program, unit, model, definition, overrides)
    if values is None:
        return None
    compiled = compile_definition(program, definition, values, Frame(definition, unit, model.arguments or model))
    if compiled is None or program.report.errors > before:
        return None
    name = str(model.name.value)
    if not overrides and _is_right(program):
        _check_expectations(program, unit, model, values, compiled[0])
    return Compiled(name, values, *compiled, model.doc or definition.node.doc, len(model.expects))


def compile_definition(
    program: Program, definition: Definition, values: dict[str, Any], use: Frame
) -> tuple[Module, Body] | None:
    """What a definition with hyperparameters owns and computes, for symbolic input shapes.

    `use` is what asks for it. Raises OverBudget.
    """
    program.frames[:] = [use]
    module = instantiate(program, definition, values)
    types = _input_types(program, definition, values)
    if types is None:
        return None
    target = Target(definition, values, module)
    body = body_of(program, target, types)
    if definition not in program.checked:
        absent = _without_optional(definition, types)
        if absent != types:
            body_of(program, target, absent)
    if body is None:
        return None
    if _is_right(program):
        _check_idle(program, module, body)
    if not program.report.diagnostics:
        program.checked.add(definition)
    return module, body


def bare_body(program: Program, unit: Unit, model: tree.Model, compiled: Compiled) -> Body | None:
    """What a model that was compiled computes when no optional input is given."""
    target = unit.names.get(model.callee.text)
    assert target is not None and isinstance(target.target, Definition)
    definition, values = target.target, compiled.hyperparameters
    program.frames[:] = [Frame(definition, unit, model.arguments or model)]
    types = _input_types(program, definition, values)
    if types is None:
        return None
    return body_of(program, Target(definition, values, compiled.module), _without_optional(definition, types))


def _without_optional(definition: Definition, types: tuple[Type, ...]) -> tuple[Type | None, ...]:
    inputs = zip(definition.node.inputs, types, strict=True)
    return tuple([None if entry.default is not None else type for entry, type in inputs])


def _is_right(program: Program) -> bool:
    """Whether nothing was found that speaks against a model's numbers."""
    return all(d.severity != "error" or d.code in _HARMLESS for d in program.report.diagnostics)


def check_definitions(program: Program, unit: Unit) -> None:
    """Compiles the definitions of a file that can stand on their own.

    Those are the ones whose hyperparameters all have defaults, and whose inputs have shapes: `[...]` alone fits too
    much.
    """
    for binding in unit.names.values():
        definition = binding.target
        if binding.imported or not isinstance(definition, Definition) or definition.kind == "fn":
            continue
        shapes = [entry.shape.items for entry in definition.node.inputs if entry.shape is not None]
        if any(len(items) == 1 and isinstance(items[0], tree.Ellipsis_) for items in shapes):
            continue
        if all(p.default is not None for p in definition.hyperparameters.values()):
            values = Evaluator(program, unit, None, {}).hyperparameters(definition, None, definition.node.name)
            if values is not None:
                compile_definition(program, definition, values, Frame(definition, unit, definition.node.name))


def hyperparameters(
    program: Program, unit: Unit, model: tree.Model, definition: Definition, overrides: dict[str, Any]
) -> dict[str, Any] | None:
    """The values of a model's hyperparameters; None where what is in the program's report left one without."""
    evaluator = Evaluator(program, unit, None, {})
    written = evaluator.hyperparameters(definition, model.arguments, model)
    if written is None:
        return None
    if not overrides:
        return written
    chosen: dict[str, Any] = {}
    for name, value in overrides.items():
        if name not in definition.hyperparameters:
            near = suggest(name, list(definition.hyperparameters))
            help = near or f"available hyperparameters: {', '.join(definition.hyperparameters)}"
            message = f'unknown hyperparameter `{name}` of "{model.name.value}"'
            program.report.error("unknown-argument", message, help=help)
            continue
        chosen[name] = _override(program, unit, name, written[name], value)
    if POISON in chosen.values() or len(chosen) < len(overrides):
        return None
    return evaluator.hyperparameters(definition, model.arguments, model, chosen)


def _override(program: Program, unit: Unit, name: str, written: Any, value: Any) -> Any:
    """An override as a static value; a word stands for the definition, operation or string that it names."""
    value = _frozen(value)
    if isinstance(value, str) and not isinstance(written, str):
        binding = unit.names.get(value)
        target = binding.target if binding else OPS.get(value)
        if target is None and kind_of(written) in ("layer", "block", "function"):
            target = unit.lent.get(value)
            if target is None:
                near = suggest(value, [*unit.names, *OPS, *unit.lent])
                program.report.error("unknown-name", f"unknown name `{value}` in {unit.source.label}", help=near)
                return POISON
        value = target if target is not None else value
    if not accepts(written, value):
        message = f"hyperparameter `{name}` expects type {kind_of(written)}, found {describe(value)}"
        program.report.error("wrong-kind", message)
        return POISON
    return value


def _frozen(value: Any) -> Any:
    """A Python value with lists as tuples."""
    if not isinstance(value, list | tuple) or isinstance(value, Op):
        return value
    return tuple([_frozen(item) for item in cast("Sequence[Any]", value)])


def _input_types(program: Program, definition: Definition, values: dict[str, Any]) -> tuple[Type, ...] | None:
    """The types of the inputs of a definition that nothing applies: its dimensions stay symbols, `...` is one of
    them.
    """
    unit = definition.unit
    leading = "leading"
    while leading in unit.dims:
        leading += "_"
    env = {**{name: symbol(name) for name in unit.dims}, **values}
    evaluator = Evaluator(program, unit, definition, env)
    types: list[Type] = []
    for entry in definition.node.inputs:
        sizes: list[Any] = []
        for item in entry.shape.items if entry.shape else ():
            size = symbol(leading) if isinstance(item, tree.Ellipsis_) else evaluator.value(item)
            if size is POISON:
                return None
            if size is DYNAMIC or not is_number(size) or isinstance(size, float):
                evaluator.fault("wrong-kind", f"expected an integer size, found {describe(size)}", item)
                return None
            sizes.append(size)
        types.append(Type(tuple(sizes), entry.type or "real"))
    return tuple(types)


def _check_idle(program: Program, module: Module, body: Body) -> None:
    """Reports tensors that nothing uses under any of their names."""
    idle = set(body.idle)
    said: set[Span] = set()
    used_by_tie = {counted for alias, counted in module.aliases.items() if alias not in idle}
    for name in body.idle:
        counted = canonical(module, name)
        if counted in used_by_tie or (counted != name and counted not in idle):
            continue
        leaf = find(module, name)
        if isinstance(leaf, Leaf) and not leaf.weight.unused and leaf.weight.span not in said:
            said.add(leaf.weight.span)
            _report_idle(program, module, name, idle)


def _report_idle(program: Program, root: Module, name: str, idle: set[str]) -> None:
    """Reports an unused tensor, or the outermost layer or block around it of which nothing is used."""
    module, address = root, ""
    for prefix in prefixes(name):
        member = module.members.get(prefix[len(address) :])
        if member is None:
            continue
        if isinstance(member.target, Weight):
            report_unused(program, prefix, member.span, tensor=True)
            return
        if all(f"{prefix}.{inner}" in idle for inner, _ in leaves(member.target)):
            report_unused(program, prefix, member.span)
            return
        module, address = member.target, prefix + "."


def _check_expectations(
    program: Program, unit: Unit, model: tree.Model, values: dict[str, Any], module: Module
) -> None:
    facts = {
        "params": module.total,
        "trainable": module.total - module.frozen,
        "frozen": module.frozen,
        "tensors": sum(1 for _, leaf in leaves(module) if leaf.weight.kind == "param")
        if _mentions(model, "tensors")
        else 0,
    }
    evaluator = Evaluator(program, unit, None, {**values, **facts})
    for expect in model.expects:
        condition = expect.condition
        holds = evaluator.condition(condition)
        if holds is DYNAMIC:
            evaluator.fault("wrong-kind", "this condition is not a compile-time constant", condition)
        if holds is not False:
            continue
        report_expect(evaluator, str(model.name.value), condition)


def report_expect(evaluator: Evaluator, model: str, condition: tree.Expr) -> None:
    """Reports an `expect` that does not hold, with the numbers it compares and their difference."""
    message = f'"{model}" does not meet this expectation'
    if isinstance(condition, tree.Binary) and condition.operator not in ("and", "or"):
        left, right = evaluator.value(condition.left), evaluator.value(condition.right)
        if is_number(left) and is_number(right):
            text = evaluator.unit.source.text[condition.left.start : condition.left.end]
            message = f'"{model}": expected {text} {condition.operator} {right:,}, found {left:,}'
            if condition.operator == "==":
                message = f'"{model}": expected {text} == {right:,}, found {left:,} ({_signed(left - right)})'
    evaluator.fault("expect", message, condition)


def _signed(difference: Any) -> str:
    return f"{abs(difference):,} {'more' if difference > 0 else 'fewer'}"


def _mentions(model: tree.Model, name: str) -> bool:
    return any(name in names_in(e.condition) for e in model.expects)
