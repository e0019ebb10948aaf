"""The text of a Python file that holds a model: a class for each block and layer, a function for each function."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from archspec.algebra import Polynomial
from archspec.elaborate.trace import MOST_OPTIONAL, Trace
from archspec.ops import OPS, Op
from archspec.pytorch.book import Book
from archspec.pytorch.code import apply, name, names_in, text
from archspec.pytorch.defaults import code_of, default, is_computed
from archspec.pytorch.handed import Kept
from archspec.pytorch.layout import bracketed, docstring, lines_of, written
from archspec.pytorch.pages import Output, Written
from archspec.pytorch.scope import untranslatable
from archspec.pytorch.values import STATIC
from archspec.resolve.files import Definition
from archspec.syntax import tree

MOST_LISTED = 5
"""Outputs whose types are listed."""

_PLACES = {"dtype": "dtype: torch.dtype", "device": "device: torch.device | None = None"}
"""Parameters of functions that make tensors and are given none."""

_HELPERS = {
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


def file_text(trace: Trace, model: str, doc: str, values: dict[str, Any], total: int) -> str:
    """The file of a model; `values` are its hyperparameters, `total` its number of parameters.

    Raises ArchError (`untranslatable`), with the place in the spec, where something has no form in PyTorch.
    """
    optional = [entry for entry in trace.root.node.inputs if entry.default is not None]
    if len(optional) > MOST_OPTIONAL:
        message = f"at most {MOST_OPTIONAL} inputs of a model may be optional in PyTorch"
        raise untranslatable(message, trace.root, optional[MOST_OPTIONAL])
    book, root = _written(trace)
    parts = [_page(book, page) for page in book.pages.values()]
    called = names_in([ast.parse("\n".join(line for part in parts for line in part))])
    helpers = {op.name: op.torch.helper for op in OPS.values() if op.torch is not None and op.torch.helper}
    parts += [text.split("\n") for word, text in sorted({**_HELPERS, **helpers}.items()) if word in called]
    parts.append(_build(book, root, model, doc, values))
    body = "\n".join("\n".join(["", "", *part]) for part in parts)
    lines = [*_title(model, total), "", "from __future__ import annotations", "", *_imports(body)]
    return "\n".join(lines) + "\n" + body + "\n"


def _written(trace: Trace) -> tuple[Book, Written]:
    """The definitions; once more while there are hyperparameters to be kept for checks."""
    forced = Kept()
    while True:
        book = Book(trace, forced)
        root = book.written(trace.root)
        forced = book.to_be_kept()
        if forced == book.forced:
            return book, root


def _title(model: str, total: int) -> list[str]:
    return docstring(
        [
            f"{model} in PyTorch, written by archspec from its specification.",
            f"It has {total:,} parameters. `build()` makes the model, whose `state_dict()` has a checkpoint's names.",
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
    if "NamedTuple" in used:
        lines.append("from typing import NamedTuple")
    if lines:
        lines.append("")
    if "torch" in used:
        lines.append("import torch")
    if "F" in used:
        lines.append("import torch.nn.functional as F")
    which = [word for word in ("Tensor", "nn") if word in used]
    return [*lines, f"from torch import {', '.join(which)}"] if which else lines


def _page(book: Book, page: Written) -> list[str]:
    if page.is_unused:
        return _unused(page)
    return _function(book, page) if page.definition.kind == "fn" else _class(book, page)


def _unused(page: Written) -> list[str]:
    body = page.computing or []
    if page.definition.kind == "fn":
        return [f"def {page.name}(*inputs: Tensor) -> Tensor:", *_doc(page, 1), *lines_of(body, 1)]
    told = _doc(page, 1)
    head = "    def __init__(self, *values: object, **named: object) -> None:"
    return [f"class {page.name}({page.base}):", *told, *([""] if told else []), head, *lines_of(body, 2)]


def _function(book: Book, page: Written) -> list[str]:
    parameters = _parameters(page, [_parameter(book, page.definition, word) for word in page.kept])
    head = bracketed(f"def {page.name}(", parameters, f") -> {_result(page)}:", 0)
    return [*head, *_doc(page, 1), *lines_of(page.computing or [], 1)]


def _class(book: Book, page: Written) -> list[str]:
    lines: list[str] = []
    if page.record is not None:
        lines += [f"class {page.record}(NamedTuple):"]
        lines += [f"    {o.name}: {_annotation(o)}" for o in page.outputs if o.kind is not None]
        lines += ["", ""]
    lines += [f"class {page.name}({page.base}):"]
    told = _doc(page, 1)
    lines += [*told, *([""] if told else [])]
    if page.making and not (page.base == "nn.Module" and len(page.making) == 1):
        parameters = ["self", *_ordered([_parameter(book, page.definition, word) for word in page.kept])]
        lines += [*bracketed("def __init__(", parameters, ") -> None:", 1), *lines_of(page.making, 2)]
        lines += [""]
    if page.computing is not None:
        head = bracketed("def forward(", ["self", *_parameters(page, [])], f") -> {_result(page)}:", 1)
        lines += [*head, *_signature(page), *lines_of(page.computing, 2)]
    while lines and not lines[-1]:
        lines.pop()
    return lines if len(lines) > 1 else [*lines, "    pass"]


def _ordered(parameters: list[str]) -> list[str]:
    """Parameters with a `*` where one without a default follows one with."""
    for i, parameter in enumerate(parameters):
        if i and "=" not in parameter and "=" in parameters[i - 1]:
            return [*parameters[:i], "*", *parameters[i:]]
    return parameters


def _parameters(page: Written, words: Sequence[str]) -> list[str]:
    """The inputs, and behind a `*` what goes by name: hyperparameters `words`, and what new tensors are made of."""
    found: list[str] = []
    by_name = [*words, *[parameter for word, parameter in _PLACES.items() if word in page.needs]]
    for slot in page.inputs:
        if slot is None:
            continue
        kind = "float" if slot.kind == STATIC else "Tensor"
        parameter = f"{slot.name}: {kind} | None = None" if slot.optional else f"{slot.name}: {kind}"
        (by_name if slot.by_name else found).append(parameter)
    by_name.sort(key=lambda parameter: "=" in parameter)
    return [*found, "*", *by_name] if by_name else found


def _parameter(book: Book, definition: Definition, word: str) -> str:
    """A hyperparameter with the type of its values, and its default."""
    values = book.values(definition, word)
    usual = ast.Constant(None) if is_computed(book, definition, word) else default(book, definition, word)
    kinds = {_type(v) for v in values} | {_type_of(usual)}
    if "float" in kinds:
        kinds -= {"int"}
    known = sorted(kinds - {"None", ""}) + (["None"] if "None" in kinds else [])
    annotation = f": {' | '.join(known)}" if known and known != ["None"] else ""
    if usual is None:
        return f"{book.parameters(definition)[word]}{annotation}"
    equal = " = " if annotation else "="
    return f"{book.parameters(definition)[word]}{annotation}{equal}{written(usual)}"


def _type_of(default: ast.expr | None) -> str:
    """The type of a default, "" if that says nothing: it is one of the values if it is more than a literal."""
    try:
        return _type(ast.literal_eval(default)) if default is not None else ""
    except ValueError:
        return ""


def _type(value: Any) -> str:
    match value:
        case None:
            return "None"
        case bool() | int() | float() | str():
            return value.__class__.__name__
        case Polynomial():
            return "int"
        case Definition() if value.kind != "fn":
            return "type[nn.Module]"
        case Definition() | Op():
            return "Callable[..., Tensor]"
        case _:
            return "tuple"


def _result(page: Written) -> str:
    if page.record is not None:
        return page.record
    present = [_annotation(o) for o in page.outputs if o.kind is not None]
    if len(present) > MOST_LISTED:
        return f"tuple[{max(present)}, ...]"
    return present[0] if len(present) == 1 else f"tuple[{', '.join(present)}]"


def _annotation(output: Output) -> str:
    return "Tensor | None" if output.optional else "Tensor"


def _doc(page: Written, indent: int) -> list[str]:
    paragraphs = [" ".join(p.split()) for p in page.definition.node.doc.split("\n\n")]
    return docstring(paragraphs, indent)


def _signature(page: Written) -> list[str]:
    """The shapes of inputs and outputs, as the spec has them."""
    node = page.definition.node
    inputs = [
        f"{e.name} {_shape(page.definition, e.type, e.shape)}"
        for e, slot in zip(node.inputs, page.inputs, strict=True)
        if slot is not None and e.shape is not None
    ]
    outputs = [f"{o.name} {_shape(page.definition, o.type, o.shape)}".strip() for o in node.outputs]
    if not inputs or not outputs:
        return []
    return docstring([f"{', '.join(inputs)} -> {', '.join(outputs)}."], 2)


def _shape(definition: Definition, type: str, shape: tree.Listing) -> str:
    written = " ".join(definition.unit.source.text[shape.start : shape.end].split())
    return f"{type} {written}".strip()


def _build(book: Book, root: Written, model: str, doc: str, values: dict[str, Any]) -> list[str]:
    keywords: dict[str, ast.expr] = {}
    for word in root.kept:
        if is_computed(book, root.definition, word) and word not in book.trace.given:
            continue
        code = code_of(book, values[word])
        if code is None:
            raise untranslatable(f"`{word}` has no form in PyTorch", root.definition, root.definition.node.name)
        usual = default(book, root.definition, word)
        if usual is None or text(usual) != text(code):
            keywords[book.parameters(root.definition)[word]] = code
    made = ast.Return(apply(name(root.name), [], keywords))
    told = [f"The model {model}.", *[" ".join(p.split()) for p in doc.split("\n\n")]]
    return [f"def build() -> {root.name}:", *docstring(told, 1), *lines_of([made], 1)]
