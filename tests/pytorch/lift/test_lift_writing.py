"""Lifting: values as expressions of the language."""

from collections.abc import Callable
from itertools import product

import pytest
from builders import builder, given
from notation import expression

from archspec import ArchError
from archspec.core.algebra import Dim, symbol
from archspec.pytorch.lift.definitions.blocks import Body
from archspec.pytorch.lift.idioms.attention import attention
from archspec.pytorch.lift.notation.notation import OPERATORS
from archspec.pytorch.lift.notation.templates import fill_gaps
from archspec.pytorch.lift.statements.writing import BodyWriter, WritingContext
from archspec.pytorch.lift.values.builder import SpecBuilder
from archspec.pytorch.values.arguments import UntranslatableError
from archspec.pytorch.values.numbers import literal
from archspec.pytorch.values.values import Value

ALONE = ("neg", "not")
SEQ = symbol("seq")


def written(b: SpecBuilder, value: Value, *inputs: Value) -> str:
    """Return the expression of a value, with its numbers."""
    body = Body(b.frame, inputs, [value])
    names = [item.address for item in inputs]
    writer = BodyWriter(
        WritingContext(body, {}, {}, names, [""], (), (), (), (), (), (), lambda _: ""), lambda _: (0, 0), id
    )
    return fill_gaps(writer.expression(value), [literal(number) for number in writer.gaps.values], [])


def structure(value: Value) -> str:
    """Return a value with all its parentheses."""
    if value.op == "input":
        return value.address
    found = [structure(operand) for operand in value.operands]
    symbol = OPERATORS[value.op]
    return f"({symbol} {found[0]})" if len(found) == 1 else f"({found[0]} {symbol} {found[1]})"


def applied(b: SpecBuilder, name: str, *args: Value) -> Value | None:
    """Return an operation on values; None if it is not for their types."""
    try:
        return b.op(name, *args[: 1 if name in ALONE else 2])
    except UntranslatableError:
        return None


@pytest.mark.parametrize("outer", OPERATORS)
def test_operators_have_the_parentheses_that_they_need(outer: str) -> None:
    b = builder()
    reals, bools = [
        [given(b, name, (8,), dtype) for name in names] for names, dtype in (("xyz", "real"), ("pqr", "bool"))
    ]
    count = 0
    for inner, (x, y, z), is_left in product(OPERATORS, (reals, bools), (True, False)):
        part = applied(b, inner, x, y)
        pairs = [(part, other) if is_left else (other, part) for other in (z, reals[2], bools[2]) if part is not None]
        whole = next((found for pair in pairs if (found := applied(b, outer, *pair)) is not None), None)
        if whole is not None:
            count += 1
            text = written(b, whole, *reals, *bools)
            assert expression(text) == structure(whole)
            if "(" in text and "** (" not in text:
                assert expression_or_none(text.replace("(", "").replace(")", "")) != structure(whole)
    assert count > 5


QUERIES, KEYS = ("q", (2, 3, SEQ, 8), "real"), ("k", (2, 3, SEQ, 8), "real")
BIAS, SEEN, X = ("bias", (3, SEQ, SEQ), "real"), ("seen", (2, 1, 1, SEQ), "bool"), ("x", (SEQ, 8), "real")
LEAST = -3.4028234663852886e38

CASES: dict[str, tuple[tuple[tuple[str, tuple[Dim, ...], str], ...], Callable[..., Value | None], str]] = {
    "biased": (
        (QUERIES, KEYS, BIAS),
        lambda b, q, k, bias: attention(b, q, k, k, bias, False, 0.5),
        "attention(scale = 0.5)(q, k, k, bias = bias)",
    ),
    "seen": (
        (QUERIES, KEYS, SEEN),
        lambda b, q, k, m: attention(b, q, k, k, m, False, None),
        "attention(q, k, k, seen)",
    ),
    "causal": (
        (QUERIES, KEYS),
        lambda b, q, k: attention(b, q, k, k, None, True, None),
        "attention(causal = true)(q, k, k)",
    ),
    "the least number": (
        (X, ("kept", (SEQ, 1), "bool")),
        lambda b, x, kept: b.op("where", kept, x, LEAST),
        "where(kept, x, lowest)",
    ),
    "the least number of conditions": (
        (SEEN,),
        lambda b, seen: b.op("where", seen, LEAST, 0.0),
        f"where(seen, {literal(LEAST)}, 0.0)",
    ),
    "sums over an axis": ((X,), lambda b, x: b.op("sum", x, axis=-1, keep=True), "sum(axis = -1, keep = true)(x)"),
    "sums over axes": ((X,), lambda b, x: b.op("sum", x, axis=(0, 1)), "sum(axis = [0, 1])(x)"),
    "a length": ((X,), lambda b, x: b.op("arange", stop=SEQ + 2), "arange(seq + 2)"),
    "a product with a length": ((X,), lambda b, x: b.op("mul", x, SEQ), "x * seq"),
    "a product with a sum": ((X,), lambda b, x: b.op("mul", x, SEQ + 1), "x * (seq + 1)"),
    "a sum with a sum": ((X,), lambda b, x: b.op("add", x, SEQ + 1), "x + (seq + 1)"),
    "a number in a shape": (
        (X,),
        lambda b, x: b.op("full", shape=(SEQ, 100_000), value=0.5),
        "full([seq, 100_000], 0.5)",
    ),
    "heads": ((X,), lambda b, x: b.reshape(x, (SEQ, 2, 4)), 'rearrange("s (h d) -> s h d", h = 2)(x)'),
    "steps": (
        (X,),
        lambda b, x: b.op("slice", x, axis=1, start=2, stop=7, step=3),
        "slice(axis = 1, start = 2, stop = 7, step = 3)(x)",
    ),
    "several": ((X,), lambda b, x: b.op("concat", x, b.op("neg", x), axis=0), "concat(axis = 0)(x, -x)"),
}


@pytest.mark.parametrize("case", CASES)
def test_functions_have_their_settings(case: str) -> None:
    inputs, make, expected = CASES[case]
    b = builder()
    values = [given(b, *item) for item in inputs]
    found = make(b, *values)
    assert found is not None and written(b, b.written(found), *values) == expected


def test_numbers_of_heads_are_called_heads() -> None:
    b = builder()
    x = given(b, "x", (SEQ, 5, 8))
    heads = b.written(b.permute(b.reshape(x, (SEQ, 5, 2, 4)), (0, 2, 1, 3)))
    body = Body(b.frame, [x], [b.op("mul", heads, 3.0)])
    writer = BodyWriter(
        WritingContext(body, {}, {}, ["x"], [""], (), (), (), (), (), (), lambda _: ""), lambda _: (0, 0), id
    )
    assert [statement.source for statement in writer.template().statements] == ["split_heads(\x005\x00)(x) * \x006\x00"]
    assert (writer.gaps.values[5:], writer.gaps.hints[5:]) == ([2, 3.0], ["heads", "number"])


@pytest.mark.parametrize(("size", "is_short"), [(43, True), (44, False)])
def test_several_outputs_are_in_one_line_if_it_is_short(size: int, is_short: bool) -> None:
    b = builder()
    x, y = given(b, "x", (8,)), given(b, "y", (8,))
    body = Body(b.frame, [x, y], [b.op("neg", x), b.op("neg", y)])
    facts = WritingContext(body, {}, {}, ["x" * 41, "y" * size], ["", ""], (), (), (), (), (), (), lambda _: "")
    *others, last = BodyWriter(facts, lambda _: (0, 0), id).template().statements
    assert last.text == (f"return -{'x' * 41}, -{'y' * size}" if is_short else "return h, g")
    assert [statement.names for statement in others] == ([] if is_short else [("h",), ("g",)])


def expression_or_none(text: str) -> str | None:
    try:
        return expression(text)
    except ArchError:
        return None
