"""Normal forms have the values of the operations: random expressions against the reference interpreter.

Equal normal forms are one expression of the table, and have one value here. So any two expressions with equal normal
forms have equal values in the reference.
"""

import math
import random
import re
from itertools import product
from typing import Any

import numpy as np
import pytest
import reference
from small import load

import archspec
from archspec import ArchError
from archspec.core.algebra import index, substitute, symbol
from archspec.core.algebra.polynomial import terms_of
from archspec.ir.module import Body, iter_tensors
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.forms.elementwise import to_integer
from archspec.ir.normal.nodes import NumberTable, index_name
from archspec.ir.ops import OPS
from archspec.pipeline.model import get_compilation

torch = pytest.importorskip("torch")

from archspec.ir.normal.origins import LocationIndex
from archspec.pytorch.numeric.evaluate import Evaluation, EvaluationError
from archspec.pytorch.prove.sides import model_outputs

SIZES = {"batch": 3, "seq": 4}
WIDTH = 6

REAL = """
x|y|full([batch, seq, 6], 0.5)|-2.0 * R|real(I)|float32(R)|real(B)|-R|abs(R)|sqrt(R)|sqrt(abs(R))|sqrt(x * x + 1.0)
exp(x)|tanh(R)|sin(x)|dropout(0.1)(R)|R + R|R - R|R * R|R * R|x / x|x / y * y|sqrt(x) * sqrt(x)|sqrt(x) ** 2
R / (abs(R) + 0.5)|max(R, 0.5) / max(R, 0.5)|R / 2.0|3.0 * R|R + 1|R * I|R ** 2|R ** 3|R ** 0.5|abs(R) ** 1.5
(abs(R) + 0.5) ** -1|(abs(R) + 0.5) ** -0.5|x ** -1|x ** -0.5|R ** R|min(R, R)|max(R, R)|max(R, 0.0)|where(B, R, R)
where(B, R, 0.0)|where(B, 1.0, R)|where(B, R, -inf)|y // 2.0|(x + y) % 2.0|sum(axis = AXIS, keep = true)(R) + R
sum(axis = [0, 2], keep = true)(R * y) + R|amax(axis = AXIS, keep = true)(R) - R|softmax(axis = AXIS)(R)
softmax(where(B, R, -inf))|softmax(R + sum(axis = -1, keep = true)(x))|cumsum(axis = AXIS)(R)
transpose(1, 2)(transpose(1, 2)(R))|permute([2, 0, 1])(permute([1, 2, 0])(R))
reshape([batch, seq, 6])(reshape([batch, seq, 2, 3])(R))
reshape([batch, seq, 6])(transpose(2, 3)(reshape([batch, seq, 2, 3])(R)))
reshape([batch, seq, 6])(reshape([batch * 2, seq, 3])(R))
concat(axis = -1)(slice(axis = -1, stop = 2)(R), slice(axis = -1, start = 2)(R))
concat(axis = 2)(slice(axis = 2, start = 4)(R), slice(axis = 2, stop = 4)(R))
concat(axis = 2)(slice(axis = 2, step = 2)(R), slice(axis = 2, start = 1, step = 2)(R))|roll(2, axis = AXIS)(R)
roll(-1)(R)|pick(0, 1)(stack(axis = 0)(R, R))|pick(-1, 0)(stack(axis = -1)(R, I))
slice(axis = 2, start = 1, stop = 7)(pad(axis = 2, before = 2, after = 1, value = 1.0)(R))
expand([batch, seq, 6])(pick(1, 0)(R) |> reshape([batch, 1, 6]))|full([batch, seq, 6], 2.5)
layer_norm(eps = 1e-3)(R, .scale)|layer_norm(eps = 1e-3)(R)
transpose(1, 2)(group_norm(groups = 3, eps = 1e-3)(transpose(1, 2)(R), .scale))|linear(R, .square)
linear(R, .square, .scale)|matmul(R, .square)|matmul(softmax(matmul(R, transpose(y))), R)
embedding(pick(-1, 0)(I) % 5, .table)|gather(axis = 2)(R, I % 6)|expert_linear(R, pick(-1, 0)(n) % 5, .experts)
in_order(real(I) - y)|transpose(1, 2)(conv(padding = 1)(transpose(1, 2)(R), .kernel, .scale))
transpose(1, 2)(max_pool(kernel = 3, stride = 1, padding = 1)(transpose(1, 2)(R)))
transpose(1, 2)(mean_pool(kernel = 3, stride = 1, padding = 1)(transpose(1, 2)(R)))
transpose(1, 2)(conv(groups = 2)(transpose(1, 2)(R), .grouped))|max(max(R, lowest), -9.0)|swapped(R)
sum(axis = 1, keep = true)(gather(axis = 2)(R, I % 6 // 4)) + R|(R - R) * (R - R) / (y - x)
pad(axis = 2, before = 1)(concat(axis = 2)(slice(axis = 2, stop = 2)(R), slice(axis = 2, stop = 3)(R)))
sum(axis = 3)(where(reshape([batch, seq, 6, 1])(R) == reshape([batch, seq, 1, 6])(R), 0.5, 2.0)) + R
log(abs(R) + 1.0)|cos(R)|sigmoid(R)|erf(R)|where(arange(6) >= 1 and arange(6) < 4, R, R)
where(arange(6) < 2 or arange(6) >= 5, R, 0.0)|where(arange(6) >= 3 and R > 0.0, R, y)
where(arange(6) // 2 >= 1, R, R)|where(arange(6) % 3 >= 1 and arange(6) >= 2, R, y)
min(max(where(B, R, -1e36) + y, -9.0), 9.0)|max(min(where(n > 0, 1e36, R) - x, 9.0), -9.0)
max(max(where(B, R, -inf), -1e36), -9.0)
softmax(where(B, R, lowest) + R)|softmax(where(B, -1e36, R) * 0.5 + where(B, 1.0, -1e36))|min(where(B, R, 0.5), 1.0)
reshape([batch, 1, 1])(sum(axis = 1)(reshape([batch, seq * 6])(R * y))) + R
sum(axis = 1, keep = true)(reshape([batch, seq * 6])(R) |> reshape([batch, seq, 6])) + R
softmax(max(R, lowest))|min(max(min(max(R, -1e36), 1e36), -9.0), 9.0)|stable(R)|stable(where(B, R, -inf))
stable(where(B, R, lowest))|stable(where(B, R, 1e36))|stable(where(arange(6) >= 4, R, where(B, x, lowest) + y))
softmax(where(B, R + mean(x) + 2.0, where(m, y + mean(x) + 2.0, lowest)))|softmax(where(B, x + mean(R), y - mean(x)))
softmax(where(B, R, -1e36) - mean(where(m, R, -1e36)))|softmax(where(arange(6) < 3, x, y + 1.0) - mean(R))
softmax(where(B, x, lowest) - amax(axis = 2, keep = true)(y))|softmax(x - amax(axis = 1, keep = true)(R))
sum(axis = 3)(where(reshape([batch, seq, 6, 1])(I) == arange(6), reshape([batch, seq, 1, 6])(R), 0.0))
slice(axis = 2, start = 5)(cumsum(axis = 2)(R)) + R|slice(axis = 1, start = seq - 1)(cumsum(axis = 1)(R)) + R
"""
INTEGER = """
n + arange(6)|arange(6) + 0 * n|n + reshape([seq, 1])(arange(seq)) + arange(6)|I + I|I - I|I * I|I // 2|I // -3|I % 4
I % 3|(I * 4 + 1) // 2|I // (I % 3 + 1)|min(I, I)|max(I, 1)|abs(I)|where(B, I, I)|where(B, I, 0)|-I|I ** 2|int(x)
int(B)|floor(y)|sum(axis = AXIS, keep = true)(I) + I|amax(axis = AXIS, keep = true)(I) - I|one_hot(6)(pick(-1, 0)(n))
cumsum(axis = AXIS)(I)|concat(axis = 2)(slice(axis = 2, start = 3)(I), slice(axis = 2, stop = 3)(I))
argmax(axis = 2, keep = true)(x) + places(real(I))|6 * (I // 6) + I % 6|table([3, 1, 4, 1, 5, 9]) + I|(I - I % 2) // 2
cumsum(axis = AXIS)(I // 4 + I % 4)|roll(1, axis = 1)(I)|pad(axis = 2, after = 1)(slice(axis = 2, stop = 5)(I))
where(n >= 1, n + arange(6), arange(6) + 0 * n)|where(arange(6) >= 1, I * arange(6), 0 * n)|where(I >= 2, I - 2, 0 * I)
-I // 4|I % -4|(I * 6 + arange(6)) // 6|(arange(6) - 3) // 2 + I|(4 * I + 2) // 8|I % 6 % 3|(I // 2 + I) // 3
arange(6) // (n * n + 1)|I % (arange(6) + 1)|min(max(I, 0), 5)|max(min(I, arange(6)), -1)|abs(I - 2)|int(-real(I))
I % 6 // 2|(I % 6 + arange(6) % 6) // 3|(-I % 12) // 4
where(I >= n, max(I, n), min(I, n))|where(abs(I - 2) < 3, max(abs(I - 2), 2), max(abs(I - 2), 3) + n)
where(arange(6) >= n, max(arange(6), n) - min(n, arange(6) + 1), max(max(arange(6), n), n - 1) * I)
where(I >= 2 and I < 5, max(I, 2) + min(I, 5), max(I, 2))|where(n < 1 or n > 2, min(n, 1), max(n, 1) // 2)
sum(axis = 3)(where(reshape([batch, seq, 6, 1])(I) == 3 - arange(6), reshape([batch, seq, 1, 6])(I), 0))
sum(axis = 3)(where(reshape([batch, seq, 6, 1])(I) == arange(6) and reshape([batch, seq, 1, 6])(B), arange(6), 0))
slice(axis = 2, start = 5)(cumsum(axis = 2)(I)) + I
cumsum(axis = 1)(where(I == reshape([seq, 1])(arange(seq)), I, 0))
sum(axis = 2, keep = true)(arange(6) // 4 + 0 * n) + 0 * I|(reshape([seq, 1])(arange(seq)) * 6 + arange(6) + I) // seq
"""
BOOLEAN = """
x > y|x >= 0.5|y < 0.0|y <= x|x == y|x != 1.0|I > I|I >= 2|I < I|I <= 0|I == I|I != 1|I == 0|not B|B and B|B or B
B == B|B != B|m and x > 0.0|arange(6) < 9 or m|reshape([seq, 1])(arange(seq)) >= arange(6)|arange(6) // 2 == I % 3
where(B, B, B)|2.0 * x > y + y * real(B)|x - y >= 0.0|I >= 1 and I >= 2|I >= 1 or I <= 0|min(I, 3) >= 1
2 - max(I, n) >= 0|not (real(B) != 0.0 and B)|I * n == 0|I >= arange(6)
int(B) == 0|where(B, 2, 0) == 0|I >= arange(6) and I >= 0|I < 0 or I < arange(6)|I >= 0 or I >= arange(6)|int(B) != 1
I % 3 < 2|reshape([seq, 1])(arange(seq)) >= arange(6) - 2|-2.0 * x > y|real(I) >= y
"""
CHOICES = {kind: text.replace("\n", "|").strip("|").split("|") for kind, text in {"I": INTEGER, "B": BOOLEAN}.items()}
CHOICES["R"] = [
    part.replace(" ~", " |") for part in REAL.replace(" |> ", " ~> ").replace("\n", "|").strip("|").split("|")
]
SYSTEM = "transpose(1, 2)(forward_substitution(.square, transpose(1, 2)(y * 2.0)))"
LEAVES = {"R": ["x", "y"], "I": ["n + arange(6)", "arange(6) + 0 * n"], "B": ["x > y", "m"]}


def expression(kind: str, depth: int, generator: random.Random) -> str:
    """A random expression for a real, integer or boolean [batch, seq, 6]."""
    made = generator.choice(CHOICES[kind] if depth else LEAVES[kind]).replace("AXIS", str(generator.choice([0, 1, 2])))
    return "".join(f"({expression(c, depth - 1, generator)})" if c in "RIB" else c for c in made)


NET = """
dim batch, seq
fn swapped(x [batch, seq, 6]) -> [batch, seq, 6] {{
  first, last = split([2, 4], axis = -1)(x)
  return concat(axis = -1)(last, first)
}}
fn mean(x [batch, seq, 6]) -> [batch, seq, 1] {{
  return sum(axis = 2, keep = true)(x) / 6.0
}}
fn stable(x [batch, seq, 6]) -> [batch, seq, 6] {{
  return softmax(x - amax(axis = 2, keep = true)(x))
}}
fn in_order(x [batch, seq, 6]) -> [batch, seq, 6] {{
  values, _ = topk(6)(x)
  return values
}}
fn places(x [batch, seq, 6]) -> int [batch, seq, 6] {{
  _, chosen = topk(6)(x)
  return chosen
}}
block Net()(x [batch, seq, 6], y [batch, seq, 6], n int [batch, seq, 1], m bool [batch, seq, 6])
          -> ({types}) {{
  square: unused param [6, 6]
  scale: unused param [6]
  table: unused param [5, 6]
  experts: unused param [5, 6, 6]
  kernel: unused param [6, 6, 3]
  grouped: unused param [6, 3, 1]
{lines}
  return {names}
}}
"""


def net(expressions: list[tuple[str, str]]) -> str:
    """A spec with an output for each expression."""
    types = {"R": "", "I": "int ", "B": "bool "}
    names = [f"v{i}" for i in range(len(expressions))]
    lines = [
        f"  {name} = expand([batch, seq, 6])({ZERO[kind].format(text)})"
        for name, (kind, text) in zip(names, expressions, strict=True)
    ]
    outputs = [f"o{i} {types[kind]}[batch, seq, 6]" for i, (kind, _) in enumerate(expressions)]
    return NET.format(types=", ".join(outputs), lines="\n".join(lines), names=", ".join(names))


ZERO = {"R": "{} + 0.0 * x", "I": "{} + 0 * n", "B": "m and ({})"}


def values(shape: tuple[int, ...], dtype: str, generator: np.random.Generator) -> Any:
    """Values that are often 0, negative or equal to each other."""
    if dtype == "real":
        return generator.choice([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0], shape)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    return generator.integers(-3, 5, shape)


def test_every_normal_form_is_drawn() -> None:
    """Elementwise operations without a form of their own are drawn too; of the others, each equals itself alone.

    Systems have a test of their own.
    """
    drawn = " ".join([NET, SYSTEM, *[text for choices in CHOICES.values() for text in choices]])
    known = [op for op in OPS.values() if op.normal or op.group == "Elementwise"]
    missing = [op.name for op in known if not re.search(rf"\b{op.name}\b", drawn) and (op.symbol or " ") not in drawn]
    assert missing == []


def check(seed: int, count: int) -> bool:
    """Compare random expressions with the reference; return whether they are valid, and not too large."""
    generator = random.Random(seed)
    chosen = [
        (kind, expression(kind, generator.choice([1, 2, 2, 3]), generator))
        for kind in generator.choices("RRRIB", k=count)
    ]
    return compare(seed, chosen)


def reference_outputs(body: Body, inputs: dict[str, Any], weights: dict[str, Any]) -> dict[str, Any]:
    with np.errstate(all="ignore"):
        return reference.evaluate(body, inputs, weights).outputs


def scaled(tensors: dict[str, Any]) -> dict[str, Any]:
    """The tensors with all reals changed by the same factor, so little that only rounding changes what is computed."""
    return {name: x * (1 + 1e-12) if x.dtype.kind == "f" else x for name, x in tensors.items()}


def compare(seed: int, expressions: list[tuple[str, str]]) -> bool:
    """Compare expressions with the reference at random values; return whether they are valid, and not too large."""
    chosen = [("B", "m"), ("I", "n + arange(6)"), ("R", "y"), *expressions]
    try:
        body = get_compilation(load(net(chosen))).body
    except ArchError:
        return False  # an expression of fewer axes is used where it may not be
    numbers = np.random.default_rng(seed)
    inputs: dict[str, Any] = {}
    for name, type in body.inputs:
        shape = tuple(size if isinstance(size, int) else size.at(SIZES) for size in type.shape)
        inputs[name] = values(shape, type.dtype, numbers)
    assert body.module is not None
    weights = {name: values(leaf.weight.shape, "real", numbers) for name, leaf in iter_tensors(body.module)}
    expected = reference_outputs(body, inputs, weights)
    rounded = reference_outputs(body, scaled(inputs), scaled(weights))
    arrays = Arrays()
    stored = {("input", name): torch.tensor(value) for name, value in inputs.items()}
    stored |= {("tensor", name): torch.tensor(value) for name, value in weights.items()}
    evaluation = Evaluation(arrays, stored, SIZES)
    try:
        outputs = model_outputs(arrays, body, LocationIndex(arrays))
    except OverflowError:
        return False
    for (_, text), name, array in zip(chosen, expected, outputs, strict=True):
        found = evaluation.array(array).numpy()
        decided = np.isclose(rounded[name], expected[name], rtol=1e-3)  # not by what rounding leaves of a 0
        finite = np.isfinite(expected[name]) & (decided | ~np.isinf(found))
        np.testing.assert_allclose(
            found[finite], expected[name][finite], rtol=1e-9, atol=1e-9, err_msg=f"{seed}: {text}"
        )
    return True


@pytest.mark.parametrize(
    "text",
    [
        "sum(axis = 1, keep = true)(gather(axis = 2)(x, arange(6) // 4 + 0 * n)) + 0.0 * x",
        "sum(axis = 1, keep = true)(gather(axis = 2)(x, arange(6) // 3 + 0 * n)) + 0.0 * x",
        "real(cumsum(axis = 1)((arange(6) + n) // (arange(6) % 3 + 1)))",
    ],
)
def test_an_axis_is_only_divided_by_a_divisor_of_its_size(text: str) -> None:
    assert compare(0, [("R", text)])


CONDITIONS = """
2 * arange(6) >= seq|2 * arange(6) + 1 < seq|arange(6) >= seq|arange(6) < 7 - seq|arange(6) + seq >= 6|arange(6) >= 5
arange(6) >= 1|arange(6) // 4 >= 1|arange(6) % 4 >= 1|arange(6) // 2 >= 1|arange(6) % 3 >= 1|arange(6) ** 2 >= 5
arange(6) * reshape([seq, 1])(arange(seq)) >= 2|reshape([seq, 1])(arange(seq)) >= 1|seq - 2 > arange(6)
reshape([seq, 1])(arange(seq)) + 1 >= seq|reshape([seq, 1])(arange(seq)) * 3 < 2 * seq|arange(6) + n >= 3
"""


@pytest.mark.parametrize("axis", [1, 2])
def test_sums_over_the_parts_of_an_axis(axis: int) -> None:
    """Which a condition has divided in two, if it does for all sizes."""
    texts = CONDITIONS.strip().replace("\n", "|").split("|")
    assert compare(
        0, [("R", f"sum(axis = {axis}, keep = true)(where({text}, x, 2.0 * y)) + 0.0 * x") for text in texts]
    )


def test_a_choice_by_the_sign_of_an_integer_is_kept() -> None:
    assert compare(0, [("I", "where(n >= 1, n + arange(6), arange(6) + 0 * n)")])


def test_terms_that_are_alike_count_in_a_softmax_where_they_are_infinite() -> None:
    arrays = Arrays()
    e = arrays.elements
    x = arrays.stored("input", "x", (4, 6), "real").element
    hidden = e.where(e.is_zero(e.integer(arrays.own((4, 6))[0])), e.number(-math.inf), e.number(0.0))
    over, at = arrays.axes.index("s0", 6), arrays.own((4, 6))[1]
    body = arrays.replace(x, {index_name(at): over})
    assert arrays.softmax(e.combination([(1.0, body), (2.0, e.number(1.0))]), over, at) == arrays.softmax(
        body, over, at
    )
    assert arrays.softmax(e.combination([(1.0, body)], math.inf), over, at) != arrays.softmax(body, over, at)
    assert arrays.softmax(hidden, over, at) != arrays.softmax(e.number(0.0), over, at)


def test_scores_of_other_rows_are_hidden_at_once() -> None:
    hidden = [
        "x + where(n > 0, 0.0, -inf)",
        "where(n > 0, x, -inf)",
        "expand([batch, seq, 6])(where(n > 0, 2.0, -inf))",
    ]
    assert compare(0, [("R", f"softmax({scores})") for scores in hidden])


def test_infinite_numbers_of_both_signs_are_not_joined() -> None:
    e = Arrays().elements
    x, y = (e.where(e.is_zero(e.integer(index(name))), e.number(1.0), e.number(sign * math.inf))
            for name, sign in (("a", 1), ("b", -1)))  # fmt: skip
    assert e.nodes[e.combination([(1.0, x), (1.0, y)])].kind == "terms"
    assert e.nodes[e.combination([(1.0, x), (-1.0, y)])].kind == "where"


def test_a_difference_and_its_opposite_are_zero_together() -> None:
    arrays = Arrays()
    e = arrays.elements
    base = arrays.stored("input", "x", (4,), "real")
    a, b = (arrays.at(base, [at]) for at in arrays.own((4, 4)))
    for more in ([], [(2.0, arrays.stored("input", "y", (), "real").element)]):
        first, second = e.combination([(1.0, a), (-1.0, b), *more]), e.combination([(1.0, b), (-1.0, a), *more])
        opposite = e.combination([(-1.0, first)])
        assert e.is_zero(first) == e.is_zero(opposite)
        assert e.product([(first, 2.0)]) == e.product([(opposite, 2.0)])
        assert (e.is_zero(first) == e.is_zero(second)) == (not more)


def test_what_a_place_excludes_is_left_out() -> None:
    arrays = Arrays()
    e = arrays.elements
    x, y, z = (arrays.stored("input", name, (), "real").element for name in "xyz")
    (at,) = arrays.own((6,))
    first, second = e.at_least_zero(e.integer(at - 1)), e.at_least_zero(e.integer(at - 2))
    whole = e.where(first, e.where(second, x, y), z)
    assert e.where(first, e.where(second, x, y), e.where(second, x, z)) == whole
    assert e.where(second, x, e.where(first, y, z)) == whole
    assert e.where(second, e.where(first, x, z), e.where(first, y, z)) == whole


def test_several_places_are_divided_one_by_one() -> None:
    arrays = Arrays()
    e = arrays.elements
    x, zero = arrays.stored("input", "x", (), "real").element, e.number(0.0)
    (at,) = arrays.own((8,))
    seams = [e.at_least_zero(e.integer(at - place)) for place in (2, 4, 6)]
    inner = e.where(seams[1], e.where(seams[2], zero, x), e.where(seams[0], zero, x))
    outside = e.disjunction([e.negation(seams[0]), e.conjunction([seams[1], e.negation(seams[2])])])
    assert e.where(outside, x, zero) == inner
    cosines = [e.apply("cos", (part,), "real") for part in (x, zero)]
    assert e.apply("cos", (inner,), "real") == e.where(outside, *cosines)
    assert e.where(seams[0], e.where(seams[1], x, zero), zero) == e.where(seams[1], x, zero)


ROLLED = """
dim batch
block Net()(x [batch, 36, 4]) -> (a [batch, 3, 2, 6, 4], b [batch, 3, 2, 6, 4]) {
  square = roll(2, axis = 1)(reshape([batch, 6, 6, 4])(x))
  a = exp(reshape([batch, 36, 4])(square))
  b = exp(square)
  return reshape([batch, 3, 2, 6, 4])(a), reshape([batch, 3, 2, 6, 4])(b)
}
"""


def test_a_flattened_axis_is_divided_at_the_same_places() -> None:
    arrays = Arrays()
    body = get_compilation(load(ROLLED)).body
    flat, square = model_outputs(arrays, body, LocationIndex(arrays))
    assert flat == square


PIECES = """
dim batch, seq
layer Net()(x [batch, seq, 64], y [batch, seq, 64]) -> [batch, 2 * seq, 64] {
  square: param [64, 64]
  scale: param [64]
  return linear(layer_norm(eps = 1e-3)(concat(axis = 1)(x, y), .scale), .square)
}
"""


@pytest.mark.parametrize("most", [1_000_000, 100_000])
def test_sums_over_pieces_need_the_memory_of_each(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With less memory, values are computed again."""
    monkeypatch.setattr("archspec.pytorch.numeric.evaluate.MAX_BYTES", most)
    monkeypatch.setattr("archspec.pytorch.numeric.evaluate.MAX_TOTAL_BYTES", most)
    body, arrays, numbers = get_compilation(load(PIECES)).body, Arrays(), np.random.default_rng(0)
    sizes = {"batch": 3, "seq": 16}
    inputs = {name: values((3, 16, 64), "real", numbers) for name in ("x", "y")}
    weights = {"square": values((64, 64), "real", numbers), "scale": values((64,), "real", numbers)}
    stored = {("input", name): torch.tensor(value) for name, value in inputs.items()}
    stored |= {("tensor", name): torch.tensor(value) for name, value in weights.items()}
    (output,) = model_outputs(arrays, body, LocationIndex(arrays))
    with pytest.raises(EvaluationError, match="take too long to compute"):
        Evaluation(arrays, stored, sizes, 20_000).array(output)
    evaluation = Evaluation(arrays, stored, sizes)
    found = evaluation.array(output).numpy()
    (expected,) = reference_outputs(body, inputs, weights).values()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert most // 4 < sum(evaluation._values.storages().values()) <= most


def test_elements_are_made_again_in_the_same_order() -> None:
    """Which is that of the terms in a spec that is lifted, so it has to be the same in each process."""
    arrays = Arrays()
    e = arrays.elements
    first, second = arrays.own((12, 12))
    parts = [e.polynomial(to_integer(e, e.at_least_zero(e.integer(first - place)))) for place in range(1, 12)]
    total = e.integer(sum([part * (turn + 1) for turn, part in enumerate(parts)], 0))
    moved = arrays.replace(total, {index_name(first): second})
    terms = [
        [(atom.text, coefficient) for ((atom, _),), coefficient in terms_of(e.polynomial(element))]
        for element in (total, moved)
    ]
    before, after = [
        [coefficient for _, coefficient in sorted([(int(name[2:]), by) for name, by in each])] for each in terms
    ]
    assert before == after == [*range(1, 12)]


@pytest.mark.parametrize("seed", range(20))
def test_integers_are_divided_exactly(seed: int) -> None:
    generator = random.Random(seed)
    axes = Arrays().axes
    extents = generator.choices([1, 2, 3, 4, 6, 8], k=3)
    indices = [axes.index(f"x{turn}", extent) for turn, extent in enumerate(extents)]
    factors = generator.choices([1, 2, 3, 4, 6, 8, 12, -2, -4], k=3)
    value = sum([by * index for by, index in zip(factors, indices, strict=True)], generator.choice([0, 1, 3, -5]))
    by = generator.choice([2, 3, 4, 6, 8, 12, 24])
    found = axes.divide(value, by)
    for places in product(*map(range, extents)):
        at = {index_name(index): place for index, place in zip(indices, places, strict=True)}
        exact = divmod(int(substitute(value, at)), by)
        assert tuple([int(substitute(part, at)) for part in found]) == exact


@pytest.mark.parametrize("value", [3.0, -2.5, 0.5, 1.0, 0.0, 2.0**60, math.pi])
def test_integers_and_halves_represent_what_is_as_good_as_equal(value: float) -> None:
    numbers = NumberTable()
    near = math.nextafter(value, 0.0)
    found = {numbers.representative(near), numbers.representative(value)}
    assert found == {near if value in (2.0**60, math.pi) else value}
    assert math.copysign(1.0, numbers.representative(-0.0)) == 1.0


@pytest.mark.parametrize("seed", range(20))
def test_comparisons_are_divided_exactly(seed: int) -> None:
    """Where an integer is 0 or more, the one that is compared instead is too; so is the opposite."""
    generator = random.Random(seed)
    axes = Arrays().axes
    divided = 0
    for _ in range(20):
        extents = generator.choices([1, 2, 3, 4, 6, 8], k=3)
        indices = [axes.index(f"x{turn}", extent) for turn, extent in enumerate(extents)]
        factors = generator.choices([1, 2, 3, 4, 6, 8, 12, -1, -2, -4, -6], k=3)
        parts = [i // 2 if generator.random() < 0.3 else i for i in indices]
        value = sum([by * part for by, part in zip(factors, parts, strict=True)], generator.randint(-9, 9))
        found = axes.divide_sign_test(value)
        divided += found != value
        assert axes.divide_sign_test(-value - 1) == -found - 1
        for places in product(*map(range, extents)):
            at = {index_name(index): place for index, place in zip(indices, places, strict=True)}
            assert (int(substitute(value, at)) >= 0) == (int(substitute(found, at)) >= 0)
    assert divided


@pytest.mark.parametrize("seed", range(20))
def test_integers_are_zero_where_their_parts_are(seed: int) -> None:
    generator = random.Random(seed)
    axes = Arrays().axes
    parted = 0
    for _ in range(20):
        extents = generator.choices([1, 2, 3, 4], k=4)
        indices = [axes.index(f"x{turn}", extent) for turn, extent in enumerate(extents)]
        factors = generator.choices([1, 2, 3, 4, 6, 12, 28, -1, -2, -3, -4, -6, -28], k=4)
        parts = [i // 2 if generator.random() < 0.3 else i for i in indices]
        value = sum([by * part for by, part in zip(factors, parts, strict=True)], generator.choice([0, 0, 1, -4, 6]))
        found = axes.zeros(value)
        parted += found != [value]
        for places in product(*map(range, extents)):
            at = {index_name(index): place for index, place in zip(indices, places, strict=True)}
            zeros = [int(substitute(part, at)) == 0 for part in found]
            assert (int(substitute(value, at)) == 0) == all(zeros)
    assert parted


def test_an_axis_of_several_flattened_ones_is_divided() -> None:
    """A product of matrices is the same whether leading axes are flattened, in any order, or not."""
    arrays = Arrays()
    batch = symbol("batch")
    x = arrays.stored("input", "x", (3, batch, 2, 4, 5), "real")
    turned = arrays.view(x, (batch, 2, 3, 4, 5), lambda i: [i[2], i[0], i[1], i[3], i[4]])

    def total(value: Array) -> Array:
        over = arrays.axes.index("s0", 5)
        at = arrays.own(value.shape[:-1])
        return arrays.array(value.shape[:-1], arrays.total(arrays.at(value, [*at, over]), [(over, 5)]))

    whole = total(turned)
    assert arrays.reshape(total(arrays.reshape(turned, (24 * batch, 5))), whole.shape) == whole
    assert arrays.reshape(total(arrays.reshape(turned, (2 * batch, 12, 5))), whole.shape) == whole


CHOSEN = """
dim batch, seq
block Net()(x [batch, seq, 6]) -> (a [batch, seq, 2], b int [batch, seq, 2], c [batch, seq, 2], d int [batch, seq, 2],
                                   e int [batch, seq], f int [batch, seq]) {
  values, places = topk(2)(x)
  others, flat   = topk(2, axis = 0)(rearrange("b s d -> d (b s)")(x))
  c = reshape([batch, seq, 2])(transpose(0, 1)(others))
  d = reshape([batch, seq, 2])(transpose(0, 1)(flat))
  return values, places, c, d, pick(-1, 0)(places), argmax(x)
}
"""


def test_an_order_does_not_depend_on_other_axes() -> None:
    arrays = Arrays()
    body = get_compilation(load(CHOSEN)).body
    values, places, others, flat, first, largest = model_outputs(arrays, body, LocationIndex(arrays))
    assert values == others and places == flat and first == largest


SUMMED = """
dim batch, seq
fn halves(x [batch, seq, 6]) -> [batch, seq, 6] {
  return concat(axis = -1)(-slice(axis = -1, start = 1, step = 2)(x), slice(axis = -1, step = 2)(x))
}
fn pairs(x [batch, seq, 6]) -> [batch, seq, 6] {
  return rearrange("b s (d p) -> b s (p d)", d = 2)(halves(x))
}
block Net()(x [batch, seq, 6], y [batch, seq, 6], z [batch, 2 * seq, 6])
          -> (a [batch, seq], b [batch, seq], c [batch, seq], d [batch, seq], e [batch, 6], f [batch, 6]) {
  a     = sum(axis = -1)(halves(x) * halves(y))
  b     = sum(axis = -1)(pairs(x) * pairs(y))
  first, last = split([2, 4], axis = -1)(x)
  c     = sum(axis = -1)(concat(axis = -1)(last, y, first))
  d     = sum(axis = -1)(first) + sum(axis = -1)(y) + sum(axis = -1)(last)
  e     = sum(axis = 1)(concat(axis = 1)(x, y) * z)
  f     = sum(axis = 1)(x * slice(axis = 1, stop = seq)(z)) + sum(axis = 1)(y * slice(axis = 1, start = seq)(z))
  return a, b, c, d, e, f
}
"""


def test_sums_are_those_of_the_parts_of_an_axis() -> None:
    arrays = Arrays()
    body = get_compilation(load(SUMMED)).body
    outputs = model_outputs(arrays, body, LocationIndex(arrays))
    assert outputs[::2] == outputs[1::2]


@pytest.mark.parametrize("seed", range(12))
def test_normal_forms_have_the_values_of_the_operations(seed: int) -> None:
    assert check(seed, 12)


def test_evaluation_ends_where_it_needs_too_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archspec.pytorch.numeric.evaluate.MAX_BYTES", 100)
    with pytest.raises(EvaluationError, match="need too much memory"):
        compare(0, [("R", "exp(x) * y")])


def test_systems_are_equal_if_they_are_below_the_diagonal() -> None:
    below = "where(reshape([6, 1])(arange(6)) > arange(6), .square, 0.0)"
    masked = SYSTEM.replace(".square", below).replace("y * 2.0", "y + y")
    systems = [SYSTEM, masked, masked.replace(">", "<"), SYSTEM.replace(".square", "2.0 * .square")]
    assert compare(1, [("R", f"{system} + x") for system in systems])
    arrays = Arrays()
    used = [("B", "m"), ("I", "n + arange(6)"), *[("R", system) for system in systems]]
    _, _, first, *others = model_outputs(arrays, get_compilation(load(net(used))).body, LocationIndex(arrays))
    assert [other == first for other in others] == [True, False, False]


@pytest.mark.slow
def test_many_normal_forms_have_the_values_of_the_operations() -> None:
    assert sum(check(seed, 12) for seed in range(100, 500)) >= 390


def test_sums_of_infinite_numbers_are_not_those_of_their_other_parts() -> None:
    def masked(hidden: str) -> archspec.Model:
        return load(
            f"block Net(n = 4)(x [3, n]) -> [3] {{\n  return sum(axis = -1)(where(arange(n) < 2, {hidden}, x))\n}}\n"
        )

    infinite = masked("-inf")
    other = load("block Net(n = 4)(x [3, n]) -> [3] {\n  return sum(axis = -1)(where(arange(n) >= 2, x, -inf))\n}\n")
    assert archspec.equivalent(infinite, other).verdict == "equal"
    assert archspec.equivalent(infinite, masked("0.0")).verdict != "equal"
    assert archspec.equivalent(infinite, masked("inf")).verdict != "equal"
