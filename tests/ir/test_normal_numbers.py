"""Normal forms of numbers that are 0, infinite or of another type, evaluated beside numpy."""

import math
from typing import Any

import numpy as np
import pytest

from archspec.core.algebra import symbol
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.forms import elementwise as forms
from archspec.ir.normal.nodes import power_of

torch = pytest.importorskip("torch")

from archspec.pytorch.numeric.evaluate import Evaluation

X = np.array([-2.0, -0.0, 0.5, 3.0])
K = np.array([-2, 0, 1, 3])
FLAG = np.array([True, False, False, True])


class Given:
    def __init__(self) -> None:
        self.arrays = Arrays()
        self.e = self.arrays.elements
        self.x, self.k, self.flag = [
            self.arrays.stored("input", name, (4,), dtype).element
            for name, dtype in (("x", "real"), ("k", "int"), ("flag", "bool"))
        ]

    def values(self, element: int) -> Any:
        stored = {("input", name): torch.tensor(value) for name, value in (("x", X), ("k", K), ("flag", FLAG))}
        return Evaluation(self.arrays, stored, {}).array(self.arrays.array((4,), element)).numpy()


@pytest.fixture
def given() -> Given:
    return Given()


def test_powers_of_numbers() -> None:
    assert power_of(2.0, 3.0) == 8.0 and power_of(4.0, 0.5) == 2.0 and power_of(0.0, -1.0) == math.inf
    assert power_of(1e200, 2.0) == power_of(-1e200, 2.0) == math.inf and power_of(-1e200, 3.0) == -math.inf
    assert power_of(1e-200, -3.0) == math.inf
    assert math.isnan(power_of(-1.0, 0.5))


def test_sums_in_which_terms_vanish(given: Given) -> None:
    e, x = given.e, given.x
    choice = e.where(given.flag, x, e.number(math.inf))
    assert e.combination([(2.0, x), (-2.0, x)]) == e.number(0.0)
    vanished = e.combination([(1.0, choice), (-1.0, choice)], 3.0)
    np.testing.assert_array_equal(given.values(vanished), np.where(FLAG, 3.0, np.nan))
    product = e.product([(e.number(0.0), 1.0), (choice, 1.0)])
    np.testing.assert_array_equal(given.values(product), np.where(FLAG, 0.0, np.nan))
    assert e.product([(e.number(0.0), 1.0), (x, 1.0)]) == e.number(0.0)
    assert e.combination([(1.0, choice), (-1.0, choice)]) == product


def test_products_of_sums_and_powers(given: Given) -> None:
    e, x = given.e, given.x
    infinite = e.combination([(math.inf, x)])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(given.values(e.product([(infinite, 2.0)])), (np.inf * X) ** 2)
        np.testing.assert_allclose(given.values(e.product([(e.combination([(-3.0, x)]), 0.5)])), np.sqrt(-3.0 * X))
    half = e.product([(e.combination([(1.0, x)], 5.0), 0.5)])
    whole = e.product([(half, 2.0), (x, 1.0), (e.combination([(2.0, x)], 10.0), 1.0)])
    np.testing.assert_allclose(given.values(whole), (X + 5) * X * (2 * X + 10))
    square = e.product([(e.product([(x, 1.0), (half, 1.0)]), 2.0)])
    np.testing.assert_allclose(given.values(square), X**2 * (X + 5))
    opposite = e.combination([(1.0, x), (-1.0, e.product([(x, 3.0)]))], -2.0)
    found = e.product([(opposite, -1.0)])
    np.testing.assert_allclose(given.values(found), 1 / (X - X**3 - 2))
    assert found == e.combination([(-1.0, e.product([(e.combination([(-1.0, opposite)]), -1.0)]))])


def test_comparisons_with_zero(given: Given) -> None:
    e, x, k = given.e, given.x, given.k
    for real in (x, e.combination([(-2.0, x)], 1.0), e.where(given.flag, x, e.number(2.0))):
        values = given.values(real)
        np.testing.assert_array_equal(given.values(e.at_least_zero(real)), values >= 0)
        np.testing.assert_array_equal(given.values(e.is_positive(real)), values > 0)
        np.testing.assert_array_equal(given.values(e.is_zero(real)), values == 0)
    for number in (-1.0, 0.0, 2.5):
        assert e.at_least_zero(e.number(number)) == e.boolean(number >= 0)
        assert e.is_zero(e.number(number)) == e.boolean(number == 0)
    for integer in (k, forms.multiply(e, k, k), e.integer(e.polynomial(k) * 2 - 2)):
        values = given.values(integer)
        np.testing.assert_array_equal(given.values(e.at_least_zero(integer)), values >= 0)
        np.testing.assert_array_equal(given.values(e.is_zero(integer)), values == 0)
    seq = symbol("seq")
    assert e.is_zero(e.integer(seq + 1)) == e.is_zero(e.integer(-seq - 1)) == e.false
    assert e.is_zero(e.integer(0)) == e.true and e.at_least_zero(e.integer(-1)) == e.false
    flag = forms.to_integer(e, given.flag)
    assert e.is_zero(flag) == e.negation(given.flag)


def test_choices_of_integers_and_reals(given: Given) -> None:
    e = given.e
    found = e.where(given.flag, given.k, given.x)
    assert e.dtype(found) == "real" and found == e.where(given.flag, e.real(given.k), given.x)
    np.testing.assert_array_equal(given.values(found), np.where(FLAG, K, X))


def test_the_order_of_what_does_not_vary(given: Given) -> None:
    arrays, e = given.arrays, given.e
    over = arrays.axes.index("s0", 4)
    whole = arrays.stored("input", "x", (4,), "real")

    def at(element: int, place: int) -> tuple[Any, Any]:
        parts = arrays.descending_element(element, over, place)
        stored = {("input", "x"): torch.tensor(X)}
        value, index = [Evaluation(arrays, stored, {}).array(Array((), part)).item() for part in parts]
        return value, index

    assert at(e.number(2.5), 3) == (2.5, 3)
    assert [at(arrays.at(whole, [over]), place) for place in range(4)] == [(3.0, 3), (0.5, 2), (-0.0, 1), (-2.0, 0)]


def test_numbers_that_are_large_are_not_moderate(given: Given) -> None:
    e, x = given.e, given.x

    def is_moderate(element: int) -> bool:
        return e.magnitudes.are_moderate([element])

    large = [e.number(-1e36), e.combination([(1e36, x)]), e.combination([(1.0, x)], -1e36), e.number(math.inf)]
    assert not any(is_moderate(element) for element in large)
    assert is_moderate(e.combination([(2.0, x)], 3.0)) and is_moderate(e.number(1e10))


def test_signs_of_reals(given: Given) -> None:
    e, arrays, x = given.e, given.arrays, given.x
    over = arrays.axes.index("s0", 4)
    each = arrays.at(arrays.stored("input", "x", (4,), "real"), [over])
    size, size_of_each = [e.apply("abs", (part,), "real") for part in (x, each)]
    place = e.real(e.integer(arrays.own((4,))[0]))
    square = e.product([(x, 2.0)])
    more = e.combination([(1.0, square)], 1.0)

    def signs(element: int) -> tuple[bool, bool]:
        return e.signs.is_nonnegative(element), e.signs.is_positive(element)

    for element in (e.number(2.0), more, e.combination([(1.0, place)], 1.0), e.product([(more, -1.0)]),
                    e.product([(more, 1.0), (e.combination([(3.0, size)], 0.5), 0.7)]),
                    e.where(given.flag, more, e.number(2.0))):  # fmt: skip
        assert signs(element) == (True, True)
    for element in (e.number(0.0), place, size, square, e.product([(x, 0.5)]), e.product([(more, 1.0), (size, 1.0)]),
                    e.combination([(2.0, size), (1.0, square)]), e.where(given.flag, size, e.number(2.0)),
                    arrays.total(size_of_each, [(over, 4)]), arrays.reduction("largest", size_of_each, [over]),
                    arrays.softmax(each, over, 2)):  # fmt: skip
        assert signs(element) == (True, False)
    for element in (e.number(-1.0), e.number(math.inf), x, e.product([(x, 3.0)]), e.apply("sin", (size,), "real"),
                    e.combination([(-1.0, place)], 1.0), e.combination([(1.0, size)], -1.0),
                    e.combination([(1.0, x), (1.0, more)]), e.where(given.flag, x, e.number(2.0)),
                    e.product([(more, 1.0), (x, 1.0)]), arrays.total(each, [(over, 4)]),
                    arrays.reduction("largest", each, [over])):  # fmt: skip
        assert signs(element) == (False, False)
