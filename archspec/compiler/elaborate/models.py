"""Compilation of a model in a file: its hyperparameters, its module and its body."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, islice

from archspec.compiler.check import check_file
from archspec.compiler.elaborate.bodies import compile_body
from archspec.compiler.elaborate.differences import describe_difference
from archspec.compiler.elaborate.ownership import instantiate
from archspec.compiler.evaluate.hyperparameters import Evaluator, convert_override, hyperparameter_values
from archspec.compiler.evaluate.interpreter import Interpreter
from archspec.compiler.evaluate.program import CompileTarget, Frame, Program
from archspec.compiler.evaluate.values import DYNAMIC, POISON, Value, describe, is_number
from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.callees import join_names
from archspec.compiler.resolve.definition import (
    ResolvedModel,
    resolve_definition,
    resolve_expectations,
    resolve_model,
    uses_hyperparameter,
)
from archspec.compiler.resolve.files import Library
from archspec.compiler.resolve.unit import Definition, Unit
from archspec.core.addresses import prefixes
from archspec.core.algebra import Expression, Polynomial, symbol
from archspec.core.diagnostics import Note, Span, suggest
from archspec.core.record import Record
from archspec.ir.module import (
    Body,
    LocatedTensor,
    Module,
    ModuleTensor,
    Type,
    canonical_name,
    find_member,
    iter_tensors,
)
from archspec.ir.table import PlainValue
from archspec.language.syntax import tree

_HARMLESS_CODES = {"unused-import", "unused-dimension", "expect"}
"""Codes of errors that do not affect the counts of a model."""

MAX_OPTIONAL_INPUTS = 6
"""Maximum number of optional inputs of which every combination is compiled."""


class CompiledModel(Record):
    """A compiled model. `body` is its computation with all optional inputs present.

    `expectations` is the number of its `expect` lines.
    """

    name: str
    hyperparameters: dict[str, Value]
    module: Module
    body: Body
    doc: str
    expectations: int


def check_files(program: Program, library: Library, root: Unit) -> None:
    """Check the file `root` and its imports, except for bundled ones, once per program.

    The warnings of files that were checked before are reported again.
    """
    report = program.report
    for unit in dict.fromkeys((*library.units.values(), root)):
        if unit is None or (unit is not root and unit.root == library.specs):
            continue
        if unit in program.checked:
            for warning in program.warnings.get(unit, ()):
                report.add(warning)
            continue
        before = len(report.diagnostics)
        library.check_exports(unit, report)
        check_file(unit, report)
        if not report.failed:
            program.checked.add(unit)
            program.warnings[unit] = tuple(report.diagnostics[before:])


def has_only_file_warnings(program: Program) -> bool:
    """Whether the report has no diagnostics except for warnings of `check_files`, which are repeated."""
    file_warnings = {warning for warnings in program.warnings.values() for warning in warnings}
    return file_warnings.issuperset(program.report.diagnostics)


def compile_model(
    program: Program, unit: Unit, model: tree.Model, overrides: Mapping[str, PlainValue | Polynomial]
) -> CompiledModel | None:
    """Compile a model; None if errors in the program's report prevent that."""
    before = program.report.errors
    form = resolve_model(unit, model, program.report)
    if form is None:
        return None
    definition = form.definition
    use = Frame(definition, unit, model.arguments or model)
    program.frames[:] = [use]
    values = hyperparameters(program, unit, form, overrides)
    if values is None:
        return None
    compiled = compile_definition(program, definition, values, use)
    if compiled is None or program.report.errors > before:
        return None
    if not overrides and _counts_are_valid(program):
        _check_expectations(program, unit, form, values, compiled[0])
    return CompiledModel(form.name, values, *compiled, model.doc or definition.node.doc, len(model.expects))


def compile_definition(
    program: Program, definition: Definition, values: dict[str, Value], use: Frame
) -> tuple[Module, Body] | None:
    """Compile a definition with hyperparameters to its module and body, for symbolic input shapes.

    `use` is the use that requires it. Raises StopCompilation at a limit.
    """
    program.frames[:] = [use]
    module = instantiate(program, definition, values)
    types = _input_types(program, definition, values)
    if types is None:
        return None
    target = CompileTarget(definition, values, module)
    body = compile_body(program, target, types)
    if body is None:
        return None
    bodies = [body]
    if definition not in program.checked or body.unused:
        bodies += _compile_without_each_optional(program, target, types)
    if _counts_are_valid(program):
        _check_unused(program, module, bodies)
    if has_only_file_warnings(program):
        program.checked.add(definition)
    return module, body


def compile_without_optional(program: Program, unit: Unit, model: tree.Model, compiled: CompiledModel) -> Body | None:
    """Return the body of a compiled model without optional inputs."""
    form = resolve_model(unit, model, program.report)
    assert form is not None
    definition, values = form.definition, compiled.hyperparameters
    program.frames[:] = [Frame(definition, unit, model.arguments or model)]
    types = _input_types(program, definition, values)
    if types is None:
        return None
    return compile_body(
        program, CompileTarget(definition, values, compiled.module), _without_optional(definition, types)
    )


def _compile_without_each_optional(program: Program, target: CompileTarget, types: tuple[Type, ...]) -> list[Body]:
    """Compile a definition without each combination of its first MAX_OPTIONAL_INPUTS optional inputs."""
    report = program.report
    names = [entry.name for entry in target.definition.inputs]
    optional = [i for i, entry in enumerate(target.definition.inputs) if entry.default is not None]
    bodies: list[Body] = []
    for absent in islice(_iter_absent_inputs(optional), 2**MAX_OPTIONAL_INPUTS):
        before = len(report.diagnostics)
        body = compile_body(program, target, tuple([None if i in absent else type for i, type in enumerate(types)]))
        if body is not None:
            bodies.append(body)
        without = Note(f"without {join_names([names[i] for i in absent])}")
        noted = [d._replace(notes=(*d.notes, without)) for d in report.diagnostics[before:]]
        report.diagnostics[before:] = noted
    return bodies


def _iter_absent_inputs(optional: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield all optional inputs, then the smaller non-empty combinations in order of size."""
    if optional:
        yield tuple(optional)
    for size in range(1, len(optional)):
        yield from combinations(optional, size)


def _without_optional(definition: Definition, types: tuple[Type, ...]) -> tuple[Type | None, ...]:
    inputs = zip(definition.inputs, types, strict=True)
    return tuple([None if entry.default is not None else type for entry, type in inputs])


def _counts_are_valid(program: Program) -> bool:
    """Whether no reported error affects the counts of a model."""
    return all(d.severity != "error" or d.code in _HARMLESS_CODES for d in program.report.diagnostics)


def check_definitions(program: Program, unit: Unit) -> None:
    """Compile the layers and blocks of a file that can be compiled without a model.

    All their hyperparameters have defaults, and no input has the shape `[...]`.
    """
    for binding in unit.names.values():
        definition = binding.target
        if binding.imported or not isinstance(definition, Definition) or definition.kind == "fn":
            continue
        shapes = [entry.shape.items for entry in definition.inputs if entry.shape is not None]
        if any(len(items) == 1 and isinstance(items[0], tree.LeadingDimensions) for items in shapes):
            continue
        if all(p.default is not None for p in definition.hyperparameters.values()):
            values = defaults(program, unit, definition)
            if values is not None:
                compile_definition(program, definition, values, Frame(definition, unit, definition.node.name))


def defaults(
    program: Program, unit: Unit, definition: Definition, overrides: dict[str, Value] | None = None
) -> dict[str, Value] | None:
    """Return the values of a definition's hyperparameters: `overrides`, and defaults for the remaining ones."""
    return hyperparameter_values(
        Evaluator(program, unit, None, {}), definition, {}, None, definition.node.name, overrides
    )


def hyperparameters(
    program: Program, unit: Unit, form: ResolvedModel, overrides: Mapping[str, PlainValue | Polynomial]
) -> dict[str, Value] | None:
    """Return the values of a model's hyperparameters; None after errors in the program's report."""
    definition, bound = form.definition, form.arguments.bound
    if bound is None:
        return None
    interpreter = Evaluator(program, unit, None, {})
    values = hyperparameter_values(interpreter, definition, bound.hyperparameters, None, form.at)
    if values is None:
        return None
    if not overrides:
        return values
    converted: dict[str, Value] = {}
    for name, value in overrides.items():
        if name not in definition.hyperparameters:
            suggestion = suggest(name, list(definition.hyperparameters))
            help = suggestion or f"available hyperparameters: {', '.join(definition.hyperparameters)}"
            message = f'unknown hyperparameter `{name}` of "{form.name}"'
            program.report.error("unknown-argument", message, help=help)
            continue
        if not uses_hyperparameter(definition, name, program.report):
            message = f'hyperparameter `{name}` of "{form.name}" is never used, so setting it changes nothing'
            program.report.error("unused-hyperparameter", message, definition.hyperparameters[name].span)
            continue
        converted[name] = convert_override(program, unit, name, values[name], value)
    if POISON in converted.values() or len(converted) < len(overrides):
        return None
    return hyperparameter_values(interpreter, definition, bound.hyperparameters, None, form.at, converted)


def _input_types(program: Program, definition: Definition, values: dict[str, Value]) -> tuple[Type, ...] | None:
    """Return the types of the inputs of a model's definition: dimensions are symbols, and `...` is one symbol."""
    unit = definition.unit
    leading = "leading"
    while leading in unit.dims:
        leading += "_"
    env = {**{f"dim {name}": symbol(name) for name in unit.dims}, **values}
    interpreter = Evaluator(program, unit, definition, env)
    types: list[Type] = []
    for entry in resolve_definition(definition, program.report).inputs:
        sizes: list[Expression] = []
        for item in entry.shape.items if entry.shape else ():
            size = symbol(leading) if isinstance(item, nodes.LeadingDimensions) else interpreter.value(item)
            if size is POISON:
                return None
            if not is_number(size) or isinstance(size, float):
                interpreter.fault("wrong-kind", f"expected an integer size, found {describe(size)}", item.at)
                return None
            sizes.append(size)
        types.append(Type(tuple(sizes), "real" if entry.dtype == "any" else entry.dtype))
    return tuple(types)


def _check_unused(program: Program, module: Module, bodies: list[Body]) -> None:
    """Report tensors that no body uses under any of their names."""
    unused = set(bodies[0].unused)
    unused.intersection_update(*[body.unused for body in bodies[1:]])
    used_by_tie = {counted for alias, counted in module.aliases.items() if alias not in unused}
    for name in bodies[0].unused:
        if name not in unused:
            continue
        counted = canonical_name(module, name)
        if counted in used_by_tie or (counted != name and counted not in unused):
            continue
        leaf = find_member(module, name)
        if isinstance(leaf, LocatedTensor) and not leaf.weight.unused:
            _report_unused(program, module, name, unused)


def _report_unused(program: Program, root: Module, name: str, unused: set[str]) -> None:
    """Report an unused tensor, or its outermost enclosing layer or block that is unused."""
    module, address = root, ""
    for prefix in prefixes(name):
        member = module.members.get(prefix[len(address) :])
        if member is None:
            continue
        if isinstance(member.target, ModuleTensor):
            _report_unused_address(program, "tensor", prefix, member.span)
            return
        if all(f"{prefix}.{suffix}" in unused for suffix, _ in iter_tensors(member.target)):
            _report_unused_address(program, "layer", prefix, member.span)
            return
        module, address = member.target, prefix + "."


def _report_unused_address(program: Program, noun: str, address: str, span: Span) -> None:
    help = "use it, remove it, or mark it `unused`"
    program.error(f"unused-{noun}", f"`{address}` does not affect any output", span, help=help)


def _check_expectations(
    program: Program, unit: Unit, form: ResolvedModel, values: dict[str, Value], module: Module
) -> None:
    facts = {"params": module.total, "trainable": module.total - module.frozen, "frozen": module.frozen}
    conditions = resolve_expectations(unit, form.at, (*values, *facts, "tensors"), program.report)
    if any("tensors" in walk.local_names(condition) for condition in conditions):
        facts["tensors"] = sum(1 for _, leaf in iter_tensors(module) if leaf.weight.kind == "param")
    interpreter = Evaluator(program, unit, None, {**values, **facts})
    for condition in conditions:
        holds = interpreter.condition(condition)
        if holds is DYNAMIC:
            interpreter.fault("wrong-kind", "this condition is not a compile-time constant", condition.at)
        if holds is False:
            _report_expectation(interpreter, form.name, condition, module)


def _report_expectation(interpreter: Interpreter, model: str, condition: nodes.Expr, module: Module) -> None:
    """Report an `expect` that does not hold, with the compared numbers and their difference."""
    notes: tuple[Note, ...] = ()
    message = f'"{model}" does not meet this expectation'
    if isinstance(condition, nodes.Binary) and condition.operator not in ("and", "or"):
        left, right = interpreter.value(condition.left), interpreter.value(condition.right)
        if isinstance(left, int | float) and isinstance(right, int | float):
            text = interpreter.unit.source.text[condition.left.at.start : condition.left.at.end]
            message = f'"{model}": expected {text} {condition.operator} {right:,}, found {left:,}'
            if condition.operator == "==":
                message = f'"{model}": expected {text} == {right:,}, found {left:,} ({_format_signed(left - right)})'
                notes = _describe_difference(module, text, left - right)
    interpreter.fault("expect", message, condition.at, notes=notes)


def _describe_difference(module: Module, quantity: str, difference: float) -> tuple[Note, ...]:
    """Return a note on the tensors whose sizes are the difference of a quantity, if there are few."""
    if quantity not in ("params", "trainable", "frozen"):
        return ()
    text = describe_difference(
        module, int(difference), lambda leaf: quantity == "params" or leaf.frozen == (quantity == "frozen")
    )
    return (Note(text),) if text is not None else ()


def _format_signed(difference: float) -> str:
    return f"{abs(difference):,} {'more' if difference > 0 else 'fewer'}"
