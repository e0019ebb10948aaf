"""Values as operands of operations, and how messages count and explain them."""

from __future__ import annotations

from typing import Any

from archspec.ir import Constant, Operand, Type
from archspec.lower.evaluate import Evaluator
from archspec.lower.plan import names_in
from archspec.lower.values import DYNAMIC, Tensor, show
from archspec.ops import element_type
from archspec.syntax import tree


def number_type(value: Any) -> Type:
    return Type((), element_type(value))


def type_of(value: Any) -> Type | None:
    """The type of an operand: a number is a tensor without dimensions."""
    if isinstance(value, Tensor):
        return value.type
    return None if value is None else number_type(value)


def operand_of(value: Any) -> Operand:
    if isinstance(value, Tensor):
        return value.slot
    return None if value is None else Constant(value)


def count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def report_require(evaluator: Evaluator, node: tree.Require) -> None:
    """Reports a `require` that does not hold, with the values that decided it."""
    env = evaluator.env
    names = [n for n in dict.fromkeys(names_in(node.condition)) if n in env and env[n] is not DYNAMIC]
    values = ", ".join(f"{n} = {show(env[n])}" for n in names)
    message = node.message or "requirement not met"
    span = evaluator.unit.span(node.condition)
    evaluator.program.error("require", f"{message} ({values})" if values else message, span, caller=True)
