"""Lifting: attention and rotations that are computed step by step are functions of the library, if they are equal."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import pytest
from builders import builder, given, text

from archspec import Type
from archspec.core.algebra import symbol
from archspec.pytorch.calls.registry import CALLS
from archspec.pytorch.lift.idioms.attention import MAX_STEPS, rewrite_attention
from archspec.pytorch.lift.idioms.rotary import rewrite_rotary_scaling
from archspec.pytorch.lift.values.builder import SpecBuilder
from archspec.pytorch.values.values import Operand, Value

BATCH, SEQ = symbol("batch"), symbol("seq")
LEAST = -3.4028234663852886e38
Changed = Callable[[SpecBuilder, Value], Value]

# Attention ------------------------------------------------------------------------------------------------------------


def bias(b: SpecBuilder, name: str = "bias") -> Value:
    return given(b, name, (3, SEQ, SEQ))


def seen(b: SpecBuilder, name: str = "seen") -> Value:
    return given(b, name, (BATCH, 1, 1, SEQ), "bool")


def capped(b: SpecBuilder, scores: Value, by: float = 50.0, times: float = 50.0) -> Value:
    return b.op("mul", b.op("tanh", b.op("div", scores, by)), times)


def ahead(b: SpecBuilder, hidden: float) -> Value:
    """What hides the keys ahead of a query, when it is added to scores."""
    rows = b.op("arange", stop=SEQ)
    return b.op("where", b.op("ge", b.reshape(rows, (SEQ, 1)), rows), 0.0, hidden)


def scaled(b: SpecBuilder, scores: Value, steps: int) -> Value:
    for turn in range(steps):
        scores = b.op("mul" if turn % 2 else "div", scores, 2.0)
    return scores


def softmax(b: SpecBuilder, scores: Value, axis: int = -1) -> Value:
    return b.op("softmax", scores, axis=axis)


def attended(b: SpecBuilder, change: Changed, weigh: Changed = softmax) -> Value:
    """Return the attention of queries to keys whose scores are changed, and made to weights."""
    q, k, v = [given(b, name, (BATCH, 3, SEQ, 8)) for name in "qkv"]
    return b.op("matmul", weigh(b, change(b, b.op("matmul", q, b.permute(k, (0, 1, 3, 2))))), v)


SCORES: dict[str, tuple[Changed, str]] = {
    "as they are": (lambda b, x: x, "[scale=1.0](q, k, v)"),
    "times a number": (lambda b, x: b.op("mul", x, 0.5), "[scale=0.5](q, k, v)"),
    "a number times these": (lambda b, x: b.op("mul", 0.5, x), "[scale=0.5](q, k, v)"),
    "times the usual number": (lambda b, x: b.op("mul", x, 8**-0.5), "(q, k, v)"),
    "divided": (lambda b, x: b.op("div", x, 4.0), "[scale=0.25](q, k, v)"),
    "in many steps": (lambda b, x: scaled(b, x, MAX_STEPS - 1), "[scale=0.5](q, k, v)"),
    "in many steps and capped": (
        lambda b, x: capped(b, scaled(b, x, MAX_STEPS - 2)),
        "[scale=1.0, cap=50.0, finite=False](q, k, v)",
    ),
    "biased": (lambda b, x: b.op("add", x, bias(b)), "[scale=1.0](q, k, v, None, bias)"),
    "biased twice": (
        lambda b, x: b.op("add", bias(b, "other"), b.op("add", x, bias(b))),
        "[scale=1.0](q, k, v, None, add(bias, other))",
    ),
    "seen": (lambda b, x: b.op("where", seen(b), x, -inf), "[scale=1.0](q, k, v, seen)"),
    "hidden": (lambda b, x: b.op("where", seen(b), -inf, x), "[scale=1.0](q, k, v, not(seen))"),
    "seen twice": (
        lambda b, x: b.op("where", seen(b, "also"), b.op("where", seen(b), x, -inf), -inf),
        "[scale=1.0](q, k, v, and(seen, also))",
    ),
    "hidden by the least number": (
        lambda b, x: b.op("where", seen(b), x, LEAST),
        "[scale=1.0, finite=True](q, k, v, seen)",
    ),
    "causal": (lambda b, x: b.op("add", x, ahead(b, -inf)), "[scale=1.0, causal=True](q, k, v)"),
    "causal by the least number": (
        lambda b, x: b.op("add", x, ahead(b, LEAST)),
        "[scale=1.0, causal=True, finite=True](q, k, v)",
    ),
    "causal and biased": (
        lambda b, x: b.op("add", b.op("add", x, bias(b)), ahead(b, -inf)),
        "[scale=1.0, causal=True](q, k, v, None, bias)",
    ),
    "capped": (capped, "[scale=1.0, cap=50.0, finite=False](q, k, v)"),
    "scaled and capped": (
        lambda b, x: capped(b, b.op("mul", x, 0.5)),
        "[scale=0.5, cap=50.0, finite=False](q, k, v)",
    ),
    "capped and hidden": (
        lambda b, x: b.op("where", seen(b), capped(b, x), LEAST),
        "[scale=1.0, cap=50.0](q, k, v, seen)",
    ),
}


@pytest.mark.parametrize("name", SCORES)
def test_scores_are_settings_of_attention(name: str) -> None:
    change, expected = SCORES[name]
    b = builder()
    found = attended(b, change)
    array = found.array
    rewrite_attention(b, [found])
    assert text(found) == f"attention{expected}" and found.array == array


OTHER_SCORES: dict[str, Changed] = {
    "a quotient": lambda b, x: b.op("div", 4.0, x),
    "a sum with a number": lambda b, x: b.op("add", x, 4.0),
    "a difference": lambda b, x: b.op("sub", x, bias(b)),
    "exponentials": lambda b, x: b.op("exp", x),
    "factors": lambda b, x: b.op("mul", x, given(b, "factors", (3, 1, 1))),
    "hidden by another number": lambda b, x: b.op("where", seen(b), x, -9.0),
    "in too many steps": lambda b, x: scaled(b, x, MAX_STEPS),
    "in too many steps and capped": lambda b, x: capped(b, scaled(b, x, MAX_STEPS - 1)),
    "exponentials, capped": lambda b, x: capped(b, b.op("exp", x)),
    "all hidden": lambda b, x: b.op("where", False, x, -inf),
    "hidden by a computed mask": lambda b, x: b.op(
        "add", x, b.op("where", b.op("gt", b.op("exp", bias(b)), 2.0), 0.0, -inf)
    ),
    "hidden by numbers": lambda b, x: b.op("where", seen(b), x, bias(b)),
    "another cap": lambda b, x: capped(b, x, 49.0),
    "capped by a product": lambda b, x: b.op("mul", b.op("tanh", b.op("mul", x, 50.0)), 50.0),
    "another limit": lambda b, x: b.op("mul", b.op("sin", b.op("div", x, 50.0)), 50.0),
    "biased and capped": lambda b, x: capped(b, b.op("add", x, bias(b))),
    "hidden and capped": lambda b, x: capped(b, b.op("where", seen(b), x, -inf)),
    "capped twice": lambda b, x: capped(b, capped(b, x)),
}


@pytest.mark.parametrize("name", OTHER_SCORES)
def test_other_scores_are_written_as_they_are(name: str) -> None:
    b = builder()
    found = attended(b, OTHER_SCORES[name])
    rewrite_attention(b, [found])
    assert found.op == "matmul"


def shifted(b: SpecBuilder, scores: Value, axis: int = -1) -> Value:
    """Scores minus their maximum."""
    return b.op("sub", scores, b.op("amax", scores, axis=axis, keep=True))


def joined(b: SpecBuilder, scores: Value, axis: int = -1, count: int = 1) -> Value:
    """Scores and sinks."""
    batch, heads, seq, _ = scores.shape
    sinks = b.expand(b.reshape(given(b, "sinks", (heads,)), (1, heads, 1, 1)), (batch, heads, seq, 1))
    return b.op("concat", scores, *[sinks] * count, axis=axis)


def sunk(b: SpecBuilder, scores: Value, shift: Changed = shifted, **settings: int) -> Value:
    weights = softmax(b, shift(b, joined(b, scores, **settings)))
    return b.op("slice", weights, axis=-1, start=0, stop=SEQ)


WEIGHTS: dict[str, tuple[Changed, str]] = {
    "of shifted scores": (lambda b, x: softmax(b, shifted(b, x)), "attention[scale=1.0](q, k, v)"),
    "with sinks": (sunk, "attention[scale=1.0](q, k, v, None, None, sinks)"),
    "with sinks, not shifted": (
        lambda b, x: sunk(b, x, lambda b, x: x),
        "attention[scale=1.0](q, k, v, None, None, sinks)",
    ),
    "sinks after a cap": (
        lambda b, x: sunk(b, capped(b, x)),
        "attention[scale=1.0, cap=50.0, finite=False](q, k, v, None, None, sinks)",
    ),
    "sinks twice": (lambda b, x: sunk(b, x, count=2), "matmul"),
    "of a part of the keys": (
        lambda b, x: b.op("slice", b.op("pad", softmax(b, x), axis=-1, after=2), axis=-1, start=0, stop=SEQ),
        "matmul",
    ),
    "shifted by another maximum": (
        lambda b, x: softmax(b, b.op("sub", x, b.op("amax", b.op("mul", x, 2.0), axis=-1, keep=True))),
        "matmul",
    ),
    "of a difference": (lambda b, x: softmax(b, b.op("sub", x, bias(b))), "matmul"),
    "of a difference with a number": (lambda b, x: softmax(b, b.op("sub", x, 2.0)), "matmul"),
    "of queries": (lambda b, x: softmax(b, x, axis=2), "matmul"),
    "exponentials": (lambda b, x: b.op("exp", x), "matmul"),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_are_those_of_attention(name: str) -> None:
    weigh, expected = WEIGHTS[name]
    b = builder()
    found = attended(b, lambda b, x: x, weigh)
    rewrite_attention(b, [found])
    assert text(found).partition("(" if expected == "matmul" else "$")[0] == expected


def test_heads_of_keys_may_be_fewer() -> None:
    b = builder()
    q, *others = [given(b, name, (BATCH, SEQ, size)) for name, size in (("q", 24), ("k", 12), ("v", 12))]
    q = b.permute(b.reshape(b.op("mul", q, 0.25), (BATCH, SEQ, 6, 4)), (0, 2, 1, 3))
    k, v = [b.permute(b.reshape(b.op("div", x, 2.0), (BATCH, SEQ, 3, 4)), (0, 2, 1, 3)) for x in others]
    k, v = [
        b.reshape(b.expand(b.reshape(x, (BATCH, 3, 1, SEQ, 4)), (BATCH, 3, 2, SEQ, 4)), (BATCH, 6, SEQ, 4))
        for x in (k, v)
    ]
    found = b.op("matmul", b.op("softmax", b.op("matmul", q, b.permute(k, (0, 1, 3, 2))), axis=-1), v)
    rewrite_attention(b, [found])
    heads = "split_heads[count=6](q), split_heads[count=3](k), split_heads[count=3](div(v, 2.0))"
    assert text(found) == f"attention[scale=0.125]({heads})"


@pytest.mark.parametrize(("first", "second", "third"), [("", "", ""), ("b", "", "b"), ("", "b", "b")])
def test_products_without_batches_or_heads_are_written_as_they_are(first: str, second: str, third: str) -> None:
    b = builder()
    leads = [(BATCH, 3) if of_batch else (3,) for of_batch in (first, second, third)]
    q, k, v = [given(b, name, (*lead, SEQ, 8)) for name, lead in zip("qkv", leads, strict=True)]
    turned = b.permute(k, (0, 1, 3, 2) if second else (0, 2, 1))
    found = b.op("matmul", softmax(b, b.op("matmul", q, turned)), v)
    rewrite_attention(b, [found])
    assert found.op == "matmul"


EACH = "expand[shape=(batch, 3, seq, 8)]"


@pytest.mark.parametrize(
    ("alone", "lead", "expected"),
    [
        ("v", (), f"q, k, {EACH}(v)"),
        ("q", (1,), f"{EACH}(q), k, v"),
        ("k", (1,), f"q, {EACH}(k), v"),
    ],
)
def test_what_is_the_same_for_each_item_of_a_batch_is_repeated(
    alone: str, lead: tuple[int, ...], expected: str
) -> None:
    b = builder()
    q, k, v = [given(b, name, (*(lead if name == alone else (BATCH,)), 3, SEQ, 8)) for name in "qkv"]
    found = b.op("matmul", softmax(b, b.op("matmul", q, b.permute(k, (0, 1, 3, 2)))), v)
    rewrite_attention(b, [found])
    assert text(found) == f"attention[scale=1.0]({expected})"


def test_biases_for_more_heads_than_queries_are_written_as_they_are() -> None:
    b = builder()
    q, k, v = [given(b, name, (BATCH, 1, SEQ, 8)) for name in "qkv"]
    scores = b.op("add", b.op("matmul", q, b.permute(k, (0, 1, 3, 2))), bias(b))
    found = b.op("matmul", softmax(b, scores), v)
    rewrite_attention(b, [found])
    assert found.op == "matmul"


def test_queries_may_be_multiplied_by_numbers_of_more_axes() -> None:
    b = builder()
    q, k, v = [given(b, name, shape) for name, shape in (("q", (SEQ, 8)), ("k", (2, 3, SEQ, 8)), ("v", (2, 3, SEQ, 8)))]
    whole = b.op("mul", q, b.op("full", shape=(2, 3, SEQ, 8), value=0.5))
    found = b.op("matmul", softmax(b, b.op("matmul", whole, b.permute(k, (0, 1, 3, 2)))), v)
    rewrite_attention(b, [found])
    assert found.op == "attention" and found.operands[0].shape == (2, 3, SEQ, 8)


ELSEWHERE: dict[str, tuple[Changed, Changed, Callable[[Value], Value]]] = {
    "product": (capped, softmax, lambda x: x.operands[0].operands[0].operands[0].operands[0].operands[0]),
    "quotient": (capped, softmax, lambda x: x.operands[0].operands[0].operands[0].operands[0]),
    "limited scores": (capped, softmax, lambda x: x.operands[0].operands[0].operands[0]),
    "scores": (capped, softmax, lambda x: x.operands[0].operands[0]),
    "weights": (capped, softmax, lambda x: x.operands[0]),
    "some weights": (capped, sunk, lambda x: x.operands[0]),
    "all weights": (capped, sunk, lambda x: x.operands[0].operands[0]),
    "shifted scores": (capped, sunk, lambda x: x.operands[0].operands[0].operands[0]),
    "scores with sinks": (capped, sunk, lambda x: x.operands[0].operands[0].operands[0].operands[0]),
    "maximum": (capped, sunk, lambda x: x.operands[0].operands[0].operands[0].operands[1]),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_scores_and_weights_that_are_used_elsewhere_are_kept(name: str) -> None:
    change, weigh, other = ELSEWHERE[name]
    b = builder()
    found = attended(b, change, weigh)
    rewrite_attention(b, [found, other(found)])
    assert found.op == "matmul"


# Rows ----------------------------------------------------------------------------------------------------------------


def rows(b: SpecBuilder, name: str = "x", size: int = 8) -> Value:
    """The vectors of all tokens."""
    return b.reshape(given(b, name, (BATCH, SEQ, size)), (BATCH * SEQ, size))


OF_ROWS: dict[str, tuple[Callable[[SpecBuilder], Value], str]] = {
    "functions": (lambda b: b.op("exp", rows(b)), "exp(x)"),
    "sums": (lambda b: b.op("add", rows(b), rows(b, "y")), "add(x, y)"),
    "sums with a vector": (lambda b: b.op("add", rows(b), given(b, "y", (8,))), "add(x, y)"),
    "products": (lambda b: b.op("linear", rows(b), given(b, "y", (5, 8))), "linear(x, y)"),
    "softmax": (lambda b: b.op("softmax", rows(b), axis=1), "softmax[axis=-1](x)"),
    "softmax, from the end": (lambda b: b.op("softmax", rows(b), axis=-1), "softmax[axis=-1](x)"),
    "joined": (lambda b: b.op("concat", rows(b), rows(b, "y", 3), axis=1), "concat[axis=-1](x, y)"),
    "an axis in between": (
        lambda b: b.op("sum", b.reshape(b.op("exp", rows(b)), (BATCH * SEQ, 2, 4)), axis=1),
        "sum[axis=2](rearrange[=b s (h d) -> b s h d, h=2](exp(x)))",
    ),
    "parts": (
        lambda b: b.ops("split", rows(b), sizes=(3, 5), axis=1)[1],
        "part[index=1](split[sizes=(3, 5), axis=-1](x))",
    ),
    "activations": (lambda b: b.activation("gelu", rows(b)), "gelu(x)"),
    "repeated heads": (
        lambda b: b.op(
            "mul",
            b.reshape(b.expand(b.reshape(heads(b), (BATCH, 3, 1, SEQ, 8)), (BATCH, 3, 2, SEQ, 8)), (BATCH * 6, SEQ, 8)),
            0.5,
        ),
        "mul(expand[shape=(batch, 3, 2, seq, 8)](reshape[shape=(batch, 3, 1, seq, 8)](x)), 0.5)",
    ),
}


@pytest.mark.parametrize("name", OF_ROWS)
def test_operations_on_rows_are_those_of_the_tensor(name: str) -> None:
    make, expected = OF_ROWS[name]
    b = builder()
    root, _ = b.layout(make(b))
    assert text(root) == expected


OF_ALL_ROWS: dict[str, Callable[[SpecBuilder], Value]] = {
    "along the rows": lambda b: b.op("sum", rows(b), axis=0),
    "along all axes": lambda b: b.op("softmax", rows(b), axis=0),
    "turned": lambda b: b.op("exp", b.permute(rows(b), (1, 0))),
    "with other rows": lambda b: b.op("add", rows(b), given(b, "y", (BATCH * SEQ, 8))),
    "with rows of other texts": lambda b: b.op(
        "add", rows(b), b.reshape(given(b, "y", (SEQ, BATCH, 8)), (BATCH * SEQ, 8))
    ),
}


@pytest.mark.parametrize("name", OF_ALL_ROWS)
def test_operations_on_all_rows_together_are_not(name: str) -> None:
    b = builder()
    found = text(b.written(OF_ALL_ROWS[name](b)))
    assert "(batch*seq" in found or "rearrange" in found


# Rotations ------------------------------------------------------------------------------------------------------------


def add(b: SpecBuilder, x: Value, y: Operand) -> Value:
    return CALLS["add"](b, [Type(x.shape)], x, y)


def cat(b: SpecBuilder, *parts: Value, axis: int = -1) -> Value:
    return CALLS["cat"](b, [Type((), "real")], [*parts], axis)


def some(b: SpecBuilder, x: Value, start: int, stop: int | None = None, step: int = 1) -> Value:
    return b.op("slice", x, axis=-1, start=start, stop=stop, step=step)


def heads(b: SpecBuilder, size: int = 8) -> Value:
    return given(b, "x", (BATCH, 3, SEQ, size))


def angles(b: SpecBuilder) -> Value:
    return given(b, "angles", (SEQ, 4))


def each_twice(b: SpecBuilder, x: Value) -> Value:
    return b.reshape(b.expand(b.reshape(x, (SEQ, 4, 1)), (SEQ, 4, 2)), (SEQ, 8))


def summed(b: SpecBuilder, x: Value, other: Value, table: Value, sines: str = "sin") -> Value:
    return add(b, b.op("mul", x, b.op("cos", table)), b.op("mul", other, b.op(sines, table)))


def exchanged(b: SpecBuilder, x: Value, sign: str = "neg", at: int = 4) -> Value:
    """The halves of components, the other way round."""
    return b.op("concat", b.op(sign, some(b, x, at)), some(b, x, 0, at), axis=-1)


def halves(b: SpecBuilder, x: Value, second: str = "", **other: Any) -> Value:
    first = angles(b)
    table = b.op("concat", first, b.op(second, first) if second else first, axis=-1)
    table = table if x.shape[-2] == SEQ else b.reshape(table, (SEQ, 1, 8))
    return summed(b, x, exchanged(b, x, **other), table)


def pairs(b: SpecBuilder, x: Value, sign: str = "neg", **other: Any) -> Value:
    between = b.op("stack", b.op(sign, some(b, x, 1, step=2)), some(b, x, 0, step=2), axis=-1)
    return summed(b, x, b.reshape(between, x.shape), each_twice(b, angles(b)), **other)


def pairs_of_tables(b: SpecBuilder, x: Value) -> Value:
    """Pairs whose cosines and sines are repeated, rather than the angles."""
    between = b.op("stack", b.op("neg", some(b, x, 1, step=2)), some(b, x, 0, step=2), axis=-1)
    cosines, sines = [each_twice(b, b.op(name, angles(b))) for name in ("cos", "sin")]
    return add(b, b.op("mul", x, cosines), b.op("mul", b.reshape(between, x.shape), sines))


def one_by_one(b: SpecBuilder, x: Value, y: Value, first: str = "sub", tables: Sequence[Value] = ()) -> list[Value]:
    """The components of two parts, after their rotation."""
    cosines, sines = tables or [given(b, name, (SEQ, 4)) for name in ("c", "s")]
    found = b.op(first, b.op("mul", x, cosines), b.op("mul", y, sines))
    return [found, b.op("add", b.op("mul", y, cosines), b.op("mul", x, sines))]


def split(b: SpecBuilder, x: Value) -> list[Value]:
    return b.ops("split", x, sizes=(4, 4), axis=-1)


def evens_and_odds(b: SpecBuilder, x: Value) -> list[Value]:
    return [some(b, x, start, step=2) for start in (0, 1)]


def with_rest(b: SpecBuilder, make: Callable[..., Value], at: int = 8, **other: Any) -> Value:
    """The rotation of the first components of a head, and the others."""
    x = heads(b, 12)
    return cat(b, make(b, some(b, x, 0, 8), **other), some(b, x, at))


ROTATIONS: dict[str, tuple[Callable[[SpecBuilder], Value], str]] = {
    "halves": (lambda b: halves(b, heads(b)), "rotate(x, cos(angles), sin(angles))"),
    "halves, tokens before heads": (
        lambda b: halves(b, given(b, "x", (BATCH, SEQ, 3, 8))),
        "transpose[a=1, b=2](rotate(transpose[a=1, b=2](x), cos(angles), sin(angles)))",
    ),
    "pairs": (lambda b: pairs(b, heads(b)), "rotate[adjacent=True](x, cos(angles), sin(angles))"),
    "pairs of tables": (
        lambda b: pairs_of_tables(b, heads(b)),
        "rotate[adjacent=True](x, cos(angles), sin(angles))",
    ),
    "some halves": (lambda b: with_rest(b, halves), "rotate[partial=True](x, cos(angles), sin(angles))"),
    "some pairs": (lambda b: with_rest(b, pairs), "rotate[adjacent=True, partial=True](x, cos(angles), sin(angles))"),
    "parts": (lambda b: cat(b, *one_by_one(b, *split(b, heads(b)))), "rotate(x, c, s)"),
    "slices": (
        lambda b: cat(b, *one_by_one(b, some(b, x := heads(b), 0, 4), some(b, x, 4))),
        "rotate(x, c, s)",
    ),
    "evens and odds": (
        lambda b: cat(b, *one_by_one(b, *evens_and_odds(b, heads(b)))),
        "rotate(rearrange[=b h s (d w) -> b h s (w d), d=4](x), c, s)",
    ),
}


@pytest.mark.parametrize("name", ROTATIONS)
def test_rotations_are_functions(name: str) -> None:
    make, expected = ROTATIONS[name]
    b = builder()
    assert text(b.written(make(b))) == expected


OTHER_ROTATIONS: dict[str, Callable[[SpecBuilder], Value]] = {
    "halves of another sign": lambda b: halves(b, heads(b), sign="abs"),
    "parts that are not halves": lambda b: halves(b, heads(b), at=3),
    "angles that differ": lambda b: halves(b, heads(b), second="neg"),
    "a sum with a number": lambda b: add(b, b.op("mul", heads(b), b.op("cos", each_twice(b, angles(b)))), 2.0),
    "halves of three axes": lambda b: halves(b, given(b, "x", (3, SEQ, 8))),
    "pairs of another sign": lambda b: pairs(b, heads(b), sign="abs"),
    "pairs with other sines": lambda b: pairs(b, heads(b), sines="tanh"),
    "parts of another sign": lambda b: cat(b, *one_by_one(b, *split(b, heads(b)), first="add")),
    "parts the other way round": lambda b: cat(b, *one_by_one(b, *split(b, heads(b)))[::-1]),
    "parts along another axis": lambda b: cat(b, *one_by_one(b, *split(b, heads(b))), axis=2),
    "parts of three": lambda b: cat(b, *one_by_one(b, *b.ops("split", heads(b, 12), sizes=(4, 4, 4), axis=-1)[:2])),
    "some evens and odds": lambda b: cat(
        b, *one_by_one(b, some(b, x := heads(b, 13), 0, 8, step=2), some(b, x, 1, 8, step=2))
    ),
    "parts of three axes": lambda b: cat(b, *one_by_one(b, *split(b, given(b, "x", (3, SEQ, 8))))),
    "parts that are negated": lambda b: cat(b, b.op("neg", some(b, heads(b), 0, 4)), some(b, heads(b), 0, 4)),
    "tables of each item": lambda b: cat(
        b, *one_by_one(b, *split(b, heads(b)), tables=[given(b, name, (BATCH, 1, SEQ, 4)) for name in "cs"])
    ),
    "sums of the same": lambda b: cat(b, b.op("sub", heads(b, 4), heads(b, 4)), heads(b, 4)),
    "three parts": lambda b: cat(b, *one_by_one(b, *split(b, heads(b))), heads(b)),
    "odds and evens": lambda b: cat(b, *one_by_one(b, *evens_and_odds(b, heads(b))[::-1])),
    "parts of other values": lambda b: cat(b, *one_by_one(b, heads(b, 4), given(b, "y", (BATCH, 3, SEQ, 4)))),
    "another rest": lambda b: with_rest(b, halves, at=9),
    "a rest of another axis": lambda b: cat(b, halves(b, heads(b)), heads(b), axis=2),
    "a rest of another value": lambda b: cat(b, halves(b, heads(b)), some(b, given(b, "y", (BATCH, 3, SEQ, 12)), 8)),
}


@pytest.mark.parametrize("name", OTHER_ROTATIONS)
def test_other_rotations_are_written_as_they_are(name: str) -> None:
    b = builder()
    found = OTHER_ROTATIONS[name](b)
    assert found.op in ("add", "concat")


def test_tables_of_rotations_have_names_unless_the_source_names_them() -> None:
    b = builder()
    rotated = cat(b, *one_by_one(b, *split(b, heads(b)), tables=[angles(b), given(b, "s", (SEQ, 4))]))
    assert [table.names for table in rotated.operands[1:]] == [["cosines"], ["sines"]]
    cosines = angles(b)
    cosines.names = ["own"]
    rotated = cat(b, *one_by_one(b, *split(b, heads(b)), tables=[cosines, given(b, "s", (SEQ, 4))]))
    assert [table.names for table in rotated.operands[1:]] == [["own"], ["sines"]]


# Scaled positions -----------------------------------------------------------------------------------------------------

LLAMA = {"size": 8, "theta": 10000.0, "factor": 8.0, "low": 1.0, "high": 4.0, "context": 64}
YARN = {"size": 8, "theta": 10000.0, "factor": 8.0, "context": 64}
OF_LLAMA = "llama3_scaling[size=8, theta=10000.0, factor=8.0, low=1.0, high=4.0, context=64]"
OF_YARN = "yarn_scaling[size=8, theta=10000.0, factor=8.0, context=64, strength=1.5]"


def turned(b: SpecBuilder, name: str, settings: dict[str, Any], positions: Value, by: tuple[float, ...] = ()) -> Value:
    """Rotated heads, by positions at the frequencies that a function of the library makes."""
    frequencies = b.function(name, [], (4,), **settings)
    assert frequencies is not None
    angles = b.op("mul", positions, frequencies)
    if not by:  # the halves of components, the other way round
        return summed(b, heads(b), exchanged(b, heads(b)), b.op("concat", angles, angles, axis=-1))
    tables = [b.op("cos", angles), b.op("sin", angles)]
    tables = [b.op("mul", *pair) for pair in zip(tables, by, strict=True)]
    return cat(b, *one_by_one(b, *split(b, heads(b)), tables=tables))


def counted(b: SpecBuilder) -> Value:
    return b.reshape(b.op("arange", stop=SEQ), (SEQ, 1))


def places(b: SpecBuilder) -> Value:
    return given(b, "places", (SEQ, 1), "int")


SCALED: dict[str, tuple[Callable[[SpecBuilder], Value], str | None]] = {
    "llama": (lambda b: turned(b, "llama3_frequencies", LLAMA, counted(b)), f"{OF_LLAMA}(arange[stop=seq])"),
    "yarn": (
        lambda b: turned(b, "yarn_frequencies", YARN, counted(b), (1.5, 1.5)),
        f"{OF_YARN}(arange[stop=seq])",
    ),
    "parts": (
        lambda b: turned(b, "llama3_frequencies", LLAMA, counted(b), (1.0, 1.0)),
        f"{OF_LLAMA}(arange[stop=seq])",
    ),
    "other places": (
        lambda b: turned(b, "llama3_frequencies", LLAMA, places(b)),
        f"{OF_LLAMA}(reshape[shape=(seq,)](places))",
    ),
    "a strength that is not that of the function": (
        lambda b: turned(b, "llama3_frequencies", LLAMA, counted(b), (1.5, 1.5)),
        None,
    ),
    "two strengths": (lambda b: turned(b, "yarn_frequencies", YARN, counted(b), (1.5, 2.0)), None),
    "usual frequencies": (
        lambda b: turned(b, "rotary_frequencies", {"size": 8, "theta": 10000.0}, counted(b)),
        None,
    ),
}


@pytest.mark.parametrize("name", SCALED)
def test_tables_of_scaled_positions_are_the_results_of_a_function(name: str) -> None:
    make, expected = SCALED[name]
    b = builder()
    found = b.written(make(b))
    frame, tables, before = b.frame, found.operands[1:], text(found)
    arrays = [table.array for table in tables]
    tables[1].names = ["own"]
    rewrite_rotary_scaling(b, [found])
    if expected is None:
        assert text(found) == before
        return
    assert text(found) == f"rotate(x, part[index=0]({expected}), part[index=1]({expected}))"
    assert tables[0].operands[0] is tables[1].operands[0] and b.frame is frame
    assert [table.array for table in tables] == arrays and [table.names for table in tables] == [["cosines"], ["own"]]
