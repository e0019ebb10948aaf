"""A new call of PyTorch is one row, also with an operation that is new: lifting, proofs and the table of cases know it.

The tests register operations that PyTorch does not have, and rows and records that archspec does not have.
"""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import call_table
from call_table import translated

import archspec
from archspec import ArchError, Type
from archspec.codegen.build import torch_source
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.forms import weights
from archspec.ir.normal.forms.elementwise import add, negate
from archspec.ir.ops import OPS, Attribute, Input, Op, TorchForm
from archspec.ir.ops.check import Shape
from archspec.pytorch.calls.registry import CALLS
from archspec.pytorch.calls.rows import Types
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import Value

F, nn, Tensor = torch.nn.functional, torch.nn, torch.Tensor


def register(name: str, function: Callable[..., Any]) -> None:
    """Register an operation of PyTorch."""
    torch.library.custom_op(f"archspec_test::{name}", function, mutates_args=()).register_fake(function)


def squash(x: Tensor, scale: float) -> Tensor:
    return scale * x / (x.abs() + 1)


def range_pool(x: Tensor, kernel: int) -> Tensor:
    return F.max_pool1d(x, kernel) + F.max_pool1d(-x, kernel)


register("squash", squash)
register("range_pool", range_pool)


def _squash(b: Builder, types: Types, x: Value, scale: float) -> Value:
    return b.op("div", b.op("mul", x, scale), b.op("add", b.op("abs", x), 1.0))


def _range_pool(b: Builder, types: Types, x: Value, kernel: int) -> Value:
    return b.op("range_pool", x, kernel=kernel)


def _range_pool_shape(x: Type, kernel: object) -> Shape:
    return OPS["max_pool"].shapes(x, kernel, None, 0)


def _range_pool_form(n: Arrays, x: Array, kernel: object) -> Array:
    """Return the largest element of each window, less the smallest."""
    ends = [weights.max_pool(n, side, kernel, None, 0) for side in (x, n.each(x.shape, negate, x))]
    return n.each(ends[0].shape, add, *ends)


RANGE_POOL = Op(
    "range_pool",
    "Weights and positions",
    "The largest element of each window of x, less the smallest.",
    (Input("x", "number", "[batch, channels, n]"),),
    (Attribute("kernel"),),
    "real; [batch, channels, n // kernel]",
    _range_pool_shape,
    ("real",),
    mixes=True,
    work=2,
    over="window",
    normal="weights.range_pool",
    torch=TorchForm("F.max_pool1d(x, kernel) + F.max_pool1d(-x, kernel)"),
)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_table, "NAMESPACES", [torch.ops.archspec_test])
    monkeypatch.setitem(CALLS, "squash", _squash)
    monkeypatch.setitem(CALLS, "range_pool", _range_pool)
    monkeypatch.setitem(OPS, "range_pool", RANGE_POOL)
    monkeypatch.setattr(weights, "range_pool", _range_pool_form, raising=False)


class Net(nn.Module):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.proj, self.function = nn.Linear(6, 6), function

    def forward(self, x: Any) -> Any:
        return self.function(self.proj(x))


def lifted(function: Callable[[Any], Any]) -> str:
    module = Net(function).eval()
    text = archspec.lift(module, {"x": torch.randn(3, 5, 6)})
    assert archspec.equivalent(archspec.loads(text), module).verdict == "equal"
    return text


def test_a_call_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    call = torch.ops.archspec_test.squash
    assert translated("squash(r(2, 3), 2.5)") == "squash(r(2, 3), 2.5) = div(mul(x, 2.5), add(abs(x), 1.0))"
    text = lifted(lambda x: call(x, 2.5))
    assert "return proj * 2.5 / (abs(proj) + 1.0)" in text
    other = archspec.equivalent(archspec.loads(text), Net(lambda x: call(x, 2.0)).eval())
    assert other.verdict == "different"
    monkeypatch.delitem(CALLS, "squash")
    with pytest.raises(ArchError, match=r"`aten.squash` has no normal form"):
        lifted(lambda x: call(x, 2.5))


def test_a_window_operation_is_a_record_with_a_form_and_a_row() -> None:
    call = torch.ops.archspec_test.range_pool
    assert translated("range_pool(r(2, 3, 7), 2)") == "range_pool(r(2, 3, 7), 2) = range_pool[kernel=2](x)"
    text = lifted(lambda x: call(x, 2))
    assert "return proj: Linear(6, 6)(x) |> range_pool(kernel = 2)" in text
    assert "F.max_pool1d(-self.proj(x), 2)" in torch_source(archspec.loads(text))
    assert archspec.equivalent(archspec.loads(text), Net(lambda x: call(x, 3)).eval()).verdict == "different"
    same = Net(lambda x: F.max_pool1d(x, 2) + F.max_pool1d(-x, 2)).eval()
    assert archspec.equivalent(archspec.loads(text), same).verdict == "equal"
