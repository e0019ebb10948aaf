"""Conditions of searches: each holds for the designs for which it is true in Python.

What is wrong with a condition is in tests/golden/commands/search_expressions.txt.
"""

import re
from fractions import Fraction
from pathlib import Path

import pytest

import archspec

numpy = pytest.importorskip("numpy")

SPEC = """
dim batch
block Net(n = 1, t = false, rate = 0.5, kind = "plain", f = none, part = n / 4, wide = n > 2)
         (x [batch, n]) -> [batch, n] {
  w: param [n]
  v: unused param [n] if t or wide and f != none or kind != "plain" or f != none
  return x * .w * rate * part
}
model "net" = Net()
"""
CONDITIONS = [
    *("2 < n", "n > 2", "n >= 5 / 2", "5 / 2 <= n", "2 == n", "2 != n", "2 - n == 1", "-n < -1", "n * 3 - 1 > 4"),
    *("false and t", "t and false", "true and t", "t and true", "t or false", "true or t", "n > 1 or t", "n < 3 and t"),
    *("not (n > 2)", "n > 1 and not n > 2 or t", 'n != "text"', "n == none", "(1 if n > 2 else n) == 2", "wide"),
    *("not t", "not false", "(n if t else 9) == 9", "(1 if n > 1 else n + 1) == 2", "(9 if false else n) == 2"),
    *("(1 / 2) ** -2 == 4 and t", "2 ** 64 > n", "n ** 64 == 3 ** 64", "n ** 0 == 1", "2 ** 3 == 8", "n ** 5 > 32"),
    *("min(n, 2) == max(n, 2)", "max(1, n, 2) - min(n, 5) > 0", "n % 2 == 1", "(7 - n) // 2 == 2", "(-n) % 3 == 1"),
    *("true", "false", "rate < n", "rate == 0.5", 'kind == "plain"', 'kind != "plain"', "n in [1, 3]"),
    *("params == 2 * n", "n == params or n > 2", "f == none", "0.0005K < n", "2M > n", "1B == 1.0G", "1.5K == 1500"),
]
UNITS = {"K": 10**3, "M": 10**6, "G": 10**9, "B": 10**9}


def in_python(condition: str) -> str:
    """The condition in Python, with exact numbers."""
    text = re.sub(r"\d+(\.\d+)?[KMGB]?", lambda found: f"number({found[0]!r})", condition)
    return re.sub(r"\btrue\b", "True", re.sub(r"\bfalse\b", "False", text)).replace("none", "None")


def number(text: str) -> Fraction:
    return Fraction(text.rstrip("KMGB")) * UNITS.get(text[-1], 1)


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("search") / "net.arch"
    path.write_text(SPEC)
    return str(path)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_holds_where_it_is_true_in_python(condition: str, spec: str) -> None:
    vary = {"n": [1, 2, 3], "t": [True, False]}
    designs = [(n, t) for n in vary["n"] for t in vary["t"]]
    shared = {"number": number, "rate": Fraction(1, 2), "kind": "plain", "f": None}
    truths = [
        eval(in_python(condition), {**shared, "n": n, "t": t, "wide": n > 2, "params": n * (2 if t else 1)})
        for n, t in designs
    ]
    found = archspec.search(spec, vary, where=[condition, "params >= 0"])
    assert found.tally.answers == sum(truths)
    every = found.every or {"n": numpy.array([]), "t": numpy.array([])}
    rows = zip(every["n"].tolist(), every["t"].tolist(), strict=True)
    assert sorted(rows) == sorted(design for design, holds in zip(designs, truths, strict=True) if holds)


def test_a_value_that_differs_between_designs_is_varied_or_an_integer(spec: str) -> None:
    with pytest.raises(archspec.ArchError, match="`part` is not an integer in all designs"):
        archspec.search(spec, {"n": [1, 2]}, where="part < 1")
    assert archspec.search(spec, {"n": [1, 2]}, where="n > 2", best="n").designs == ()
