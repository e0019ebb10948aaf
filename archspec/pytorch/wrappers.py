"""Layers that are modules of `torch.nn`: classes derived from those, which add how the weights start out."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from archspec.elaborate.trace import Use
from archspec.ops import OPS
from archspec.pytorch.code import apply, literal, name, py, text
from archspec.pytorch.forms import LayerForm, layer_form, rms_eps
from archspec.pytorch.making import Making
from archspec.pytorch.operations import constant
from archspec.pytorch.pages import Output, Slot, Written
from archspec.pytorch.plan import Bound, Branch, Owning, Repeat, Tying, plan_of
from archspec.pytorch.scope import match
from archspec.pytorch.values import KIND, REAL
from archspec.resolve.files import Definition
from archspec.syntax import tree

if TYPE_CHECKING:
    from archspec.pytorch.book import Book

_OWN_START = {
    "nn.LayerNorm": {"weight": "constant(1.0)", "bias": "constant(0.0)"},
    "nn.RMSNorm": {"weight": "constant(1.0)"},
}
"""How the weights of a module of `torch.nn` start out by themselves."""


def wrapper(book: Book, definition: Definition, uses: Sequence[Use]) -> Written | None:
    """A layer as a class derived from one of `torch.nn`, if it is one in all its uses."""
    form = layer_form(uses) if uses else None
    plan = plan_of(definition)
    if form is None or any(isinstance(entry, Tying | Repeat | Branch) for entry in plan):
        return None
    owned = [entry for entry in plan if isinstance(entry, Owning)]
    tensors = {str(entry.address): entry for entry in owned}
    if len(tensors) < len(owned) or not set(tensors) <= {"weight", "bias"}:
        return None
    making = Making(book, definition, uses)
    for entry in plan:
        if isinstance(entry, Bound):
            making.bind_number(entry)
    arguments = _arguments(book, making, definition, form, tensors)
    if arguments is None:
        return None
    making.body.append(ast.Expr(apply(py("super().__init__"), *arguments)))
    for word, entry in tensors.items():
        _start(making, form, word, entry)
    entry = definition.node.inputs[0]
    slot = Slot(making.variable(entry.name), KIND[entry.type], False)
    return book.page(definition, making, (slot,), (Output("", REAL, None),), None, frozenset(), form.name, None)


def _arguments(
    book: Book,
    making: Making,
    definition: Definition,
    form: LayerForm,
    tensors: dict[str, Owning],
) -> tuple[list[ast.expr], dict[str, ast.expr]] | None:
    """What the constructor of the module of `torch.nn` is given."""
    weight = tensors["weight"].node
    assert isinstance(weight, tree.Param)
    sizes = [making.static(item) for item in weight.shape.items]
    bias = _has_bias(making, tensors.get("bias"))
    keywords: dict[str, ast.expr] = {}
    if bias is not None and form.name not in ("nn.Embedding", "nn.RMSNorm"):
        keywords["bias"] = bias
    match form.name:
        case "nn.Linear":
            return [sizes[1], sizes[0]], keywords
        case "nn.Embedding":
            return sizes, keywords
        case "nn.RMSNorm":
            eps = _named_value(book, making, definition, [rms_eps(use) for use in making.uses])
            return (sizes, {"eps": eps}) if eps is not None else None
        case _:
            settings = _settings(making, definition, form.op or "")
            if settings is None:
                return None
    if form.name == "nn.LayerNorm":
        return sizes, {"eps": settings["eps"], **keywords}
    chosen = {w: c for w, c in settings.items() if w != "transposed" and constant(c) != {"padding": 0}.get(w, 1)}
    groups = settings["groups"]
    channels = sizes[1] if constant(groups) == 1 else _channels(weight, making, groups)
    kernel = sizes[2] if len({text(s) for s in sizes[2:]}) == 1 else ast.Tuple(sizes[2:], ast.Load())
    return [channels, sizes[0], kernel], {**chosen, **keywords}


def _channels(weight: tree.Param, making: Making, groups: ast.expr) -> ast.expr:
    """The channels that go in: the weight has as many as one group of them."""
    item = weight.shape.items[1]
    if isinstance(item, tree.Binary) and item.operator == "//" and text(making.static(item.right)) == text(groups):
        return making.static(item.left)
    return py("size * groups", size=making.static(item), groups=groups)


def _has_bias(making: Making, entry: Owning | None) -> ast.expr | None:
    """Whether there is a bias, as an argument; None where there is, as by default."""
    if entry is None:
        return literal(False)
    open_ = [c for c, _ in entry.guards if making.truth(c) is None]
    if open_:
        return making.static(open_[0])
    return None if all(making.truth(c) is w for c, w in entry.guards) else literal(False)


def _settings(making: Making, definition: Definition, op: str) -> dict[str, ast.expr] | None:
    """The hyperparameters of the operation that a layer returns, as written there."""
    last = definition.node.body[-1]
    call = last.values[0] if isinstance(last, tree.Return) and len(last.values) == 1 else None
    if not isinstance(call, tree.Call) or not isinstance(call.callee, tree.Name) or call.callee.text != op:
        return None
    given = match([a.name for a in OPS[op].attributes], call.lists[0] if len(call.lists) == 2 else None)
    settings = {a.name: literal(a.default) for a in OPS[op].attributes if a.name not in given}
    settings |= {word: making.static(item.value) for word, item in given.items() if item.value is not None}
    return settings


def _named_value(book: Book, making: Making, definition: Definition, values: Sequence[float | None]) -> ast.expr | None:
    """The one hyperparameter that has these values in the uses, or the one value there is."""
    words = [
        word
        for word in definition.hyperparameters
        if all(float_of(use.values[word]) == v for use, v in zip(making.uses, values, strict=True))
    ]
    if len(words) == 1:
        return name(book.parameters(definition)[words[0]])
    return literal(values[0]) if not words and len(set(values)) == 1 else None


def float_of(value: object) -> float | None:
    return value if isinstance(value, float) else None


def _start(making: Making, form: LayerForm, word: str, entry: Owning) -> None:
    """How a tensor starts out, where that is not what the module of `torch.nn` does."""
    node = entry.node
    assert isinstance(node, tree.Param)
    if any(making.truth(c) is not None and making.truth(c) is not w for c, w in entry.guards):
        return
    place = making.places.place([word])
    outer, making.body = making.body, []
    if node.value is not None:
        making.tensor_at(place, node, "frozen" in node.modifiers)
    else:
        if node.initial is not None:
            written = f"{node.initial.name}({', '.join(text(making.static(a)) for a in node.initial.arguments)})"
            if _OWN_START.get(form.name, {}).get(word) != written:
                making.initialise(place.code, node)
        if "frozen" in node.modifiers:
            making.body.append(ast.Expr(py("x.requires_grad_(False)", x=place.code)))
    inner, making.body = making.body, outer
    open_ = [making.static(c) for c, _ in entry.guards if making.truth(c) is None]
    making.body += [ast.If(open_[0], inner, [])] if open_ and inner else inner
