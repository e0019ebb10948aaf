"""Scaled dot-product attention in one call, where `archspec/ir/structure/core.py` reads it in every use."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from archspec.codegen.expressions.tensor_types import TensorTypes, as_type_of
from archspec.codegen.python.trees import apply, bind, literal, name, py, text
from archspec.codegen.scope.operations import constant
from archspec.codegen.scope.scope import Scope
from archspec.codegen.scope.values import REAL, CodeValue
from archspec.compiler.elaborate.trace import EvaluatedNode
from archspec.compiler.resolve import nodes
from archspec.core.diagnostics import Span
from archspec.ir.structure.core import CoreStep, read_steps


class Part(NamedTuple):
    """A mask or a bias; `test` is the condition under which it is applied, None for always.

    `is_flat` is whether it has fewer than two axes in some use, `is_causal` whether it hides later keys and no others.
    """

    value: CodeValue
    test: ast.expr | None
    is_flat: bool
    is_causal: bool


class Core(NamedTuple):
    """The operands of attention, except for the values. If `finite`, masks hide keys with the least finite number.

    `rate` is the rate of dropout, None without dropout.
    """

    query: CodeValue
    key: CodeValue
    scale: ast.expr
    masks: list[Part]
    biases: list[Part]
    finite: bool
    rate: ast.expr | None


def as_attention(
    scope: Scope, types: TensorTypes, values: Sequence[CodeValue | None], node: EvaluatedNode
) -> CodeValue | None:
    """Return one attention call if the product has attention weights and values."""
    weights, value = values
    core = _find_operands(weights, _read_steps(scope, node)) if weights is not None else None
    if core is None or value is None or {v.kind for v in (core.query, core.key, value)} != {REAL}:
        return None
    if core.finite and not isinstance(core.query.code, ast.Name):
        return None  # it is used twice
    parts = [*core.masks, *core.biases]
    always = [part for part in parts if part.test is None]
    if all(part.is_flat for part in always) and any(part.is_flat for part in parts):
        return None  # PyTorch takes masks for queries and keys
    if not all(map(scope.statements.is_current, (core.query, core.key, value, *[part.value for part in parts]))):
        return None
    biases = [
        part if part.value.kind == REAL else part._replace(value=as_type_of(part.value, core.query, types))
        for part in core.biases
    ]
    keywords = _masked(scope, core._replace(biases=biases))
    scale = _scale(scope, core)
    if scale is not None:
        keywords["scale"] = scale
    if core.rate is not None:
        keywords["dropout_p"] = py("rate if training else 0.0", rate=core.rate, training=types.training())
    call = apply(py("F.scaled_dot_product_attention"), [core.query.code, core.key.code, value.code], keywords)
    return CodeValue(call, REAL, 4)


def products_in(body: Sequence[ast.stmt]) -> int:
    """How many matrix products statements have, of which attention in one call has two."""
    called = [n.attr for statement in body for n in ast.walk(statement) if isinstance(n, ast.Attribute)]
    return called.count("matmul") + 2 * called.count("scaled_dot_product_attention")


def _read_steps(scope: Scope, node: EvaluatedNode) -> dict[Span, list[CoreStep]]:
    """Return the steps in the bodies of a product's uses, by location; none if it does not end a core in some use."""
    calls = scope.located_calls(node)
    steps = {body: read_steps(body) for body in dict.fromkeys(body for body, _ in calls)}
    if any(call.first not in steps[body] or steps[body][call.first].role != "mix" for body, call in calls):
        return {}
    by_span: dict[Span, list[CoreStep]] = {}
    for step in [step for own in steps.values() for step in own.values()]:
        by_span.setdefault(step.call.span, []).append(step)
    return by_span


def _find_operands(weights: CodeValue, steps: Mapping[Span, Sequence[CoreStep]]) -> Core | None:
    """Return the operands of attention from its weights; None if the code has other steps."""
    masks: list[Part] = []
    biases: list[Part] = []
    scale, rate, finite, value = literal(1.0), None, False, weights
    while True:
        test, without = value.test, None
        if value.op == "option":
            value, without = value.args
        span = value.span
        if span is None or span not in steps or not value.args:
            return None
        uses = steps[span]
        role, position = uses[0].role, uses[0].position
        if any((step.role, step.position) != (role, position) for step in uses):
            return None
        inner, others = value.args[position], [*value.args[:position], *value.args[position + 1 :]]
        if without is not None and not (role in ("mask", "bias", "drop") and _is_same(inner, without)):
            return None
        match role:
            case "mask" if text(others[1].code) in ("-math.inf", "float('-inf')"):
                masks.insert(0, _part(others[0], test, uses))
            case "bias":
                biases.insert(0, _part(others[0], test, uses))
            case "scale" | "divisor" if not others[0].is_tensor:
                number = _origin(others[0])
                scale = number if role == "scale" else py("1 / x", x=number)
            case "drop" if test is None or text(test) == f"{text(value.settings[0][1])} != 0.0":
                rate = value.settings[0][1] if constant(value.settings[0][1]) != 0 else None
            case "limit":
                finite = True
            case "cast" | "weights" if _has_fixed_axes(value):
                pass  # the fused kernel computes the softmax in float32
            case "score" if others[0].args and others[0].span in steps and _has_fixed_axes(others[0]):
                return Core(inner, others[0].args[0], scale, masks, biases, finite, rate)
            case _:
                return None
        value = inner


def _part(value: CodeValue, test: ast.expr | None, uses: Sequence[CoreStep]) -> Part:
    is_causal = test is None and all(step.is_causal for step in uses)
    return Part(value, test, any(step.rank < 2 for step in uses), is_causal)


def _has_fixed_axes(value: CodeValue) -> bool:
    """Whether the settings of an operation do not depend on hyperparameters."""
    return all(isinstance(constant(code), int) for _, code in value.settings)


def _is_same(a: CodeValue, b: CodeValue) -> bool:
    return a is b or (a.op == b.op and a.args is b.args)


def _origin(value: CodeValue) -> ast.expr:
    """What a number was bound to."""
    return value.origin if value.name is not None and value.origin is not None else value.code


def _scale(scope: Scope, core: Core) -> ast.expr | None:
    """The scale, unless it is 1 / sqrt(size of a head), which PyTorch takes by itself."""
    query = next((input for input in scope.inputs if input.value.name == core.query.name), None)
    if query is not None and core.query.name is not None and query.items:
        last = query.items[-1]
        if isinstance(last, nodes.Dimension):
            size = scope.statements.variable(last.key)
            if text(core.scale) in (f"{size} ** (-0.5)", f"1 / math.sqrt({size})", f"1 / {size} ** 0.5"):
                return None
    return core.scale


def _masked(scope: Scope, core: Core) -> dict[str, ast.expr]:
    """The keywords for masks and biases."""
    are_masks_optional = all(part.test is not None for part in core.masks)
    are_biases_optional = all(part.test is not None for part in core.biases)
    causal = [mask for mask in core.masks if mask.is_causal]
    others = [mask for mask in core.masks if mask not in causal]
    if not core.biases and len(causal) == 1 and not core.finite:
        if not others:
            return {"is_causal": literal(True)}
        if len(others) == 1 and others[0].test is not None:
            return _causal_unless(scope, causal[0].value, others[0].value, others[0].test)
    visible = _combined(scope, core.masks, "visible", "a & b")
    bias = _bias(scope, core)
    if visible is None or (bias is None and not core.finite):
        mask = bias if visible is None else visible
        return {"attn_mask": mask} if mask is not None else {}
    parts = {"visible": visible, "bias": bias or literal(None)}
    shown, hidden = parts["bias"], py("-math.inf")
    if core.finite:
        shown = py("0.0 if bias is None else bias", **parts) if bias is not None and are_biases_optional else bias
        shown, hidden = shown or literal(0.0), py("q.new_full((), lowest)", q=core.query.code, lowest=_lowest(core))
    both = py("torch.where(visible, shown, hidden)", visible=visible, shown=shown, hidden=hidden)
    if are_biases_optional and not core.finite:
        both = py("visible if bias is None else both", both=both, **parts)
    if are_masks_optional:
        both = py("bias if visible is None else both", both=both, **parts)
    return {"attn_mask": both}


def _bias(scope: Scope, core: Core) -> ast.expr | None:
    """The biases as one, None where there is none. It hides keys by the least finite number if masks do."""
    bias = _combined(scope, core.biases, "bias", "a + b")
    if bias is None or not core.finite:
        return bias
    limited = py("bias.clamp(min=lowest)", bias=bias, lowest=_lowest(core))
    if all(p.test is not None for p in core.biases):
        limited = py("bias if bias is None else limited", bias=bias, limited=limited)
    variable = scope.fresh("bias")
    scope.statements.bind(variable, limited)
    return name(variable)


def _lowest(core: Core) -> ast.expr:
    return py("torch.finfo(q.dtype).min", q=core.query.code)


def _causal_unless(scope: Scope, causal: CodeValue, other: CodeValue, test: ast.expr) -> dict[str, ast.expr]:
    """The causal mask with another where that applies; else PyTorch's own, for which it needs half the work."""
    visible = scope.fresh("visible")
    both = py("a & b", a=causal.code, b=other.code)
    scope.statements.bind(visible, py("both if test else None", both=both, test=test))
    return {"attn_mask": name(visible), "is_causal": py("visible is None", visible=name(visible))}


def _is_given(part: Part) -> bool:
    """Whether a mask or bias is applied wherever it is there."""
    return part.test is not None and text(part.test) == f"{text(part.value.code)} is not None"


def _combined(scope: Scope, parts: Sequence[Part], word: str, joined: str) -> ast.expr | None:
    """All of the masks, or all of the biases, as one; None where there is none."""
    if not parts:
        return None
    always = [p.value.code for p in parts if p.test is None]
    sometimes = [p for p in parts if p.test is not None]
    if not always and len(sometimes) == 1 and _is_given(sometimes[0]):
        return sometimes[0].value.code
    whole = reduce(lambda a, b: py(joined, a=a, b=b), always) if always else None
    if not sometimes:
        return whole
    variable = scope.fresh(word)
    scope.statements.bind(variable, whole if whole is not None else literal(None))
    for i, part in enumerate(sometimes):
        assert part.test is not None
        both = part.value.code
        if whole is not None or i:
            both = py(joined, a=name(variable), b=both)
        if whole is None and i:
            both = py("b if a is None else both", a=name(variable), b=part.value.code, both=both)
        scope.statements.body.append(ast.If(part.test, [bind(variable, both)], []))
    return name(variable)
