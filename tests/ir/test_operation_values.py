"""What the operations compute: the reference interpreter against the words of their records, and against torch.

Every result is also held against the type that the operation's rule gives.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest
from reference import DTYPES, OPS, Array

from archspec import Type
from archspec.ir import ops

RANDOM = np.random.default_rng(0)
KINDS = {np.dtype(dtype): kind for kind, dtype in DTYPES.items()}
CONVOLUTIONS = [
    {},
    {"stride": 2, "padding": 1},
    {"dilation": 2, "padding": 3},
    {"groups": 2, "stride": 3},
    {"groups": 4, "padding": 2, "dilation": 2, "stride": 2},
]


def operate(name: str, *operands: Any, **attributes: Any) -> Any:
    """The outcome of an operation, of the type its rule gives."""
    op = ops.OPS[name]
    values = [value if value is None else np.asarray(value) for value in operands]
    values += [None] * (len(op.inputs) - len(values))
    types = op.rule([None if v is None else Type(v.shape, KINDS[v.dtype]) for v in values], attributes)
    settings = {attribute.name: attribute.default for attribute in op.attributes} | attributes
    result = OPS[name](*values, **settings)
    for value, type in zip(result if isinstance(result, list) else [result], types, strict=True):
        assert (value.shape, value.dtype) == (type.shape, DTYPES[type.dtype])
    return result


def normal(*shape: int) -> Array:
    return RANDOM.normal(size=shape)


def test_every_operation_is_here() -> None:
    assert list(OPS) == list(ops.OPS)


def test_integers_round_and_divide() -> None:
    a = np.array([7, -7, 7, -7])
    b = np.array([2, 2, -2, -2])
    assert operate("div", a, b).tolist() == [3.5, -3.5, -3.5, 3.5]
    assert operate("floordiv", a, b).tolist() == [3, -4, -4, 3]
    assert operate("mod", a, b).tolist() == [1, 1, -1, -1]
    assert operate("mod", [5.5, -5.5], 2).tolist() == [1.5, 0.5]
    assert operate("int", [1.9, -1.9]).tolist() == [1, -1]
    assert operate("floor", [1.9, -1.9]).tolist() == [1, -2]
    assert operate("pow", a, 2).tolist() == [49] * 4


@pytest.mark.parametrize("name", [name for name, op in ops.OPS.items() if op.scalar is not None])
def test_numbers_are_computed_as_elements_are(name: str) -> None:
    scalar, compared = ops.OPS[name].scalar, 0
    for values in product((-3, -1, 0, 1, 2, 7, -2.5, 0.5, 3.0), repeat=len(ops.OPS[name].inputs)):
        try:
            found = scalar(*values) if scalar is not None else None
        except (ops.OpError, ArithmeticError, ValueError):
            continue
        reals = [float(value) for value in values] if name == "pow" and values[-1] < 0 else values
        expected = OPS[name](*map(np.asarray, reals)).item()
        assert found == pytest.approx(expected, rel=1e-14), values
        assert type(found) is type(expected) or name in ("min", "max"), values
        compared += 1
    assert compared >= 5


def test_topk_takes_the_first_of_equals() -> None:
    values, indices = operate("topk", [[3.0, 9.0, 3.0, 9.0, 1.0]], k=3)
    assert values.tolist() == [[9.0, 9.0, 3.0]]
    assert indices.tolist() == [[1, 3, 0]]
    values, indices = operate("topk", [[1, 5], [4, 2], [3, 9]], k=2, axis=0)
    assert values.tolist() == [[4, 9], [3, 5]]
    assert indices.tolist() == [[1, 2], [2, 0]]


def test_cumsum_takes_in_the_element_itself() -> None:
    assert operate("cumsum", [[1, 2, 3], [0, 1, 1]], axis=1).tolist() == [[1, 3, 6], [0, 1, 2]]
    assert operate("cumsum", [[1, 2, 3], [0, 1, 1]], axis=0).tolist() == [[1, 2, 3], [1, 3, 4]]


def test_gather_picks_along_its_axis() -> None:
    x = normal(2, 3, 4)
    index = RANDOM.integers(0, 3, (2, 5, 4))
    out = operate("gather", x, index, axis=1)
    assert all(out[i, j, k] == x[i, index[i, j, k], k] for i, j, k in np.ndindex(2, 5, 4))


def test_embedding_takes_rows_of_any_rank() -> None:
    table = normal(7, 2, 3)
    ids = RANDOM.integers(0, 7, (4, 5))
    out = operate("embedding", ids, table)
    assert all((out[i, j] == table[ids[i, j]]).all() for i, j in np.ndindex(4, 5))


def test_forward_substitution_reads_what_is_below_the_diagonal() -> None:
    a, b = normal(2, 1, 4, 4), normal(3, 4, 5)
    out = operate("forward_substitution", a, b)
    for i, j in np.ndindex(2, 3):
        for row in range(4):
            np.testing.assert_allclose(out[i, j, row], b[j, row] - a[i, 0, row, :row] @ out[i, j, :row])


def test_expert_linear_uses_the_matrix_of_its_expert() -> None:
    x, weight, bias = normal(2, 1, 3, 4), normal(6, 5, 4), normal(6, 5)
    experts = RANDOM.integers(0, 6, (7, 3))
    out = operate("expert_linear", x, experts, weight, bias)
    for b, j, i in np.ndindex(2, 7, 3):
        e = experts[j, i]
        np.testing.assert_allclose(out[b, j, i], weight[e] @ x[b, 0, i] + bias[e])
    np.testing.assert_allclose(operate("expert_linear", x, experts, weight), out - bias[experts])


@pytest.mark.parametrize("shape", [(4,), (3, 4)])
def test_layer_norm_takes_the_axes_of_its_weight(shape: tuple[int, ...]) -> None:
    x, weight, bias = normal(2, 3, 4), normal(*shape), normal(*shape)
    rows = x.reshape(-1, np.prod(shape))
    plain = np.array([(row - row.mean()) / np.sqrt(row.var() + 0.1) for row in rows]).reshape(x.shape)
    np.testing.assert_allclose(operate("layer_norm", x, weight, bias, eps=0.1), plain * weight + bias)
    np.testing.assert_allclose(operate("layer_norm", x, None, bias, eps=0.1), plain + bias)
    np.testing.assert_allclose(operate("layer_norm", x, weight, eps=0.1), plain * weight)


def test_softmax_does_not_overflow() -> None:
    np.testing.assert_allclose(operate("softmax", [[1000.0, 1000.0, -np.inf]]), [[0.5, 0.5, 0.0]])


def test_parts_of_an_axis() -> None:
    x = np.arange(24).reshape(2, 12)
    assert operate("slice", x, axis=1, start=-5, stop=-1, step=3)[0].tolist() == [7, 10]
    assert operate("pick", x, axis=-1, index=-2).tolist() == [10, 22]
    assert [part.shape for part in operate("split", x, sizes=(3, 4, 5))] == [(2, 3), (2, 4), (2, 5)]
    assert operate("permute", normal(2, 3, 4), order=(2, 0, 1)).shape == (4, 2, 3)
    assert operate("concat", x, x[:, :1], axis=1).shape == (2, 13)
    assert operate("stack", x, x, x, axis=-2).shape == (2, 3, 12)
    assert operate("expand", x[:, None], shape=(3, 2, 2, 12))[2, 1, 1].tolist() == x[1].tolist()


@pytest.mark.parametrize("attributes", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_conv_is_the_sum_its_record_says(attributes: dict[str, int], transposed: bool) -> None:
    stride, padding, dilation, groups = (
        attributes.get(name, default)
        for name, default in (("stride", 1), ("padding", 0), ("dilation", 1), ("groups", 1))
    )
    ins, outs, reach = 4, 8, 3
    x, weight = normal(2, ins, 9), normal(*((ins, outs // groups) if transposed else (outs, ins // groups)), reach)
    out = operate("conv", x, weight, **attributes, transposed=transposed)
    expected = np.zeros_like(out)
    few, many = (x, expected) if transposed else (expected, x)
    for o, c, k, q in np.ndindex(outs, ins, reach, few.shape[2]):
        p = q * stride - padding + k * dilation
        if c // (ins // groups) != o // (outs // groups) or not 0 <= p < many.shape[2]:
            continue
        if transposed:
            expected[:, o, p] += x[:, c, q] * weight[c, o % (outs // groups), k]
        else:
            expected[:, o, q] += x[:, c, p] * weight[o, c % (ins // groups), k]
    np.testing.assert_allclose(out, expected, atol=1e-12)


def test_argmax_takes_the_first_of_equals() -> None:
    assert operate("argmax", [[3.0, 9.0, 9.0], [-1.0, -2.0, -1.0]]).tolist() == [1, 0]
    assert operate("argmax", [[1, 5], [4, 2]], axis=0, keep=True).tolist() == [[1, 0]]


def test_fft_is_the_sum_its_record_says() -> None:
    x = normal(2, 5, 4)
    out, both = operate("fft", x, axis=1), operate("fft", x, axis=(1, -1))
    for k, m in np.ndindex(5, 4):
        angles = 2 * np.pi * k * np.arange(5) / 5
        np.testing.assert_allclose(out[:, k, m], (x[:, :, m] * np.cos(angles)).sum(1), atol=1e-12)
        sums = angles[:, None] + 2 * np.pi * m * np.arange(4) / 4
        np.testing.assert_allclose(both[:, k, m], (x * np.cos(sums)).sum((1, 2)), atol=1e-12)


def test_pad_and_roll() -> None:
    x = np.arange(6).reshape(2, 3)
    assert operate("pad", x, axis=1, before=1, after=2, value=7).tolist() == [[7, 0, 1, 2, 7, 7], [7, 3, 4, 5, 7, 7]]
    assert operate("pad", x == 0, axis=-2, after=1, value=True).tolist()[-1] == [True] * 3
    assert operate("roll", x, shift=1).tolist() == [[2, 0, 1], [5, 3, 4]]
    assert operate("roll", x, shift=(1, -4), axis=(0, 1)).tolist() == [[4, 5, 3], [1, 2, 0]]


def test_one_hot_is_zero_where_no_position_has_the_id() -> None:
    assert operate("one_hot", [1, -1, 3], count=3).tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("name", ["max_pool", "mean_pool"])
def test_pools_take_each_window(name: str) -> None:
    x = normal(2, 3, 7, 6) - 5  # all negative, so that padding would be the largest
    out = operate(name, x, kernel=(3, 2), stride=(2, 1), padding=(1, 0))
    assert out.shape == (2, 3, 4, 5)
    for p, q in np.ndindex(4, 5):
        window = x[:, :, max(2 * p - 1, 0) : 2 * p + 2, q : q + 2]
        expected = window.max((2, 3)) if name == "max_pool" else window.sum((2, 3)) / 6
        np.testing.assert_allclose(out[:, :, p, q], expected)
    assert operate(name, x, kernel=2).shape == (2, 3, 3, 3)


def test_group_norm_takes_the_groups_of_its_channels() -> None:
    x, weight, bias = normal(2, 6, 5), normal(6), normal(6)
    plain = np.empty_like(x)
    for b, first in np.ndindex(2, 3):
        part = x[b, 2 * first : 2 * first + 2]
        plain[b, 2 * first : 2 * first + 2] = (part - part.mean()) / np.sqrt(part.var() + 0.1)
    np.testing.assert_allclose(operate("group_norm", x, groups=3, eps=0.1), plain)
    scaled = plain * weight[:, None] + bias[:, None]
    np.testing.assert_allclose(operate("group_norm", x, weight, bias, groups=3, eps=0.1), scaled)


# Against torch -----------------------------------------------------------------------------------------------------


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def same(ours: Array, theirs: Any) -> None:
    np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("attributes", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_conv_is_that_of_torch(torch: Any, attributes: dict[str, int], axes: int, transposed: bool) -> None:
    name = f"conv_transpose{axes}d" if transposed else f"conv{axes}d"
    groups = attributes.get("groups", 1)
    x, bias = normal(2, 4, *(8, 9, 7)[:axes]), normal(8)
    weight = normal(*((4, 8 // groups) if transposed else (8, 4 // groups)), *(3, 2, 3)[:axes])
    ours = operate("conv", x, weight, bias, **attributes, transposed=transposed)
    same(ours, getattr(torch.nn.functional, name)(*map(torch.from_numpy, (x, weight, bias)), **attributes))


@pytest.mark.slow
def test_conv_takes_a_number_for_each_axis_as_in_torch(torch: Any) -> None:
    x, weight = normal(2, 4, 8, 9), normal(8, 4, 3, 2)
    attributes = {"stride": (2, 1), "padding": (0, 3), "dilation": (1, 2)}
    theirs = torch.nn.functional.conv2d(torch.from_numpy(x), torch.from_numpy(weight), **attributes)
    same(operate("conv", x, weight, **attributes), theirs)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(4,), (3, 4)])
def test_layer_norm_is_that_of_torch(torch: Any, shape: tuple[int, ...]) -> None:
    x, weight, bias = normal(2, 3, 4), normal(*shape), normal(*shape)
    theirs = torch.nn.functional.layer_norm(
        torch.from_numpy(x), shape, torch.from_numpy(weight), torch.from_numpy(bias), 1e-3
    )
    same(operate("layer_norm", x, weight, bias, eps=1e-3), theirs)


@pytest.mark.slow
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("attributes", [{"kernel": 2}, {"kernel": 3, "stride": 2, "padding": 1}], ids=str)
def test_pools_are_those_of_torch(torch: Any, attributes: dict[str, int], axes: int) -> None:
    x = normal(2, 3, *(8, 9, 7)[:axes])
    functions = torch.nn.functional
    given = {word.replace("kernel", "kernel_size"): value for word, value in attributes.items()}
    for name, theirs in (("max_pool", f"max_pool{axes}d"), ("mean_pool", f"avg_pool{axes}d")):
        same(operate(name, x, **attributes), getattr(functions, theirs)(torch.from_numpy(x), **given))


@pytest.mark.slow
def test_moving_and_mixing_are_those_of_torch(torch: Any) -> None:
    x = normal(2, 6, 4)
    tensor = torch.from_numpy(x)
    same(operate("fft", x, axis=(1, 2)), torch.fft.fft2(tensor).real)
    same(operate("fft", x, axis=0), torch.fft.fft(tensor, dim=0).real)
    same(operate("roll", x, shift=(3, -1), axis=(1, 2)), torch.roll(tensor, (3, -1), (1, 2)))
    padded = torch.nn.functional.pad(tensor, (0, 0, 2, 1), value=0.5)
    same(operate("pad", x, axis=1, before=2, after=1, value=0.5), padded)
    same(operate("argmax", np.round(x), axis=1, keep=True), torch.argmax(torch.round(tensor), 1, keepdim=True))
    weight, bias = normal(6), normal(6)
    theirs = torch.nn.functional.group_norm(tensor, 3, torch.from_numpy(weight), torch.from_numpy(bias), 1e-3)
    same(operate("group_norm", x, weight, bias, groups=3, eps=1e-3), theirs)
    ids = RANDOM.integers(0, 5, (2, 3))
    same(operate("one_hot", ids, count=5), torch.nn.functional.one_hot(torch.from_numpy(ids), 5))


@pytest.mark.slow
def test_indexing_is_that_of_torch(torch: Any) -> None:
    x, index = normal(2, 6, 4), RANDOM.integers(0, 6, (2, 3, 4))
    tensor = torch.from_numpy(x)
    same(operate("gather", x, index, axis=1), torch.gather(tensor, 1, torch.from_numpy(index)))
    same(operate("cumsum", x, axis=1), torch.cumsum(tensor, 1))
    for axis in (0, 1, 2):
        for ours, theirs in zip(operate("topk", x, k=2, axis=axis), torch.topk(tensor, 2, axis), strict=True):
            same(ours, theirs)
    square, right = normal(2, 5, 5), normal(2, 5, 3)
    solved = torch.linalg.solve_triangular(
        torch.from_numpy(square), torch.from_numpy(right), upper=False, unitriangular=True
    )
    same(operate("forward_substitution", square, right), solved)
    table, ids = normal(7, 3), RANDOM.integers(0, 7, (2, 5))
    embedding = torch.nn.functional.embedding(torch.from_numpy(ids), torch.from_numpy(table))
    same(operate("embedding", ids, table), embedding)


@pytest.mark.slow
def test_expert_linear_is_a_choice_among_those_of_torch(torch: Any) -> None:
    x, weight, bias = normal(3, 5, 4), normal(6, 7, 4), normal(6, 7)
    experts = RANDOM.integers(0, 6, (3, 5))
    tensors = [map(torch.from_numpy, (x, weight[e], bias[e])) for e in range(6)]
    every = torch.stack([torch.nn.functional.linear(*parts) for parts in tensors])
    chosen = torch.from_numpy(experts)[None, ..., None].expand(1, 3, 5, 7)
    same(operate("expert_linear", x, experts, weight, bias), torch.gather(every, 0, chosen)[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["neg", "abs", "exp", "sin", "cos", "tanh", "sigmoid", "erf", "floor", "log", "sqrt", "softmax"]
)
def test_functions_are_those_of_torch(torch: Any, name: str) -> None:
    x = normal(5, 7) * 3
    x = np.abs(x) if name in ("log", "sqrt") else x
    theirs = torch.softmax(torch.from_numpy(x), -1) if name == "softmax" else getattr(torch, name)(torch.from_numpy(x))
    same(operate(name, x), theirs)
