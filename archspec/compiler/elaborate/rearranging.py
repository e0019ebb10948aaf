"""`rearrange` and `repeat` as primitive operations: reshape, transpose or permute, expand."""

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


def apply_pattern(walker: ApplicationInterpreter, expr: nodes.Rearrange) -> Value:
    """Apply a pattern to a tensor."""
    value = walker.value(expr.value)
    sizes = _explicit_sizes(walker, expr)
    if sizes is None or value is POISON:
        return POISON
    if not isinstance(value, Tensor):
        return walker.fault("wrong-kind", f"`{expr.word}` expects a tensor, found {describe(value)}", expr.value.at)
    shape, pattern = value.type.shape, expr.pattern
    others = [f"{ELLIPSIS}{i}" for i in range(len(shape) - len(pattern.left) + 1)]
    has_others = any(ELLIPSIS in group.names for group in pattern.left)
    if (not has_others and len(shape) != len(pattern.left)) or len(shape) < len(pattern.left) - 1:
        axes = len(pattern.left) - has_others
        least = "at least " if has_others else ""
        message = (
            f"`{expr.word}` expects {least}{axes} {'axis' if axes == 1 else 'axes'}, found {format_type(value.type)}"
        )
        left = pattern.text.partition("->")[0].rstrip()
        return walker.fault("dimension", message, span_in_literal(expr.literal, 0, len(left)))
    if not _infer(walker, expr, shape, others, sizes):
        return POISON
    return _emit_steps(walker, expr, value, *pattern.groups(others), sizes)


def _explicit_sizes(walker: ApplicationInterpreter, expr: nodes.Rearrange) -> Sizes | None:
    """Return the sizes that are given; None after reporting a wrong one."""
    sizes: Sizes = {}
    for item in expr.sizes:
        value = walker.value(item.value)
        if value is POISON:
            return None
        try:
            sizes[item.name] = check_size(value, item.name)
        except OpError as problem:
            walker.fault("dimension", f"`{expr.word}` {problem.message}", item.at, help=problem.help)
            return None
    return sizes


def _infer(
    walker: ApplicationInterpreter, expr: nodes.Rearrange, shape: tuple[Dim, ...], others: list[str], sizes: Sizes
) -> bool:
    """Add the sizes that follow from the shape of the tensor; False after reporting one that does not fit."""
    groups: list[PatternAxis | str] = []
    for group in expr.pattern.left:
        groups += others if group.names == (ELLIPSIS,) else [group]
    for group, size in zip(groups, shape, strict=True):
        if isinstance(group, str):
            sizes[group] = size
        elif not _infer_axis(walker, expr, group, size, sizes):
            return False
    return True


def _infer_axis(
    walker: ApplicationInterpreter, expr: nodes.Rearrange, group: PatternAxis, size: Dim, sizes: Sizes
) -> bool:
    given = [name for name in group.names if name in sizes]
    unknown = [name for name in group.names if name not in sizes]
    if unknown and not given:
        sizes[unknown[0]] = size
        return True
    numbers, span = walker.program.numbers, walker.unit.span(expr.at)
    place = span_in_literal(expr.literal, group.start, group.end)
    try:
        known = product([sizes[name] for name in given])
        if unknown and numbers.divides(known, size, span):
            sizes[unknown[0]] = cast("Dim", numbers.combine("//", size, known, span))
            return True
        if not unknown and numbers.are_equal(known, size, span):
            return True
    except (OverflowError, StaticError) as problem:
        walker.fault("dimension", f"`{expr.word}` cannot compute the sizes of this axis: {problem}", place)
        return False
    relation = "divisible by" if unknown else "equal to"
    is_symbolic = not (isinstance(known, int) and isinstance(size, int))
    text = expr.pattern.text_of(group)
    message = f"axis `{text}` of `{expr.word}` has size {size}, which is not {'known to be ' * is_symbolic}{relation} "
    values = ", ".join(f"{name} = {sizes[name]}" for name in given)
    walker.fault("dimension", f"{message}{known} ({values})" if values else f"{message}{known}", place)
    return False


def _emit_steps(
    walker: ApplicationInterpreter, expr: nodes.Rearrange, value: Tensor, left: Groups, right: Groups, sizes: Sizes
) -> Value:
    """Apply the steps of a pattern, without those that do nothing to these sizes."""
    plan = pattern_steps(left, right)
    try:
        split, merged, expanded, joined = (
            tuple([product([sizes[name] for name in group]) for group in groups])
            for groups in (plan.split, plan.merged, plan.expanded, plan.joined)
        )
        is_repeated = product(merged) != product(expanded)
    except OverflowError as problem:
        return walker.fault("dimension", f"`{expr.word}` makes sizes that are too large: {problem}", expr.at)
    operations: list[tuple[str, dict[str, Value]]] = []
    moved = [i for i, axis in enumerate(plan.order) if i != axis]
    if moved:
        turn: dict[str, Value] = {"order": plan.order}
        if len(moved) == 2:
            turn = {"a": moved[0], "b": moved[1]}
        operations.append(("reshape", {"shape": split}))
        operations.append(("transpose" if len(moved) == 2 else "permute", turn))
    if is_repeated:
        operations.append(("reshape", {"shape": merged}))
        operations.append(("expand", {"shape": expanded}))
    operations.append(("reshape", {"shape": joined}))
    made: Value = value
    for name, attributes in operations:
        if isinstance(made, Tensor) and attributes.get("shape") != made.type.shape:
            made = walker.apply_op(OPS[name], (("x", made),), attributes, expr.at, lambda _: None)
    return made
