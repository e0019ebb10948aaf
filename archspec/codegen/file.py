"""The text of a Python file that holds a model: a class for each block and layer, a function for each function."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from archspec.codegen.classes.module_writer import ModuleWriter
from archspec.codegen.python.layout import bracketed, docstring, lines_of
from archspec.codegen.python.trees import apply, name, names_in, text
from archspec.codegen.scope.context import EmittedDefinition, Output
from archspec.codegen.scope.scope import untranslatable_error
from archspec.codegen.scope.values import STATIC
from archspec.compiler.elaborate.models import MAX_OPTIONAL_INPUTS
from archspec.compiler.elaborate.trace import Trace
from archspec.compiler.evaluate.values import Value, show
from archspec.compiler.resolve.unit import Definition
from archspec.ir.ops import OPS
from archspec.language.syntax import tree

MAX_LISTED = 5
"""Outputs whose types are listed."""

_NEEDS = {
    "dtype": "dtype: torch.dtype",
    "device": "device: torch.device | None = None",
    "training": "training: bool",
}
"""Parameters of functions that make tensors and are given none, or that act in training only."""

_HELPERS = {
    "has_part": '''def has_part(module: nn.Module, address: str) -> bool:
    """Whether there is a part at an address inside a module."""
    *way, last = address.split(".")
    for word in way:
        if word not in module._modules:
            return False
        module = module._modules[word]
    tables = (module._modules, module._parameters, module._buffers)
    return any(table.get(last) is not None for table in tables)''',
    "own": '''def own(
    module: nn.Module, address: str, part: nn.Module | nn.Parameter | Tensor
) -> None:
    """Puts a part at an address inside a module, with plain modules on the way."""
    *way, last = address.split(".")
    for word in way:
        if word not in module._modules:
            module._modules[word] = nn.Module()
        module = module._modules[word]
    if isinstance(part, nn.Module):
        module._modules[last] = part
    elif isinstance(part, nn.Parameter):
        module._parameters[last] = part
    else:
        module._buffers[last] = part''',
    "part_at": '''def part_at(module: nn.Module, address: str) -> nn.Module | Tensor:
    """The part at an address inside a module, whatever methods modules have."""
    *way, last = address.split(".")
    for word in way:
        module = module._modules[word]
    for parts in (module._modules, module._parameters, module._buffers):
        if last in parts:
            return parts[last]
    raise AttributeError(address)''',
    "tie": '''def tie(
    whole: nn.Module, alias: nn.Module | Tensor, counted: nn.Module | Tensor
) -> None:
    """Makes tensors one, under every name that they have in a module."""
    pairs = [(alias, counted)]
    if isinstance(alias, nn.Module):
        others = counted.state_dict(keep_vars=True)
        pairs = [
            (tensor, others[name])
            for name, tensor in alias.state_dict(keep_vars=True).items()
        ]
    replaced = {id(one): other for one, other in pairs}
    for module in whole.modules():
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                tensors[name] = replaced.get(id(tensor), tensor)''',
}


def file_text(trace: Trace, model: str, doc: str, values: dict[str, Value], total: int) -> str:
    """The file of a model; `values` are its hyperparameters, `total` its number of parameters.

    Raises ArchError (`untranslatable`), with the place in the spec, where something has no form in PyTorch.
    """
    optional = [entry for entry in trace.root.inputs if entry.default is not None]
    if len(optional) > MAX_OPTIONAL_INPUTS:
        message = f"at most {MAX_OPTIONAL_INPUTS} inputs of a model may be optional in PyTorch"
        raise untranslatable_error(message, trace.root, optional[MAX_OPTIONAL_INPUTS])
    writer = ModuleWriter(trace)
    root = writer.write(trace.root)
    parts = [_definition(writer, emitted) for emitted in writer.emitted.values()]
    called = names_in([ast.parse("\n".join(line for part in parts for line in part))])
    parts += [text.split("\n") for text in _helpers(called)]
    parts.append(_build(writer, root, model, doc, values))
    body = "\n".join("\n".join(["", "", *part]) for part in parts)
    lines = [*_title(model, values, total), "", "from __future__ import annotations", "", *_imports(body)]
    return "\n".join(lines) + "\n" + body + "\n"


def _helpers(called: set[str]) -> list[str]:
    """The definitions of the names that are called, and of those that they call."""
    helpers = "\n\n\n".join(op.torch.helper for op in OPS.values() if op.torch is not None and op.torch.helper)
    known = {**_HELPERS, **{re.split(r"\W+", part, maxsplit=2)[1]: part for part in helpers.split("\n\n\n")}}
    pending = [word for word in known if word in called]
    for word in pending:
        pending += [other for other in known if other not in pending and other in names_in([ast.parse(known[word])])]
    return [known[word] for word in sorted(pending)]


def _title(model: str, values: dict[str, Value], total: int) -> list[str]:
    written = ", ".join(f"{word} = {show(value)}" for word, value in values.items())
    return docstring(
        [
            f"{model} in PyTorch, generated by archspec from its spec.",
            f"It has {total:,} parameters. `build()` makes the model, whose `state_dict()` has a checkpoint's names.",
            f"Hyperparameters: {written}. What they settle is resolved in this file; for another architecture, build "
            "one from the specification: `archspec build SPEC --set NAME=VALUE`."
            if written
            else "",
        ],
        0,
    )


def _imports(body: str) -> list[str]:
    tree_ = ast.parse(body)
    used = names_in([tree_])
    lines: list[str] = []
    if "math" in used:
        lines.append("import math")
    if "Callable" in used:
        lines.append("from collections.abc import Callable")
    if "partial" in used:
        lines.append("from functools import partial")
    typing = [word for word in ("Any", "NamedTuple") if word in used]
    if typing:
        lines.append(f"from typing import {', '.join(typing)}")
    if lines:
        lines.append("")
    if "torch" in used:
        lines.append("import torch")
    if "F" in used:
        lines.append("import torch.nn.functional as F")
    which = [word for word in ("Tensor", "nn") if word in used]
    return [*lines, f"from torch import {', '.join(which)}"] if which else lines


def _definition(writer: ModuleWriter, emitted: EmittedDefinition) -> list[str]:
    if emitted.is_unused:
        return _unused(emitted)
    if emitted.head:
        return [*emitted.head, *_doc(emitted, 1), *lines_of(emitted.forward or [], 1)]
    return _function(writer, emitted) if emitted.definition.kind == "fn" else _class(writer, emitted)


def _unused(emitted: EmittedDefinition) -> list[str]:
    body = emitted.forward or []
    if emitted.definition.kind == "fn":
        return [f"def {emitted.name}(*inputs: Tensor) -> Tensor:", *_doc(emitted, 1), *lines_of(body, 1)]
    doc = _doc(emitted, 1)
    head = "    def __init__(self, *values: object, **named: object) -> None:"
    return [f"class {emitted.name}({emitted.base}):", *doc, *([""] if doc else []), head, *lines_of(body, 2)]


def _function(writer: ModuleWriter, emitted: EmittedDefinition) -> list[str]:
    parameters = _parameters(emitted, [writer.parameters.annotated(emitted.definition, word) for word in emitted.kept])
    head = bracketed(f"def {emitted.name}(", parameters, f") -> {_result(emitted)}:", 0)
    return [*head, *_doc(emitted, 1), *lines_of(emitted.forward or [], 1)]


def _class(writer: ModuleWriter, emitted: EmittedDefinition) -> list[str]:
    lines: list[str] = []
    if emitted.record is not None:
        lines += [f"class {emitted.record}(NamedTuple):"]
        lines += [f"    {o.name}: {_annotation(o)}" for o in emitted.outputs if o.kind is not None]
        lines += ["", ""]
    lines += [f"class {emitted.name}({emitted.base}):"]
    doc = _doc(emitted, 1)
    lines += [*doc, *([""] if doc else [])]
    if emitted.init and not (emitted.base == "nn.Module" and len(emitted.init) == 1):
        parameters = [
            "self",
            *_ordered([writer.parameters.annotated(emitted.definition, word) for word in emitted.kept]),
        ]
        lines += [*bracketed("def __init__(", parameters, ") -> None:", 1), *lines_of(emitted.init, 2)]
        lines += [""]
    if emitted.forward is not None:
        head = bracketed("def forward(", ["self", *_parameters(emitted, [])], f") -> {_result(emitted)}:", 1)
        lines += [*head, *_signature(emitted), *lines_of(emitted.forward, 2)]
    while lines and not lines[-1]:
        lines.pop()
    return lines if len(lines) > 1 else [*lines, "    pass"]


def _ordered(parameters: list[str]) -> list[str]:
    """Parameters with a `*` where one without a default follows one with."""
    for i, parameter in enumerate(parameters):
        if i and "=" not in parameter and "=" in parameters[i - 1]:
            return [*parameters[:i], "*", *parameters[i:]]
    return parameters


def _parameters(emitted: EmittedDefinition, words: Sequence[str]) -> list[str]:
    """The inputs, and behind a `*` what goes by name: hyperparameters `words`, and what a function needs."""
    found: list[str] = []
    by_name = [*words, *[parameter for word, parameter in _NEEDS.items() if word in emitted.needs]]
    for slot in emitted.inputs:
        if slot is None:
            continue
        kind = "float" if slot.kind == STATIC else "Tensor"
        parameter = f"{slot.name}: {kind} | None = None" if slot.optional else f"{slot.name}: {kind}"
        (by_name if slot.by_name else found).append(parameter)
    by_name.sort(key=lambda parameter: "=" in parameter)
    return [*found, "*", *by_name] if by_name else found


def _result(emitted: EmittedDefinition) -> str:
    if emitted.record is not None:
        return emitted.record
    present = [_annotation(o) for o in emitted.outputs if o.kind is not None]
    if len(present) > MAX_LISTED:
        return f"tuple[{max(present)}, ...]"
    return ", ".join(present) or "None" if len(present) < 2 else f"tuple[{', '.join(present)}]"


def _annotation(output: Output) -> str:
    return "Tensor | None" if output.optional else "Tensor"


def _doc(emitted: EmittedDefinition, indent: int) -> list[str]:
    """The documentation of a definition, without the sentences about parameters that the model settles."""
    definition = emitted.definition
    taken = {*emitted.kept, *[slot.name for slot in emitted.inputs if slot is not None]}
    settled = {*definition.hyperparameters, *definition.takes.names} - taken
    paragraphs = [" ".join(paragraph.split()) for paragraph in definition.node.doc.split("\n\n")]
    kept = [
        " ".join(s for s in _SENTENCES.split(paragraph) if settled.isdisjoint(_QUOTED.findall(s)))
        for paragraph in paragraphs
    ]
    return docstring([paragraph for paragraph in kept if paragraph], indent)


_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")
_QUOTED = re.compile(r"`(\w+)`")


def _signature(emitted: EmittedDefinition) -> list[str]:
    """The shapes of inputs and outputs, as the spec has them."""
    definition = emitted.definition
    inputs: list[str] = []
    for own, slot in zip(definition.inputs, emitted.inputs, strict=True):
        origin, entry = definition.inherited_inputs.get(own.name, (definition, own))
        if slot is not None and entry.shape is not None:
            inputs.append(f"{entry.name} {_shape(origin, entry.type, entry.shape)}")
    outputs = [
        f"{o.name} {_shape(definition, o.type, o.shape)}".strip() + "?" * (o.optional and found.optional)
        for o, found in zip(definition.node.outputs, emitted.outputs, strict=True)
        if found.kind is not None
    ]
    if not inputs or not outputs:
        return []
    return docstring([f"{', '.join(inputs)} -> {', '.join(outputs)}."], 2)


def _shape(definition: Definition, type: str, shape: tree.ListLiteral) -> str:
    written = " ".join(definition.unit.source.text[shape.start : shape.end].split())
    return f"{type} {written}".strip()


def _build(writer: ModuleWriter, root: EmittedDefinition, model: str, doc: str, values: dict[str, Value]) -> list[str]:
    keywords: dict[str, ast.expr] = {}
    parameters = writer.parameters
    for word in root.kept:
        if parameters.is_computed(root.definition, word) and word not in writer.trace.explicit:
            continue
        code = writer.context.code_of(values[word])
        if code is None:
            raise untranslatable_error(f"`{word}` has no form in PyTorch", root.definition, root.definition.node.name)
        usual = parameters.default(root.definition, word)
        if usual is None or text(usual) != text(code):
            keywords[writer.context.parameters(root.definition)[word]] = code
    made = ast.Return(apply(name(root.name), [], keywords))
    own = doc if doc != root.definition.node.doc else ""  # the class has that of the definition
    paragraphs = [f"The model {model}.", *[" ".join(p.split()) for p in own.split("\n\n")]]
    return [f"def build() -> {root.name}:", *docstring(paragraphs, 1), *lines_of([made], 1)]
