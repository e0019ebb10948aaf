"""Normal forms have the values of the operations at sizes below, at and above each constant in them.

Every operation is applied to drawn operands with symbolic sizes, and its normal form evaluated at small ones, against
the reference interpreter.
"""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import reference

from archspec import Polynomial, Type
from archspec.core.algebra import substitute, symbol
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.bodies import apply
from archspec.ir.ops import OPS, OpError

torch = pytest.importorskip("torch")

from archspec.pytorch.numeric.evaluate import Evaluation

S, T = symbol("s"), symbol("t")
SIZES = [{"s": s, "t": t} for s in range(1, 8) for t in (1, 2, 3)]
DRAWN = 6
"""How often each operation is drawn in the everyday suite."""

Operand = tuple[str, tuple[Any, ...]] | None
"""The kind of a tensor, and its shape. Kinds are those of elements, or "count" for integers from 0 to 3, "divisor" for
integers and "nonzero" for reals other than 0, "place" for the last index, times and plus a number, and `id:N`.
"""
Drawn = tuple[list[Operand], dict[str, Any]]
Case = Callable[[random.Random], Drawn]


def case(*operands: Operand, **attributes: Any) -> Drawn:
    return [*operands], attributes


def number(r: random.Random) -> str:
    return r.choice(["real", "int", "place"])


def unary(*kinds: str) -> Case:
    return lambda r: case((r.choice(kinds), r.choice([(S, T), (S, 3), (2, S)])))


def binary(first: tuple[str, ...], second: tuple[str, ...]) -> Case:
    def draw(r: random.Random) -> Drawn:
        shapes = r.choice([((S, T), (S, T)), ((S, T), (T,)), ((S, 1), (1, T)), ((S, T), ()), ((1,), (S, T))])
        return case(*[(r.choice(kinds), shape) for kinds, shape in zip((first, second), shapes, strict=True)])

    return draw


def reduced(r: random.Random) -> Drawn:
    axis = r.choice([0, 1, -1, (0, 1), [0, -1]])
    return case((number(r), r.choice([(S, T), (S, 2 * T), (3, S, T)])), axis=axis, keep=r.random() < 0.5)


def along(**attributes: Callable[[random.Random], Any]) -> Case:
    def draw(r: random.Random) -> Drawn:
        return case(
            (r.choice(["real", "int"]), r.choice([(S, 4), (S, T), (2, S)])),
            axis=r.choice([0, 1, -1]),
            **{name: value(r) for name, value in attributes.items()},
        )

    return draw


def convolved(r: random.Random) -> Drawn:
    groups, kernel, transposed = r.choice([1, 2]), r.randint(1, 4), r.random() < 0.4
    weight = (2, 4 // groups, kernel) if transposed else (4, 2 // groups, kernel)
    bias = ("real", (weight[1] * groups if transposed else 4,)) if r.random() < 0.5 else None
    settings = {"stride": r.randint(1, 3), "padding": r.randint(0, 2), "dilation": r.randint(1, 3)}
    return case(("real", (2, 2, S)), ("real", weight), bias, groups=groups, transposed=transposed, **settings)


def pooled(r: random.Random) -> Drawn:
    kernel = r.randint(1, 4)
    stride = r.choice([None, 1, 2, 3, 5])
    return case((r.choice(["real", "int"]), (2, T, S)), kernel=kernel, stride=stride, padding=r.randint(0, kernel // 2))


def reshaped(r: random.Random) -> Drawn:
    a, b = r.choice(
        [((S, T), (S * T,)), ((2 * S, 3), (S, 6)), ((S, 4), (S, 2, 2)), ((S, 6), (3 * S, 2)), ((S * T, 2), (S, 2 * T))]
    )
    a, b = r.choice([(a, b), (b, a)])
    return case((number(r), a), shape=b)


def joined(r: random.Random) -> Drawn:
    axis = r.choice([0, -2])
    sizes = r.sample([S, T, 1, 2, 5, S + 1, 2 * T], r.randint(1, 3))
    return case(*[(number(r), (size, 2)) for size in sizes], axis=axis)


def divided(r: random.Random) -> Drawn:
    sizes = r.sample([S, T, 1, 2, 5, 2 * S], r.randint(1, 3))
    return case((number(r), (sum(sizes), 2)), sizes=tuple(sizes), axis=r.choice([0, -2]))


def cut(r: random.Random) -> Drawn:
    start, stop = r.choice([0, 1, 2, 4, -1, -3, S - 1, T]), r.choice([None, None, 3, 5, -1, -2, S, S - 2, T + 1])
    shape = r.choice([(S, 2), (S + 3, 2), (S + T + 2, 2)])
    return case((number(r), shape), axis=0, start=start, stop=stop, step=r.randint(1, 3))


def padded(r: random.Random) -> Drawn:
    before, after = [r.choice([0, 1, 3, S, T + 1]) for _ in range(2)]
    kind = number(r)
    value = r.choice([0, 2.5, -1]) if kind == "real" else r.choice([0, 7])
    return case((kind, (S, T)), axis=r.choice([0, 1, -1]), before=before, after=after, value=value)


def rolled(r: random.Random) -> Drawn:
    shift: Any = r.choice([*range(-8, 9), T, -T, S, S + 1, T - 3, 2 * T])
    axis: Any = r.choice([0, -2])
    if r.random() < 0.3:
        shift, axis = (shift, r.randint(-5, 5)), (axis, 1)
    return case((number(r), r.choice([(S, T), (2 * S, T), (S + 2, 3)])), shift=shift, axis=axis)


def bias(r: random.Random, *shape: Any) -> Operand:
    return ("real", shape) if r.random() < 0.5 else None


def systems(r: random.Random) -> Drawn:
    size = r.choice([S, 3])
    return case(("real", (T, size, size)), ("real", r.choice([(T, size, 2), (size, T)])))


NUMBERS, INTEGERS = ("real", "int", "place"), ("int", "place")
POWERS = [(("real",), ("real",)), (INTEGERS, ("count",)), (("nonzero",), ("divisor",))]
CASES: dict[str, Case] = {
    **dict.fromkeys(["neg", "abs", "floor", "int"], unary(*NUMBERS)),
    **dict.fromkeys(["exp", "sin", "cos", "tanh", "sigmoid", "erf", "lowest"], unary("real")),
    **dict.fromkeys(["log", "sqrt"], unary("real", "count")),
    **dict.fromkeys(["real", "float32"], unary("real", "int", "place", "bool", "edge")),
    "not": unary("bool", "edge"),
    **dict.fromkeys(["add", "sub", "mul", "min", "max", "lt", "le", "gt", "ge"], binary(NUMBERS, NUMBERS)),
    "div": binary(NUMBERS, ("nonzero", "divisor")),
    **dict.fromkeys(["floordiv", "mod"], binary(INTEGERS, ("divisor",))),
    "pow": lambda r: binary(*r.choice(POWERS))(r),
    **dict.fromkeys(
        ["eq", "ne"], lambda r: binary(*r.choice([(NUMBERS, NUMBERS), (("bool", "edge"), ("bool", "edge"))]))(r)
    ),
    **dict.fromkeys(["and", "or"], binary(("bool", "edge"), ("bool", "edge"))),
    "where": lambda r: case(
        (r.choice(["bool", "edge"]), (S, T)), *[(number(r), r.choice([(T,), (S, 1), (S, T)])) for _ in "ab"]
    ),
    **dict.fromkeys(["sum", "amax"], reduced),
    **dict.fromkeys(["softmax", "cumsum", "fft"], along()),
    "argmax": along(keep=lambda r: r.random() < 0.5),
    "topk": along(k=lambda r: r.randint(1, 4)),
    "matmul": lambda r: case((number(r), r.choice([(T, S, 3), (S, 3)])), (number(r), r.choice([(T, 3, S), (3, 2)]))),
    "forward_substitution": systems,
    "linear": lambda r: case((number(r), (S, T, 3)), ("real", (4, 3)), bias(r, 4)),
    "expert_linear": lambda r: case(("real", (S, T, 3)), ("id:5", (S, 1)), ("real", (5, 4, 3)), bias(r, 5, 4)),
    "conv": convolved,
    "layer_norm": lambda r: case((number(r), (S, T, 4)), bias(r, 4), bias(r, 4), eps=0.5),
    "group_norm": lambda r: case(("real", (T, 4, S)), bias(r, 4), bias(r, 4), groups=r.choice([1, 2, 4]), eps=0.5),
    "embedding": lambda r: case(("id:5", (S, T)), (r.choice(["real", "int"]), (5, 3))),
    "gather": lambda r: case((number(r), (S, 6)), ("id:6", (S, T)), axis=1),
    "one_hot": lambda r: case(("id:5", r.choice([(S,), (S, T)])), count=r.choice([5, 3, S, T + 1])),
    "max_pool": pooled,
    "mean_pool": pooled,
    "reshape": reshaped,
    "transpose": lambda r: case((number(r), (S, 2, T)), a=r.choice([0, 1, -1]), b=r.choice([1, 2, -3])),
    "permute": lambda r: case((number(r), (S, 2, T)), order=tuple(r.sample(range(3), 3))),
    "expand": lambda r: case((number(r), r.choice([(1, T), (T,), (1, 1), (S, 1)])), shape=(S, T)),
    "concat": joined,
    "stack": lambda r: case(*[(number(r), (S, T)) for _ in range(r.randint(1, 3))], axis=r.choice([0, 1, 2, -1])),
    "split": divided,
    "slice": cut,
    "pick": lambda r: case((number(r), (S, T)), axis=r.choice([0, -2]), index=r.choice([0, 1, 3, -1, -2, S - 1, T])),
    "pad": padded,
    "roll": rolled,
    "arange": lambda r: case(stop=r.choice([S, 2 * S + 1, 5, S * T])),
    "full": lambda r: case(shape=r.choice([(S, 2), (S, T), ()]), value=r.choice([2.5, 3, True, S, S * T - 4])),
    "table": lambda r: case(values=r.choice([(1.5, -2.0), (3, 1, 4), ((True, False), (False, True))])),
}  # fmt: skip
DTYPES = {"count": "int", "divisor": "int", "place": "int", "nonzero": "real", "edge": "bool"}


def test_every_operation_is_drawn() -> None:
    assert {*CASES} == {name for name, op in OPS.items() if not op.trains}


def at(value: Any, sizes: dict[str, int]) -> Any:
    """A value at sizes."""
    if isinstance(value, tuple | list):
        return tuple(at(item, sizes) for item in value)
    return substitute(value, sizes) if isinstance(value, Polynomial) else value


class Position:
    """An operand that depends on the last index alone: an integer, or a condition at whose edge it is 0."""

    def __init__(self, r: random.Random, kind: str) -> None:
        self.kind, self.by, self.plus = kind, r.choice([-2, -1, 1, 1, 3]), r.choice([*range(-4, 5), S - 2, -T])

    def array(self, arrays: Arrays, shape: tuple[Any, ...]) -> Array:
        def element(i: Any) -> int:
            e = arrays.elements
            found = e.integer((i[-1] if i else 0) * self.by + self.plus)
            return e.at_least_zero(found) if self.kind == "edge" else found

        return arrays.make(shape, element)

    def values(self, shape: tuple[int, ...], sizes: dict[str, int]) -> Any:
        last = np.arange(shape[-1]) if shape else np.array(0)
        found = np.broadcast_to(last * self.by + at(self.plus, sizes), shape)
        return found >= 0 if self.kind == "edge" else found


def values_of(kind: str, shape: tuple[int, ...], generator: np.random.Generator) -> Any:
    if kind in ("real", "nonzero"):
        return generator.normal(size=shape) * 2 + (0.1 if kind == "nonzero" else 0)
    if kind == "bool":
        return generator.random(shape) < 0.5
    if kind == "divisor":
        return generator.choice([-3, -2, -1, 1, 2, 4], shape)
    least, most = {"int": (-4, 5), "count": (0, 4)}.get(kind) or (0, int(kind.partition(":")[2]))
    return generator.integers(least, most, shape)


def check(name: str, seed: int) -> int:
    """Compare the normal form of a drawn application with the reference; return at how many sizes."""
    r = random.Random(f"{name} {seed}")
    operands, attributes = CASES[name](r)
    op, arrays = OPS[name], Arrays()
    settings = op.settings(attributes)
    kinds = [None if operand is None else operand[0] for operand in operands]
    types = [None if o is None else Type(o[1], DTYPES.get(o[0], "int" if ":" in o[0] else o[0])) for o in operands]
    try:
        results = op.rule(types, attributes)
    except OpError:
        return 0
    positions = [Position(r, kind) if kind in ("place", "edge") else None for kind in kinds]
    given = [
        None if type is None
        else position.array(arrays, type.shape) if position is not None
        else arrays.stored("input", f"x{i}", type.shape, type.dtype)
        for i, (type, position) in enumerate(zip(types, positions, strict=True))
    ]  # fmt: skip
    found = apply(arrays, name, given, settings, results)
    compared = 0
    generator = np.random.default_rng(seed)
    for sizes in SIZES:
        shapes = [None if type is None else at(type.shape, sizes) for type in types]
        exact = [None if type is None else Type(shape, type.dtype) for type, shape in zip(types, shapes, strict=True)]
        try:
            shapes_there = [type.shape for type in op.rule(exact, {n: at(v, sizes) for n, v in attributes.items()})]
        except OpError:
            continue
        if shapes_there != [at(type.shape, sizes) for type in results]:
            continue  # the symbolic sizes are for others
        values = [
            None if kind is None or shape is None
            else position.values(shape, sizes) if position is not None
            else values_of(kind, shape, generator)
            for kind, shape, position in zip(kinds, shapes, positions, strict=True)
        ]  # fmt: skip
        inputs = values + [None] * (len(op.inputs) - len(values))
        expected = reference.OPS[name](*inputs, **{key: at(value, sizes) for key, value in settings.items()})
        stored = {("input", f"x{i}"): torch.tensor(v.copy()) for i, v in enumerate(values) if v is not None}
        evaluation = Evaluation(arrays, stored, sizes)
        for array, value in zip(found, expected if isinstance(expected, list) else [expected], strict=True):
            own = evaluation.array(array).numpy()
            if name == "lowest":
                value = np.float64(np.finfo(np.float32).min)
            where = f"{name}{operands} {attributes} at {sizes}"
            assert own.shape == np.shape(value), where
            np.testing.assert_allclose(own, value, 1e-9, 1e-9, err_msg=where)
        compared += 1
    return compared


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_normal_forms_are_right_at_small_sizes(name: str) -> None:
    assert sum(check(name, seed) for seed in range(DRAWN)) >= 2 * DRAWN


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_many_normal_forms_are_right_at_small_sizes(name: str) -> None:
    for seed in range(DRAWN, 120):
        check(name, seed)
