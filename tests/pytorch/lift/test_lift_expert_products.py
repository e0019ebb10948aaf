"""Lifting: products with the matrices of experts, their biases, and sums over the experts of each token."""

from collections.abc import Callable
from typing import Any

import pytest
from builders import builder, given, text

from archspec import Type
from archspec.core.algebra import symbol
from archspec.pytorch.lift.idioms.experts import merge_expert_bias, product_of_experts
from archspec.pytorch.lift.values.builder import SpecBuilder
from archspec.pytorch.values.values import Value

BATCH, SEQ = symbol("batch"), symbol("seq")


def tensor(b: SpecBuilder, name: str, *shape: int) -> Value:
    return b.stored("tensor", name, Type(shape, "real"), b.frame)


def ids(b: SpecBuilder, name: str = "ids", *lead: Any) -> Value:
    """The experts of each token."""
    return given(b, name, (*(lead or (BATCH, SEQ)), 3), "int")


def column(b: SpecBuilder, each: bool = False) -> Value:
    """The vectors of tokens, or one for each of their experts, as columns."""
    if each:
        return b.reshape(given(b, "x", (BATCH, SEQ, 3, 12)), (BATCH, SEQ, 3, 12, 1))
    x = given(b, "x", (BATCH, SEQ, 12))
    return b.expand(b.reshape(x, (BATCH, SEQ, 1, 12, 1)), (BATCH, SEQ, 3, 12, 1))


def of_columns(b: SpecBuilder, x: Value) -> tuple[Value, Value]:
    return b.op("embedding", ids(b), tensor(b, "up", 7, 20, 12)), x


def of_rows(b: SpecBuilder) -> tuple[Value, Value]:
    row = b.reshape(given(b, "x", (BATCH, SEQ, 3, 10)), (BATCH, SEQ, 3, 1, 10))
    return row, b.op("embedding", ids(b), tensor(b, "down", 7, 10, 12))


def of_tables(b: SpecBuilder) -> tuple[Value, Value]:
    """Several matrices for each expert."""
    table = b.op("embedding", ids(b), tensor(b, "up", 7, 3, 20, 12))
    return table, given(b, "x", (BATCH, SEQ, 3, 3, 12, 1))


def of_no_experts(b: SpecBuilder) -> tuple[Value, Value]:
    return given(b, "y", (BATCH, SEQ, 3, 20, 12)), column(b)


REPEATED = "reshape[shape=(batch, seq, 1, 12)](x)"
PRODUCTS: dict[str, tuple[Callable[[SpecBuilder], tuple[Value, Value]], str | None]] = {
    "vectors of tokens": (
        lambda b: of_columns(b, column(b)),
        f"reshape[shape=(batch, seq, 3, 20, 1)](expert_linear({REPEATED}, ids, up))",
    ),
    "vectors of experts": (
        lambda b: of_columns(b, column(b, each=True)),
        "reshape[shape=(batch, seq, 3, 20, 1)](expert_linear(x, ids, up))",
    ),
    "rows": (
        of_rows,
        "reshape[shape=(batch, seq, 3, 1, 12)](expert_linear(x, ids, transpose(down)))",
    ),
    "vectors that are broadcast": (
        lambda b: of_columns(b, b.reshape(given(b, "x", (BATCH, SEQ, 12)), (BATCH, SEQ, 1, 12, 1))),
        None,
    ),
    "one vector": (lambda b: of_columns(b, given(b, "x", (12, 1))), None),
    "several vectors": (lambda b: of_columns(b, given(b, "x", (BATCH, SEQ, 3, 12, 2))), None),
    "tables": (of_tables, None),
    "no experts": (of_no_experts, None),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_with_matrices_of_experts(name: str) -> None:
    make, expected = PRODUCTS[name]
    b = builder()
    left, right = make(b)
    result = b.ops("matmul", left, right)[0]
    found = product_of_experts(b, result, left, right)
    assert (found and text(b.written(found))) == expected
    assert found is None or found.array == result.array


def product(b: SpecBuilder, name: str = "up", own: Value | None = None, inner: int = 12, outer: int = 20) -> Value:
    x = given(b, "x", (BATCH, SEQ, 3, inner))
    return b.op("expert_linear", x, own or ids(b), tensor(b, name, 7, outer, inner))


def rows(b: SpecBuilder, own: Value | None = None, name: str = "bias") -> Value:
    return b.op("embedding", own or ids(b), tensor(b, name, 7, 20))


def two_biases(b: SpecBuilder) -> tuple[Any, Any]:
    return b.op("add", product(b), rows(b)), rows(b, name="other")


SUMS: dict[str, tuple[Callable[[SpecBuilder], tuple[Any, Any]], str | None]] = {
    "a bias": (lambda b: (product(b, own=(it := ids(b))), rows(b, it)), "expert_linear(x, ids, up, bias)"),
    "of other experts": (lambda b: (product(b), rows(b, ids(b, "others"))), None),
    "of experts chosen for the second time": (lambda b: (product(b), rows(b)), "expert_linear(x, ids, up, bias)"),
    "a second bias": (two_biases, None),
    "a number": (lambda b: (product(b), 1.0), None),
    "to a number": (lambda b: (1.0, rows(b)), None),
    "to another product": (lambda b: (given(b, "x", (BATCH, SEQ, 3, 20)), rows(b)), None),
    "no rows": (lambda b: (product(b), given(b, "y", (BATCH, SEQ, 3, 20))), None),
}


@pytest.mark.parametrize("name", SUMS)
def test_biases_of_experts(name: str) -> None:
    make, expected = SUMS[name]
    b = builder()
    added = make(b)
    found = merge_expert_bias(b, b.ops("add", *added)[0], *added)
    assert (found and text(b.written(found))) == expected


def gated(
    b: SpecBuilder,
    activation: str = "silu",
    biases: str = "",
    others: bool = False,
    squared: bool = False,
    lead: tuple[Any, ...] = (BATCH, SEQ),
) -> Value:
    """The sum over the experts of each token."""
    own = ids(b, "ids", *lead)
    up, down = tensor(b, "up", 7, 20, 12), tensor(b, "down", 7, 12, 10)
    x = b.reshape(given(b, "x", (*lead, 12)), (*lead, 1, 12))
    first = [tensor(b, "first", 7, 20)] if "first" in biases else []
    second = [tensor(b, "second", 7, 12)] if "second" in biases else []
    gate, other = b.ops("split", b.op("expert_linear", x, own, up, *first), axis=-1, sizes=(10, 10))
    inner = b.op("mul", b.activation(activation, gate), other)
    made = b.op("expert_linear", inner, ids(b, "others", *lead) if others else own, down, *second)
    shares = b.reshape(given(b, "shares", (*lead, 3)), (*lead, 3, 1))
    return b.op("sum", b.op("mul", made, made if squared else shares), axis=-2)


GATED: dict[str, tuple[Callable[[SpecBuilder], Value], str | None]] = {
    "silu": (gated, "gated_experts(x, shares, ids, up, down)"),
    "gelu": (lambda b: gated(b, "gelu"), "gated_experts[activation=gelu](x, shares, ids, up, down)"),
    "another function": (lambda b: gated(b, "relu"), "gated_experts[activation=relu](x, shares, ids, up, down)"),
    "a bias": (lambda b: gated(b, biases="first"), None),
    "a bias at the end": (lambda b: gated(b, biases="second"), None),
    "other experts": (lambda b: gated(b, others=True), None),
    "squares": (lambda b: gated(b, squared=True), None),
    "more axes": (lambda b: gated(b, lead=(BATCH, 2, SEQ)), None),
    "no sum": (lambda b: b.op("mul", product(b), 3.0), None),
    "a sum of no products": (lambda b: b.op("sum", product(b), axis=-2), None),
    "a sum of products of others": (
        lambda b: b.op("sum", b.op("mul", given(b, "x", (2, 3, 4)), given(b, "y", (2, 3, 4))), axis=-2),
        None,
    ),
    "a sum of one product": (lambda b: b.op("sum", b.op("mul", product(b), 3.0), axis=-2), None),
    "no activation": (
        lambda b: b.op(
            "sum", b.op("mul", product(b), b.reshape(given(b, "shares", (BATCH, SEQ, 3)), (BATCH, SEQ, 3, 1))), axis=-2
        ),
        None,
    ),
}


@pytest.mark.parametrize("name", GATED)
def test_sums_over_gated_experts(name: str) -> None:
    make, expected = GATED[name]
    b = builder()
    value = make(b)
    written = text(b.written(value))
    assert (written if "gated_experts" in written else None) == expected
