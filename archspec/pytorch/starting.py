"""How parameters start out."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from archspec.pytorch.code import py, text


def start(initial: str, code: ast.expr, arguments: Sequence[ast.expr]) -> ast.stmt:
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


def start_by_default(code: ast.expr, rank: int) -> ast.stmt:
    """The same where a spec says nothing: as the weights and biases of PyTorch's linear layers do."""
    matrix = "nn.init.kaiming_uniform_(x, a=math.sqrt(5))"
    vector = "nn.init.uniform_(x, -1 / math.sqrt(x.numel()), 1 / math.sqrt(x.numel()))"
    return ast.Expr(py(matrix if rank > 1 else vector, x=code))
