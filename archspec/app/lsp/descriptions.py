"""Descriptions of names: Markdown for hovering, short text for hints and completion."""

from __future__ import annotations

from archspec.app.lsp.observations import ObservedDeclaration, parameters
from archspec.app.lsp.occurrences import Occurrence
from archspec.app.lsp.workspace import Analysis
from archspec.compiler.evaluate.values import MultipleOutputs, Tensor, Value, show
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.unit import Definition
from archspec.ir.module import Module, Type
from archspec.ir.ops import Op
from archspec.ir.ops.record import REQUIRED
from archspec.language.syntax import tree


def hover(analysis: Analysis, offset: int) -> tuple[str, int, int] | None:
    """Markdown about the name at an offset, and where the name begins and ends."""
    found = analysis.occurrence_at(offset)
    if found is None:
        return None
    parts = [part for part in (_headline(analysis, found), _observed(analysis, found), _documentation(found)) if part]
    return ("\n\n".join(parts), found.start, found.end) if parts else None


def signature(definition: Definition) -> str:
    """The head of a definition as it is written, on one line."""
    text = definition.unit.source.text
    node = definition.node
    end = text.find("{", node.outputs[-1].end if node.outputs else node.name.end)
    head = text[node.name.start : end if end >= 0 else node.end]
    return f"{node.kind} " + " ".join(head.split()).replace(") (", ")(")


def operation_signature(op: Op) -> str:
    """The hyperparameters, inputs and result of an operation."""
    settings = ", ".join(a.name if a.default is REQUIRED else f"{a.name} = {show(a.default)}" for a in op.attributes)
    inputs = ", ".join(f"{i.name} {i.type}{'?' if i.optional else ''}" for i in op.inputs)
    return f"op {op.name}{f'({settings})' if settings else ''}({inputs})"


def shape(type: Type) -> str:
    """A type as it is written in a signature."""
    sizes = f"[{', '.join(str(size) for size in type.shape)}]"
    return sizes if type.dtype == "real" else f"{type.dtype} {sizes}"


def value_text(value: Value) -> str:
    """The shape of a tensor, or the value of anything else."""
    if isinstance(value, Tensor):
        return shape(value.type)
    if isinstance(value, MultipleOutputs):
        return ", ".join(shape(v.type) if v is not None else "none" for v in value.values)
    return show(value)


def _headline(analysis: Analysis, found: Occurrence) -> str:
    symbol, target = found.symbol, found.target
    if isinstance(target, Definition):
        return _code(signature(target))
    if isinstance(target, Op):
        return _code(operation_signature(target))
    match symbol.kind:
        case "hyperparameter":
            return f"hyperparameter `{symbol.name}` of `{symbol.owner}`{_default(analysis, found)}"
        case "address":
            return f"`{symbol.name.replace('.[]', '[...]')}` of `{symbol.owner}`"
        case "model":
            return _model(analysis, symbol.name)
        case "dimension":
            return f"dimension `{symbol.name}`"
        case _:
            return f"{symbol.kind} `{symbol.name}` of `{symbol.owner}`"


def _code(text: str) -> str:
    return f"```arch\n{text}\n```"


def _documentation(found: Occurrence) -> str:
    if isinstance(found.target, Definition):
        return found.target.node.doc
    return found.target.doc if isinstance(found.target, Op) else ""


def _default(analysis: Analysis, found: Occurrence) -> str:
    """The default of a hyperparameter, as it is written."""
    definition = analysis.definition_at(found.start)
    parameter = definition.hyperparameters.get(found.symbol.name) if definition is not None else None
    if parameter is None or parameter.default is None:
        return ""
    default = parameter.default
    return f", default `{parameter.unit.source.text[default.start : default.end]}`"


def _model(analysis: Analysis, name: str) -> str:
    compiled = analysis.compiled(name)
    if compiled is None:
        return f'model "{name}"'
    module = compiled.module
    frozen = f", {module.frozen:,} frozen" if module.frozen else ""
    return f'model "{name}": {module.total:,} parameters{frozen}'


def _observed(analysis: Analysis, found: Occurrence) -> str:
    """The shape, value or parameters that the compilation showed."""
    node = found.node
    if found.symbol.kind == "address" and isinstance(node, nodes.ModuleDeclaration | nodes.TensorDeclaration):
        return _made(analysis, analysis.observed.made.get(id(node)))
    seen = analysis.observed.values.get(id(node))
    if seen is None or found.target is not None:
        return ""
    return f"`{value_text(seen.what)}`{_where(seen.model, seen.different)}"


def _made(analysis: Analysis, seen: ObservedDeclaration | None) -> str:
    if seen is None:
        return ""
    made = seen.what
    count = parameters(made)
    compiled = analysis.compiled(seen.model) if seen.model else None
    share = f", {count / compiled.module.total:.1%} of the model each" if compiled and compiled.module.total else ""
    what = f"`{made.type}`" if isinstance(made, Module) else f"{made.kind} `{shape(made.type)}`"
    return f"{what}: {count:,} parameters{share}{_where(seen.model, len(seen.totals))}"


def _where(model: str, different: int) -> str:
    """In which model something was observed."""
    if not model:
        return " (with the defaults)"
    return f' (in "{model}"{", with others elsewhere" if different > 1 else ""})'


def model_line(analysis: Analysis, model: tree.Model) -> str | None:
    """The total of a model, for the line above it."""
    compiled = analysis.compiled(str(model.name.value))
    return f"{compiled.module.total:,} parameters" if compiled is not None else None
