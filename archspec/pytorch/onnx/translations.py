"""Operations that PyTorch's exporter does not translate, or not as PyTorch computes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from math import inf, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir as ir


def translations() -> Mapping[Callable[..., object], Callable[..., ir.Value | tuple[ir.Value, ...]]]:
    """Return functions that build the ONNX form of operations, by operation of PyTorch."""
    torch, op = import_module("torch"), import_module("onnxscript").opset20

    def sort(
        self: ir.Value, stable: bool | None = None, dim: int = -1, descending: bool = False
    ) -> tuple[ir.Value, ...]:
        """TopK of all elements, which orders equal ones by their index as a stable sort does."""
        size = op.Shape(self, start=-1) if dim == -1 else op.Shape(self, start=dim, end=dim + 1)
        return op.TopK(self, size, axis=dim, largest=int(descending), sorted=1)

    def attention(
        query: ir.Value,
        key: ir.Value,
        value: ir.Value,
        attn_mask: ir.Value | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> ir.Value:
        """Attention whose result is 0 in rows with all keys masked, as in PyTorch."""
        if enable_gqa:
            key, value = [repeated(each, _size(query, -3)) for each in (key, value)]
        axes = [*range(len(key.shape or ()))]
        scores = op.MatMul(
            op.Mul(query, 1 / sqrt(_size(query, -1)) if scale is None else scale),
            op.Transpose(key, perm=[*axes[:-2], axes[-1], axes[-2]]),
        )
        if is_causal:
            sizes = op.Concat(op.Shape(query, start=-2, end=-1), op.Shape(key, start=-2, end=-1), axis=0)
            ones = op.ConstantOfShape(sizes, value=import_module("onnx_ir").tensor([1.0]))
            scores = op.Where(op.Cast(op.Trilu(ones, upper=0), to=_BOOL), scores, -inf)
        if attn_mask is not None:
            is_bool = attn_mask.dtype == _BOOL
            scores = op.Where(attn_mask, scores, -inf) if is_bool else op.Add(scores, attn_mask)
        elif not is_causal:
            return op.MatMul(op.Softmax(scores, axis=-1), value)
        is_masked = op.Equal(op.ReduceMax(scores, op.Constant(value_ints=[-1]), keepdims=1), -inf)
        return op.MatMul(op.Where(is_masked, 0.0, op.Softmax(scores, axis=-1)), value)

    def repeated(x: ir.Value, heads: int) -> ir.Value:
        """Repeat each head of keys or values [batch, groups, keys, size] for the queries that share it."""
        times = op.Constant(value_ints=[1, 1, heads // _size(x, -3), 1, 1])
        all = op.Concat(op.Shape(x, end=1), op.Constant(value_ints=[heads]), op.Shape(x, start=2), axis=0)
        return op.Reshape(op.Expand(op.Unsqueeze(x, op.Constant(value_ints=[2])), times), all)

    def remainder(self: ir.Value, other: ir.Value | float) -> ir.Value:
        """The remainder of a division that rounds down, also by a size that an input changes."""
        by = other if isinstance(other, int | float) else op.CastLike(other, self)
        if self.dtype in _INTEGERS:
            return op.Mod(self, by)
        return op.Sub(self, op.Mul(op.Floor(op.Div(self, by)), by))

    return {
        torch.ops.aten.remainder.Scalar: remainder,
        torch.ops.aten.sort.stable: sort,
        torch.ops.aten.scaled_dot_product_attention.default: attention,
    }


_BOOL = 9
"""The number of the type of booleans in ONNX."""

_INTEGERS = (6, 7)
"""The numbers of the types of integers in ONNX."""


def _size(x: ir.Value, axis: int) -> int:
    """Return the size of an axis of heads or features, which no input changes."""
    size = x.shape[axis] if x.shape is not None else None
    assert isinstance(size, int)
    return size
