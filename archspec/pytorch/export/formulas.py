"""Sizes in exported programs, which are formulas of SymPy, as sizes of types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from archspec.core.algebra import Dim, Expression, dim_max, dim_min
from archspec.pytorch.passes.programs import SymPyExpression
from archspec.pytorch.values.arguments import UntranslatableError

_OF_FRACTIONS = "it computes a root or fraction of the size of an input, as in `1 / x.shape[1]`"


def size_of(formula: SymPyExpression, symbols: Mapping[str, Expression]) -> Dim:
    """Return a formula of symbols as a size of what these stand for. Raises Untranslatable."""
    if formula.is_Integer:
        return int(formula)
    if formula.is_Symbol:
        if str(formula) not in symbols:
            raise UntranslatableError("it has a size that is not one of an input's")
        return symbols[str(formula)]
    kind = type(formula).__name__
    if kind == "CeilToInt":
        return _rounded_up(formula.args[0], symbols)
    parts = [size_of(part, symbols) for part in formula.args]
    match kind:
        case "Add":
            return sum(parts[1:], parts[0])
        case "Mul":
            found = parts[0]
            for part in parts[1:]:
                found = found * part
            return found
        case "Pow" if isinstance(parts[1], int) and parts[1] >= 0:
            return parts[0] ** parts[1]
        case "FloorDiv":
            return parts[0] // parts[1]
        case "Mod" | "PythonMod":
            return parts[0] % parts[1]
        case "Max":
            return reduce(dim_max, parts)
        case "Min":
            return reduce(dim_min, parts)
        case "ToFloat" | "Float" | "IntTrueDiv" | "FloatTrueDiv" | "FloatPow":
            raise UntranslatableError(_OF_FRACTIONS)
        case _:
            raise UntranslatableError(f"it has a size with `{kind}`")


def _rounded_up(formula: SymPyExpression, symbols: Mapping[str, Expression]) -> Dim:
    """Return a size over a whole number, rounded up: how many elements `arange` has, given such a step as a float."""
    if type(formula).__name__ == "FloatTrueDiv":
        distance, step = formula.args
        if type(distance).__name__ == "ToFloat" and step.is_Float and float(step).is_integer():
            by, size = int(float(step)), size_of(distance.args[0], symbols)
            return -(-size // by)
    raise UntranslatableError(_OF_FRACTIONS)
