"""Descriptions of names: Markdown for hovers, short text for completion, inlay hints and code lenses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from archspec.app.lsp.observations import ObservedDeclaration, count_parameters
from archspec.app.lsp.occurrences import Occurrence
from archspec.app.lsp.workspace import Analysis
from archspec.compiler.evaluate.values import MultipleOutputs, Tensor, Value, show
from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.definition import resolve_definition
from archspec.compiler.resolve.labels import definition_label, entry_labels
from archspec.compiler.resolve.unit import Definition
from archspec.core.diagnostics import Report
from archspec.core.record import Record
from archspec.ir.module import Module, Type
from archspec.ir.ops import Op
from archspec.ir.ops.record import REQUIRED


def hover(analysis: Analysis, offset: int) -> tuple[str, int, int] | None:
    """Return Markdown about the name at an offset, with the start and end of the name."""
    occurrence = analysis.occurrence_at(offset)
    if occurrence is None:
        return None
    label = _find_label(analysis, occurrence)
    headline = _headline(analysis, occurrence) + (f'\n\nlabel "{label}"' if label is not None else "")
    parts = headline, _observation(analysis, occurrence), _documentation(occurrence)
    text = "\n\n".join(filter(None, parts))
    return (text, occurrence.start, occurrence.end) if text else None


def signature(definition: Definition) -> str:
    """Return the signature of a definition verbatim, on one line."""
    text = definition.unit.source.text
    node = definition.node
    end = text.find("{", node.outputs[-1].end if node.outputs else node.name.end)
    words = text[node.name.start : end if end >= 0 else node.end].split()
    return f"{node.kind} " + " ".join(words).replace(") (", ")(")


def operation_signature(op: Op) -> str:
    """Return the signature of an operation: its hyperparameters and inputs."""
    attributes = ", ".join(a.name if a.default is REQUIRED else f"{a.name} = {show(a.default)}" for a in op.attributes)
    inputs = ", ".join(f"{i.name} {i.type}{'?' if i.optional else ''}" for i in op.inputs)
    return f"op {op.name}{f'({attributes})' if attributes else ''}({inputs})"


def format_type(type: Type) -> str:
    """Return a type in the syntax of signatures."""
    sizes = f"[{', '.join(str(size) for size in type.shape)}]"
    return sizes if type.dtype == "real" else f"{type.dtype} {sizes}"


def format_value(value: Value) -> str:
    """Return the type of a tensor or of several outputs; the value itself for other values."""
    if isinstance(value, Tensor):
        return format_type(value.type)
    if isinstance(value, MultipleOutputs):
        return ", ".join(format_type(v.type) if v is not None else "none" for v in value.values)
    return show(value)


def _headline(analysis: Analysis, occurrence: Occurrence) -> str:
    symbol, target = occurrence.symbol, occurrence.target
    if isinstance(target, Definition):
        return _code_block(signature(target))
    if isinstance(target, Op):
        return _code_block(operation_signature(target))
    match symbol.kind:
        case "hyperparameter":
            return f"hyperparameter `{symbol.name}` of `{symbol.owner}`{_format_default(analysis, occurrence)}"
        case "address":
            return f"`{symbol.name.replace('.[]', '[...]')}` of `{symbol.owner}`"
        case "model":
            return _format_model(analysis, symbol.name)
        case "dimension":
            return f"dimension `{symbol.name}`"
        case _:
            return f"{symbol.kind} `{symbol.name}` of `{symbol.owner}`"


def _find_label(analysis: Analysis, occurrence: Occurrence) -> str | None:
    """Return the label of a definition, or of a hyperparameter, input or output."""
    if isinstance(occurrence.target, Definition):
        return definition_label(occurrence.target)
    definition = _find_owner(analysis, occurrence)
    return entry_labels(definition).get(occurrence.symbol.name) if definition is not None else None


def _find_owner(analysis: Analysis, occurrence: Occurrence) -> Definition | None:
    """Return the definition of a hyperparameter, input or output: the one around the name if it inherits it."""
    symbol, paths, user = occurrence.symbol, analysis.paths, analysis.definition_at(occurrence.start)
    for unit in (analysis.unit, *paths):
        if unit is None or paths.get(unit, unit.source.label) != symbol.path or symbol.owner not in unit.names:
            continue
        owner = unit.names[symbol.owner].target
        if not isinstance(owner, Definition):
            return None
        parameter = user.hyperparameters.get(symbol.name) if user is not None else None
        origin, _ = user.inherited_inputs.get(symbol.name, (None, None)) if user is not None else (None, None)
        return user if owner in (origin, parameter.origin if parameter is not None else None) else owner
    return None


def _code_block(text: str) -> str:
    return f"```arch\n{text}\n```"


def _documentation(occurrence: Occurrence) -> str:
    if isinstance(occurrence.target, Definition):
        return occurrence.target.node.doc
    return occurrence.target.doc if isinstance(occurrence.target, Op) else ""


def _format_default(analysis: Analysis, occurrence: Occurrence) -> str:
    """Return the default of a hyperparameter verbatim, as a suffix; "" if there is none."""
    definition = _find_owner(analysis, occurrence)
    parameter = definition.hyperparameters.get(occurrence.symbol.name) if definition is not None else None
    if parameter is None or parameter.default is None:
        return ""
    default = parameter.default
    return f", default `{parameter.unit.source.text[default.start : default.end]}`"


def _format_model(analysis: Analysis, name: str) -> str:
    compiled = analysis.compiled(name)
    if compiled is None:
        return f'model "{name}"'
    module = compiled.module
    frozen = f", {module.frozen:,} frozen" if module.frozen else ""
    return f'model "{name}": {module.total:,} parameters{frozen}'


def _observation(analysis: Analysis, occurrence: Occurrence) -> str:
    """Return the type, value or parameter count of a name in a compilation; "" if it was not compiled."""
    node = occurrence.node
    if occurrence.symbol.kind == "address" and isinstance(node, nodes.ModuleDeclaration | nodes.TensorDeclaration):
        return _format_declaration(analysis, analysis.observed.declarations.get(id(node)))
    observed = analysis.observed.values.get(id(node))
    if observed is None or occurrence.target is not None:
        return ""
    return f"`{format_value(observed.first)}`{_format_scope(observed.model, observed.count_distinct())}"


def _format_declaration(analysis: Analysis, observed: ObservedDeclaration | None) -> str:
    if observed is None:
        return ""
    declared = observed.first
    count = count_parameters(declared)
    compiled = analysis.compiled(observed.model) if observed.model else None
    share = f", {count / compiled.module.total:.1%} of the model each" if compiled and compiled.module.total else ""
    kind = f"`{declared.type}`" if isinstance(declared, Module) else f"{declared.kind} `{format_type(declared.type)}`"
    return f"{kind}: {count:,} parameters{share}{_format_scope(observed.model, len(observed.totals))}"


def _format_scope(model: str, distinct: int) -> str:
    """Return a suffix that names the model of an observation, and mentions the other `distinct - 1` values."""
    if not model:
        return " (with the defaults)"
    return f' (in "{model}"{", with others elsewhere" if distinct > 1 else ""})'


class Lens(Record):
    """A text to show above the model with a name, at `offset`."""

    offset: int
    name: str
    title: str


_MODEL = re.compile(r'^[ \t]*model[ \t]+"((?:[^"\\\n]|\\.)*)"', re.MULTILINE)


def iter_lenses(analysis: Analysis) -> Iterator[Lens]:
    """Yield a lens for each model of a file: its parameter count, or that it has an error."""
    models = analysis.unit.models if analysis.unit is not None else {}
    for name, model in models.items():
        compiled = analysis.compiled(name)
        total = compiled.module.total if compiled is not None else analysis.total_despite_errors(name)
        yield Lens(model.start, name, _NOT_COUNTED if total is None else f"{total:,} parameters")
    starts = {model.start for model in models.values()}
    for match in _MODEL.finditer(analysis.source.text):  # statements that syntax errors hide
        offset = match.start() + len(match[0]) - len(match[0].lstrip())
        if offset not in starts:
            yield Lens(offset, match[1], _NOT_COUNTED)


_NOT_COUNTED = "not counted because of an error"


# Inlay hints ---------------------------------------------------------------------------------------------------------


class Hint(Record):
    """A text to show at `offset`, and the model that it holds for ("" for the defaults)."""

    offset: int
    text: str
    model: str


def iter_hints(analysis: Analysis, start: int, end: int) -> Iterator[Hint]:
    """Yield the hints between two offsets of a file: types of results, and parameter counts of declarations."""
    for binding in analysis.unit.names.values() if analysis.unit is not None else ():
        target = binding.target
        if isinstance(target, Definition) and not binding.imported and target.node.outputs:
            for statement in walk.iter_statements(resolve_definition(target, Report()).body):
                if statement.at.start < end and statement.at.end >= start:
                    yield from _statement_hints(analysis, statement)


def _statement_hints(analysis: Analysis, statement: nodes.Statement) -> Iterator[Hint]:
    if isinstance(statement, nodes.Declare):
        for declaration in statement.declares:
            yield from _hint_at(analysis, None, declaration.what, declaration.what.at.end)
    elif isinstance(statement, nodes.Assign):
        if isinstance(statement.value, nodes.Chain):
            yield from _chain_hints(analysis, statement.value)
        else:
            yield from _hint_at(analysis, statement.value, statement.value, statement.at.end)
    elif isinstance(statement, nodes.Return):
        for value in statement.values:
            yield from _chain_hints(analysis, value) if isinstance(value, nodes.Chain) else ()


def _chain_hints(analysis: Analysis, chain: nodes.Chain) -> Iterator[Hint]:
    if not isinstance(chain.head, nodes.Local):
        yield from _hint_at(analysis, chain.head, chain.head, chain.head.at.end)
    for step in chain.steps:
        yield from _hint_at(analysis, step, step.value, step.at.end)


def _hint_at(
    analysis: Analysis,
    valued: nodes.Expr | nodes.Step | None,
    declared: nodes.Expr | nodes.TensorDeclaration,
    offset: int,
) -> Iterator[Hint]:
    value = analysis.observed.values.get(id(valued)) if valued is not None else None
    declaration = analysis.observed.declarations.get(id(declared))
    parts: list[str] = []
    if value is not None and isinstance(value.first, Tensor | MultipleOutputs):
        parts.append(format_value(value.first))
    if declaration is not None and count_parameters(declaration.first):
        parts.append(f"{count_parameters(declaration.first):,}")
    observed = value or declaration
    if parts and observed is not None:
        yield Hint(offset, "  ".join(parts), observed.model)
