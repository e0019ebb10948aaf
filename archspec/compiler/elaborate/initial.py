"""Initial values of tensors: the distributions after `~`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from archspec.compiler.evaluate.interpreter import Interpreter
from archspec.compiler.evaluate.values import POISON
from archspec.compiler.resolve import nodes
from archspec.core.record import Record
from archspec.ir.module import Initializer


class Distribution(Record):
    """The arguments of a distribution: their number, a description, and the minimum number of axes of the tensor."""

    numbers: int
    takes: str
    axes: int = 0


INITIALIZERS = {
    "normal": Distribution(1, "a standard deviation of 0 or more"),
    "truncated_normal": Distribution(1, "a standard deviation above 0"),
    "uniform": Distribution(2, "a lower and an upper bound"),
    "constant": Distribution(1, "a number"),
    "xavier_uniform": Distribution(0, "a tensor with two axes or more", axes=2),
}


def make_initializer(interpreter: Interpreter, node: nodes.Initializer, axes: int) -> Initializer | None:
    """Return the initialization of a tensor with so many axes; None after reporting an error."""
    known = INITIALIZERS.get(node.name)
    if known is None:
        help = f"supported: {', '.join(f'`{n}`' for n in INITIALIZERS)}"
        interpreter.fault("unknown-name", f"unknown initializer `{node.name}`", node.at, help=help)
        return None
    values = [interpreter.value(a) for a in node.arguments]
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) < len(values):
        if POISON not in values:
            interpreter.fault("wrong-kind", f"`{node.name}` expects numbers", node.at)
        return None
    if len(values) != known.numbers:
        code = "surplus-argument" if len(values) > known.numbers else "missing-argument"
        many = "many" if len(values) > known.numbers else "few"
        message = f"too {many} arguments for `{node.name}`: expected {known.numbers}, found {len(values)}"
        interpreter.fault(code, message, node.at)
        return None
    if axes < known.axes or not _is_allowed(node.name, numbers):
        given = ", ".join(map(str, values)) or "a vector"
        interpreter.fault("wrong-kind", f"`{node.name}` expects {known.takes}, found {given}", node.at)
        return None
    return Initializer(node.name, tuple([float(v) for v in numbers]))


def _is_allowed(name: str, values: Sequence[float]) -> bool:
    """Whether the arguments are valid; a constant may be infinite."""
    match name, values:
        case "normal", (std,):
            return 0 <= std < math.inf
        case "truncated_normal", (std,):
            return 0 < std < math.inf
        case "uniform", (low, high):
            return -math.inf < low <= high < math.inf
        case _:
            return True
