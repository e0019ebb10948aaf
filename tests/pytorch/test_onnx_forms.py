"""The forms of operations that are written for ONNX, with NumPy in the place of ONNX's operations."""

import importlib
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from archspec.pytorch.onnx import translations

F = torch.nn.functional
NUMBERS = {np.dtype(bool): 9, np.dtype("int64"): 7, np.dtype("int32"): 6}


class Value:
    """An array whose type has the number that ONNX gives it."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)
        self.shape = self.array.shape
        self.dtype = NUMBERS.get(self.array.dtype, 1)


def plain(item: Any) -> Any:
    return item.array if isinstance(item, Value) else item


def op(function: Any) -> Any:
    return lambda *given, **named: Value(function(*map(plain, given), **named))


def ordered(x: Any, size: Any, axis: int, largest: int, sorted: int) -> Any:
    assert sorted == 1 and size.tolist() == [x.shape[axis]]
    order = np.argsort(-x if largest else x, axis=axis, kind="stable")
    return np.take_along_axis(x, order, axis), order


def softmax(x: Any, axis: int) -> Any:
    with np.errstate(invalid="ignore"):
        shares = np.exp(x - x.max(axis, keepdims=True))
        return shares / shares.sum(axis, keepdims=True)


def extent(x: Any, start: int = 0, end: int | None = None) -> Any:
    return np.array(x.shape[start:end])


OPSET = SimpleNamespace(
    Shape=op(extent),
    TopK=lambda *given, **named: tuple(map(Value, ordered(*map(plain, given), **named))),
    MatMul=op(np.matmul),
    Mul=op(np.multiply),
    Add=op(np.add),
    Sub=op(np.subtract),
    Div=op(np.divide),
    Mod=op(np.mod),
    Floor=op(np.floor),
    Equal=op(np.equal),
    Where=op(np.where),
    Softmax=op(softmax),
    Transpose=op(lambda x, perm: x.transpose(perm)),
    Concat=lambda *parts, axis: Value(np.concatenate([*map(plain, parts)], axis)),
    ConstantOfShape=op(lambda sizes, value: np.full(sizes, value[0])),
    Trilu=op(lambda x, upper: np.triu(x) if upper else np.tril(x)),
    Cast=op(lambda x, to: x.astype({9: bool}[to])),
    CastLike=op(lambda x, like: x.astype(like.dtype)),
    ReduceMax=op(lambda x, axes, keepdims: x.max(tuple(axes), keepdims=bool(keepdims))),
    Constant=lambda value_ints: Value(value_ints),
    Reshape=op(np.reshape),
    Unsqueeze=op(lambda x, axes: np.expand_dims(x, tuple(axes))),
    Expand=op(lambda x, times: np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(times)))),
)


@pytest.fixture
def forms(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(sys.modules, "onnxscript", SimpleNamespace(opset20=OPSET))
    monkeypatch.setitem(sys.modules, "onnx_ir", SimpleNamespace(tensor=list))
    return importlib.import_module(translations.__name__).translations()


def same(found: Value, expected: Any) -> None:
    np.testing.assert_allclose(found.array, expected.numpy(), rtol=1e-6, atol=1e-7)


def drawn(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)), dtype=torch.float64)


def masks() -> dict[str, Any]:
    hidden = torch.ones(3, 5, dtype=torch.bool).tril()
    hidden[1] = False
    return {"bool": hidden, "number": torch.where(hidden, 0.25, -torch.inf).double(), "none": None}


@pytest.mark.parametrize("mask", ["bool", "number", "none"])
@pytest.mark.parametrize("options", [{}, {"scale": 0.3}, {"is_causal": True}, {"enable_gqa": True}], ids=str)
def test_attention(forms: Any, mask: str, options: dict[str, Any]) -> None:
    given = masks()[mask]
    if given is not None and "is_causal" in options:
        return  # PyTorch takes one of them
    groups = 4 if "enable_gqa" in options else 12
    q, k, v = drawn(5, 12, 3, 8), drawn(5, groups, 5, 8), drawn(5, groups, 5, 6)
    attention = forms[torch.ops.aten.scaled_dot_product_attention.default]
    found = attention(*[Value(x.numpy()) for x in (q, k, v)], given if given is None else Value(given), **options)
    same(found, F.scaled_dot_product_attention(q, k, v, given, **options))
    assert given is None or not found.array[:, :, 1].any()


@pytest.mark.parametrize("rank", [2, 3])
def test_attention_of_other_ranks(forms: Any, rank: int) -> None:
    q, k, v = [x if rank == 3 else x[0] for x in (drawn(2, 3, 8), drawn(2, 5, 8), drawn(2, 5, 6))]
    attention = forms[torch.ops.aten.scaled_dot_product_attention.default]
    same(attention(*[Value(x.numpy()) for x in (q, k, v)]), F.scaled_dot_product_attention(q, k, v))


@pytest.mark.parametrize("options", [{}, {"dim": 0}, {"dim": 1, "descending": True}, {"stable": True, "dim": -2}])
def test_sorts(forms: Any, options: dict[str, Any]) -> None:
    x = torch.tensor([[3, 1, 3, 2], [1, 1, 0, 2], [3, 0, 3, 3]])
    found = forms[torch.ops.aten.sort.stable](Value(x), **options)
    expected = torch.sort(x, **{"stable": True, **options})
    assert [part.array.tolist() for part in found] == [part.tolist() for part in expected]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float64])
def test_remainders(forms: Any, dtype: Any) -> None:
    x = torch.tensor([-7, -3, 0, 2, 8]).to(dtype)
    remainder = forms[torch.ops.aten.remainder.Scalar]
    for by in (3, -3, 2.5) if dtype.is_floating_point else (3, -3):
        same(remainder(Value(x), by), torch.remainder(x, by))
        same(remainder(Value(x), Value(np.float32(by))), torch.remainder(x, by))
    assert remainder(Value(x), Value(np.int64(3))).array.dtype == x.numpy().dtype
    fractions = remainder(Value(x), 3)
    assert (fractions.dtype == 1) == dtype.is_floating_point


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        (["outer", "no form of OpOverload(op='aten.sort', overload='stable')"], "has no form of `aten.sort.stable`"),
        (["OpOverload(op='aten.sort', overload='stable')", "inner\nmore"], "fails: inner"),
        (["outer", "middle", ""], "fails: ValueError"),
    ],
)
def test_the_reason_of_the_exporter_is_the_innermost(messages: list[str], reason: str) -> None:
    program = importlib.import_module("archspec.pytorch.onnx.program")
    error = None
    for message in reversed(messages):
        outer = ValueError(message)
        outer.__cause__ = error
        error = outer
    assert program._reason(error) == f"the exporter of PyTorch {reason}"
