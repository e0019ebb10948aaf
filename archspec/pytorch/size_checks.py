"""Checks in a model's `forward` that its inputs have the sizes that the spec fixes."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from archspec.ir import Type
from archspec.pytorch.forward_method import ForwardMethod
from archspec.pytorch.pyast import apply, literal, method, name, names_in, py, sequence
from archspec.pytorch.values import Val
from archspec.resolve import nodes


def size_checks(forward: ForwardMethod) -> list[ast.stmt]:
    """A check for each input of a model that has sizes of its own."""
    found: list[ast.stmt] = []
    for i, (entry, value) in enumerate(zip(forward.scope.form.inputs, forward.scope.inputs, strict=True)):
        given = [use.given[i] for use in forward.scope.uses]
        types = [g for g in given if isinstance(g, Type)]
        if entry.shape is None or not types:
            continue
        sizes = _fixed(forward, entry.shape.items, types)
        if sizes:
            is_optional = len(types) < len(given) or entry.optional
            found.append(_check(forward, entry, value, sizes, is_optional))
    return found


def _fixed(forward: ForwardMethod, items: Sequence[nodes.Expr], types: Sequence[Type]) -> dict[int, ast.expr]:
    """The sizes that are the same in every use, by place in the shape."""
    found: dict[int, ast.expr] = {}
    end = _ellipsis(items)
    for i, item in enumerate(items):
        if i == end:
            continue
        values = {t.shape[i if i < end else i - len(items)] for t in types}
        size = next(iter(values))
        if len(values) == 1 and isinstance(size, int):
            code = forward.static.code(item)
            found[i] = code if names_in([code]) <= {"self"} else literal(size)
    return found


def _ellipsis(items: Sequence[nodes.Expr]) -> int:
    return next((i for i, item in enumerate(items) if isinstance(item, nodes.Leading)), len(items))


def _check(
    forward: ForwardMethod, entry: nodes.Entry, value: Val, sizes: dict[int, ast.expr], is_optional: bool
) -> ast.stmt:
    assert entry.shape is not None
    items = entry.shape.items
    shape = method(value.code, "shape")
    end, first = _ellipsis(items), min(sizes)
    wanted = sequence(list(sizes.values()))
    if len(sizes) == len(items) - first and (end == len(items) or end < first):
        start = first - len(items) if end < len(items) else first
        part = ast.Subscript(shape, ast.Slice(literal(start)), ast.Load()) if start else shape
        test = py("part != wanted", part=part, wanted=wanted)
    else:
        places = [i if i < end else i - len(items) for i in sizes]
        parts = [ast.Subscript(shape, literal(i), ast.Load()) for i in places]
        one = len(parts) == 1
        test = py("a != b", a=parts[0] if one else sequence(parts), b=sizes[min(sizes)] if one else wanted)
    if is_optional:
        test = ast.BoolOp(ast.And(), [py("x is not None", x=value.code), test])
    told = _message(forward, entry.name, shape, items, sizes)
    return ast.If(test, [ast.Raise(apply(name("ValueError"), [told]))], [])


def _message(
    forward: ForwardMethod, word: str, shape: ast.expr, items: Sequence[nodes.Expr], sizes: dict[int, ast.expr]
) -> ast.expr:
    """`x has shape [...], not [batch, 4]`, with the sizes of this module."""
    values: list[ast.expr] = [ast.Constant(f"{word} has shape "), ast.FormattedValue(py("list(x)", x=shape), -1, None)]
    text = ", expected ["
    for i, item in enumerate(items):
        text += ", " if i else ""
        size = sizes.get(i)
        if size is None:
            text += " ".join(forward.scope.unit.source.text[item.at.start : item.at.end].split())
        elif isinstance(size, ast.Constant):
            text += str(size.value)
        else:
            values += [ast.Constant(text), ast.FormattedValue(size, -1, None)]
            text = ""
    return ast.JoinedStr([*values, ast.Constant(text + "]")])
