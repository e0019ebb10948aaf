"""Application of `einsum`: an equation becomes sum, transpose or permute, reshape, matmul and mul."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from archspec.compiler.elaborate.application import ApplicationInterpreter
from archspec.compiler.evaluate.values import POISON, Tensor, Value, describe
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.built_ins import span_in_literal
from archspec.core.algebra import Dim
from archspec.ir.ops import OPS
from archspec.ir.ops.check import format_type
from archspec.ir.ops.einsum import EquationTerm, emit_products, term_axes
from archspec.ir.ops.rearrange import ELLIPSIS


class _InvalidOperandError(Exception):
    """An operation was not applied; the reason has been reported."""


class _TensorEmitter:
    """Applies operations at an `einsum`, except for those without effect."""

    def __init__(self, interpreter: ApplicationInterpreter, expr: nodes.Einsum) -> None:
        self.interpreter = interpreter
        self.expr = expr

    def op(self, name: str, /, *args: Tensor, **settings: Any) -> Tensor:
        inputs = tuple([(entry.name, value) for entry, value in zip(OPS[name].inputs, args, strict=True)])
        attributes = cast("dict[str, Value]", OPS[name].settings(settings))
        result = self.interpreter.apply_op(OPS[name], inputs, attributes, self.expr.at, lambda _: None)
        if not isinstance(result, Tensor):
            raise _InvalidOperandError
        return result

    def permute(self, x: Tensor, order: Sequence[int], /) -> Tensor:
        moved = [i for i, axis in enumerate(order) if i != axis]
        if not moved:
            return x
        if len(moved) == 2:
            return self.op("transpose", x, a=moved[0], b=moved[1])
        return self.op("permute", x, order=tuple(order))

    def reshape(self, x: Tensor, shape: Sequence[Dim], /) -> Tensor:
        return x if x.type.shape == tuple(shape) else self.op("reshape", x, shape=tuple(shape))


def apply_equation(interpreter: ApplicationInterpreter, expr: nodes.Einsum) -> Value:
    """Apply an equation to tensors."""
    values = [interpreter.value(value) for value in expr.values]
    if any(value is POISON for value in values):
        return POISON
    tensors: list[tuple[tuple[str, ...], Tensor]] = []
    sizes: dict[str, Dim] = {}
    for value, node, term in zip(values, expr.values, expr.equation.terms, strict=True):
        if not isinstance(value, Tensor):
            return interpreter.fault("wrong-kind", f"`einsum` expects a tensor, found {describe(value)}", node.at)
        names = term_axes(term, len(value.type.shape))
        if names is None:
            return _report_rank(interpreter, expr, term, value)
        for name, size in zip(names, value.type.shape, strict=True):
            known_size = sizes.setdefault(name, size)
            if not interpreter.program.numbers.are_equal(known_size, size, interpreter.unit.span(expr.at)):
                axis = ELLIPSIS if name.startswith(ELLIPSIS) else name
                message = f"axis `{axis}` of `einsum` has size {known_size} in one tensor and {size} in another"
                return interpreter.fault("dimension", message, span_in_literal(expr.literal, term.start, term.end))
        tensors.append((names, value))
    outer = max([sum(name.startswith(ELLIPSIS) for name in names) for names, _ in tensors])
    result = expr.equation.result
    axes = term_axes(result, len(result.names) - 1 + outer) if ELLIPSIS in result.names else result.names
    assert axes is not None
    try:
        return emit_products(_TensorEmitter(interpreter, expr), tensors, axes, sizes)
    except _InvalidOperandError:
        return POISON
    except OverflowError as problem:
        return interpreter.fault("dimension", f"`einsum` makes sizes that are too large: {problem}", expr.at)


def _report_rank(interpreter: ApplicationInterpreter, expr: nodes.Einsum, term: EquationTerm, value: Tensor) -> Value:
    has_ellipsis = ELLIPSIS in term.names
    axes = len(term.names) - has_ellipsis
    prefix = "at least " if has_ellipsis else ""
    message = f"`einsum` expects {prefix}{axes} {'axis' if axes == 1 else 'axes'}, found {format_type(value.type)}"
    return interpreter.fault("dimension", message, span_in_literal(expr.literal, term.start, term.end))
