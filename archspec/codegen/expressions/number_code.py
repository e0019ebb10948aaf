"""Expressions of numbers from the code of their parts."""

from __future__ import annotations

import ast
from collections.abc import Callable

from archspec.codegen.python.trees import apply, literal, name, py, sequence
from archspec.compiler.resolve import nodes
from archspec.ir.ops import OPERATORS, OPS, Op


def compose(expr: nodes.Expr, code: Callable[[nodes.Expr], ast.expr]) -> ast.expr | None:
    """An expression made of the code of its parts; None for names, calls and what is no number."""
    match expr:
        case nodes.Literal():
            return literal(expr.value)
        case nodes.ListLiteral():
            return sequence([code(item) for item in expr.items])
        case nodes.Unary():
            return py("not x" if expr.operator == "not" else "-x", x=code(expr.operand))
        case nodes.Binary():
            return _binary(expr.operator, code(expr.left), code(expr.right))
        case nodes.Conditional():
            otherwise = code(expr.otherwise) if expr.otherwise is not None else literal(None)
            return ast.IfExp(code(expr.condition), code(expr.value), otherwise)
        case nodes.Subscript():
            return ast.Subscript(code(expr.value), code(expr.position), ast.Load())
        case nodes.Length():
            return apply(name("len"), [code(expr.value)])
        case _:
            return None


def _binary(operator: str, left: ast.expr, right: ast.expr) -> ast.expr:
    if operator in ("in", "not in"):
        return py(f"a {operator} b", a=left, b=right)
    if operator in ("==", "!="):
        word = "is" if operator == "==" else "is not"
        for side, other in ((left, right), (right, left)):
            if isinstance(other, ast.Constant) and other.value is None:
                return py(f"a {word} None", a=side)
    return py(OPS[OPERATORS[operator]].python, a=left, b=right)


def operation(op: Op, expr: nodes.Apply, code: Callable[[nodes.Expr], ast.expr]) -> ast.expr:
    """An operation of Python on numbers, such as `min(a, b)`."""
    names = iter([i.name for i in op.inputs])  # of the operands without one
    return py(op.python, **{a.name or next(names): code(a.value) for a in expr.arguments.inputs or ()})


def range_of(first: ast.expr, last: ast.expr) -> ast.expr:
    """What a loop iterates over."""
    starts_at_0 = isinstance(first, ast.Constant) and first.value == 0
    return apply(name("range"), [last] if starts_at_0 else [first, last])
