"""The sizes that a body uses, from the shapes of its inputs."""

from __future__ import annotations

import ast

from archspec.codegen.expressions.static_code import StaticCode
from archspec.codegen.python.trees import bind, name, py
from archspec.codegen.scope.scope import Input, Scope
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.walk import multiple_of


def prelude(scope: Scope, used: set[str]) -> list[ast.stmt]:
    """The statements that bind those of the names `used` in a body that are sizes of inputs."""
    found: list[ast.stmt] = []
    static = StaticCode(scope)
    bound: set[str] = set()
    sometimes = [input for input in scope.tensors() if not input.is_always_tensor]
    for input in (*scope.given_tensors(), *sometimes):
        wanted: dict[int, str] = {}
        multiples: list[ast.stmt] = []
        for i, item in enumerate(input.items):
            multiple = multiple_of(item)
            dimension = item if multiple is None else multiple[1]
            if not isinstance(dimension, nodes.Dimension):
                continue
            variable = scope.statements.variable(dimension.key)
            if variable not in used or variable in bound:
                continue
            bound.add(variable)
            if multiple is None:
                wanted[i] = variable
            else:
                size = py("size // factor", size=input.part(i), factor=static.code(multiple[0]))
                multiples.append(bind(variable, size))
        if not wanted and not multiples:
            continue
        made = [*_unpacked(wanted, input), *multiples]
        test = py("x is not None", x=input.value.code)
        found += made if input.is_always_tensor else [ast.If(test, made, [])]
    return found


def _unpacked(wanted: dict[int, str], input: Input) -> list[ast.stmt]:
    if not input.has_leading and len(wanted) > 1:
        targets: list[ast.expr] = [name(wanted.get(i, "_")) for i in range(len(input.items))]
        return [bind(ast.Tuple(targets, ast.Load()), input.shape)]
    return [bind(variable, input.part(i)) for i, variable in wanted.items()]
