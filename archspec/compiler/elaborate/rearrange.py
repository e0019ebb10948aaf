"""Application of `rearrange` and `repeat`: a pattern becomes reshape, transpose or permute, and expand."""

from __future__ import annotations

from typing import cast

from archspec.compiler.elaborate.application import ApplicationInterpreter
from archspec.compiler.evaluate.values import POISON, StaticError, Tensor, Value, describe
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.built_ins import span_in_literal
from archspec.core.algebra import Dim, product
from archspec.ir.ops import OPS, OpError
from archspec.ir.ops.check import check_size, format_type
from archspec.ir.ops.rearrange import ELLIPSIS, Groups, PatternAxis, pattern_steps

Sizes = dict[str, Dim]
"""The sizes of the named axes of a pattern."""


def apply_pattern(interpreter: ApplicationInterpreter, expr: nodes.Rearrange) -> Value:
    """Apply a pattern to a tensor."""
    value = interpreter.value(expr.value)
    sizes = _explicit_sizes(interpreter, expr)
    if sizes is None or value is POISON:
        return POISON
    if not isinstance(value, Tensor):
        return interpreter.fault(
            "wrong-kind", f"`{expr.word}` expects a tensor, found {describe(value)}", expr.value.at
        )
    shape, pattern = value.type.shape, expr.pattern
    ellipsis_axes = [f"{ELLIPSIS}{i}" for i in range(len(shape) - len(pattern.left) + 1)]
    has_ellipsis = any(ELLIPSIS in group.names for group in pattern.left)
    if (not has_ellipsis and len(shape) != len(pattern.left)) or len(shape) < len(pattern.left) - 1:
        axes = len(pattern.left) - has_ellipsis
        prefix = "at least " if has_ellipsis else ""
        message = (
            f"`{expr.word}` expects {prefix}{axes} {'axis' if axes == 1 else 'axes'}, found {format_type(value.type)}"
        )
        left = pattern.text.partition("->")[0].rstrip()
        return interpreter.fault("dimension", message, span_in_literal(expr.literal, 0, len(left)))
    if not _infer_sizes(interpreter, expr, shape, ellipsis_axes, sizes):
        return POISON
    return _emit_steps(interpreter, expr, value, *pattern.groups(ellipsis_axes), sizes)


def _explicit_sizes(interpreter: ApplicationInterpreter, expr: nodes.Rearrange) -> Sizes | None:
    """Return the explicit sizes of axes; None after reporting an invalid size."""
    sizes: Sizes = {}
    for item in expr.sizes:
        value = interpreter.value(item.value)
        if value is POISON:
            return None
        try:
            sizes[item.name] = check_size(value, item.name)
        except OpError as error:
            interpreter.fault("dimension", f"`{expr.word}` {error.message}", item.at, help=error.help)
            return None
    return sizes


def _infer_sizes(
    interpreter: ApplicationInterpreter,
    expr: nodes.Rearrange,
    shape: tuple[Dim, ...],
    ellipsis_axes: list[str],
    sizes: Sizes,
) -> bool:
    """Infer sizes from the shape of the tensor; False after reporting a mismatch."""
    groups: list[PatternAxis | str] = []
    for group in expr.pattern.left:
        groups += ellipsis_axes if group.names == (ELLIPSIS,) else [group]
    for group, size in zip(groups, shape, strict=True):
        if isinstance(group, str):
            sizes[group] = size
        elif not _infer_axis(interpreter, expr, group, size, sizes):
            return False
    return True


def _infer_axis(
    interpreter: ApplicationInterpreter, expr: nodes.Rearrange, group: PatternAxis, size: Dim, sizes: Sizes
) -> bool:
    known_names = [name for name in group.names if name in sizes]
    unknown_names = [name for name in group.names if name not in sizes]
    if unknown_names and not known_names:
        sizes[unknown_names[0]] = size
        return True
    numbers, span = interpreter.program.numbers, interpreter.unit.span(expr.at)
    axis_span = span_in_literal(expr.literal, group.start, group.end)
    try:
        known_product = product([sizes[name] for name in known_names])
        if unknown_names and numbers.divides(known_product, size, span):
            sizes[unknown_names[0]] = cast("Dim", numbers.combine("//", size, known_product, span))
            return True
        if not unknown_names and numbers.are_equal(known_product, size, span):
            return True
    except (OverflowError, StaticError) as error:
        interpreter.fault("dimension", f"`{expr.word}` cannot compute the sizes of this axis: {error}", axis_span)
        return False
    relation = "divisible by" if unknown_names else "equal to"
    is_symbolic = not (isinstance(known_product, int) and isinstance(size, int))
    text = expr.pattern.text_of(group)
    message = f"axis `{text}` of `{expr.word}` has size {size}, which is not {'known to be ' * is_symbolic}{relation} "
    values = ", ".join(f"{name} = {sizes[name]}" for name in known_names)
    interpreter.fault(
        "dimension", f"{message}{known_product} ({values})" if values else f"{message}{known_product}", axis_span
    )
    return False


def _emit_steps(
    interpreter: ApplicationInterpreter, expr: nodes.Rearrange, value: Tensor, left: Groups, right: Groups, sizes: Sizes
) -> Value:
    """Apply the steps of a pattern, except for reshapes that do not change the shape."""
    steps = pattern_steps(left, right)
    try:
        split, merged, expanded, joined = (
            tuple([product([sizes[name] for name in group]) for group in groups])
            for groups in (steps.split, steps.merged, steps.expanded, steps.joined)
        )
        is_repeated = product(merged) != product(expanded)
    except OverflowError as problem:
        return interpreter.fault("dimension", f"`{expr.word}` makes sizes that are too large: {problem}", expr.at)
    operations: list[tuple[str, dict[str, Value]]] = []
    moved = [i for i, axis in enumerate(steps.order) if i != axis]
    if moved:
        reordering: dict[str, Value] = {"order": steps.order}
        if len(moved) == 2:
            reordering = {"a": moved[0], "b": moved[1]}
        operations.append(("reshape", {"shape": split}))
        operations.append(("transpose" if len(moved) == 2 else "permute", reordering))
    if is_repeated:
        operations.append(("reshape", {"shape": merged}))
        operations.append(("expand", {"shape": expanded}))
    operations.append(("reshape", {"shape": joined}))
    result: Value = value
    for name, attributes in operations:
        if isinstance(result, Tensor) and attributes.get("shape") != result.type.shape:
            result = interpreter.apply_op(OPS[name], (("x", result),), attributes, expr.at, lambda _: None)
    return result
