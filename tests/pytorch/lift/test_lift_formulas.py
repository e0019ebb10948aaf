"""Lifting: constants as formulas, each of which has the numbers of its constant."""

from typing import Any

import pytest
from builders import builder, text

torch = pytest.importorskip("torch")

from archspec.pytorch.lift.idioms.constants import constant
from archspec.pytorch.lift.idioms.sinusoids import RotaryParameters, complex_sinusoids
from archspec.pytorch.numeric.evaluate import Evaluation
from archspec.pytorch.values.arguments import UntranslatableError


def distances(first: tuple[int, int], second: tuple[int, int]) -> tuple[Any, Any]:
    """By how many rows and columns each place of a window is from each of another one, whose steps are shorter."""
    by = second[1] // first[1]
    places = [torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).T for rows, columns in (first, second)]
    return tuple((by * own[:, None] - other) for own, other in zip(*places, strict=True))  # type: ignore[return-value]


def waves(rows: int = 12, half: int = 8) -> tuple[Any, Any]:
    angles = torch.arange(rows)[:, None] * 10000 ** -(torch.arange(half) / half)
    return angles.sin(), angles.cos()


def waves_to_the_last(rows: int, half: int, theta: float) -> tuple[Any, Any]:
    """Of frequencies from 1 to 1 / theta."""
    angles = torch.arange(rows)[:, None] * theta ** -(torch.arange(half) / (half - 1))
    return angles.sin(), angles.cos()


def without(table: Any, *rows: int) -> Any:
    table[[*rows]] = 0.0
    return table


def regions(windows: int, *labels: int) -> Any:
    """0 for two places of a window in the same region, and -1 for other pairs, in so many windows that are alike."""
    places = torch.tensor(labels)
    return torch.where(places[:, None] == places, 0.0, -1.0).repeat(windows, 1, 1)


def mixed(labels: Any) -> Any:
    """The same of windows that differ, row by row."""
    return torch.where(labels[:, :, None] == labels[:, None], 0.0, -1.0)


BAND = (torch.arange(5) - torch.arange(5)[:, None]).abs()
ROWS, COLUMNS = distances((3, 3), (3, 3))
FAR_ROWS, FAR_COLUMNS = distances((2, 3), (4, 6))
SINES, COSINES = waves()
FREQUENCIES = 10000 ** -(torch.arange(8) / 8)
OFFSETS = "sub(arange[stop=5], reshape[shape=(5, 1)](arange[stop=5]))"
NUMBER = "add(mul(floordiv(arange[stop=9], 3), 5), mod(arange[stop=9], 3))"
TURNED = "add(mod(arange[stop=9], 3), mul(floordiv(arange[stop=9], 3), 5))"
ANGLES = "mul(reshape[shape=(12, 1)](arange[stop=12]), rotary_frequencies[size=16, theta=10000.0])"
TO_THE_LAST = "mul(reshape[shape=(12, 1)](arange[stop=12]), exp(mul(div(arange[stop=8], 7), -9.210340371976184)))"
THREE_ROWS = "reshape[shape=(3, 1)](arange[stop=3])", "rotary_frequencies[size=60, theta=10000.0]"
SMALL_ROWS, SMALL_COLUMNS = distances((2, 2), (2, 2))
SMALL_NUMBER = "add(mul(floordiv(arange[stop=4], 2), 3), mod(arange[stop=4], 2))"
STEPS = "add(add(mul(int(ge(arange[stop=9], 4)), 4), mul(int(ge(arange[stop=9], 6)), 2)), int(ge(arange[stop=9], 7)))"

CONSTANTS: dict[str, tuple[Any, str]] = {
    "count": (torch.arange(7), "arange[stop=7]"),
    "count along an axis": (torch.arange(7).reshape(1, 7, 1), "reshape[shape=(1, 7, 1)](arange[stop=7])"),
    "reals that count": (torch.arange(4.0), "table[values=(0.0, 1.0, 2.0, 3.0)]"),
    "as many numbers as can be listed": (
        torch.arange(64.0) ** 2 % 7,
        f"table[values={tuple(float(place**2 % 7) for place in range(64))}]",
    ),
    "places in a window": (
        (5 * (ROWS + 2) + COLUMNS + 2).flatten(),
        f"reshape[shape=(81,)](add(sub(reshape[shape=(9, 1)]({NUMBER}), {TURNED}), 12))",
    ),
    "a band": (BAND <= 1, f"and(ge({OFFSETS}, -1), lt({OFFSETS}, 2))"),
    "all but a band": (BAND > 1, f"not(and(ge({OFFSETS}, -1), lt({OFFSETS}, 2)))"),
    "numbers in a band": ((BAND > 1) * -5.0, f"where(and(ge({OFFSETS}, -1), lt({OFFSETS}, 2)), -0.0, -5.0)"),
    "a grid": (
        torch.cartesian_prod(torch.arange(3), torch.arange(4)) * 0.25,
        "mul(stack[axis=1](floordiv(arange[stop=12], 4), mod(arange[stop=12], 4)), 0.25)",
    ),
    "absolute distances": (
        6 * FAR_ROWS.abs() + FAR_COLUMNS.abs(),
        "add(mul(abs(sub(reshape[shape=(6, 1)](mul(floordiv(arange[stop=6], 3), 2)), "
        "floordiv(arange[stop=24], 6))), 6), "
        "abs(sub(reshape[shape=(6, 1)](mul(mod(arange[stop=6], 3), 2)), mod(arange[stop=24], 6))))",
    ),
    "slopes": (
        2.0 ** -torch.tensor([2.0, 4, 6, 8]).reshape(4, 1, 1),
        "reshape[shape=(4, 1, 1)](alibi_slopes[heads=4])",
    ),
    "frequencies": (FREQUENCIES, "rotary_frequencies[size=16, theta=10000.0]"),
    "frequencies along an axis": (
        FREQUENCIES[:, None],
        "reshape[shape=(8, 1)](rotary_frequencies[size=16, theta=10000.0])",
    ),
    "frequencies that end": (
        torch.cat([FREQUENCIES[:5], torch.zeros(3)]),
        "where(lt(arange[stop=8], 5), rotary_frequencies[size=16, theta=10000.0], 0.0)",
    ),
    "sines and cosines in turn": (
        torch.stack([SINES, COSINES], -1).flatten(1),
        f"reshape[shape=(12, 16)](stack[axis=2](sin({ANGLES}), cos({ANGLES})))",
    ),
    "cosines and sines": (torch.cat([COSINES, SINES], 1), f"concat[axis=1](cos({ANGLES}), sin({ANGLES}))"),
    "an empty first row": (
        without(torch.cat([SINES, COSINES], 1), 0),
        f"where(ne(reshape[shape=(12, 1)](arange[stop=12]), 0), concat[axis=1](sin({ANGLES}), cos({ANGLES})), 0.0)",
    ),
    "a batch of sines and cosines": (
        torch.cat([SINES, COSINES], 1)[None],
        f"reshape[shape=(1, 12, 16)](concat[axis=1](sin({ANGLES}), cos({ANGLES})))",
    ),
    "sines alone": (SINES, f"sin({ANGLES})"),
    "cosines alone": (COSINES, f"cos({ANGLES})"),
    "an odd number of cosines": (
        waves(12, 7)[1],
        "cos(mul(reshape[shape=(12, 1)](arange[stop=12]), rotary_frequencies[size=14, theta=10000.0]))",
    ),
    "sines twice": (torch.cat([SINES, SINES], 1), f"concat[axis=1](sin({ANGLES}), sin({ANGLES}))"),
    "each cosine twice": (
        COSINES.repeat_interleave(2, 1),
        f"reshape[shape=(12, 16)](stack[axis=2](cos({ANGLES}), cos({ANGLES})))",
    ),
    "waves to the last one": (
        torch.cat(waves_to_the_last(12, 8, 10000), 1),
        f"concat[axis=1](sin({TO_THE_LAST}), cos({TO_THE_LAST}))",
    ),
    "sines to the last one": (
        waves_to_the_last(12, 7, 500)[0],
        "sin(mul(reshape[shape=(12, 1)](arange[stop=12]), exp(mul(div(arange[stop=7], 6), -6.214608098422191))))",
    ),
    "three rows": (
        torch.cat(waves(3, 30), 1),
        "concat[axis=1]({}(mul({}, {})), {}(mul({}, {})))".format("sin", *THREE_ROWS, "cos", *THREE_ROWS),
    ),
    "a place and those after it": (
        torch.cat([torch.tensor([50]), torch.arange(70) * 3 + 2]),
        "concat[axis=0](full[shape=(1,), value=50], add(mul(arange[stop=70], 3), 2))",
    ),
    "numbers that grow along two axes": (
        torch.arange(9)[:, None] * 10 + torch.arange(9) * 2 + 5,
        "add(add(mul(reshape[shape=(9, 1)](arange[stop=9]), 10), mul(arange[stop=9], 2)), 5)",
    ),
    "counting down": (80 - torch.arange(80), "add(mul(arange[stop=80], -1), 80)"),
    "a grid of ninths": (
        torch.cartesian_prod(torch.arange(9), torch.arange(9)) / 9.0,
        "mul(stack[axis=1](floordiv(arange[stop=81], 9), mod(arange[stop=81], 9)), 0.1111111111111111)",
    ),
    "a grid of three axes": (
        torch.cartesian_prod(torch.arange(4), torch.arange(4), torch.arange(5)),
        "stack[axis=1](floordiv(arange[stop=80], 20), mod(floordiv(arange[stop=80], 5), 4), mod(arange[stop=80], 5))",
    ),
    "distances in the smallest window": (
        (3 * (SMALL_ROWS + 1) + SMALL_COLUMNS + 1).flatten(),
        f"reshape[shape=(16,)](add(sub(reshape[shape=(4, 1)]({SMALL_NUMBER}), "
        "add(mod(arange[stop=4], 2), mul(floordiv(arange[stop=4], 2), 3))), 4))",
    ),
    "distances times other numbers": (
        5 * SMALL_ROWS - 2 * SMALL_COLUMNS + 1,
        "add(add(reshape[shape=(4, 1)](add(mul(floordiv(arange[stop=4], 2), 5), mul(mod(arange[stop=4], 2), -2))), "
        "sub(mul(mod(arange[stop=4], 2), 2), mul(floordiv(arange[stop=4], 2), 5))), 1)",
    ),
    "distances by rows": (
        3 * SMALL_ROWS,
        "add(reshape[shape=(4, 1)](mul(floordiv(arange[stop=4], 2), 3)), mul(floordiv(arange[stop=4], 2), -3))",
    ),
    "distances by columns": (
        -SMALL_COLUMNS,
        "add(reshape[shape=(4, 1)](mul(mod(arange[stop=4], 2), -1)), mod(arange[stop=4], 2))",
    ),
    "distances along an axis": (
        (torch.arange(9) - torch.arange(9)[:, None]).abs(),
        "abs(sub(reshape[shape=(9, 1)](arange[stop=9]), arange[stop=9]))",
    ),
    "distances to more places": (
        (torch.arange(9)[:, None] - torch.arange(18)).abs(),
        "abs(sub(reshape[shape=(9, 1)](arange[stop=9]), arange[stop=18]))",
    ),
    "distances to places in shorter steps": (
        (2 * torch.arange(9)[:, None] - torch.arange(18)).abs(),
        "abs(sub(reshape[shape=(9, 1)](mul(arange[stop=9], 2)), arange[stop=18]))",
    ),
    "a causal mask": (
        torch.ones(3, 3).tril(),
        "where(gt(arange[stop=3], reshape[shape=(3, 1)](arange[stop=3])), 0.0, 1.0)",
    ),
    "a mask of two rows": (torch.ones(2, 40).tril(), "stack[axis=0]([<table real [40]>, <table real [40]>])"),
    "a mask that is too small for a comparison": (torch.ones(2, 2).tril(), "table[values=((1.0, 0.0), (1.0, 1.0))]"),
    "what is far ahead": (
        torch.ones(9, 12).bool().triu(3),
        "ge(sub(arange[stop=12], reshape[shape=(9, 1)](arange[stop=9])), 3)",
    ),
    "what is far behind": (
        torch.ones(9, 9).bool().tril(-2),
        "lt(sub(arange[stop=9], reshape[shape=(9, 1)](arange[stop=9])), -1)",
    ),
    "a root": (torch.full((3,), 8**-0.5), "full[shape=(3,), value=0.3535533905932738]"),
    "a root in float64": (torch.full((3,), 8**-0.5, dtype=torch.float64), f"full[shape=(3,), value={8**-0.5}]"),
    "a quotient": (torch.full((2,), 1 / 3), "full[shape=(2,), value=0.3333333333333333]"),
    "a number alone": (torch.tensor(3.14159), "full[shape=(), value=3.141590118408203]"),
    "two rows": (torch.arange(80.0).reshape(2, 40) ** 2 % 7, "stack[axis=0]([<table real [40]>, <table real [40]>])"),
    "columns, one of which counts": (
        torch.stack([torch.arange(40), torch.arange(40) ** 2 % 7], 1),
        "stack[axis=-1]([<arange int [40]>, <table int [40]>])",
    ),
    "vectors with a single 1": (
        torch.eye(13)[torch.arange(7) - torch.arange(7)[:, None] + 6],
        "real(eq(reshape[shape=(7, 7, 1)](add(add(mul(reshape[shape=(7, 1)](arange[stop=7]), -1), "
        "arange[stop=7]), 6)), arange[stop=13]))",
    ),
    "integers with a single 1": (
        torch.eye(70).long().flip(0),
        "int(eq(add(reshape[shape=(70, 1)](arange[stop=70]), arange[stop=70]), 69))",
    ),
    "regions of a line": (
        regions(5, 0, 0, 0, 0, 1, 1, 2, 3, 3),
        f"where(eq(reshape[shape=(5, 9, 1)](add(reshape[shape=(5, 1)](full[shape=(5,), value=0]), {STEPS})), {STEPS}), "
        "0.0, -1.0)",
    ),
    "an empty row of three": (
        without(torch.cat(waves(3, 30), 1), 1),
        "where(ne({0}, 1), concat[axis=1](sin(mul({0}, {1})), cos(mul({0}, {1}))), 0.0)".format(*THREE_ROWS),
    ),
    "an empty row": (
        without(torch.cat([SINES, COSINES], 1), 1),
        f"where(ne(reshape[shape=(12, 1)](arange[stop=12]), 1), concat[axis=1](sin({ANGLES}), cos({ANGLES})), 0.0)",
    ),
}

WAVES = torch.cat([SINES, COSINES], 1)
"""What a row of 3 x 12 places has for its number, or for that of its column."""

GRIDS = {
    "columns and rows": torch.cat([WAVES.repeat(3, 1), WAVES[:3].repeat_interleave(12, 0)], 1),
    "rows and columns": torch.cat([WAVES[:3].repeat_interleave(12, 0), WAVES.repeat(3, 1)], 1),
}


@pytest.mark.parametrize("name", GRIDS)
def test_sines_and_cosines_of_the_places_in_a_grid(name: str) -> None:
    b = builder()
    found = constant(b, GRIDS[name])
    numbers = Evaluation(b.arrays, {}, {}).array(found.array)
    assert numbers.shape == (36, 32) and torch.allclose(numbers.double(), GRIDS[name].double(), rtol=1e-5, atol=1e-6)
    other = GRIDS[name].clone()
    other[7, 20] += 0.1
    with pytest.raises(
        UntranslatableError, match=r"^a constant in its code of the shape \[36, 32\] has no known formula$"
    ):
        constant(b, other)


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_is_a_formula(name: str) -> None:
    value, expected = CONSTANTS[name]
    b = builder()
    found = constant(b, value, name)
    assert text(found) == expected
    numbers = Evaluation(b.arrays, {}, {}).array(found.array)
    assert numbers.shape == value.shape and torch.allclose(numbers.double(), value.double(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "the constant `it` has no values"),
        (torch.ones(3, device="meta"), "the constant `it` has no values"),
        (torch.stack([*waves(70, 1)], -1).flatten(1), r"the constant `it` of the shape \[70, 2\] has no known formula"),
        (torch.ones(0, 3), r"the constant `it` has no elements: its shape is \[0, 3\]"),
        (torch.cat([SINES, COSINES], 1) * 1.0001, r"the constant `it` of the shape \[12, 16\] has no known formula"),
        (
            torch.cat([SINES, waves_to_the_last(12, 8, 10000)[1]], 1),
            r"the constant `it` of the shape \[12, 16\] has no known formula",
        ),
        (
            torch.stack([COSINES, SINES], -1).flatten(1),
            r"the constant `it` of the shape \[12, 16\] has no known formula",
        ),
        (waves(80, 1)[0], r"the constant `it` of the shape \[80, 1\] has no known formula"),
        (torch.cat(waves(2, 40), 1), r"the constant `it` of the shape \[2, 80\] has no known formula"),
        (
            torch.cartesian_prod(torch.arange(9), torch.arange(9)) / 9.0 + 0.01,
            r"the constant `it` of the shape \[81, 2\] has no known formula",
        ),
        (
            torch.cartesian_prod(*[torch.arange(3)] * 4),
            r"the constant `it` of the shape \[81, 4\] has no known formula",
        ),
        (torch.arange(80) % 3 == 0, r"the constant `it` of the shape \[80\] has no known formula"),
        (torch.arange(9)[:, None] * torch.arange(8), r"the constant `it` of the shape \[9, 8\] has no known formula"),
        (
            torch.eye(70)[torch.arange(70) ** 3 % 71 - 1],
            r"the constant `it` of the shape \[70, 70\] has no known formula",
        ),
        (
            regions(5, 0, 0, 1, 1, 2, 3, 3, 4, 4)[..., 1:],
            r"the constant `it` of the shape \[5, 9, 8\] has no known formula",
        ),
        (regions(5, 0, 0, 1, 1, 2, 3, 3, 4, 4), r"the constant `it` of the shape \[5, 9, 9\] has no known formula"),
        (
            without(regions(5, 0, 0, 1, 1, 2, 2, 2, 3, 3), 3),
            r"the constant `it` of the shape \[5, 9, 9\] has no known formula",
        ),
        (
            regions(5, 0, 0, 0, 1, 1, 1, 2, 2, 2).index_fill(2, torch.tensor([8]), -1.0),
            r"the constant `it` of the shape \[5, 9, 9\] has no known formula",
        ),
        (
            mixed(torch.arange(45).reshape(5, 9) ** 2 % 7),
            r"the constant `it` of the shape \[5, 9, 9\] has no known formula",
        ),
        (torch.arange(65.0) ** 2 % 7, r"the constant `it` of the shape \[65\] has no known formula"),
        (
            without(torch.cat([SINES, COSINES], 1), 3, 5),
            r"the constant `it` of the shape \[12, 16\] has no known formula",
        ),
    ],
)
def test_other_constants_are_refused(value: Any, reason: str) -> None:
    with pytest.raises(UntranslatableError, match=f"^{reason}$"):
        constant(builder(), value, "it")


# Frequencies ----------------------------------------------------------------------------------------------------------


def turning(theta: float, count: int) -> Any:
    return theta ** -(torch.arange(count) / count)


def in_turns(values: Any, half: int) -> Any:
    """Those with even numbers among the first ones, then those with odd numbers, then the others."""
    return torch.cat([values[: 2 * half : 2], values[1 : 2 * half : 2], values[2 * half :]])


def of_library(name: str, count: int, **settings: Any) -> Any:
    b = builder()
    found = b.function(name, [], (count,), "real", **settings)
    assert found is not None
    return Evaluation(b.arrays, {}, {}).array(found.array).float()


ENDING = torch.cat([turning(123456.7, 80)[:60], torch.zeros(20)])
LONGER = {"factor": 8.0, "original_max_position_embeddings": 64}
LLAMA = {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0, **LONGER}
YARN = {"rope_type": "yarn", "beta_fast": 16.0, "beta_slow": 2.0, **LONGER}
LLAMA_SETTINGS = {"size": 160, "theta": 500.0, "factor": 8.0, "low": 1.0, "high": 4.0, "context": 64}
YARN_SETTINGS = {"size": 160, "theta": 500.0, "factor": 8.0, "context": 64}
FOR_LLAMA = of_library("llama3_frequencies", 80, **LLAMA_SETTINGS)
LLAMA_OF_160 = "llama3_frequencies[size=160, theta=500.0, factor=8.0, low=1.0, high=4.0, context=64]"
YARN_OF_160 = "yarn_frequencies[size=160, theta=500.0, factor=8.0, context=64"
OF_160 = "rotary_frequencies[size=160, theta=123456.7]"


def halves(found: str, end: int, rest: bool = False) -> str:
    parts = [f"slice[axis=0, start={start}, stop={end}, step=2]({found})" for start in (0, 1)]
    return f"concat[axis=0]({', '.join([*parts, *[f'slice[axis=0, start={end}]({found})'] * rest])})"


@pytest.mark.parametrize(
    ("value", "parameters", "expected"),
    [
        (turning(123456.7, 80), [(500.0, {}), (123456.7, {})], OF_160),
        (turning(123456.7, 80), [], None),
        (turning(123456.7, 80), [(123500.0, {})], None),
        (turning(123456.7, 80) * 2.0, [(123456.7, {})], None),
        (ENDING, [(123456.7, {})], f"where(lt(arange[stop=80], 60), {OF_160}, 0.0)"),
        (ENDING.flip(0), [(123456.7, {})], None),
        (in_turns(turning(123456.7, 80), 40), [(123456.7, {})], halves(OF_160, 80)),
        (in_turns(turning(123456.7, 80), 30), [(123456.7, {})], halves(OF_160, 60, True)),
        (in_turns(turning(10.0, 4), 2), [], halves("rotary_frequencies[size=8, theta=10.0]", 4)),
        (FOR_LLAMA, [(500.0, LLAMA)], LLAMA_OF_160),
        (FOR_LLAMA, [(600.0, LLAMA), (500.0, LLAMA)], LLAMA_OF_160),
        (in_turns(FOR_LLAMA, 40), [(500.0, LLAMA)], halves(LLAMA_OF_160, 80)),
        (FOR_LLAMA, [(500.0, {**LLAMA, "factor": 4.0})], None),
        (FOR_LLAMA, [(500.0, {**LLAMA, "factor": None})], None),
        (FOR_LLAMA, [(500.0, {**LLAMA, "original_max_position_embeddings": None})], None),
        (FOR_LLAMA, [(500.0, {**LLAMA, "rope_type": "linear"})], None),
        (FOR_LLAMA * 1.0001, [(500.0, LLAMA)], None),
        (
            of_library("yarn_frequencies", 80, **YARN_SETTINGS, fast=16.0, slow=2.0),
            [(500.0, YARN)],
            f"{YARN_OF_160}, fast=16.0, slow=2.0]",
        ),
        (
            of_library("yarn_frequencies", 80, **YARN_SETTINGS),
            [(500.0, {**LONGER, "rope_type": "yarn"})],
            f"{YARN_OF_160}]",
        ),
        (of_library("alibi_slopes", 80, heads=80), [], "alibi_slopes[heads=80]"),
        (of_library("alibi_slopes", 80, heads=80)[:, None], [], "reshape[shape=(80, 1)](alibi_slopes[heads=80])"),
        (of_library("alibi_slopes", 80, heads=80) * 1.0001, [], None),
        (of_library("alibi_slopes", 80, heads=80).reshape(8, 10), [], None),
        (of_library("alibi_slopes", 3, heads=3), [], "alibi_slopes[heads=3]"),
        (of_library("alibi_slopes", 2, heads=2), [], "table[values=(0.0625, 0.00390625)]"),
    ],
)
def test_frequencies_by_the_parameters_of_a_configuration(value: Any, parameters: Any, expected: str | None) -> None:
    b = builder()
    given = [RotaryParameters(*item) for item in parameters]
    if expected is None:
        with pytest.raises(UntranslatableError, match="no known formula"):
            constant(b, value, "it", given)
        return
    found = constant(b, value, "it", given)
    assert text(found) == expected
    numbers = Evaluation(b.arrays, {}, {}).array(found.array)
    assert numbers.shape == value.shape and torch.allclose(numbers.double(), value.double(), rtol=1e-5, atol=0.0)


def test_complex_numbers_that_turn() -> None:
    turns = torch.complex(COSINES, SINES)
    found = complex_sinusoids(builder(), turns)
    assert found is not None and [*map(text, found)] == [f"cos({ANGLES})", f"sin({ANGLES})"]
    others = [turns[:2], turns[0], turns * 2, without(turns.clone(), 2)]
    assert [complex_sinusoids(builder(), other) for other in others] == [None] * 4
    assert complex_sinusoids(builder(), turns[:3]) is not None
