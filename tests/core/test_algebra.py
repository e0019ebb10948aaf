"""The algebra of sizes agrees with integers, and equal things have one form."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archspec import Polynomial
from archspec.core.algebra import (
    MAX_SIZE,
    Dim,
    bounds,
    check_size_limits,
    dim_max,
    dim_min,
    has_lower_bound,
    is_at_least,
    product,
    substitute,
    symbol,
    symbols,
    weighted_sum,
)

NAMES = ("a", "b", "c")
a, b, c = map(symbol, NAMES)

values = st.fixed_dictionaries({name: st.integers(1, 30) for name in NAMES})

OPERATIONS: dict[str, Callable[[Dim, Dim], Dim]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
    "min": dim_min,
    "max": dim_max,
}


class Tree:
    """An expression to be computed in symbols and in integers."""

    def __init__(self, operator: str, *parts: Tree | str | int) -> None:
        self.operator = operator
        self.parts = parts

    def __repr__(self) -> str:
        return f"{self.operator}{self.parts}" if self.operator else str(self.parts[0])

    def compute(self, names: dict[str, Dim]) -> Dim:
        parts = [p.compute(names) if isinstance(p, Tree) else names[p] if isinstance(p, str) else p for p in self.parts]
        return OPERATIONS[self.operator](*parts) if self.operator else parts[0]


leaves = st.one_of(st.sampled_from(NAMES), st.integers(-9, 9)).map(lambda leaf: Tree("", leaf))


def combined(operators: list[str]) -> st.SearchStrategy[Tree]:
    return st.recursive(leaves, lambda inner: st.builds(Tree, st.sampled_from(operators), inner, inner), max_leaves=8)


trees = combined(sorted(OPERATIONS))
polynomials = combined(["+", "-", "*"])


def in_symbols(tree: Tree) -> Dim | None:
    """The expression in symbols; None where it has no value or outgrows what is allowed."""
    try:
        return tree.compute({name: symbol(name) for name in NAMES})
    except (ZeroDivisionError, OverflowError):
        return None


def in_integers(tree: Tree, numbers: dict[str, int]) -> int | None:
    try:
        result = tree.compute({**numbers})
    except ZeroDivisionError:
        return None
    assert isinstance(result, int)
    return result


@settings(max_examples=500, deadline=None)
@given(trees, values)
def test_agrees_with_integers(tree: Tree, numbers: dict[str, int]) -> None:
    expected, dim = in_integers(tree, numbers), in_symbols(tree)
    if expected is None or dim is None:
        return
    assert substitute(dim, numbers) == expected
    low, high = bounds(dim)
    assert low is None or low <= expected
    assert high is None or high >= expected


@settings(max_examples=200, deadline=None)
@given(trees, values)
def test_substitution_may_be_partial_and_symbolic(tree: Tree, numbers: dict[str, int]) -> None:
    expected, dim = in_integers(tree, {**numbers, "a": numbers["b"] * 2 + 1}), in_symbols(tree)
    if expected is None or dim is None:
        return
    try:
        partial = substitute(dim, {"a": b * 2 + 1, "c": numbers["c"]})
    except (ZeroDivisionError, OverflowError):
        return
    assert symbols(partial) <= {"b"}
    assert substitute(partial, numbers) == expected


def least(*dims: Dim) -> Dim:
    return reduce(dim_min, dims)


def most(*dims: Dim) -> Dim:
    return reduce(dim_max, dims)


@settings(max_examples=200, deadline=None)
@given(trees)
def test_text_is_the_expression(tree: Tree) -> None:
    dim = in_symbols(tree)
    if dim is not None:
        assert eval(str(dim), {"a": a, "b": b, "c": c, "min": least, "max": most}) == dim


@settings(max_examples=200, deadline=None)
@given(trees, trees, trees)
def test_ring_laws(x: Tree, y: Tree, z: Tree) -> None:
    p, q, r = in_symbols(x), in_symbols(y), in_symbols(z)
    if p is None or q is None or r is None:
        return
    try:
        assert p + q == q + p and hash(p + q) == hash(q + p)
        assert p * q == q * p
        assert (p + q) + r == p + (q + r)
        assert (p * q) * r == p * (q * r)
        assert p * (q + r) == p * q + p * r
        assert p - p == 0 and p + 0 == p and p * 1 == p and p * 0 == 0
        assert p - q == p + -q
        assert dim_min(p, q) == dim_min(q, p) and dim_max(p, p) == p
    except OverflowError:
        pass


@settings(max_examples=200, deadline=None)
@given(polynomials, st.integers(1, 12), st.integers(1, 12))
def test_division_twice_is_division_once(tree: Tree, m: int, n: int) -> None:
    p = in_symbols(tree)
    if p is not None:
        assert (p // m) // n == p // (m * n)
        assert (p % (m * n)) % n == p % n
        assert (a % (m * n)) // n == a // n % m


@settings(max_examples=200, deadline=None)
@given(trees, trees, st.integers(1, 12), st.integers(1, 12))
def test_division_laws(x: Tree, y: Tree, m: int, n: int) -> None:
    p, q = in_symbols(x), in_symbols(y)
    if p is None or q is None:
        return
    try:
        assert (p * n) // n == p and (p * n) % n == 0
        assert (p + q * n) // n == p // n + q
        assert (p + q * n) % n == p % n
        assert (p * m) // (n * m) == p // n
        assert p // -n == -p // n
        if q != 0:
            assert (p * q) // q == p and (p * q) % q == 0
    except OverflowError:
        pass


def test_plain_integers_stay_plain() -> None:
    for value in (product([2, 3]), dim_min(2, 3), dim_max(2, 3), substitute(4, {"a": 1}), a - a, a // a):
        assert type(value) is int
    assert product([]) == 1
    assert a != 1


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("b * a", "a*b"),
        ("a // 2 + 1", "a//2 + 1"),
        ("(a + 2) // 2", "a//2 + 1"),
        ("(4 * a + 6) // 8", "(a + 1)//2"),
        ("3 * a // 2", "a + a//2"),
        ("8 - a % 8", "8 - a%8"),
        ("(8 - a % 8) % 8", "7*a%8"),
        ("(a - 1) // a", "0"),
        ("(a - 1) % a", "a - 1"),
        ("-1 // a", "-1"),
        ("-1 % a", "a - 1"),
        ("-2 // (a + 1)", "-1"),
        ("(1 - a) // a", "1//a - 1"),
        ("-a % (a * b)", "a*b - a"),
        ("(a // 2 + 1) // 3", "(a + 2)//6"),
        ("(a * a - b * b) // (a - b)", "a + b"),
        ("(a * b + 3) // a", "3//a + b"),
        ("a * b // (a * c)", "b//c"),
        ("-a // b", "(-a)//b"),
        ("-(a % 2)", "-(a%2)"),
        ("b * (a // 2)", "b*(a//2)"),
        ("a**3", "a**3"),
        ("dim_min(a, 1)", "1"),
        ("dim_max(a, 1)", "a"),
        ("dim_min(a, a * b)", "a"),
        ("dim_max(dim_max(b, a), b)", "max(a, b)"),
        ("2 - a * b", "2 - a*b"),
    ],
)
def test_canonical_forms(expression: str, text: str) -> None:
    assert str(eval(expression)) == text


def test_bounds() -> None:
    assert bounds(a) == (1, None)
    assert bounds(a * b - a) == (0, None)
    assert bounds(8 - a % 8) == (1, 8)
    assert bounds(dim_min(a, 5)) == (1, 5)
    assert bounds(a - b) == (None, None)
    assert bounds(30 - (a % 4) ** 3) == (3, 30) and bounds(a % 3 * (b % 4) ** 2 - (c % 2) * (a % 5)) == (-4, 18)
    assert bounds((a % 8 + 16) // (b % 4 + 2)) == (3, 11)
    assert bounds((a % 8 - 16) // (b % 4 + 2)) == (-8, -2)
    assert bounds((a + 16) // (b + 1)) == (0, None)
    assert (bounds(a**8), bounds(a**9), bounds(a**4 * b**5 - 1)) == ((1, None), (None, None), (None, None))
    assert has_lower_bound(a * b, 1) and not has_lower_bound(a - 1, 1)
    assert is_at_least(a - dim_min(a, 9), 0) and is_at_least(dim_max(a, b) - dim_min(b, 5), 0)
    assert is_at_least(a - a // 2, 0) and is_at_least((a + 1) // 2 - a // 2, 0) and is_at_least(a // 2 * 2 - a, -1)
    assert is_at_least(a - a // 2 * 2, 0) and is_at_least(2 * a - 3 * (a // 3), 1) and is_at_least(a // 3 * 3 - a, -2)
    assert not is_at_least(a - a // 2 * 2, 1) and not is_at_least(a // 3 * 3 - a, -1)
    assert not is_at_least(a - a // 2, 1) and not is_at_least(a // 2 * 2 - a, 0) and not is_at_least(a - a // b, 0)
    assert not is_at_least(a - dim_min(a, 9), 1) and not is_at_least(dim_min(a, b) - a, 0)


def test_what_is_not_a_dimension() -> None:
    for wrong in (1.5, True, "a", None):
        for operation in OPERATIONS.values():
            if operation not in (dim_min, dim_max):
                with pytest.raises(TypeError):
                    operation(a, wrong)  # pyright: ignore[reportArgumentType]
    assert [type((a + b) ** n) for n in (0, 1)] == [int, Polynomial] and (a + b) ** 0 == 1
    with pytest.raises(ValueError, match="negative powers"):
        _ = a**-1
    with pytest.raises(ValueError, match="not a name"):
        symbol("a b")
    for zero in (lambda: a // 0, lambda: a % 0, lambda: substitute(5 // (a - 1), {"a": 1})):
        with pytest.raises(ZeroDivisionError):
            zero()
    assert (
        a.symbol == "a" and [d.symbol for d in (a + 1, 2 * a, a * b, a // 2) if isinstance(d, Polynomial)] == [None] * 4
    )


def test_growth_is_bounded() -> None:
    def squares() -> Dim:
        x: Dim = a + b + c + 1
        while True:
            x = x * x

    def divisions() -> Dim:
        x: Dim = a
        while True:
            x = x // 2 + x // 3

    def nested() -> Dim:
        x: Dim = a
        while True:
            x = (x * b + 1) // 7

    def coefficients() -> Dim:
        x: Dim = a
        while True:
            x = check_size_limits(x * MAX_SIZE)

    def extremes() -> Dim:
        x: Dim = a
        for i in range(1000):
            x = dim_min(x, symbol(f"s{i}"))
        return x

    assert str(a**64) == "a**64"
    with pytest.raises(OverflowError, match=r"^this power is above 64$"):
        _ = a**65
    for grow in (squares, divisions, nested, coefficients, extremes, lambda: (a + 1) ** 10**12):
        with pytest.raises(OverflowError):
            grow()
    with pytest.raises(OverflowError):
        product([a + b + c + 1] * 5)
    with pytest.raises(OverflowError):
        check_size_limits(substitute(a**16, {"a": MAX_SIZE}))
    assert (check_size_limits(2**63 - 1), check_size_limits(a * (2**63 - 1))) == (2**63 - 1, a * (2**63 - 1))
    assert check_size_limits(a**16) == a**16
    for too_large in (2**63, a * 2**63, a**17, a * (MAX_SIZE + 1), (a + b + c + 1) ** 5):
        with pytest.raises(OverflowError):
            check_size_limits(too_large)


def of_symbols(count: int, times: int = 1) -> Dim:
    return weighted_sum((symbol(f"s{i}"), times) for i in range(count))


@pytest.mark.parametrize(
    ("make", "most"),
    [
        (lambda n: check_size_limits(of_symbols(n)), 32),  # each with its factor
        (lambda n: of_symbols(n) // 7, 31),
        (lambda n: of_symbols(n) % 7, 31),
        (lambda n: of_symbols(n, 7) // 7, 64),
        (lambda n: reduce(dim_max, [symbol(f"s{i}") for i in range(n)]), 8),
        (lambda n: of_symbols(n - 1) + a, 1000),
        (lambda n: (of_symbols(n) + 1) * a * (b - 1), 499),
    ],
)
def test_expressions_as_large_as_may_be(make: Callable[[int], Dim], most: int) -> None:
    make(most)
    with pytest.raises(
        OverflowError, match=r"^this (dimension is too large an expression|expression has more than 1,000)"
    ):
        make(most + 1)


def test_needs_nothing_of_ours() -> None:
    program = "import sys, archspec.core.algebra; print(*[m for m in sys.modules if m.startswith('archspec.')])"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert {".".join(module.split(".")[1:3]) for module in out.split()} <= {"core", "core.algebra", "core.record"}
