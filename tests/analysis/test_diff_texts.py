"""How `archspec diff` writes expressions and operations."""

import pytest
from small import DENSE, load

import archspec


def brief(one: str, other: str) -> list[tuple[str, str, str, str]]:
    found = archspec.diff(load(one), load(other)).operations
    return [(change.kind, change.fold.pattern, change.before, change.after) for change in found]


READING = (
    DENSE
    + """
layer Both(n)(x [n, n]) -> (low [n, n], [n, n]) {
  weight: param [n]
  return x * .weight, x + .weight
}
fn mixed(a [...], b [...]) -> [...] { return a * b + 0.5 }
block It(n = 4)(x [n, n]) -> [n, n] {
  w: param [n]
  p, q = both: Both(n)(x)
  s, t = split([2, 2], axis = 0)(x)
  return l: Dense(n)(READ) + .w + p + q + pad(axis = 0, before = 2)(s * t)
}
"""
)


@pytest.mark.parametrize(
    ("read", "shown"),
    [
        ("x * .w", "x * .w"),
        ("-x", "- x"),
        ("softmax(x)", "softmax(x)"),
        ("softmax(axis = 0)(x)", "softmax(0)(x)"),
        ("sum(axis = 0, keep = true)(x) + x", "sum(axis = 0, keep = true)(x) + x"),
        ("x + full([n], 2.0)", "x + full(shape = [4], value = 2.0)"),
        ("x + real(arange(n))", "x + real(arange(4))"),
        ("p", "both.low"),
        ("q", "both.1"),
        ("x + pad(axis = 0, after = 2)(t)", "x + pad(axis = 0, after = 2)(split(sizes = [2, 2], axis = 0)(x).1)"),
        ("mixed(x, p)", "mixed(x, both.low)"),
        ("tanh(tanh(tanh(tanh(x))))", "tanh(tanh(tanh(tanh(x))))"),
        ("tanh(tanh(tanh(tanh(tanh(x)))))", "tanh(tanh(tanh(tanh(...))))"),
        ("x + x * (x - x / x ** 2)", "x + (x * (x - (x / ...)))"),
        ("where(x > 1.0, x, 0.0)", "where((x > 1.0), x, 0.0)"),
        (
            "concat(axis = 0)(t, s)",
            "concat(0)(split(sizes = [2, 2], axis = 0)(x).1, split(sizes = [2, 2], axis = 0)(x).0)",
        ),
        (
            "concat(axis = 0)(x, p, x, x, x, x) |> slice(0, 1, 5)",
            "slice(axis = 0, start = 1, stop = 5)(concat(0)(x, both.low, x, x, x, ...))",
        ),
    ],
)
def test_what_is_read_is_shown_as_an_expression(read: str, shown: str) -> None:
    one, other = READING.replace("READ", "x"), READING.replace("READ", read)
    assert brief(one, other) == [("reads", "l", "x", shown)]


COMPUTING = """layer L(n = 4)(x [n, n]) -> [n, n] {
  w: param [n]
  b: param [n]
  return layer_norm(1e-5)(COMPUTED, .w, .b)
}
"""


@pytest.mark.parametrize(
    ("one", "other", "before", "after"),
    [
        ("x * 0.5", "x * 0.25", "* 0.5", "* 0.25"),
        ("x * 0.5", "x + 0.5", "* 0.5", "+ 0.5"),
        ("softmax(x)", "softmax(axis = 0)(x)", "softmax", "softmax(0)"),
        ("softmax(x)", "x", "softmax", ""),
        ("x", "where(x > 1.0, x, 0.0)", "", "> 1.0, where(0.0)"),
        ("2.0 ** x", "x ** 2.0", "", "the same operations on different operands"),
        ("-x", "tanh(x)", "neg", "tanh"),
        ("x", "x + full([n], 2.0)", "", "add, full(shape = [4], value = 2.0)"),
        ("x", "sum(axis = 0, keep = true)(x) + x", "", "add, sum(axis = 0, keep = true)"),
        ("linear(x, x, .b)", "linear(x, x)", "linear", "linear(no bias)"),
    ],
)
def test_what_is_computed_is_shown_by_its_operations(one: str, other: str, before: str, after: str) -> None:
    one, other = COMPUTING.replace("COMPUTED", one), COMPUTING.replace("COMPUTED", other)
    assert brief(one, other) == [("computes", "", before, after)]


@pytest.mark.parametrize(
    ("one", "other", "before", "after"),
    [
        ("0..rows", "2..rows + 1", "for 0..rows", "for 2..rows + 1"),
        ("0..rows", "0..3", "for 0..rows", "2 x tanh"),
    ],
)
def test_loops_are_shown_by_their_bounds(one: str, other: str, before: str, after: str) -> None:
    loop = "dim rows\nlayer L(n = 4)(x [rows, n]) -> [rows, n] {\n  for i in BOUNDS {\n    x = tanh(x)\n  }\n"
    loop += "  return x\n}\n"
    assert brief(loop.replace("BOUNDS", one), loop.replace("BOUNDS", other)) == [("computes", "", before, after)]


TABLE = """layer L(n = 4)(x [2, n]) -> [2, n] {
  table: buffer TABLE
  w: param [n]
  return x * real(.table) * .w
}
"""


@pytest.mark.parametrize(
    ("one", "other", "before", "after"),
    [
        ("int [n] = arange(n)", "int [n] = arange(n) + 1", "", "+ 1"),
        ("int [n] = arange(n)", "[n] = real(arange(n))", "a constant table of int", "a constant table"),
        ("[n] = real(arange(n))", "[n]", "a constant table", "not a constant"),
        ("int [n] = arange(n)", "int [n]", "a constant table of int", "not a constant of int"),
    ],
)
def test_what_tables_hold_is_shown(one: str, other: str, before: str, after: str) -> None:
    found = brief(TABLE.replace("TABLE", one), TABLE.replace("TABLE", other))
    assert found[0] == ("table", "table", before, after)
