"""Functions of numbers, `pi`, `in`, `lowest`, tables, and numbers that begin the tensors of loops."""

import math
from typing import Any

import numpy as np
import pytest
from reference import evaluate
from small import findings, load, operations, shapes

import archspec
from archspec.ir.normal.forms.shape import LOWEST_FLOAT32
from archspec.pipeline.model import get_compilation


def values(text: str, x: Any, **overrides: Any) -> Any:
    """What the only output of a text's model is for the input `x`."""
    (result,) = evaluate(get_compilation(load(text, **overrides)).body, {"x": np.asarray(x)}, {}).outputs.values()
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


SIZED = """
dim batch, seq
fn rounded(n, step = 8) { return (n + step - 1) // step * step }
fn is_wide(i) { return i not in [1, 3] }
layer Dense(n, m = rounded(n), bias = true)(x [..., n]) -> [..., rounded(n) if m == 0 else m] {
  weight: param [m, n]
  bias:   param [m] if bias
  return linear(x, .weight, .bias)
}
block It(n = 10, layers = 4, inner = rounded(2 * n))(x [batch, seq, n]) -> [batch, rounded(seq * 2, 2) // 2, n] {
  require rounded(n) <= 16, "too wide"
  return x
    |> layers[i]: Dense(n, n, bias = is_wide(i)) for i in 0..layers
    |> up:        Dense(n, inner)
    |> down:      Dense(inner, n)
    |> reshape([batch, rounded(2 * seq, 2) // 2, n])
}
model "it" = It(n = rounded(9)) { expect params == 4 * 256 + 32 + rounded(16) * 32 * 2 + 48 }
"""


def test_functions_of_numbers_stand_wherever_a_value_does() -> None:
    model = load(SIZED)
    assert shapes(model)["up.weight"] == (32, 16)
    assert [name for name in shapes(model) if name.endswith("bias")] == [
        "layers.0.bias",
        "layers.2.bias",
        "up.bias",
        "down.bias",
    ]
    assert load(SIZED, n=8).params.total == 4 * 64 + 16 + 2 * 128 + 16 + 8
    assert "too wide (n = 17)" in message(SIZED.replace(" = It(n = rounded(9)) { expect", " = It(n = 17) { expect"))


def test_formulas_go_through_functions_of_numbers() -> None:
    formula = archspec.formula(load(SIZED), "layers")
    for layers in (4, 5, 9):
        assert formula.at(layers=layers) == load(SIZED, layers=layers).params.total
    formula = archspec.formula(load(SIZED.replace("rounded(n) <= 16", "n > 0")), "n")
    for n in (7, 8, 20):
        assert formula.at(n=n) == load(SIZED.replace("rounded(n) <= 16", "n > 0"), n=n).params.total


def test_formulas_refuse_functions_that_they_cannot_follow() -> None:
    text = """
fn sum_to(n) {
  sum_of = 0
  for i in 0..n { sum_of = sum_of + i }
  return sum_of
}
layer It(n = 4)(x [n]) -> [n] {
  w: param [sum_to(n), n]
  return sum(axis = 0)(.w) + x
}
"""
    assert load(text, n=6).params.total == 90
    with pytest.raises(archspec.ArchError, match="neither constant nor grows by a constant amount"):
        archspec.formula(load(text), "n")


@pytest.mark.parametrize(
    ("functions", "call", "expected"),
    [
        (
            "fn fact(n) { return 1 if n < 2 else n * fact(n - 1) }",
            "fact(3)",
            "error[definition-cycle]: `fact` calls itself\n"
            " -->1:41\n  |\n"
            "1 | fn fact(n) { return 1 if n < 2 else n * fact(n - 1) }\n"
            "  |                                         ^^^^\n"
            "help: use a loop for repetition: `for i in 0..n { ... }`",
        ),
        (
            "fn f(n) { return g(n) }\nfn g(n) { return f(n) }",
            "f(3)",
            "error[definition-cycle]: `f` calls itself: f -> g -> f\n"
            " -->1:18\n  |\n"
            "1 | fn f(n) { return g(n) }\n"
            "  |                  ^^^^\n"
            "note: in `g`, used above\n"
            " -->2:18\n  |\n"
            "2 | fn g(n) { return f(n) }\n"
            "  |                  ----",
        ),
        (
            "fn f(n = g()) { return n }\nfn g(n = f()) { return n }",
            "f()",
            "error[definition-cycle]: the default of `n` of `f` depends on itself\n"
            " -->1:6\n  |\n"
            "1 | fn f(n = g()) { return n }\n"
            "  |      ^^^^^^^",
        ),
        (
            "fn per(n, k) { return n / k }",
            "per(3, 0)",
            "error[arithmetic]: division by zero in `/`\n"
            " -->2:37\n  |\n"
            "2 | layer It()(x []) -> [] { return x + per(3, 0) }\n"
            "  |                                     ^^^^^^^^^\n"
            "note: in `per`, used above\n"
            " -->1:23\n  |\n"
            "1 | fn per(n, k) { return n / k }\n"
            "  |                       -----",
        ),
        (
            'fn per(n, k) { require k > 0, "k must be positive" return n / k }'.replace('" return', '"\n  return'),
            "per(3, 0)",
            "error[require]: k must be positive (k = 0)\n"
            " -->3:37\n  |\n"
            "3 | layer It()(x []) -> [] { return x + per(3, 0) }\n"
            "  |                                     ^^^^^^^^^\n"
            "note: required by `per`, used above\n"
            " -->1:24\n  |\n"
            '1 | fn per(n, k) { require k > 0, "k must be positive"\n'
            "  |                        -----",
        ),
        (
            "fn f(n) { return arange(n) }",
            "f(3)",
            "error[wrong-kind]: `f` declares no outputs, so it cannot compute tensors\n"
            " -->2:37\n  |\n"
            "2 | layer It()(x []) -> [] { return x + f(3) }\n"
            "  |                                     ^^^^\n"
            "note: in `f`, used above\n"
            " -->1:18\n  |\n"
            "1 | fn f(n) { return arange(n) }\n"
            "  |                  ---------\n"
            "help: declare its outputs, as in `-> [n]`, or use numbers only",
        ),
        (
            "fn f(n) { return n, n }",
            "f(3)",
            "error[output]: a function of numbers returns one value, found 2\n"
            " -->2:37\n  |\n"
            "2 | layer It()(x []) -> [] { return x + f(3) }\n"
            "  |                                     ^^^^\n"
            "note: in `f`, used above\n"
            " -->1:11\n  |\n"
            "1 | fn f(n) { return n, n }\n"
            "  |           -----------\n"
            "help: return a list: `return [a, b]`",
        ),
        (
            "fn f(n) { return n }",
            "f(x)",
            "error[wrong-kind]: a hyperparameter of `f` cannot depend on an input\n"
            " -->2:39\n  |\n"
            "2 | layer It()(x []) -> [] { return x + f(x) }\n"
            "  |                                       ^\n"
            "help: pass hyperparameters in the first list and tensors in the second",
        ),
    ],
)
def test_errors_in_functions_of_numbers(functions: str, call: str, expected: str) -> None:
    assert message(f"{functions}\nlayer It()(x []) -> [] {{ return x + {call} }}") == expected


def test_only_functions_without_inputs_leave_out_their_outputs() -> None:
    for head in ("layer It()(x [4])", "layer It(n)"):
        assert message(head + ' {\n  return 1\n}\nmodel "it" = It()').startswith(
            "error[syntax]: expected `->` after `)`, found `{`"
        )
    (found, _) = findings('fn f(x [4]) {\n  return x\n}\nmodel "it" = It()')
    assert found.message == "expected `->` after `)`, found `{`"
    assert "expected an output after `->`" in message(
        "fn f(n) -> () { return n }\nlayer It()(x [4]) -> [4] { return x * f(1) }"
    )


def test_functions_of_numbers_are_limited() -> None:
    chain = "\n".join(f"fn f{i}(n) {{ return f{i + 1}(n) }}" for i in range(70)) + "\nfn f70(n) { return n }"
    assert "nested too deeply: the limit is 60 levels" in message(
        chain + "\nlayer It()(x []) -> [] { return x * f0(1) }"
    )


@pytest.mark.slow
def test_long_evaluations_of_functions_of_numbers_are_limited() -> None:
    tree = (
        "\n".join(f"fn f{i}(n) {{ return f{i + 1}(n) + f{i + 1}(n) }}" for i in range(40)) + "\nfn f40(n) { return n }"
    )
    assert "too much text to process" in message(tree + "\nlayer It()(x []) -> [] { return x * f0(1) }")
    long = "fn f(n) {\n  s = 0\n  for i in 0..n { s = s + i }\n  return s\n}"
    assert "too much text to process" in message(long + "\nlayer It()(x []) -> [] { return x * f(1_000_000_000) }")


def test_the_limit_is_on_the_text_of_functions_not_of_the_file() -> None:
    before = f"# {'-' * 78}\n" * 3_000
    sums = " + ".join(f"f({i})" for i in range(20))
    assert load(f"{before}fn f(n) {{ return n }}\nlayer It()(x []) -> [] {{ return x * ({sums}) }}").params.total == 0


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


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("[0.5, 1]", "[0.5, [1]]", "`table` expects lists of equal length in `values`"),
        ("[0.5, 1]", "[]", "`table` expects at least one item in each list of `values`"),
        ("[0.5, 1]", "[0.5, true]", "`table` cannot mix booleans with numbers in `values`"),
        ("[0.5, 1]", '["a"]', '`table` expects numbers or booleans in `values`, found the string "a"'),
        ("[0.5, 1]", "4", "`table` expects a list of numbers or booleans as `values`, found 4"),
        ("[2] = [1, 2]", "[2] = [1, 2.5]", "expected a value of type int [2], found real [2]"),
        ("[2] = [1, 2]", "[2] = [1, 2, 3]", "expected a value of type int [2], found int [3]"),
        ("table([0.5, 1])", "[0.5, 1]", "`+` expects a tensor, found the list [0.5, 1]"),
    ],
)
def test_tables_that_do_not_do(old: str, new: str, expected: str) -> None:
    assert old in TABLES
    assert message(TABLES.replace(old, new)).partition("]: ")[2].startswith(expected + "\n")


# The least number -----------------------------------------------------------------------------------------------------

LEAST = np.finfo(np.float64).min


def test_the_least_number_of_normal_forms_is_that_of_float32() -> None:
    assert np.finfo(np.float32).min == LOWEST_FLOAT32


def test_lowest() -> None:
    x = np.array([-1.0, 2.0])
    assert values("layer It()(x [2]) -> [2] { return where(x > 0.0, x, lowest) }", x).tolist() == [LEAST, 2.0]
    assert values("layer It()(x [2]) -> [2] { return x |> where(_ > 0.0, lowest, _) }", x).tolist() == [-1.0, LEAST]
    assert values("layer It()(x [2]) -> [2] { return max(x, lowest) }", x).tolist() == x.tolist()
    assert values("layer It()(x [2]) -> [2] { return where(x > 0.0, 1.0, lowest(x)) }", x).tolist() == [LEAST, 1.0]
    model = load("layer It()(x [2]) -> [2] { return where(x > 0.0, x, lowest) }")
    assert operations(model, "op") == ["gt", "lowest", "where"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (
            "x + where(x > 0.0, 1.0, lowest)",
            "no real tensor among the operands of `where` determines the type of `lowest`",
        ),
        ("x + real(max(int(x), lowest))", "no real tensor among the operands of `max` determines the type of `lowest`"),
        ("x * (lowest + 1.0)", "`+` expects numbers, found a function `lowest`"),
        ("x + lowest(int(x))", "`lowest` expects a real tensor as `x`, found int"),
        ("f(x, lowest)", "input `y` of `f` expects a tensor, found a function `lowest`"),
    ],
)  # fmt: skip
def test_lowest_needs_a_type(expression: str, expected: str) -> None:
    text = "fn f(x [2], y [2]) -> [2] { return x + y }\nlayer It()(x [2]) -> [2] { return EXPRESSION }"
    assert message(text.replace("EXPRESSION", expression)).partition("]: ")[2].startswith(expected + "\n")


# Numbers that begin tensors -------------------------------------------------------------------------------------------

BEGUN = "layer It(n = 3)(x [2]) -> [2] {\n  h = 1\n  for i in 0..n { h = h + x * i }\n  return h\n}"


def test_a_number_begins_a_tensor() -> None:
    assert values(BEGUN, [1.0, 2.0]).tolist() == [4.0, 7.0]
    assert message(BEGUN, n=0).startswith("error[wrong-kind]: expected a tensor as output, found the integer 1\n")
    assert archspec.formula(load(BEGUN + '\nmodel "it" = It()'), "n").at(n=5) == 0
