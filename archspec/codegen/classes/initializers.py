"""Initialization of stored tensors."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from archspec.codegen.python.trees import py, text
from archspec.ir.module import Body, Call
from archspec.ir.ops import OPS


def initializer_statement(initial: str, code: ast.expr, arguments: Sequence[ast.expr]) -> ast.stmt:
    """The statement that fills a parameter as a spec says: `~ normal(0.02)`."""
    match initial, [text(a) for a in arguments]:
        case "constant", ["0.0" | "0"]:
            made = py("nn.init.zeros_(x)", x=code)
        case "constant", ["1.0" | "1"]:
            made = py("nn.init.ones_(x)", x=code)
        case "constant", _:
            made = py("nn.init.constant_(x, value)", x=code, value=arguments[0])
        case "normal", _:
            made = py("nn.init.normal_(x, std=s)", x=code, s=arguments[0])
        case "truncated_normal", _:
            made = py("nn.init.trunc_normal_(x, std=s, a=-2 * s, b=2 * s)", x=code, s=arguments[0])
        case "uniform", _:
            made = py("nn.init.uniform_(x, a, b)", x=code, a=arguments[0], b=arguments[1])
        case _:
            made = py("nn.init.xavier_uniform_(x)", x=code)
    return ast.Expr(made)


def fill_by_default(code: ast.expr, rank: int) -> ast.stmt:
    """The same where a spec says nothing: as the weights and biases of PyTorch's linear layers do."""
    matrix = "nn.init.kaiming_uniform_(x, a=math.sqrt(5))"
    vector = "nn.init.uniform_(x, -1 / math.sqrt(x.numel()), 1 / math.sqrt(x.numel()))"
    return ast.Expr(py(matrix if rank > 1 else vector, x=code))


def may_be_view(table: Body) -> bool:
    """Whether the result of a constant table may lack memory of its own, one element after the other.

    Operations on elements in another order leave them in that order.
    """
    return _turns(table) or _is_view(table)


def _turns(body: Body) -> bool:
    return any(_turns(call.body) if call.body is not None else _memory(call) == "turned" for call in body.calls)


def _is_view(body: Body) -> bool:
    """Whether what a body gives is an input of it, or part of something else that is computed in it."""
    made_by = {slot: call for call in body.calls for slot in range(call.first, call.first + len(call.outputs))}
    result = body.outputs[0][1]
    while isinstance(result, int) and result in made_by:
        call = made_by[result]
        if call.body is not None and call.body.loop is not None:
            return True  # it may be, without iterations
        if call.body is not None:
            return _is_view(call.body)
        if _memory(call) != "whole":
            return _memory(call) != "new"
        result = call.inputs[0][1]
    return True


def _memory(call: Call) -> str:
    torch = OPS[call.type].torch
    return torch.memory if torch is not None else "new"
