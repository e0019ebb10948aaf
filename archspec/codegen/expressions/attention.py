"""Scaled dot-product attention, recognised by what is computed: softmax(q k^T * scale + bias, masked) v."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from archspec.codegen.expressions.tensor_types import TensorTypes, as_type_of
from archspec.codegen.python.trees import apply, bind, literal, name, py, text
from archspec.codegen.scope.operations import constant
from archspec.codegen.scope.scope import Scope
from archspec.codegen.scope.values import REAL, STATIC, CodeValue
from archspec.compiler.resolve import nodes
from archspec.core.algebra import Dim


class Part(NamedTuple):
    """A mask or a bias; `test` is the condition under which it is applied, None for always."""

    value: CodeValue
    test: ast.expr | None


class Scores(NamedTuple):
    """The argument of the softmax. If `finite`, masks hide keys with the lowest finite number, otherwise with -inf."""

    query: CodeValue
    key: CodeValue
    scale: ast.expr | None
    masks: list[Part]
    biases: list[Part]
    shapes: frozenset[tuple[Dim, ...]]
    finite: bool = False


def as_attention(scope: Scope, types: TensorTypes, values: Sequence[CodeValue | None]) -> CodeValue | None:
    """Return one attention call if the product is that of attention probabilities and values."""
    weights, value = values
    if weights is None or value is None:
        return None
    weights, rate = _dropped(weights)
    if weights.op != "softmax" or constant(dict(weights.settings)["axis"]) != -1:
        return None
    scores = _finite_scores(weights.args[0])
    if scores is None or {scores.query.rank, scores.key.rank, value.rank} != {4}:
        return None
    if {v.kind for v in (scores.query, scores.key, value)} != {REAL}:
        return None
    if not scores.shapes or weights.args[0].shapes != scores.shapes:
        return None  # a mask or bias makes them larger
    if not _have_rows(scope, [*scores.masks, *scores.biases]):
        return None  # PyTorch takes masks for queries and keys
    parts = [part.value for part in (*scores.masks, *scores.biases)]
    if not all(map(scope.statements.is_current, (scores.query, scores.key, value, *parts))):
        return None
    biases = [
        part if part.value.kind == REAL else part._replace(value=as_type_of(part.value, scores.query, types))
        for part in scores.biases
    ]
    keywords = _masked(scope, scores._replace(biases=biases))
    scale = _scale(scope, scores)
    if scale is not None:
        keywords["scale"] = scale
    if rate is not None:
        keywords["dropout_p"] = py("rate if training else 0.0", rate=rate, training=types.training())
    call = apply(py("F.scaled_dot_product_attention"), [scores.query.code, scores.key.code, value.code], keywords)
    return CodeValue(call, REAL, 4)


def _have_rows(scope: Scope, parts: Sequence[Part]) -> bool:
    """Whether masks and biases have two axes or more, whichever of them are applied."""
    always = [part for part in parts if part.test is None]
    return any(_least_rank(scope, p.value) > 1 for p in always) or all(_least_rank(scope, p.value) > 1 for p in parts)


def _least_rank(scope: Scope, value: CodeValue) -> int:
    """The least number of axes that a mask or bias has in the uses."""
    if value.rank is not None:
        return value.rank
    ranks = [len(t.shape) for input in scope.inputs if input.value.name == value.name for t in input.types]
    return min(ranks, default=2)


def _dropped(weights: CodeValue) -> tuple[CodeValue, ast.expr | None]:
    """The weights before dropout, and its rate, None where nothing is dropped."""
    if weights.op == "option" and weights.test is not None:
        then, otherwise = weights.args
        rate = then.settings[0][1] if then.op == "dropout" and _same(then.args[0], otherwise) else None
        if rate is not None and text(weights.test) == f"{text(rate)} != 0.0":
            return otherwise, rate
    if weights.op != "dropout":
        return weights, None
    rate = weights.settings[0][1]
    return weights.args[0], None if constant(rate) == 0 else rate


def products_in(body: Sequence[ast.stmt]) -> int:
    """How many matrix products statements have, of which attention in one call has two."""
    called = [n.attr for statement in body for n in ast.walk(statement) if isinstance(n, ast.Attribute)]
    return called.count("matmul") + 2 * called.count("scaled_dot_product_attention")


def _finite_scores(score: CodeValue) -> Scores | None:
    """Takes scores apart, which may be limited to finite numbers."""
    if score.op != "max" or score.args[1].op != "lowest":
        return _scores(score, [], [])
    scores = _scores(score.args[0], [], [])
    is_simple = scores is not None and isinstance(scores.query.code, ast.Name)  # it is used twice
    return scores._replace(finite=True) if scores is not None and is_simple else None


def _scores(score: CodeValue, masks: list[Part], biases: list[Part]) -> Scores | None:
    """Takes scores apart, from the outside in."""
    match score.op:
        case "where" if _is_hidden(score):
            return _scores(score.args[1], [Part(score.args[0], None), *masks], biases)
        case "add":
            found = _sides(score)
            return _scores(found[0], masks, [Part(found[1], None), *biases]) if found else None
        case "option":
            then, otherwise = score.args
            if then.op == "where" and _is_hidden(then) and _same(then.args[1], otherwise):
                return _scores(otherwise, [Part(then.args[0], score.test), *masks], biases)
            if then.op == "add" and _same(then.args[0], otherwise):
                return _scores(otherwise, masks, [Part(then.args[1], score.test), *biases])
            return None
        case "mul" | "div":
            product, factor = score.args
            if score.op == "mul" and product.kind == STATIC:
                product, factor = factor, product
            if factor.kind != STATIC or product.op != "matmul":
                return None
            scale = _origin(factor)
            return _product(product, scale if score.op == "mul" else py("1 / x", x=scale), masks, biases)
        case "float32":
            return _scores(score.args[0], masks, biases)  # the fused kernel computes the softmax so
        case "matmul":
            return _product(score, literal(1.0), masks, biases)
        case _:
            return None


def _sides(score: CodeValue) -> tuple[CodeValue, CodeValue] | None:
    """The scores and the bias of a sum."""
    left, right = score.args
    inner = ("matmul", "mul", "div", "add", "where", "option")
    if left.op in inner and left.kind == REAL and right.is_tensor:
        return left, right
    return None


def _same(a: CodeValue, b: CodeValue) -> bool:
    return a is b or (a.op == b.op and a.args is b.args)


def _is_hidden(score: CodeValue) -> bool:
    """Whether it is scores where a mask is true, and minus infinity elsewhere."""
    return score.args[1].is_tensor and text(score.args[2].code) in ("-math.inf", "float('-inf')")


def _product(product: CodeValue, scale: ast.expr, masks: list[Part], biases: list[Part]) -> Scores | None:
    query, turned = product.args
    settings = dict(turned.settings) if turned.op == "transpose" else {}
    if not settings or {constant(settings["a"]), constant(settings["b"])} not in ({-2, -1}, {2, 3}):
        return None
    return Scores(query, turned.args[0], scale, masks, biases, product.shapes)


def _origin(value: CodeValue) -> ast.expr:
    """What a number was bound to."""
    return value.origin if value.name is not None and value.origin is not None else value.code


def _scale(scope: Scope, scores: Scores) -> ast.expr | None:
    """The scale, unless it is 1 / sqrt(size of a head), which PyTorch takes by itself."""
    assert scores.scale is not None
    query = next((input for input in scope.inputs if input.value.name == scores.query.name), None)
    if query is not None and scores.query.name is not None and query.items:
        last = query.items[-1]
        if isinstance(last, nodes.Dimension):
            size = scope.statements.variable(last.key)
            if text(scores.scale) in (f"{size} ** (-0.5)", f"1 / math.sqrt({size})", f"1 / {size} ** 0.5"):
                return None
    return scores.scale


def _masked(scope: Scope, scores: Scores) -> dict[str, ast.expr]:
    """The keywords for masks and biases."""
    masks, biases = scores.masks, scores.biases
    if scores.finite and masks:
        return _masked_by_numbers(scope, scores)
    causal = [m for m in masks if m.value.op == "causal" and m.test is None]
    others = [m for m in masks if m not in causal]
    if not biases and len(causal) == 1:
        if not others:
            return {"is_causal": literal(True)}
        if len(others) == 1 and others[0].test is not None:
            return _causal_unless(scope, causal[0].value, others[0].value, others[0].test)
    visible = _combined(scope, masks, "visible", "a & b")
    bias = _bias(scope, scores)
    if bias is None or visible is None:
        found = bias if visible is None else visible
        return {"attn_mask": found} if found is not None else {}
    both = py("torch.where(visible, bias, -math.inf)", visible=visible, bias=bias)
    if all(p.test is not None for p in biases):
        both = py("visible if bias is None else both", visible=visible, bias=bias, both=both)
    if all(p.test is not None for p in masks):
        both = py("bias if visible is None else both", visible=visible, bias=bias, both=both)
    return {"attn_mask": both}


def _masked_by_numbers(scope: Scope, scores: Scores) -> dict[str, ast.expr]:
    """The keywords for masks that hide keys by the least finite number, and for biases."""
    visible = _combined(scope, scores.masks, "visible", "a & b")
    bias = _bias(scope, scores)
    assert visible is not None
    shown = literal(0.0) if bias is None else bias
    if bias is not None and all(p.test is not None for p in scores.biases):
        shown = py("0.0 if bias is None else bias", bias=bias)
    lowest = py("q.new_full((), lowest)", q=scores.query.code, lowest=_lowest(scores))
    both = py("torch.where(visible, shown, lowest)", visible=visible, shown=shown, lowest=lowest)
    if all(p.test is not None for p in scores.masks):
        both = py("bias if visible is None else both", visible=visible, bias=bias or literal(None), both=both)
    return {"attn_mask": both}


def _bias(scope: Scope, scores: Scores) -> ast.expr | None:
    """The biases as one, None where there is none. It hides keys by the least finite number if masks do."""
    bias = _combined(scope, scores.biases, "bias", "a + b")
    if bias is None or not scores.finite:
        return bias
    limited = py("bias.clamp(min=lowest)", bias=bias, lowest=_lowest(scores))
    if all(p.test is not None for p in scores.biases):
        limited = py("bias if bias is None else limited", bias=bias, limited=limited)
    variable = scope.fresh("bias")
    scope.statements.bind(variable, limited)
    return name(variable)


def _lowest(scores: Scores) -> ast.expr:
    return py("torch.finfo(q.dtype).min", q=scores.query.code)


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
