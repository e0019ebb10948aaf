"""Operators within each other have the parentheses that they need, and no others."""

import operator
from typing import Any

import torch

X, Y, Z = torch.linspace(1, 2, 8), torch.linspace(3, 4, 8), torch.linspace(5, 6, 8)
OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.lt,
    operator.ge,
    operator.eq,
    operator.and_,
    operator.or_,
]


def is_condition(function: Any) -> bool:
    return function in OPERATORS[7:]


def nested(outer: Any) -> Any:
    """Return a function of which each result is an operator on the result of another one, on either side."""

    def function(x: Any, y: Any, z: Any) -> Any:
        results: list[Any] = []
        for inner in OPERATORS:
            reals, bools = (x, y, z), (x > 1.5, y > 3.5, z > 5.5)
            a, b, c = bools if inner in OPERATORS[10:] else reals
            if is_condition(outer) and inner is operator.pow:
                continue  # powers of negative numbers are none
            if (outer in OPERATORS[10:]) == is_condition(inner):
                left, right = (bools[2], bools[1]) if is_condition(inner) else (c, b)
                results += [outer(inner(a, b), left), outer(right, inner(a, c))]
        return [*results, outer(-x, y), -outer(x, y)] if not is_condition(outer) else [*results, ~results[0]]

    return function


FUNCTIONS = {f"operators in {outer.__name__}": (nested(outer), X, Y, Z) for outer in OPERATORS}
