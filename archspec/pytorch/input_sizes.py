"""The sizes that a body uses, from the shapes of its inputs."""

from __future__ import annotations

import ast

from archspec.pytorch.pyast import bind, literal, method, name, py
from archspec.pytorch.scope import Scope
from archspec.pytorch.static_code import StaticCode
from archspec.resolve import nodes
from archspec.resolve.walk import multiple_of


def prelude(scope: Scope, used: set[str]) -> list[ast.stmt]:
    """The statements that bind those of the names `used` in a body that are sizes of inputs."""
    found: list[ast.stmt] = []
    static = StaticCode(scope)
    bound: set[str] = set()
    always = scope.given_entries()
    pairs = [p for p in zip(scope.form.inputs, scope.inputs, strict=True) if p[1].is_tensor]
    sometimes = [p for p in pairs if not any(p[0] is e for e, _ in always)]
    for entry, value in [*always, *sometimes]:
        items = entry.shape.items if entry.shape is not None else ()
        split = next((i for i, e in enumerate(items) if isinstance(e, nodes.Leading)), len(items))
        wanted: dict[int, str] = {}
        multiples: list[ast.stmt] = []
        shape = method(value.code, "shape")
        for i, item in enumerate(items):
            multiple = multiple_of(item)
            dimension = item if multiple is None else multiple[1]
            if not isinstance(dimension, nodes.Dimension):
                continue
            variable = scope.statements.variable(dimension.key)
            if variable not in used or variable in bound:
                continue
            bound.add(variable)
            place = i if i <= split else i - len(items)
            if multiple is None:
                wanted[place] = variable
            else:
                size = ast.Subscript(shape, literal(place), ast.Load())
                multiples.append(bind(variable, py("size // factor", size=size, factor=static.code(multiple[0]))))
        if not wanted and not multiples:
            continue
        made = [*_unpacked(wanted, shape, len(items) if split == len(items) else None), *multiples]
        is_given = any(entry is e for e, _ in always)
        found += made if is_given else [ast.If(py("x is not None", x=value.code), made, [])]
    return found


def _unpacked(wanted: dict[int, str], shape: ast.expr, rank: int | None) -> list[ast.stmt]:
    if rank is not None and len(wanted) > 1:
        targets: list[ast.expr] = [name(wanted.get(i, "_")) for i in range(rank)]
        return [bind(ast.Tuple(targets, ast.Load()), shape)]
    return [bind(v, ast.Subscript(shape, literal(i), ast.Load())) for i, v in wanted.items()]
