"""Steps of the code that the tests of formula cannot reach through public names."""

import random
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from bundled import each
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import GOLDEN
from small import DENSE
from test_formula import STAGE, integers

import archspec
from archspec import Polynomial
from archspec.core.algebra import (
    Expression,
    dim_max,
    dim_min,
    evaluate,
    index,
    multiply_unexpanded,
    number,
    ratio,
    substitute,
    sum_over_index,
    symbol,
    symbols,
    to_latex,
    to_text,
)
from archspec.testing import main

EXAMPLES = [f"specs/std/examples.arch:small-{name}" for name in ("decoder", "vision", "speech")]


SIZES = [1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 48]


def check_against_numbers(spec: str, names: tuple[str, ...], times: int, seed: int = 0) -> archspec.Formula:
    """Compares a formula with what compiling gives, where the formula claims anything."""
    formula = archspec.formula(spec, names)
    model = archspec.load(spec)
    assert formula.at() == model.params.total
    assert evaluate(formula.frozen, formula.open) == model.params.frozen
    rng = random.Random(seed)
    compared = 0
    for _ in range(30 * times):
        values = {n: rng.choice([*SIZES, *[formula.open[n]] * 4]) for n in names}
        try:
            claimed = formula.at(**values)
        except ValueError:
            continue  # an assumption does not hold
        params = archspec.load(spec, **values).params
        numbers = {**formula.open, **values}
        assert (claimed, evaluate(formula.frozen, numbers)) == (params.total, params.frozen), values
        assert sum(evaluate(term.total, numbers) for term in formula.terms) == claimed
        for term in formula.terms:
            assert term.variable or evaluate(term.each * term.rounds, numbers) == evaluate(term.total, numbers)
        compared += 1
        if compared == times:
            break
    assert compared, "no values were found for which the assumptions hold"
    return formula


@pytest.mark.sampled(8)
@pytest.mark.parametrize("spec", each(*EXAMPLES))
def test_every_bundled_model_has_a_formula_in_all_its_integers(spec: str) -> None:
    check_against_numbers(spec, tuple(integers(spec)), 3)


@pytest.mark.parametrize("spec", ["bert-base-uncased-mlm", "albert-base-v2", "transformer-base", *EXAMPLES])
def test_any_of_them_may_be_open(spec: str) -> None:
    names = list(integers(spec))
    rng = random.Random(spec)
    chosen = [rng.sample(names, k) for k in (1, 2, 3)]
    for open in chosen:
        check_against_numbers(spec, tuple(open), 2)


def test_the_formula_of_bert(golden: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]) -> None:
    for format in ("text", "latex", "json"):
        assert main(["formula", "bert-base-uncased", "--open", "hidden,layers,ffn", "--format", format]) == 0
        golden(f"formula/bert.{format}", capsys.readouterr().out)
    formula = archspec.formula("bert-base-uncased", open=["hidden", "layers", "ffn"])
    hidden, layers, ffn = map(symbol, ("hidden", "layers", "ffn"))
    each = hidden**2 * 4 + hidden * ffn * 2 + hidden * 9 + ffn
    assert formula.total == layers * each + hidden**2 + hidden * (30522 + 512 + 2 + 3)
    assert formula.at() == 109_482_240
    large = archspec.formula("bert-base-uncased", open=["hidden", "layers", "heads", "ffn"])
    assert large.at(hidden=1024, layers=24, heads=16, ffn=4096) == 335_141_888
    with pytest.raises(ValueError, match="the formula assumes hidden is divisible by 12"):
        formula.at(hidden=1000)
    with pytest.raises(ValueError, match="`heads` is not open"):
        formula.at(heads=4)
    for wrong in (0, -12, True, 12.0):
        with pytest.raises(ValueError, match="a positive integer"):
            formula.at(layers=wrong)  # pyright: ignore[reportArgumentType]


def test_frozen_tied_and_shared(golden: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formula", "transformer-base", "--open", "hidden,layers", "--open", "words"]) == 0
    golden("formula/transformer.text", capsys.readouterr().out)
    formula = archspec.formula("transformer-base", ["hidden", "positions"])
    assert formula.frozen == symbol("hidden") * symbol("positions") * 2
    assert formula.trainable + formula.frozen == formula.total
    assert "layers" not in symbols(archspec.formula("albert-base-v2", ["hidden", "layers"]).total)


def test_a_default_follows_what_is_open_though_another_number_is_the_same(tmp_path: Path) -> None:
    """`groups` must divide `heads`, which is 4 in the model; so is `size`, by its default."""
    path = tmp_path / "heads.arch"
    path.write_text(
        DENSE
        + """
block Heads(hidden = 16, heads = 4, groups = 2, size = hidden // heads)(x [..., hidden]) -> [..., groups * size] {
  require heads % groups == 0
  return x |> l: Dense(hidden, groups * size)
}
model "heads" = Heads()
"""
    )
    formula = check_against_numbers(str(path), ("hidden", "groups"), 5)
    assert str(formula.text(formula.total)) == "hidden*groups*(hidden//4) + groups*(hidden//4)"


class Case(NamedTuple):
    """A spec, and what its comments say by their first word."""

    spec: str
    facts: dict[str, list[str]]

    @property
    def open(self) -> tuple[str, ...]:
        return tuple(self.facts["open"][0].split(","))


def cases(file: str) -> dict[str, Case]:
    found: dict[str, Case] = {}
    for part in re.split(r"^=== ", (GOLDEN / "formula" / file).read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, _, spec = part.partition("\n")
        facts: dict[str, list[str]] = {}
        for word, fact in re.findall(r"^# (\w+): (.*)$", spec, re.MULTILINE):
            facts.setdefault(word, []).append(fact)
        found[title] = Case(spec, facts)
    return found


DERIVED, REFUSED = cases("derived.txt"), cases("refused.txt")


def write(folder: Path, definition: str) -> str:
    path = folder / "spec.arch"
    library = STAGE if "Stage(" in definition else DENSE if "Dense(" in definition else ""
    path.write_text(f'{library}\n{definition}\nmodel "it" = B()\n', encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("title", DERIVED)
def test_what_can_be_derived(title: str, tmp_path: Path) -> None:
    case = DERIVED[title]
    spec = write(tmp_path, case.spec)
    formula = check_against_numbers(spec, case.open, 8)
    assert [formula.text(formula.total, collect=False)] == case.facts["formula"]
    assert [formula.format_assumption(a) for a in formula.assumptions] == case.facts.get("assuming", [])
    names = list(integers(spec))
    for subset in (s for k in range(1, len(names) + 1) for s in combinations(names, k)):
        check_against_numbers(spec, subset, 2)


def test_a_spec_that_would_take_long_is_refused(tmp_path: Path) -> None:
    loops = "".join(
        f"  for i{k} in 0..k {{ a{k}[i{k}]: unused Dense(n + {k}, bias = i{k} == 12) }}\n" for k in range(40)
    )
    spec = write(tmp_path, f"block B(n = 4, k = 20)(x [..., n]) -> [..., n] {{\n{loops}  return x\n}}")
    check_against_numbers(spec, ("n", "k"), 1)


@pytest.mark.parametrize(
    ("open", "condition", "is_derived"),
    [
        ("n", "n <= 1", True),
        ("n", "n <= 8", True),
        ("n", "n <= 9", False),
        ("n", "n < 8", True),
        ("n", "n > 8", True),
        ("n", "n >= 9", False),
        ("k", "i <= 15", True),
        ("k", "i <= 16", False),
        ("k", "i >= 15", True),
        ("k", "i >= k - 16", True),
        ("k", "i >= k - 17", False),
        ("k", "i > k - 16", True),
        ("k", "i % 16 == 3", True),
        ("k", "i % 17 == 3", False),
        ("k", "i % 3 == 1 or i % 5 == 1", True),
        ("k", "i % 3 == 1 or i % 7 == 1", False),
    ],
)
def test_as_many_cases_as_may_be(open: str, condition: str, is_derived: bool, tmp_path: Path) -> None:
    """Those of `n` have the same number of parameters, and those of `i` are other layers."""
    layers = f"for i in 0..k {{ l[i]: unused Dense(n, bias = {condition}) }}" if open == "k" else "w: param [n]"
    result = f"x * .w if {condition} else .w * x" if open == "n" else "x"
    spec = write(tmp_path, f"block B(n = 12, k = 40)(x [..., n]) -> [..., n] {{\n  {layers}\n  return {result}\n}}")
    if is_derived:
        check_against_numbers(spec, (open,), 1)
    else:
        with pytest.raises(archspec.ArchError, match="for all values"):
            archspec.formula(spec, [open])


NAMES = ("a", "b", "c")


a, b, c = map(symbol, NAMES)


numbers = st.fixed_dictionaries({n: st.integers(1, 12) for n in NAMES})


terms = st.tuples(st.fractions(-5, 5, max_denominator=4), st.tuples(*[st.integers(0, 3)] * 3))


polynomials = st.lists(terms, max_size=4).map(
    lambda found: sum(
        ratio(a ** e[0] * b ** e[1] * c ** e[2] * scale.numerator, scale.denominator) for scale, e in found
    )
)


def value(expression: Expression, at: dict[str, Any]) -> Fraction:
    fractions = {n: ratio(v.numerator, v.denominator) for n, v in at.items()}
    result = number(substitute(expression, fractions))
    assert result is not None
    return result


@settings(max_examples=50, deadline=None)
@given(polynomials, polynomials, numbers, st.integers(0, 3))
def test_arithmetic_is_that_of_the_values(p: Expression, q: Expression, at: dict[str, int], exponent: int) -> None:
    assert value(p + q, at) == value(p, at) + value(q, at)
    assert value(p - q, at) == value(p, at) - value(q, at)
    assert value(p * q, at) == value(p, at) * value(q, at)
    assert value(p**exponent, at) == value(p, at) ** exponent
    assert value(substitute(p, {"a": q}), at) == value(p, {**at, "a": value(q, at)})
    assert p + q == q + p and p * q == q * p and p - p == 0


@settings(max_examples=100, deadline=None)
@given(polynomials, polynomials, numbers)
def test_floors_and_extremes_of_fractions_are_those_of_the_values(
    p: Expression, q: Expression, at: dict[str, int]
) -> None:
    left, right = value(p, at), value(q, at)
    try:
        assert value(dim_min(p, q), at) == min(left, right)
        assert value(dim_max(p, q), at) == max(left, right)
        if right:
            assert value(p // q, at) == left // right
            assert value(p % q, at) == left % right
    except OverflowError:
        pass


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(-9, 9), numbers)
def test_a_ratio_takes_the_place_of_a_symbol_in_a_floor(times: int, by: int, shift: int, at: dict[str, int]) -> None:
    floors = [(a * times + shift) // by, (a * times + shift) % by, dim_max(a * times, b + shift), (a * b) // (a + by)]
    for floor in floors:
        replaced = substitute(floor, {"a": ratio(b, times * c)})
        assert value(replaced, at) == value(floor, {**at, "a": Fraction(at["b"], times * at["c"])})


@settings(max_examples=30, deadline=None)
@given(polynomials, numbers, st.integers(0, 9))
def test_sums_are_those_of_the_rounds(p: Expression, at: dict[str, int], rounds: int) -> None:
    closed = sum_over_index(p, "a", symbol("n"))
    assert closed is not None
    added = sum((value(p, {**at, "a": a}) for a in range(1, rounds + 1)), Fraction(0))
    assert value(closed, {**at, "n": rounds}) == added


@settings(max_examples=30, deadline=None)
@given(polynomials, numbers)
def test_text_is_python(p: Expression, at: dict[str, int]) -> None:
    exact = {n: Fraction(v) for n, v in at.items()}
    for collect in ((), ("a", "b")):
        assert eval(to_text(p, NAMES, collect), dict(exact)) == pytest.approx(float(value(p, at)))


@settings(max_examples=30, deadline=None)
@given(st.integers(-9, 9), st.integers(1, 9), st.integers(1, 9), numbers)
def test_floors_and_remainders_of_sizes(shift: int, by: int, other: int, at: dict[str, int]) -> None:
    dim = (a * b + shift) // by + (b * other + a) % by
    expected = (at["a"] * at["b"] + shift) // by + (at["b"] * other + at["a"]) % by
    assert value(dim, at) == expected


SEQ = symbol("seq")


LATEX_FLOOR = r"\left\lfloor \frac{%s}{%s} \right\rfloor"


@pytest.mark.parametrize(
    ("expr", "text", "latex"),
    [
        (lambda: 1 - a, "1 - a", "1 - a"),
        (lambda: -a - b, "-a - b", "-a - b"),
        (lambda: -ratio(a, b), "-a/b", r"-\frac{a}{b}"),
        (lambda: ratio(a**2, 2 * b), "a**2/(2*b)", r"\frac{a^{2}}{2 \, b}"),
        (lambda: ratio(3 * a, 2) + ratio(b, 2), "3*a/2 + b/2", r"\frac{3 \, a}{2} + \frac{b}{2}"),
        (lambda: -(a // b), "-(a//b)", "-" + LATEX_FLOOR % ("a", "b")),
        (lambda: 2 * (a // b) ** 2, "2*(a//b)**2", r"2 \, " + LATEX_FLOOR % ("a", "b") + "^{2}"),
        (lambda: (a - 1) // (b + 1), "(a - 1)//(b + 1)", LATEX_FLOOR % ("a - 1", "b + 1")),
        (lambda: -a // b, "(-a)//b", LATEX_FLOOR % ("-a", "b")),
        (lambda: -3 // a, "(-3)//a", LATEX_FLOOR % ("-3", "a")),
        (lambda: 3 // a, "3//a", LATEX_FLOOR % ("3", "a")),
        (lambda: a // 2 // b, "(a//2)//b", LATEX_FLOOR % (LATEX_FLOOR % ("a", "2"), "b")),
        (lambda: a * b // 3, "a*b//3", LATEX_FLOOR % (r"a \, b", "3")),
        (lambda: ratio(a // b, 2), "(a//b)/2", r"\frac{%s}{2}" % (LATEX_FLOOR % ("a", "b"))),
        (lambda: -(a % 3), "-(a%3)", r"-\left( a \bmod 3 \right)"),
        (lambda: 2 * a % SEQ, "2*a%seq", r"\left( 2 \, a \bmod \mathrm{seq} \right)"),
        (lambda: (a + 1) % b, "(a + 1)%b", r"\left( \left( a + 1 \right) \bmod b \right)"),
        (lambda: -a % b, "(-a)%b", r"\left( \left( -a \right) \bmod b \right)"),
        (lambda: a % (b + 1), "a%(b + 1)", r"\left( a \bmod \left( b + 1 \right) \right)"),
        (lambda: a % (3 * b), "a%(3*b)", r"\left( a \bmod \left( 3 \, b \right) \right)"),
        (
            lambda: dim_max(a // 2, b % 3),
            "max(a//2, b%3)",
            rf"\max({LATEX_FLOOR % ('a', '2')}, \left( b \bmod 3 \right))",
        ),
        (lambda: -(dim_min(a, b + 1) ** 2), "-min(a, b + 1)**2", r"-\min(a, b + 1)^{2}"),
        (lambda: SEQ**10 * symbol("n_1"), "n_1*seq**10", r"\mathrm{n\_1} \, \mathrm{seq}^{10}"),
        (lambda: multiply_unexpanded([a + 1, b]), "(a + 1)*b", r"\left( a + 1 \right) \, b"),
    ],
)
def test_how_expressions_are_written(expr: Callable[[], Expression], text: str, latex: str) -> None:
    assert (to_text(expr()), to_latex(expr())) == (text, latex)


def test_ratios() -> None:
    quotient = ratio(a, b)
    assert quotient * b == a
    assert to_text(ratio(quotient * 3, 2) + 1) == "1 + 3*a/(2*b)"
    assert evaluate(quotient, {"a": 12, "b": 4}) == 3
    assert isinstance(quotient, Polynomial) and quotient.at({"a": 12, "b": 4}) == 3
    for wrong in ({"a": 1, "b": 4}, {"a": 4}):
        with pytest.raises(ValueError, match="not an integer"):
            quotient.at(wrong)
    with pytest.raises(ValueError, match="no inverse"):
        ratio(1, a + 1)
    with pytest.raises(ZeroDivisionError):
        ratio(a, 0)


def test_an_index_may_be_any_integer() -> None:
    i = index("i")
    assert str(dim_max(i, 1)) == "max(1, i)" and str((i + 1) // 2) == "(i + 1)//2"
    assert (i - 1) // i != 0
    assert dim_max(a, 1) == a and (a - 1) // a == 0
    assert symbols(i + a) == {"i", "a"} and substitute(i + a, {"i": 0}) == a
