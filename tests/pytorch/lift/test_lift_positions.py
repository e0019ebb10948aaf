"""Lifting: masks and positions are written anew from their normal forms, and views of several steps as one."""

from collections.abc import Callable
from typing import Any

import pytest
from builders import builder, given, text

import archspec
from archspec.core.algebra import symbol
from archspec.pytorch.lift.values.builder import SpecBuilder
from archspec.pytorch.lift.values.indices import IndexWriter
from archspec.pytorch.values.values import ModuleCall, Value

BATCH, SEQ = symbol("batch"), symbol("seq")


def row(b: SpecBuilder, size: Any = SEQ) -> Value:
    return b.op("arange", stop=size)


def column(b: SpecBuilder, size: Any = SEQ) -> Value:
    return b.reshape(row(b, size), (size, 1))


def behind(b: SpecBuilder) -> Value:
    """By how much the key is behind the query."""
    return b.op("sub", column(b), row(b))


def within(b: SpecBuilder, before: int, after: int) -> Value:
    """Whether the key is fewer places before the query, and after it."""
    return b.op("and", b.op("lt", behind(b), before), b.op("gt", behind(b), -after))


def causal(b: SpecBuilder) -> Value:
    return b.op("ge", behind(b), 0)


def padding(b: SpecBuilder, shape: tuple[Any, ...] = (BATCH, 1, 1, SEQ), dtype: str = "int") -> Value:
    """Where an input is not 0."""
    whole = given(b, "ids", tuple(size for size in shape if size != 1), dtype)
    found = b.reshape(whole, shape)
    return b.expand(b.op("ne", found, 0) if dtype == "int" else found, (BATCH, 3, SEQ, SEQ))


AT_SEQ = "reshape[shape=(seq, 1)](arange[stop=seq])"
UP_TO = f"ge({AT_SEQ}, arange[stop=seq])"
MASKS: dict[str, tuple[Callable[[SpecBuilder], Value], str | None, dict[str, object]]] = {
    "all": (lambda b: b.op("full", shape=(SEQ, SEQ), value=True), None, {}),
    "causal": (causal, None, {"causal": True}),
    "causal, the last ones": (
        lambda b: b.op("and", causal(b), b.op("lt", behind(b), 7)),
        None,
        {"causal": True, "window": 6},
    ),
    "near": (lambda b: within(b, 7, 7), None, {"window": 6}),
    "next to it": (lambda b: within(b, 2, 2), None, {"window": 1}),
    "itself and the one before": (
        lambda b: b.op("and", causal(b), b.op("lt", behind(b), 2)),
        None,
        {"causal": True, "window": 1},
    ),
    "near, less far ahead": (
        lambda b: within(b, 7, 5),
        f"and(ge(add(arange[stop=seq], 6), {AT_SEQ}), ge(add({AT_SEQ}, 4), arange[stop=seq]))",
        {},
    ),
    "the last ones and all ahead": (lambda b: b.op("lt", behind(b), 7), f"ge(add(arange[stop=seq], 6), {AT_SEQ})", {}),
    "those before": (lambda b: b.op("ge", behind(b), 1), f"gt({AT_SEQ}, arange[stop=seq])", {}),
    "fewer queries than keys": (
        lambda b: b.op("ge", b.op("sub", column(b, 3), row(b, 5)), 0),
        "ge(reshape[shape=(3, 1)](arange[stop=3]), arange[stop=5])",
        {},
    ),
    "padding": (padding, "key_mask(ids)", {}),
    "padding, causal": (lambda b: b.op("and", padding(b), causal(b)), "key_mask(ids)", {"causal": True}),
    "padding as booleans": (
        lambda b: b.op("and", padding(b, dtype="bool"), causal(b)),
        "reshape[shape=(batch, 1, 1, seq)](ids)",
        {"causal": True},
    ),
    "padding, and other conditions": (
        lambda b: b.op("and", b.op("and", given(b, "seen", (SEQ, SEQ), "bool"), padding(b)), causal(b)),
        "and(key_mask(ids), seen)",
        {"causal": True},
    ),
    "padding of queries": (
        lambda b: padding(b, (BATCH, 1, SEQ, 1)),
        "ne(reshape[shape=(batch, 1, seq, 1)](ids), 0)",
        {},
    ),
    "padding of each head": (
        lambda b: padding(b, (BATCH, 3, 1, SEQ)),
        "ne(reshape[shape=(batch, 3, 1, seq)](ids), 0)",
        {},
    ),
    "a prefix": (
        lambda b: b.op("or", b.op("or", causal(b), b.op("lt", row(b), 4)), b.op("eq", row(b), 9)),
        f"or(or({UP_TO}, le(arange[stop=seq], 3)), eq(arange[stop=seq], 9))",
        {},
    ),
    "scores": (
        lambda b: b.op("and", causal(b), b.op("gt", given(b, "scores", (SEQ, SEQ)), 0.0)),
        f"reshape[shape=(1, 1, seq, seq)](and({UP_TO}, gt(scores, 0.0)))",
        {},
    ),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_are_settings_of_attention_or_comparisons(name: str) -> None:
    make, expected, settings = MASKS[name]
    b = builder()
    value = make(b)
    mask, found = b.mask(b.reshape(value, (1,) * (4 - len(value.shape)) + value.shape))
    assert (mask and text(mask), found) == (expected, settings)


POSITIONS: dict[str, tuple[Callable[[SpecBuilder], Value], str | None]] = {
    "sums": (lambda b: b.op("add", b.op("mul", row(b), 1), b.op("sub", 5, 2)), "add(arange[stop=seq], 3)"),
    "differences": (
        lambda b: b.op("mod", b.op("sub", 3, row(b)), SEQ + BATCH),
        "mod(add(neg(arange[stop=seq]), 3), batch + seq)",
    ),
    "dimensions below 0": (
        lambda b: b.op("max", b.op("sub", row(b), BATCH * SEQ * 3), b.op("mul", row(b), b.op("mul", row(b), 3))),
        "max(add(-3*batch*seq, arange[stop=seq]), mul(mul(arange[stop=seq], arange[stop=seq]), 3))",
    ),
    "differences of dimensions": (
        lambda b: b.op("min", row(b), BATCH - 3 * SEQ),
        "min(arange[stop=seq], batch - 3*seq)",
    ),
    "dimensions and a number": (
        lambda b: b.op("max", b.op("mul", row(b), 2), BATCH * SEQ + 5 - 2 * SEQ),
        "max(mul(arange[stop=seq], 2), batch*seq + 5 - 2*seq)",
    ),
    "integers as integers": (
        lambda b: b.op("floordiv", b.op("add", given(b, "it", (SEQ,), "int"), row(b)), 3),
        "floordiv(add(it, arange[stop=seq]), 3)",
    ),
    "at a sum of positions": (
        lambda b: b.op("embedding", b.op("add", row(b, 3), 1), given(b, "it", (SEQ, BATCH), "int")),
        None,
    ),
    "products": (
        lambda b: b.op("lt", row(b), b.op("mul", BATCH * SEQ, row(b))),
        "gt(mul(mul(arange[stop=seq], batch), seq), arange[stop=seq])",
    ),
    "what always holds": (lambda b: b.op("lt", row(b), 2 * SEQ), None),
    "numbers": (lambda b: b.op("where", causal(b), 3.0, 0.5), f"where({UP_TO}, 3.0, 0.5)"),
    "as a number": (lambda b: b.op("int", causal(b)), f"int({UP_TO})"),
    "several conditions": (
        lambda b: b.op("int", b.op("and", causal(b), b.op("ge", row(b), 2))),
        f"int(and({UP_TO}, ge(arange[stop=seq], 2)))",
    ),
    "one of several conditions": (
        lambda b: b.op("or", b.op("and", causal(b), b.op("ge", row(b), 2)), b.op("eq", row(b), 9)),
        f"or(and({UP_TO}, ge(arange[stop=seq], 2)), eq(arange[stop=seq], 9))",
    ),
    "inequality": (lambda b: b.op("ne", row(b), column(b)), f"ne({AT_SEQ}, arange[stop=seq])"),
    "an opposite": (lambda b: b.op("not", given(b, "it", (SEQ,), "bool")), "not(it)"),
    "other axes": (
        lambda b: b.expand(b.reshape(given(b, "it", (SEQ, BATCH), "bool"), (SEQ, 1, BATCH)), (SEQ, 3, BATCH)),
        "reshape[shape=(seq, 1, batch)](it)",
    ),
    "integers of other signs": (
        lambda b: b.op("sub", b.op("mul", row(b), -2), b.op("mul", column(b), 3)),
        f"sub(neg(mul({AT_SEQ}, 3)), mul(arange[stop=seq], 2))",
    ),
    "powers": (
        lambda b: b.op("mul", b.op("mul", row(b), row(b)), row(b)),
        "mul(mul(arange[stop=seq], arange[stop=seq]), arange[stop=seq])",
    ),
    "a quotient": (
        lambda b: b.op("add", b.op("floordiv", b.op("add", row(b), column(b)), 4), 1),
        f"add(floordiv(add({AT_SEQ}, arange[stop=seq]), 4), 1)",
    ),
    "more than another position": (
        lambda b: b.op("gt", b.op("sub", row(b), column(b)), 4),
        f"ge(arange[stop=seq], add({AT_SEQ}, 5))",
    ),
    "more than a number": (
        lambda b: b.op("gt", b.op("add", row(b), column(b)), 4),
        f"ge(add({AT_SEQ}, arange[stop=seq]), 5)",
    ),
    "a sum that is a number": (
        lambda b: b.op("eq", row(b), b.op("sub", 3, column(b))),
        f"eq(add({AT_SEQ}, arange[stop=seq]), 3)",
    ),
    "booleans that are counted": (
        lambda b: b.op("ge", b.op("add", row(b), b.op("int", given(b, "it", (SEQ,), "bool"))), 3),
        "ge(add(int(it), arange[stop=seq]), 3)",
    ),
    "the largest of three": (lambda b: b.op("max", b.op("max", row(b), column(b)), b.op("sub", 5, row(b))), None),
    "equal dimensions": (lambda b: b.op("and", b.op("eq", SEQ, BATCH), b.op("ge", row(b), 2)), None),
    "no padding, as it is of some elements": (
        lambda b: b.op(
            "ne",
            b.reshape(b.op("pick", given(b, "it", (BATCH, SEQ, 4), "int"), axis=2, index=0), (BATCH, 1, 1, SEQ)),
            0,
        ),
        None,
    ),
    "no padding, as it is computed": (
        lambda b: b.op("ne", b.reshape(b.op("int", given(b, "it", (BATCH, SEQ))), (BATCH, 1, 1, SEQ)), 0),
        None,
    ),
    "turned axes": (lambda b: b.permute(given(b, "it", (SEQ, BATCH), "bool"), (1, 0)), None),
    "some elements": (lambda b: b.op("pick", given(b, "it", (SEQ, 4), "int"), axis=1, index=2), None),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_positions_are_written_without_superfluous_steps(name: str) -> None:
    make, expected = POSITIONS[name]
    b = builder()
    value = make(b)
    indexed = IndexWriter(b)
    indexed.sources = {b.arrays.elements.nodes[it.array.element].arguments[0]: it for it in inputs(value)}  # type: ignore
    found = indexed.written(value)
    assert (found and text(found)) == expected


def inputs(value: Value) -> list[Value]:
    return [value] if value.op == "input" else [it for operand in value.operands for it in inputs(operand)]


def heads(b: SpecBuilder, size: int = 12) -> Value:
    """Three heads of the components of tokens."""
    x = given(b, "x", (BATCH, SEQ, size))
    return b.permute(b.reshape(x, (BATCH, SEQ, 3, size // 3)), (0, 2, 1, 3))


def repeated(b: SpecBuilder, x: Value, times: int) -> Value:
    """Each head several times, one after the other."""
    first, count, *rest = x.shape
    wide = b.expand(b.reshape(x, (first, count, 1, *rest)), (first, count, times, *rest))
    return b.reshape(wide, (first, count * times, *rest))


def merged(b: SpecBuilder, x: Value) -> Value:
    turned = b.permute(x, (0, 2, 1, 3))
    return b.reshape(turned, (*turned.shape[:2], turned.shape[2] * turned.shape[3]))


VIEWS: dict[str, tuple[Callable[[SpecBuilder], Value], str]] = {
    "heads": (heads, "split_heads[count=3](x)"),
    "repeated heads": (lambda b: repeated(b, heads(b), 2), "repeat_heads[times=2](split_heads[count=3](x))"),
    "repeated": (lambda b: repeated(b, given(b, "x", (2, 3, 5, 4)), 2), "repeat_heads[times=2](x)"),
    "repeated and turned": (
        lambda b: b.permute(repeated(b, given(b, "x", (2, 3, 5, 4)), 2), (0, 1, 3, 2)),
        "repeat[=d h w c -> d (h n) c w, n=2](x)",
    ),
    "merged": (lambda b: merged(b, given(b, "x", (2, 3, 5, 4))), "merge_heads(x)"),
    "repeated and merged": (
        lambda b: merged(b, repeated(b, heads(b), 2)),
        "repeat[=b s (h d) -> b s (h w d), h=3, w=2](x)",
    ),
    "there and back": (lambda b: merged(b, heads(b)), "x"),
    "rows of a matrix": (
        lambda b: b.unflattened(b.reshape(given(b, "x", (BATCH, SEQ, 12)), (BATCH * SEQ, 12))),
        "x",
    ),
    "columns of a matrix": (
        lambda b: b.unflattened(b.reshape(given(b, "x", (4, 3, 12)), (4, 36))),
        "rearrange[=d h w -> d (h w)](x)",
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_several_steps_are_one(name: str) -> None:
    make, expected = VIEWS[name]
    b = builder()
    value = make(b)
    found = b.written(value)
    assert text(found) == expected
    assert found.array == value.array


def test_values_and_calls_are_shown_by_address_and_shape() -> None:
    b = builder()
    value = heads(b)
    assert repr(inputs(value)[0]) == "<x real [batch, seq, 12]>" and repr(value) == "<permute real [batch, 3, seq, 4]>"
    assert [repr(frame) for frame in (b.frame, ModuleCall("layers.0", "Layer", b.frame))] == [
        "(the model): Net",
        "layers.0: Layer",
    ]


def test_a_value_has_the_axes_of_another_one() -> None:
    b = builder()
    view = heads(b)
    root, _ = b.layout(view)
    other = given(b, "y", root.shape)
    found = b.laid_out(other, view, root)
    assert found.shape == (BATCH, 3, SEQ, 4) and text(b.written(found)) == "split_heads[count=3](y)"
    assert b.laid_out(other, root, root) is other


def test_rows_at_numbers_are_a_slice_and_those_at_ids_an_embedding() -> None:
    torch: Any = pytest.importorskip("torch")

    class Rows(torch.nn.Module):
        def forward(self, x: Any, ids: Any, table: Any) -> Any:
            return x[torch.arange(1, 4)], table[ids]

    examples = torch.randn(7, 3), torch.randint(0, 11, (2, 5)), torch.randint(0, 9, (11,))
    found = archspec.lift(Rows().eval(), examples)
    assert "return slice(axis = 0, start = 1, stop = 4)(x), embedding(ids, table)" in found
