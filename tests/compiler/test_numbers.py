"""Functions of numbers, `pi`, `in`, `lowest`, tables, and numbers that begin the tensors of loops."""

import math
from typing import Any

import numpy as np
import pytest
from paths import read_spec
from reference import evaluate_model
from small import findings, load, operations

import archspec


def values(text: str, x: Any, **overrides: Any) -> Any:
    """What the only output of a text's model is for the input `x`."""
    (result,) = evaluate_model(load(text, **overrides), {"x": np.asarray(x)}, {}).outputs.values()
    return result


def number(function: str, call: str) -> float:
    """What a call of a function gives."""
    return float(values(f"{function}\nlayer It()(x []) -> [] {{ return x + {call} }}", 0.0))


def message(text: str, **overrides: Any) -> str:
    """The only error of a text, as it is shown."""
    (found,) = (d for d in findings(text, **overrides) if d.severity == "error")
    return "\n".join(
        " -->" + line.partition(":")[2] if " --> " in line else line for line in found.render().split("\n")
    )


# Functions of numbers -------------------------------------------------------------------------------------------------

BRANCHES = """fn clip(value, low, high = 2 * low) {
  if value < low { kept = low } else if value > high { kept = high } else { kept = value }
  return kept
}"""
LOOP = """fn total(sizes) {
  sum_of = 0
  for i in 0..len(sizes) {
    twice = 2 * sizes[i]
    sum_of = sum_of + twice
  }
  return sum_of
}"""


@pytest.mark.parametrize(
    ("function", "call", "expected"),
    [
        ("fn low(base, size) { return size * log(4096 / (64.0 * pi)) / (2 * log(base)) }", "low(10000.0, 64)", 10.47),
        (BRANCHES, "clip(1, 3)", 3),
        (BRANCHES, "clip(9, 3)", 6),
        (BRANCHES, "clip(9, 3, high = 8)", 8),
        (BRANCHES, "clip(value = 4, low = 3)", 4),
        (LOOP, "total([1, 2, 3])", 12),
        (LOOP, "total([])", 0),
        ("fn twice(f, n) { return f(f(n)) }\nfn double(n) { return 2 * n }", "twice(double, 3)", 12),
        ("fn pair(n) { return [n, n + 1] }", "pair(4)[1]", 5),
        ("fn two() { return 2 }", "two()", 2),
        ("fn outer(n, k = 3) { return inner(..) }\nfn inner(n, k) { return n * k }", "outer(4)", 12),
        ("fn maybe(n) { return n if n > 2 }", "(1 if maybe(1) == none else 2)", 1),
        ("fn known(kind) { return kind in [\"a\", \"b\"] }", '(1 if known("a") and not known("c") else 2)', 1),
        ("fn quarter() { return pi / 4.0 }", "quarter()", math.pi / 4),
        ("fn own(pi) { return pi }", "own(3)", 3),
    ],
)  # fmt: skip
def test_functions_of_numbers(function: str, call: str, expected: float) -> None:
    assert number(function, call) == pytest.approx(expected, abs=0.005)


SIZED = read_spec("numbers_sized")


def test_formulas_go_through_functions_of_numbers() -> None:
    formula = archspec.formula(load(SIZED), "layers")
    for layers in (4, 5, 9):
        assert formula.at(layers=layers) == load(SIZED, layers=layers).params.total
    formula = archspec.formula(load(SIZED.replace("rounded(n) <= 16", "n > 0")), "n")
    for n in (7, 8, 20):
        assert formula.at(n=n) == load(SIZED.replace("rounded(n) <= 16", "n > 0"), n=n).params.total


@pytest.mark.slow
def test_long_evaluations_of_functions_of_numbers_are_limited() -> None:
    tree = (
        "\n".join(f"fn f{i}(n) {{ return f{i + 1}(n) + f{i + 1}(n) }}" for i in range(40)) + "\nfn f40(n) { return n }"
    )
    assert "too much text to process" in message(tree + "\nlayer It()(x []) -> [] { return x * f0(1) }")
    long = "fn f(n) {\n  s = 0\n  for i in 0..n { s = s + i }\n  return s\n}"
    assert "too much text to process" in message(long + "\nlayer It()(x []) -> [] { return x * f(1_000_000_000) }")


# Lists ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("2 in [2, 5]", True),
        ("3 in [2, 5]", False),
        ("2.0 in [2]", True),
        ("3 not in [2, 5]", True),
        ("not 3 in [2, 5]", True),
        ('"a" in ["a"]', True),
        ("[1, 2] in [[1], [1, 2]]", True),
        ("tanh in [tanh, exp]", True),
        ("none in [none, 1]", True),
        ("true in [false]", False),
        ("1 + 1 in [2] and 1 in []", False),
    ],
)
def test_in(condition: str, holds: bool) -> None:
    assert number("fn f(c) { return 1 if c else 0 }", f"f({condition})") == holds


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x in [1.0]", "`in` expects a compile-time constant on its left, found a tensor"),
        ("1 not in 4", "`not in` expects a list on its right, found the integer 4"),
        ('1 in ["a"]', 'cannot compare the integer 1 with the string "a"'),
        ("1 in [true]", "cannot compare the integer 1 with the boolean true"),
    ],
)
def test_in_of_other_things(condition: str, expected: str) -> None:
    text = f"layer It()(x []) -> [] {{ return x if {condition} else x * 2.0 }}"
    assert message(text).startswith(f"error[wrong-kind]: {expected}\n")


TABLES = """
layer It()(x [3, 2]) -> [3, 2] {
  rows:  buffer [3, 2] = [[1, 2], [3, 4], [5, 6.5]]
  whole: frozen param int [2] = [1, 2]
  on:    buffer bool [2] = [true, false]
  return where(.on, x * .rows + table([0.5, 1]), x * .whole + table([[1], [2], [3]]))
}
"""


def test_tables() -> None:
    x = np.arange(6.0).reshape(3, 2)
    rows = np.array([[1, 2], [3, 4], [5, 6.5]])
    expected = np.where([True, False], x * rows + [0.5, 1], x * [1, 2] + [[1], [2], [3]])
    assert np.array_equal(values(TABLES, x), expected)


# The least number -----------------------------------------------------------------------------------------------------

LEAST = np.finfo(np.float64).min


def test_lowest() -> None:
    x = np.array([-1.0, 2.0])
    assert values("layer It()(x [2]) -> [2] { return where(x > 0.0, x, lowest) }", x).tolist() == [LEAST, 2.0]
    assert values("layer It()(x [2]) -> [2] { return x |> where(_ > 0.0, lowest, _) }", x).tolist() == [-1.0, LEAST]
    assert values("layer It()(x [2]) -> [2] { return max(x, lowest) }", x).tolist() == x.tolist()
    assert values("layer It()(x [2]) -> [2] { return where(x > 0.0, 1.0, lowest(x)) }", x).tolist() == [LEAST, 1.0]
    model = load("layer It()(x [2]) -> [2] { return where(x > 0.0, x, lowest) }")
    assert operations(model, "op") == ["gt", "lowest", "where"]


# Numbers that begin tensors -------------------------------------------------------------------------------------------

BEGUN = "layer It(n = 3)(x [2]) -> [2] {\n  h = 1\n  for i in 0..n { h = h + x * i }\n  return h\n}"


def test_a_number_begins_a_tensor() -> None:
    assert values(BEGUN, [1.0, 2.0]).tolist() == [4.0, 7.0]
    assert message(BEGUN, n=0).startswith("error[wrong-kind]: expected a tensor as output, found the integer 1\n")
    assert archspec.formula(load(BEGUN + '\nmodel "it" = It()'), "n").at(n=5) == 0


def test_the_limit_is_on_the_text_of_functions_not_of_the_file() -> None:
    before = f"# {'-' * 78}\n" * 3_000
    sums = " + ".join(f"f({i})" for i in range(20))
    assert load(f"{before}fn f(n) {{ return n }}\nlayer It()(x []) -> [] {{ return x * ({sums}) }}").params.total == 0
