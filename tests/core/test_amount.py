"""Amounts against integer arithmetic: whatever the dimensions are, both come to the same."""

from hypothesis import given
from hypothesis import strategies as st

from archspec import Polynomial
from archspec.core.algebra import (
    MAX_SIZE,
    Dim,
    atoms,
    dim_max,
    expand,
    multiply_unexpanded,
    substitute,
    symbol,
    weighted_sum,
)
from archspec.ir.work import Quantity

batch, seq, image = symbol("batch"), symbol("seq"), symbol("image")
FACTORS: list[Dim] = [
    *(1, 2, 768, batch, seq, image),
    *(3 * batch, batch * seq, image // 16, (image - 1) // 2 + 1, seq + 1, 2 * seq + 2, dim_max(seq, image), seq % 7),
]
VALUES = st.fixed_dictionaries({name: st.integers(1, 10**6) for name in ("batch", "seq", "image")})
PARTS = st.lists(st.tuples(st.lists(st.sampled_from(FACTORS), max_size=5), st.integers(-4, 10**20)), max_size=6)


def value(amount: Quantity | Dim, values: dict[str, int]) -> int:
    return eval(str(amount), {"min": min, "max": max}, dict(values))


def summed(parts: list[tuple[list[Dim], int]]) -> Quantity:
    return weighted_sum((multiply_unexpanded(factors), times) for factors, times in parts)


@given(PARTS, VALUES)
def test_sums_of_products(parts: list[tuple[list[Dim], int]], values: dict[str, int]) -> None:
    expected = 0
    for factors, times in parts:
        number = times
        for factor in factors:
            number *= value(factor, values)
        expected += number
    amount = summed(parts)
    assert isinstance(amount, int | Polynomial)
    assert value(amount, values) == substitute(amount, values) == expected
    flat = expand(amount)
    assert substitute(flat, values) == expected and all(atom.kind != "()" for atom in atoms(flat))
    half = {"batch": values["batch"]}
    assert substitute(substitute(amount, half), values) == expected


@given(PARTS, st.randoms(use_true_random=False), st.integers(-3, 3))
def test_a_sum_is_the_same_in_any_order(parts: list[tuple[list[Dim], int]], random: object, factor: int) -> None:
    amount = summed(parts)
    shuffled = list(parts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one_by_one = sum(
        (weighted_sum([(multiply_unexpanded(factors[::-1]), times)]) for factors, times in shuffled), start=0
    )
    assert one_by_one == amount and hash(one_by_one) == hash(amount)
    assert factor * amount == amount * factor == weighted_sum([(amount, factor)])
    assert amount + -1 * amount == 0


def test_how_it_is_written() -> None:
    amount = weighted_sum(
        [
            (multiply_unexpanded([1000, batch, seq, seq]), 1),
            (multiply_unexpanded([(image - 1) // 2 + 2, seq]), -2000),
            (7, 1),
        ]
    )
    assert str(amount) == "1000*batch*seq**2 + 7 - 2000*((image + 1)//2 + 1)*seq"
    assert f"{amount:,}" == "1,000*batch*seq**2 + 7 - 2,000*((image + 1)//2 + 1)*seq"
    assert str(multiply_unexpanded([image // 2, batch])) == "batch*(image//2)"
    assert str(weighted_sum([(multiply_unexpanded([batch]), -1)])) == "-batch"


def test_there_is_no_limit_to_its_size() -> None:
    sizes = [(image - k) // (k + 1) + k for k in range(1, 60)]
    amount = weighted_sum((multiply_unexpanded([batch, size, size + 1, MAX_SIZE, MAX_SIZE]), 1) for size in sizes)
    values = {"batch": 3, "image": 1000}
    assert isinstance(amount, Polynomial) and len(amount.terms) > 50
    many = weighted_sum((symbol(f"s{i}"), 1) for i in range(2000))
    assert isinstance(many, Polynomial) and isinstance(2 * many, Polynomial) and len((2 * many).terms) == 2000
    assert substitute(2 * many, {f"s{i}": 3 for i in range(2000)}) == 12_000
    assert substitute(amount, values) == value(amount, values) > MAX_SIZE**2
