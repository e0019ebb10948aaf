"""Spellings of one computation whose normal forms are equal, and others whose are not: choices, limits, masks, loops.

That each normal form has the values of the operations is in `test_normal_forms.py`.
"""

import re

import pytest
from small import load

from archspec.ir.normal.arrays import Array, Arrays
from archspec.pipeline.model import get_compilation

pytest.importorskip("torch")

from archspec.ir.normal.origins import LocationIndex
from archspec.pytorch.prove.sides import model_outputs

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
    a, b, _ = model_outputs(arrays, get_compilation(load(NET.format(first, second))).body, LocationIndex(arrays))
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
        ("where(k < 3, max(k, 3) // 2 + n, k)", "where(k < 3, n + 1, k)"),
        ("where(k < 3, max(k, 3) % 2 + n, k)", "where(k < 3, n + 1, k)"),
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
        ("cumsum(axis = 2)(start(x) + 0.0 * y)", "start(x) * (arange(6) + 1)"),
        ("cumsum(axis = 1)(0 * k + 2)", "0 * k + 2 * reshape([seq, 1])(arange(seq) + 1)"),
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
        model_outputs(arrays, get_compilation(load(LOOP.format(axis, view))).body, LocationIndex(arrays))
        for axis, view in ((0, "transpose(0, 1)"), (1, "permute([0, 1, 2])"), (2, "transpose(1, 2)"), (-1, "transpose"))
    ]
    assert all(outputs == found[0] for outputs in found)


ALIKE = [
    ("where(arange(6) >= 1, arange(6) + 2 * n, 2 * n)", "arange(6) + 2 * n"),
    ("where(arange(6) >= 1, arange(6) * k + 2 * n, 2 * n)", "arange(6) * k + 2 * n"),
    ("sum(axis = 3)((s - t + 2.0) ** 3)", "-sum(axis = 3)((t - s - 2.0) ** 3)"),
    ("sum(axis = 3)((s - t) ** 3)", "-sum(axis = 3)((t - s) ** 3)"),
    ("sum(axis = 3)((s - 2.0 * t) ** 3)", "-8.0 * sum(axis = 3)((t - 0.5 * s) ** 3)"),
    ("sum(axis = 3)((2.0 * s - t - 4.0) ** 3)", "-8.0 * sum(axis = 3)((2.0 + 0.5 * t - s) ** 3)"),
    ("real(int(m))", "where(m, 1.0, 0.0)"),
    ("abs(x) ** 0.5 * abs(x)", "abs(x) ** 1.5"),
    ("where(m, x, -inf) + y * where(x > y, y, -inf)", "y * where(x > y, y, -inf) + where(m, x, -inf)"),
    ("2 * k >= 3", "k >= 2"),
    ("2 * k + int(m) == 0", "k == 0 and not m"),
    ("sum(axis = 2, keep = true)(reshape([batch, seq, 6])(transpose(2, 3)(reshape([batch, seq, 2, 3])(x))))",
     "reshape([batch, seq, 1])(sum(axis = [2, 3])(reshape([batch, seq, 2, 3])(x)))"),
    ("reshape([batch, seq, 6])(softmax(axis = 3)(reshape([batch, seq, 6, 1])(x)))", "0.0 * x + 1.0"),
    ("softmax(x + slice(axis = 2, stop = 1)(softmax(where(m, y, lowest))))", "softmax(x)"),
    ("real(2 * k * n + int(m))", "2.0 * real(k) * real(n) + where(m, 1.0, 0.0)"),
    ("int(real(k) * 2.0 - 3.0)", "2 * k - 3"),
    ("(x * y) ** 3", "x ** 3 * y ** 3"),
    ("(2.0 * x) ** 2", "4.0 * x * x"),
    ("(abs(x) * abs(y)) ** 0.5", "abs(x) ** 0.5 * abs(y) ** 0.5"),
    ("(3.0 * abs(x) * abs(y)) ** -0.5", "1.0 / sqrt(3.0 * abs(x) * abs(y))"),
    ("sqrt(abs(x)) ** 2", "abs(x)"),
    ("sqrt(x * x) * sqrt(x * x) * 3.0", "3.0 * x * x"),
    ("(x ** 0.5) ** 3", "x ** 1.5"),
    ("x ** -0.3", "1.0 / x ** 0.3"),
    ("(4.0 * x) ** 0.5", "2.0 * x ** 0.5"),
    ("2.0 * x > y", "x > 0.5 * y"),
    ("x - y > 1.0", "3.0 * x - 3.0 > 3.0 * y"),
    ("x == y", "2.0 * y == 2.0 * x"),
    ("x != 2.0 * y", "not (y == 0.5 * x)"),
    ("x >= y", "not (y > x)"),
    ("where(m, 0.5, 2.0) > 1.0", "not m"),
    ("where(m, 0.5, 2.0) == 2.0", "not m or false"),
    ("2.0 - where(m, 0.5, 2.0) > 1.0", "m"),
    ("where(m, where(k > n, x, y), y)", "where(m and k > n, x, y)"),
    ("where(m, where(k > n, y, x), y)", "where(m and k <= n, x, y)"),
    ("where(m, x, where(k > n, x, y))", "where(m or k > n, x, y)"),
    ("where(m, x, where(k > n, y, x))", "where(k > n and not m, y, x)"),
    ("where(m, x > y, k > n)", "(m and x > y) or (not m and k > n)"),
    ("where(m, 0.0, x)", "where(not m, x, 0.0)"),
    ("where(k > n, x, y)", "where(k <= n, y, x)"),
    ("where(m or k > n, y, x)", "where(not m and k <= n, x, y)"),
    ("where(x > y, k, n)", "where(not (y < x), n, k)"),
    ("max(x, x)", "x"),
    ("max(x * 0.0 + 2.0, 3.0)", "x * 0.0 + 3.0"),
    ("min(x * 0.0 + 2.0, 3.0)", "x * 0.0 + 2.0"),
    ("max(x, y)", "max(y, x)"),
    ("min(k, n) >= 2", "k >= 2 and n >= 2"),
    ("max(k, n) >= 2", "k >= 2 or n >= 2"),
    ("min(k, n) <= 2", "k <= 2 or n <= 2"),
    ("max(k, n) < 3", "k < 3 and n < 3"),
    ("max(k, n) - n >= 3", "k - n >= 3"),
    ("k == n", "n == k"),
    ("2 * k == 2 * n", "n == k + 0"),
    ("not (k >= n)", "k < n"),
    ("not (m and k >= n)", "not m or k < n"),
    ("not (m or k >= n or x > y)", "not m and k < n and not (y < x)"),
    ("m and m", "m or m"),
    ("m or not m", "k == k"),
    ("roll(6)(x)", "roll(0)(x)"),
    ("roll(-12)(x)", "1.0 * x"),
    ("roll(-2, axis = 1)(x)", "concat(axis = 1)(slice(axis = 1, start = 2)(x), slice(axis = 1, stop = 2)(x))"),
    ("roll(2, axis = 1)(x)",
     "concat(axis = 1)(slice(axis = 1, start = seq - 2)(x), slice(axis = 1, stop = seq - 2)(x))"),
    ("k // 1", "k"),
    ("k % 1", "0 * k"),
    ("k ** 0", "0 * k + 1"),
    ("k ** 8", "k ** 4 * k ** 4"),
    ("m and not m", "k != k"),
    ("k >= 3 and k >= 2", "k >= 3"),
    ("k >= 3 or k >= 2", "k >= 2 "),
    ("m and k >= n and (x > y and m)", "(x > y and k >= n) and m"),
    ("where(k < 3, k, max(k, 3) // 2)", "where(k < 3, k, k // 2)"),
    ("where(k >= n, max(k, n) % 4, k)", "where(k >= n, k % 4, k)"),
    ("where(k >= 3 or n >= 3, max(max(k, n), 3), k)", "where(k >= 3 or n >= 3, max(k, n), k)"),
    ("where(k < n, min(n, k) * 2 + max(k, n), k)", "where(k < n, k * 2 + n, k)"),
    ("sum(axis = 2, keep = true)(expand([batch, seq, 6])(real(n)))", "6.0 * real(n)"),
    ("sum(axis = 2, keep = true)(expand([batch, seq, 6])(n))", "6 * n"),
    ("sum(axis = [1, 2], keep = true)(k * 0 + 2)", "0 * k + 12 * seq"),
    ("sum(axis = 2, keep = true)(x * real(n))", "real(n) * sum(axis = 2, keep = true)(x)"),
    ("sum(axis = 2, keep = true)(3.0 * x / sqrt(x * x))", "3.0 * sum(axis = 2, keep = true)(x / sqrt(x * x))"),
    ("where(arange(6) < 2, where(arange(6) < 3, x, y), 2.0 * x)", "where(arange(6) < 2, x, 2.0 * x)"),
    ("where(arange(6) < 3, where(arange(6) >= 3, x, y), 2.0 * x)", "where(arange(6) < 3, y, 2.0 * x)"),
    ("where(arange(6) >= 2, where(arange(6) >= 1, x, y), y)", "where(arange(6) >= 2, x, y)"),
    ("where(arange(6) >= 2, x, where(arange(6) >= 1, y, x))", "where(arange(6) < 1, x, where(arange(6) < 2, y, x))"),
    ("where(arange(6) // 2 >= 1, x, y) + y", "where(arange(6) // 2 >= 1, x + y, 2.0 * y)"),
    ("where(arange(6) % 3 >= 1, x, y) * y", "where(arange(6) % 3 >= 1, x * y, y * y)"),
    ("sin(where(arange(6) >= 1, x, y))", "where(arange(6) >= 1, sin(x), sin(y))"),
    ("sum(axis = 3)(where(reshape([batch, seq, 6, 1])(k) == arange(6) and reshape([batch, seq, 6, 1])(m), s, 0.0))",
     "where(k >= 0 and k < 6 and m, gather(axis = 2)(x, k), 0.0)"),
    ("sum(axis = 3)(where(reshape([batch, seq, 6, 1])(k) + arange(6) == 5, s, 0.0))",
     "where(5 - k >= 0 and 5 - k < 6, gather(axis = 2)(x, 5 - k), 0.0)"),
]  # fmt: skip
OTHERS = [
    ("where(arange(6) >= 1, arange(6) + n, n + 1)", "arange(6) + n"),
    ("where(arange(6) >= 2, arange(6) + n, n)", "arange(6) + n"),
    ("where(k >= 1, k + n, n)", "k + n"),
    ("where(arange(6) >= 1, real(arange(6)) + x, x)", "real(arange(6)) + x"),
    ("sum(axis = 3)((s - t + 2.0) ** 3)", "sum(axis = 3)((t - s - 2.0) ** 3)"),
    ("sum(axis = 3)((s - t + 2.0) ** 3)", "-sum(axis = 3)((t - s + 2.0) ** 3)"),
    ("where(m, 0, k) == 0", "m"),
    ("int(real(k) * 0.5)", "k"),
    ("int(real(k) + 0.5)", "k"),
    ("int(real(k) * 1.5)", "k"),
    ("int(x)", "x"),
    ("(x * x) ** 0.5", "x"),
    ("(x * y) ** 0.5", "x ** 0.5 * y ** 0.5"),
    ("(x ** 0.5) ** 2", "x"),
    ("x ** 0.3 * x ** 0.3", "x ** 0.6"),
    ("(-4.0 * x) ** 0.5", "2.0 * x ** 0.5"),
    ("-2.0 * x > y", "x > -0.5 * y"),
    ("x > y", "x >= y"),
    ("x == y", "x == -y"),
    ("where(m, 0.5, 2.0) > 1.0", "where(m, 0.5, 2.0) < 3.0"),
    ("where(m, where(k > n, x, y), x)", "where(m and k > n, x, y)"),
    ("where(m, x, where(k > n, x, y))", "where(m and k > n, x, y)"),
    ("where(m, x > y, k > n)", "where(m, k > n, x > y)"),
    ("where(m, x, y)", "where(m, y, x)"),
    ("where(k > n, x, y)", "where(k >= n, x, y)"),
    ("min(x, y)", "max(x, y)"),
    ("min(k, n) >= 2", "max(k, n) >= 2"),
    ("k >= 3 or k >= 2", "k >= 3"),
    ("k * n == 0", "k == 0"),
    ("k == n", "k == -n"),
    ("where(k < 3, k, max(k, 4) // 2)", "where(k < 3, k, k // 2)"),
    ("where(k >= 3 or n >= 3, max(max(k, n), 4), k)", "where(k >= 3 or n >= 3, max(k, n), k)"),
    ("where(k >= 3 or m, max(k, 3), k)", "k"),
    ("where(k < n, min(n, k) * 2 + max(k, n), k)", "where(k < n, n * 2 + k, k)"),
    ("where(arange(6) < 3, where(arange(6) < 2, x, y), y)", "where(arange(6) < 3, x, y)"),
    ("where(arange(6) < 2, where(arange(6) < 1, x, y), 2.0 * x)", "where(arange(6) < 2, x, 2.0 * x)"),
    ("where(arange(6) // 2 >= 1, x, y)", "where(arange(6) // 2 >= 2, x, y)"),
    ("sum(axis = 3)(where(reshape([batch, seq, 6, 1])(k) == arange(6), s, 1.0))",
     "where(k >= 0 and k < 6, gather(axis = 2)(x, k), 0.0)"),
    ("sum(axis = 3)(where(reshape([batch, seq, 6, 1])(k) == 2 * arange(6), s, 0.0))",
     "where(k >= 0 and k < 6, gather(axis = 2)(x, k), 0.0)"),
    ("sum(axis = 2, keep = true)(x * y)", "y * sum(axis = 2, keep = true)(x)"),
]  # fmt: skip
OF_TWO_AXES = """
(2.0 * s + t) ** 3|(s - 2.0 * t + sin(s)) ** -1|sin(s) * t ** 2 / s|sin(t) ** 0.5 * s + cos(s) * t|(s * t - 1.0) ** 0.5
where(s > 1.0 or t > 2.0 * s, s, t)|where(s > 1.0 and 2.0 * t > s and t > 0.5, 2.0 * s, t)
where(not (s == t * 2.0), s, t)
max(s, 2.0 * t) * t|min(sin(s), t) + s|(s * s + 1.0) ** t|s // t|where(2 * p + q >= 3, s, t)|where(p * q + p == 3, s, t)
real((2 * p + q) // 3) * s|real(max(p, 2 * q + 1)) * t|real(p % (q * q + 1) * q) * s|where(p >= 1 or p + q >= 4, s, t)
real(p ** 2 * q + 3 * p * q ** 2) * s|exp(s - t) * real(int(s > t) + 2 * int(t > 1.0))
gather(axis = 3)(s + 2.0 * t, abs(p) % 6 + 0 * q)
softmax(axis = 3)(s * t + 2.0 * t) * s
amax(axis = 3, keep = true)(s * t - s) + s|where(s > t, 1.0, s) * where(t > 0.0, t, 2.0)
"""
"""What is summed over the axis of `s` and `p`, and with other names over that of `t` and `q`."""


def turned(text: str) -> str:
    """The same of the other two axes."""
    text = text.replace("axis = 3", "axis = 2")
    return re.sub(r"\b[stpq]\b", lambda match: {"s": "t", "t": "s", "p": "q", "q": "p"}[match[0]], text)


SWAPPED = [(f"sum(axis = 3)({text})", f"sum(axis = 2)({turned(text)})")
           for text in OF_TWO_AXES.strip().replace("\n", "|").split("|")]  # fmt: skip
SWAPPED += [
    (
        "sum(axis = 3)(where((s > 1.0 or t + 2.0 * s > 1.0) and o > 0, s, t))",
        "sum(axis = 2)(where(o > 0 and (s + 2.0 * t > 1.0 or t > 1.0), t, s))",
    ),
    ("sum(axis = 3)(where(s > 1.0 or t > 2.0 * s, s, t))", "sum(axis = 2)(where(s > 2.0 * t or t > 1.0, t, s))"),
    ("sum(axis = 3)(where(s > 1.0 and t > 3.0 * s, s, t))", "sum(axis = 2)(where(s > 3.0 * t and t > 1.0, t, s))"),
    ("sum(axis = 3)((sin(s) + 3.0 * t) ** 3)", "sum(axis = 2)((3.0 * s + sin(t)) ** 3)"),
    ("sum(axis = 3)(cos(s) * t ** 3)", "sum(axis = 2)(s ** 3 * cos(t))"),
    ("sum(axis = 3)(max(cos(s), 4.0 * t))", "sum(axis = 2)(max(4.0 * s, cos(t)))"),
    ("sum(axis = 3)(real((3 * p + q) // 4))", "sum(axis = 2)(real((p + 3 * q) // 4))"),
]
MANY = """
dim batch, seq
block Net()(x [batch, seq, 6], y [batch, seq, 6], n int [batch, seq, 1], k int [batch, seq, 6], m bool [batch, seq, 6])
          -> ({types}) {{
  s = reshape([batch, seq, 1, 6])(x)
  t = reshape([batch, seq, 6, 1])(x)
  p = reshape([batch, seq, 1, 6])(k)
  q = reshape([batch, seq, 6, 1])(k)
  o = reshape([batch, seq, 1, 1])(n)
{lines}
  used = y + real(n + k + int(m)) + sum(axis = 3)(s + t + real(p + q + o))
  return used, {names}
}}
"""


@pytest.fixture(scope="module")
def forms() -> dict[str, Array]:
    """The normal forms of all expressions, which are compiled together."""
    texts = list(dict.fromkeys([text for pair in (*ALIKE, *SWAPPED, *OTHERS) for text in pair]))
    lines = "\n".join(f"  v{i} = real({text}) + 0.0 * x" for i, text in enumerate(texts))
    names = ", ".join(f"v{i}" for i in range(len(texts)))
    types = ", ".join(f"o{i} [batch, seq, 6]" for i in range(len(texts) + 1))
    arrays = Arrays()
    body = get_compilation(load(MANY.format(types=types, lines=lines, names=names))).body
    return dict(zip(texts, model_outputs(arrays, body, LocationIndex(arrays))[1:], strict=True))


@pytest.mark.parametrize(("first", "second"), [*ALIKE, *SWAPPED])
def test_further_spellings_are_one(forms: dict[str, Array], first: str, second: str) -> None:
    assert forms[first] == forms[second]


@pytest.mark.parametrize(("first", "second"), OTHERS)
def test_further_computations_are_two(forms: dict[str, Array], first: str, second: str) -> None:
    assert forms[first] != forms[second]
