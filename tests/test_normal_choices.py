"""Spellings of one computation whose normal forms are equal, and others whose are not: choices, limits, masks, loops.

That each normal form has the values of the operations is in `test_normal_forms.py`.
"""

import pytest
from small import load

from archspec.model import internals
from archspec.normal.arrays import Arrays

pytest.importorskip("torch")

from archspec.equivalence.places import Places
from archspec.equivalence.sides import outputs_of

NET = """
dim batch, seq
fn start(x [batch, seq, 6]) -> [batch, seq, 1] {{ return slice(axis = 2, stop = 1)(x) }}
fn largest(x [batch, seq, 6]) -> [batch, seq, 1] {{ return amax(axis = 2, keep = true)(x) }}
fn chosen(at int [batch, seq, 6], x [batch, seq, 6]) -> [batch, seq, 6] {{
  return sum(axis = 3)(where(reshape([batch, seq, 6, 1])(at) == arange(6), reshape([batch, seq, 1, 6])(x), 0.0))
}}
fn stable(x [batch, seq, 6]) -> [batch, seq, 6] {{ return softmax(x - largest(x)) }}
block Net()(x [batch, seq, 6], y [batch, seq, 6], n int [batch, seq, 1], k int [batch, seq, 6], m bool [batch, seq, 6])
          -> (a [batch, seq, 6], b [batch, seq, 6], all [batch, seq, 6]) {{
  d = reshape([seq, 1])(arange(seq)) - arange(6)
  first  = {}
  second = {}
  return real(first) + 0.0 * x, real(second) + 0.0 * x, y + real(n + k + d + int(m)) + start(x) + stable(chosen(k, x))
}}
"""


def are_equal(first: str, second: str) -> bool:
    arrays = Arrays()
    a, b, _ = outputs_of(arrays, internals(load(NET.format(first, second))).body, Places(arrays))
    return a == b


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("where(m, x, lowest) + y", "where(m, x + y, lowest)"),
        ("where(m, lowest(x), 0.0) + x * y + 1.0", "where(m, lowest, x * y + 1.0)"),
        ("max(where(m, x, -inf), lowest)", "where(m, x, lowest)"),
        ("where(m, 0.5, 2.0) |> max(_, 1.0)", "where(m, 1.0, 2.0)"),
        ("where(k < 3, k, max(k, 3))", "where(k < 3, k, k)"),
        ("where(abs(d) < 3, d, int(log(max(abs(d), 3) / 3)))", "where(abs(d) < 3, d, int(log(abs(d) / 3)))"),
        ("where(k >= n and m, min(n, k), k)", "where(k >= n and m, n + 0 * k, k)"),
        ("max(-k, 0)", "-min(k, 0)"),
        ("softmax(x + 2.0)", "softmax(x)"),
        ("softmax(where(m, x + y + start(x), lowest) - 2.0)", "softmax(where(m, x + y, lowest))"),
        ("softmax(where(m, x - start(y), y - start(y)))", "softmax(where(m, x, y))"),
        ("stable(where(m, x, lowest))", "softmax(where(m, x, lowest))"),
        ("stable(where(arange(6) < 5, where(m, x, -inf), y))", "softmax(where(arange(6) < 5, where(m, x, -inf), y))"),
        ("stable(where(arange(6) < 5, where(m, x, lowest), y))",
         "softmax(where(arange(6) < 5, where(m, x, lowest), y))"),
        ("int(m) == 0 or where(m, 0, 2) != 0", "not m"),
        ("k >= arange(6) and k >= 0", "k >= arange(6)"),
        ("k >= arange(6) or k >= 0", "k >= 0"),
        ("chosen(k, x)", "where(k >= 0 and k < 6, gather(axis = 2)(x, k), 0.0)"),
        ("chosen(k % 6, x)", "gather(axis = 2)(x, k % 6)"),
        ("k % seq < seq and k % seq >= 0", "m or not m"),
        ("slice(axis = 2, start = 5)(cumsum(axis = 2)(x))", "sum(axis = 2, keep = true)(x)"),
        ("slice(axis = 1, start = seq - 1)(cumsum(axis = 1)(k))", "sum(axis = 1, keep = true)(k)"),
        ("k * n * n == 0", "k == 0 or n == 0"),
        ("3 * int(k >= 2) + int(n >= 1) == 3 * int(n >= 2)", "5 * int(k >= 2) + int(n >= 1) == 5 * int(n >= 2)"),
        ("k - max(k, n)", "k + min(-k, -n)"),
    ],
)  # fmt: skip
def test_spellings_are_one(first: str, second: str) -> None:
    assert are_equal(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("where(m, x, -1e9) + y", "where(m, x + y, -1e9)"),
        ("softmax(x + lowest(x))", "softmax(x)"),
        ("softmax(where(m, x - start(y), y))", "softmax(where(m, x, y))"),
        ("softmax(where(m, x - start(y), y + start(y)))", "softmax(where(m, x, y))"),
        ("softmax(where(m, x, lowest) - start(where(m, x, lowest)))", "softmax(where(m, x, lowest))"),
        ("softmax(where(m, x, lowest) - largest(where(m, y, lowest)))", "softmax(where(m, x, lowest))"),
        ("softmax(where(m, x, lowest) + largest(where(m, x, lowest)))", "softmax(where(m, x, lowest))"),
        ("where(m, x, lowest) + where(x > y, 0.0, lowest(x))", "where(m, x + where(x > y, 0.0, lowest(x)), lowest)"),
        ("chosen(k, x)", "gather(axis = 2)(x, k)"),
        ("k % seq < seq - 1", "m or not m"),
        ("slice(axis = 2, start = 4, stop = 5)(cumsum(axis = 2)(x))", "sum(axis = 2, keep = true)(x)"),
        ("max(where(m, x, -inf), lowest)", "where(m, x, -inf)"),
        ("max(where(m, x, -inf) + y, lowest)", "where(m, x, -inf) + y"),
        ("max(amax(axis = 0)(where(m, x, -inf)), -1e36)", "amax(axis = 0)(where(m, x, -inf))"),
        ("where(k < 3, max(k, 3), k)", "where(k < 3, k, k)"),
        ("where(k < 3, k, max(k, 4))", "where(k < 3, k, k)"),
        ("where(k >= n or m, min(n, k), k)", "where(k >= n or m, n + 0 * k, k)"),
    ],
)  # fmt: skip
def test_computations_that_differ_are_two(first: str, second: str) -> None:
    assert not are_equal(first, second)


LOOP = """
dim batch, seq
block Net()(x [batch, seq, 6]) -> [batch, seq, 6] {{
  h = full([batch, 6], 0.0)
  for i in 0..seq {{
    h = h * 0.5 + pick(1, i)(x)
    y = collect(axis = {})(h)
  }}
  return {}(y)
}}
"""


def test_loops_may_collect_along_any_axis() -> None:
    arrays = Arrays()
    found = [
        outputs_of(arrays, internals(load(LOOP.format(axis, view))).body, Places(arrays))
        for axis, view in ((0, "transpose(0, 1)"), (1, "permute([0, 1, 2])"), (2, "transpose(1, 2)"), (-1, "transpose"))
    ]
    assert all(outputs == found[0] for outputs in found)
