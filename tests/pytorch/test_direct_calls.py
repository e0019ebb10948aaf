"""Operations as exported programs seldom have them: the handlers, called directly, have the values of PyTorch."""

from collections.abc import Mapping
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from archspec.core.algebra import dim_max, symbol
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Arrays
from archspec.pytorch.calls.complex import ComplexValue, call_complex, has_complex
from archspec.pytorch.calls.registry import CALLS
from archspec.pytorch.calls.rows import convert
from archspec.pytorch.calls.shape import wrap_negative_indices
from archspec.pytorch.numeric.evaluate import Evaluation
from archspec.pytorch.values.arguments import UntranslatableError, as_list, is_list
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import Value

GENERATOR = torch.Generator().manual_seed(0)
ATEN = torch.ops.aten
SEQ, HEIGHT = symbol("seq"), symbol("height")


def r(*shape: int) -> Any:
    return torch.randn(shape, generator=GENERATOR)


def dtype_of(x: Any) -> str:
    kinds = {torch.bool: "bool", torch.int64: "int", torch.complex64: "complex"}
    return kinds.get(x.dtype, "real")


class Direct:
    """Calls of handlers with tensors, which are inputs of normal forms."""

    def __init__(self) -> None:
        self.arrays = Arrays()
        self.b = Builder(self.arrays)
        self.stored: dict[tuple[str, str], Any] = {}

    def given(self, item: Any) -> Any:
        if is_list(item):
            return [self.given(part) for part in item]
        if not isinstance(item, torch.Tensor):
            return item
        if item.is_complex():
            return ComplexValue(self.given(item.real), self.given(item.imag))
        name = f"x{len(self.stored)}"
        self.stored["input", name] = item
        return self.stored_input(name, tuple(item.shape), dtype_of(item))

    def stored_input(self, name: str, shape: Any, dtype: str = "real") -> Any:
        return self.b.made("", [], self.arrays.stored("input", name, shape, dtype))

    def call(self, name: str, types: list[Type], args: Any, named: Mapping[str, Any]) -> list[Any]:
        given = self.given(list(args))
        if has_complex(given) or any(type.dtype == "complex" for type in types):
            return as_list(call_complex(name, CALLS.get(name), self.b, types, *given, **named))
        results = CALLS[name](self.b, types, *given, **named)
        return [convert(self.b, results, types[0].dtype)] if isinstance(results, Value) else [*results]

    def value(self, found: Any, sizes: Mapping[str, int] | None = None) -> Any:
        if isinstance(found, ComplexValue):
            return torch.complex(self.value(found.real), self.value(found.imaginary))
        return Evaluation(self.arrays, self.stored, dict(sizes or {})).array(found.array)


def name_of(operation: Any) -> str:
    return operation._schema.name.rpartition("::")[2]


def check(operation: Any, *args: Any, **named: Any) -> None:
    """Compare the results of a handler with those of PyTorch; None is not computed."""
    expected = as_list(operation(*args, **named))
    types = [Type(tuple(x.shape), dtype_of(x)) for x in expected]
    direct = Direct()
    found = direct.call(name_of(operation), types, args, named)
    assert len(found) == len(expected)
    for array, tensor in zip(found, expected, strict=True):
        value = direct.value(array)
        assert value.shape == tensor.shape and value.is_complex() == tensor.is_complex()
        torch.testing.assert_close(value.to(tensor.dtype), tensor, atol=2e-5, rtol=1e-5)


def weights(*shapes: tuple[int, ...]) -> list[Any]:
    return [r(*shape) * 0.5 for shape in shapes]


LSTM = [*weights((12, 2), (12, 3), (12,), (12,)), *weights((12, 2), (12, 3), (12,), (12,))]
DEEP = [*weights((12, 2), (12, 3)), *weights((12, 3), (12, 3))]

BELOW = torch.tensor([[0, -2, 1], [-1, 2, -3]])
FLAGS = torch.tensor([[True, False, False], [True, True, True]])
SMALL = torch.tensor([[0.5, 0.0, -0.25], [0.0, 0.0, 0.0]])
HALVES = torch.tensor([-2.5, -0.5, 0.0, 0.5, 1.5])

PAIRS = torch.complex(r(2, 3), r(2, 3))

CALLED: dict[str, list[tuple[Any, ...]]] = {
    "of any and all": [
        *[
            (of.dim, x, axis, keep)
            for of in (ATEN.any, ATEN.all)
            for x in (SMALL, BELOW, FLAGS)
            for axis, keep in ((0, False), (-1, True))
        ],
        *[(of.default, x) for of in (ATEN.any, ATEN.all) for x in (SMALL, BELOW, FLAGS)],
    ],
    "least and largest": [
        *[(of.dim, r(3, 4), axis, keep) for of in (ATEN.max, ATEN.min) for axis, keep in ((0, False), (-2, True))],
        *[(of.default, x) for of in (ATEN.max, ATEN.min) for x in (r(3, 4), BELOW)],
        *[(of.other, BELOW, BELOW.flip(0)) for of in (ATEN.max, ATEN.min)],
        (ATEN.amin.default, r(3, 4), [0, 1]),
        (ATEN.amax.default, r(3, 4), [], True),
        (ATEN.argmin.default, BELOW, 0, True),
        (ATEN.argmax.default, BELOW, -1),
        (ATEN.topk.default, r(5, 3), 2, 0),
        (ATEN.topk.default, r(5, 3), 1, -1, False),
        (ATEN.sort.default, r(3, 4)),
        (ATEN.sort.default, r(3, 4), 0, True),
        (ATEN.argsort.default, r(3, 4), 0, True),
    ],
    "statistics": [
        (ATEN.var.default, r(3, 4)),
        (ATEN.var.default, r(3, 4), False),
        (ATEN.var.dim, r(3, 4), [0]),
        (ATEN.std.dim, r(3, 4), [1], False, True),
        (ATEN.linalg_vector_norm.default, r(3, 4), 3, [0], True),
        (ATEN.linalg_vector_norm.default, r(3, 4), float("inf"), [1]),
        (ATEN.norm.ScalarOpt_dim, r(3, 4), None, [0]),
        (ATEN.logsumexp.default, r(3, 4), [0, 1], True),
        (ATEN._log_softmax.default, r(3, 4), 0, False),
        (ATEN.prod.dim_int, r(2, 3), 0, True),
        (ATEN.prod.dim_int, FLAGS, -1),
        (ATEN.prod.dim_int, r(2, 16), 1),
        (ATEN.cosine_similarity.default, r(3, 4), r(3, 1), 0),
        (ATEN.cosine_similarity.default, r(3, 4) * 1e-3, r(3, 4), -1, 0.5),
        (
            ATEN.isin.Tensor_Tensor,
            BELOW,
            torch.tensor([1, -3]),
        ),
        (ATEN.isin.Tensor_Scalar, BELOW, 2),
        (ATEN.isin.Scalar_Tensor, 2, BELOW[1]),
        (ATEN.searchsorted.Tensor, torch.tensor([-1.0, 0.5, 0.5, 2.0]), HALVES),
        (ATEN.bucketize.Tensor, HALVES, torch.tensor([-0.5, 0.5])),
    ],
    "elementwise": [
        *[
            (of.default, x)
            for of in (ATEN.sign, ATEN.neg, ATEN.abs, ATEN.ceil, ATEN.floor, ATEN.trunc)
            for x in (HALVES, BELOW)
        ],
        *[(of.default, HALVES) for of in (ATEN.square, ATEN.round, ATEN.isnan, ATEN.isinf, ATEN.isfinite)],
        *[(of.default, r(4).abs() + 1) for of in (ATEN.rsqrt, ATEN.reciprocal, ATEN.sqrt, ATEN.log)],
        *[(of.Tensor, BELOW, torch.tensor([2, -2, 3])) for of in (ATEN.remainder, ATEN.fmod, ATEN.div)],
        *[(of.Tensor, HALVES, torch.tensor([1.0, -2.0, 0.5, 0.75, -1.0])) for of in (ATEN.remainder, ATEN.fmod)],
        (ATEN.div.Tensor, HALVES, r(5)),
        (ATEN.sub.Tensor, BELOW, SMALL),
        (ATEN.logical_xor.default, FLAGS, FLAGS.flip(1)),
        (ATEN.logical_not.default, FLAGS),
        (ATEN.mul.Tensor, FLAGS, FLAGS.flip(1)),
        (ATEN.add.Tensor, FLAGS, FLAGS.flip(1)),
        (ATEN.mul.Tensor, FLAGS, SMALL),
        (ATEN.maximum.default, FLAGS, FLAGS.flip(1)),
        (ATEN.minimum.default, FLAGS, FLAGS.flip(1)),
        (ATEN.lt.Tensor, FLAGS, BELOW),
        (ATEN.eq.Tensor, FLAGS, FLAGS.flip(1)),
        (ATEN.where.self, FLAGS, BELOW, SMALL),
        (ATEN.where.ScalarOther, FLAGS, BELOW, 2.5),
        (ATEN.masked_fill.Scalar, BELOW, FLAGS, 7),
        (ATEN.clamp.default, HALVES, None, 0.25),
        (ATEN.clamp.default, BELOW, -1),
        (ATEN.clamp.Tensor, HALVES, r(5).abs() * -1, r(5).abs()),
        (ATEN.clamp_max.default, HALVES, 0.25),
        (ATEN.pow.Scalar, 2.0, HALVES),
        (ATEN.pow.Tensor_Scalar, HALVES, 2),
        (ATEN.lerp.Tensor, HALVES, r(5), r(5)),
        (ATEN.fill.Scalar, HALVES, 3),
        (ATEN.copy.default, HALVES, torch.tensor([2])),
        (ATEN.type_as.default, BELOW, HALVES),
        (ATEN._to_copy.default, HALVES.long()),
        (ATEN.dropout.default, HALVES, 0.5, False),
        (ATEN.dropout.default, HALVES, 0.0, True),
        (ATEN.atan2.default, 1.0 + BELOW.double().float(), SMALL + 0.1),
    ],
    "activations": [
        *[(of.default, r(7) * 3) for of in (ATEN.relu, ATEN.relu6, ATEN.silu, ATEN.mish, ATEN.selu, ATEN.hardswish)],
        (ATEN.relu.default, BELOW),
        (ATEN.gelu.default, r(7)),
        (ATEN.glu.default, r(4, 6), 0),
        (ATEN.prelu.default, r(2, 3, 4), r(3)),
        (ATEN.prelu.default, r(2, 1, 4), r(1)),
        (ATEN.threshold.default, BELOW, 1, 5),
        (ATEN.elu.default, r(7), 0.5, 2.0, 3.0),
        (ATEN.hardtanh.default, r(7) * 3, -0.5, 2.5),
        (ATEN.leaky_relu.default, r(7)),
        (ATEN.celu.default, r(7), 2.0),
        (ATEN.softplus.default, r(7) * 3, 0.5, 1.0),
        (ATEN.softplus.default, r(7) * 3, 2.0, 30.0),
        (ATEN.logit.default, r(5).sigmoid()),
        (ATEN.hardsigmoid.default, r(7) * 4),
    ],
    "arranged": [
        (ATEN.t.default, r(3)),
        (ATEN.t.default, r(3, 2)),
        (ATEN.slice.Tensor, r(5, 7), 1, -9, 4),
        (ATEN.slice.Tensor, r(5, 7), -1, -3),
        (ATEN.slice.Tensor, r(5, 7), 0, 1, 99, 2),
        (ATEN.slice.Tensor, r(5)),
        (ATEN.cat.default, [r(0), r(2, 3), r(2, 1)], -1),
        (ATEN.cat.default, [BELOW, SMALL]),
        (ATEN.stack.default, [BELOW, SMALL], -1),
        (ATEN.stack.default, [BELOW, BELOW + 1]),
        (ATEN.split.Tensor, r(5, 3), 2),
        (ATEN.split_with_sizes.default, r(3, 5), [1, 4], -1),
        (ATEN.unbind.int, r(3, 4)),
        (ATEN.unbind.int, r(3, 4), -1),
        (ATEN.repeat.default, r(2, 3), [4, 1, 2]),
        (ATEN.tile.default, r(2, 3), [2]),
        (ATEN.repeat_interleave.self_int, r(2, 3), 3, -1),
        (ATEN.flip.default, r(2, 3, 4), [0, -1]),
        (ATEN.roll.default, r(3, 4), [1, -2], [1, 0]),
        (ATEN.constant_pad_nd.default, r(3, 4), [1, 2, 0, 3], 0.5),
        (ATEN.constant_pad_nd.default, BELOW, [-1, 2], 2.0),
        (ATEN.constant_pad_nd.default, BELOW, [1, -2, -1, 0]),
        (ATEN.constant_pad_nd.default, FLAGS, [0, 1], 1),
        (ATEN.pad.default, r(2, 3, 4), [2, 1], "circular"),
        (ATEN.reflection_pad2d.default, r(2, 4, 5), [0, 2, 3, 1]),
        (ATEN.replication_pad2d.default, r(2, 4, 5), [0, 2, 3, 1]),
        (ATEN.index.Tensor, r(4, 5, 3), [None, torch.tensor([[1, 4]])]),
        (ATEN.index.Tensor, r(4, 5, 3), [torch.tensor([3, 0]), None, torch.tensor([[2], [1]])]),
        (ATEN.index.Tensor, r(4, 5, 3), [torch.tensor([3, 0]), torch.tensor([[2], [1]])]),
        (ATEN.index_select.default, r(4, 5), -1, torch.tensor([3, 0, 3])),
        (ATEN.gather.default, r(4, 5), -1, torch.tensor([[3, 0]] * 4)),
        (ATEN.embedding.default, r(4, 5), torch.tensor([[3], [0]])),
        (ATEN.unfold.default, r(2, 9, 3), -2, 4, 2),
        (ATEN.im2col.default, r(2, 3, 6, 7), [2, 3], [2, 1], [1, 0], [1, 2]),
        (ATEN.pixel_shuffle.default, r(12, 2, 3), 2),
        (ATEN.pixel_unshuffle.default, r(3, 4, 6), 2),
        (ATEN.movedim.int, r(2, 3, 4), 0, -1),
        (ATEN.movedim.intlist, r(2, 3, 4), [-1, 0], [0, 1]),
        (ATEN.squeeze.dims, r(2, 1, 3, 1), [1]),
        (ATEN.select.int, r(2, 3), -1, -2),
    ],
    "made": [
        (ATEN.arange.default, 5),
        (ATEN.arange.start, 2, 6),
        (ATEN.arange.start_step, 7, 1, -2),
        (ATEN.arange.start_step, 0.5, 3.0, 0.25),
        (ATEN.full.default, [2, 3], 2.5),
        (ATEN.full.default, [2], True),
        (ATEN.full_like.default, BELOW, 3.0),
        (ATEN.new_full.default, BELOW, [4], 2),
        (ATEN.new_ones.default, SMALL, [2, 2]),
        (ATEN.zeros_like.default, FLAGS),
        (ATEN.linspace.default, -1.0, 2.0, 4),
        (ATEN.linspace.default, -1.0, 2.0, 1),
        (ATEN.eye.default, 3),
        (ATEN.eye.m, 2, 3),
        (ATEN.one_hot.default, torch.tensor([2, 0]), 4),
        (ATEN.meshgrid.default, [r(2), r(3), r(4)]),
    ],
    "replaced": [
        (ATEN.triu.default, BELOW, 1),
        (ATEN.triu.default, FLAGS),
        (ATEN.tril.default, r(2, 4, 5), -1),
        (ATEN.diagonal.default, r(4, 3)),
        (ATEN.diagonal.default, r(2, 4, 5), 1, -1, 1),
        (ATEN.diagonal.default, r(2, 4, 5), -2, 1, 2),
        (ATEN.diff.default, r(3, 5)),
        (ATEN.diff.default, r(3, 5), 1, 0, r(1, 5), r(2, 5)),
        (ATEN.slice_scatter.default, r(3, 6), r(3, 2), -1, -4, -2),
        (ATEN.slice_scatter.default, r(3, 6), r(1, 6), 0, 2),
        (ATEN.slice_scatter.default, r(4, 6), r(2, 6), 0, 1, 4, 2),
        (ATEN.slice_scatter.default, r(3, 6), r(3, 2), 1, 0, 6, 3),
        (ATEN.slice_scatter.default, r(3, 7), r(3, 3), 1, 1, 7, 2),
        (ATEN.select_scatter.default, r(3, 4), r(4), 0, 2),
        (ATEN.scatter.value, BELOW, 1, torch.tensor([[2, 2], [0, 1]]), 9),
        (ATEN.scatter.value, SMALL, 0, torch.tensor([[1, 1, 1]]), 2),
        (ATEN.index_put.default, r(4, 3), [torch.tensor([True, False, True, False])], r(3)),
        (ATEN.index_put.default, r(4, 3), [torch.tensor([3, 0]), torch.tensor([0, 1])], torch.tensor(5.0)),
        (ATEN.masked_scatter.default, r(4, 3), torch.tensor([[True], [False], [True], [True]]), r(5, 3)),
    ],
    "products": [
        (ATEN.linear.default, r(2, 3), r(3)),
        (ATEN.linear.default, r(2, 3), r(4, 3), r(4)),
        (ATEN.matmul.default, r(3), r(3)),
        (ATEN.matmul.default, r(5, 1, 2, 3), r(4, 3, 6)),
        (ATEN.addmm.default, r(4), r(2, 3), r(3, 4)),
        (ATEN.baddbmm.default, r(2, 3, 5), r(2, 3, 4), r(2, 4, 5)),
        (ATEN.bilinear.default, r(2, 3), r(2, 4), r(5, 3, 4), r(5)),
        (ATEN.einsum.default, "bi,bj", [r(2, 3), r(2, 4)]),
        (ATEN.einsum.default, "...ij,jk->...ki", [r(5, 2, 3), r(3, 4)]),
        (ATEN.einsum.default, "ij->ji", [r(2, 3)]),
        (ATEN.einsum.default, "ij,kj,lm->ikl", [r(2, 3), r(4, 3), r(5, 6)]),
        (ATEN.scaled_dot_product_attention.default, r(2, 3, 8), r(2, 5, 8), r(2, 5, 6), r(3, 5)),
    ],
    "windows": [
        (ATEN.conv1d.default, r(3, 9), r(4, 3, 3), r(4), [2], [1], [2]),
        (ATEN.conv2d.default, r(2, 4, 6, 7), r(6, 2, 2, 3), None, [1, 2], [0, 1], [2, 1], 2),
        (ATEN.conv2d.padding, r(2, 4, 6, 7), r(6, 4, 3, 5), None, [1, 1], "same", [2, 1]),
        (ATEN.conv_transpose2d.input, r(2, 4, 3, 5), r(4, 3, 2, 3), r(6), [2, 1], [1, 0], [1, 0], 2, [1, 2]),
        (ATEN.max_pool1d.default, r(2, 3, 9), [3], [2], [1]),
        (ATEN.max_pool2d.default, r(2, 3, 7, 8), [2, 3], [], [1, 0], [1, 1], True),
        (ATEN.avg_pool1d.default, r(2, 3, 9), [3]),
        (ATEN.avg_pool2d.default, r(2, 3, 7, 8), [2, 3], [2, 2], [1, 0], True),
        (ATEN.avg_pool2d.default, r(2, 3, 7, 8), [2, 3], [2, 2], [1, 1], True, False),
        (ATEN.avg_pool2d.default, r(2, 3, 7, 8), [3], [2], [1], False, False),
        (ATEN.adaptive_avg_pool1d.default, r(2, 3, 7), [3]),
        (ATEN.adaptive_avg_pool2d.default, r(2, 3, 7, 8), [1, 5]),
        (ATEN.upsample_nearest1d.vec, r(2, 3, 5), None, [2.0]),
        (ATEN.upsample_nearest2d.vec, r(2, 3, 5, 4), [7, 4], None),
        (ATEN._upsample_nearest_exact1d.vec, r(2, 3, 5), None, [1.5]),
        (ATEN.upsample_linear1d.vec, r(2, 3, 5), [8], True, None),
        (ATEN.upsample_linear1d.vec, r(2, 3, 5), [1], True, None),
        (ATEN.upsample_linear1d.vec, r(2, 3, 5), [2], True, None),
        (ATEN.upsample_bicubic2d.vec, r(1, 2, 4, 5), None, False, [1.5, 0.5]),
    ],
    "norms": [
        (ATEN.layer_norm.default, r(2, 3, 4), [3, 4], r(3, 4), r(3, 4), 0.1),
        (ATEN.layer_norm.default, r(2, 4), [4]),
        (ATEN.rms_norm.default, r(2, 3, 4), [3, 4], r(3, 4), 0.1),
        (ATEN.group_norm.default, r(2, 6, 4), 3, r(6), r(6), 0.1),
        (ATEN.batch_norm.default, r(4, 3, 2), r(3), r(3), r(3), r(3).abs(), False, 0.5, 0.25, False),
        (ATEN._weight_norm_interface.default, r(3, 4), r(1, 4), 1),
    ],
    "of numbers": [
        (ATEN.atan2.default, r(3, 4), torch.tensor([1.0, -2.0, 0.5, -0.5])),
        (ATEN.atan2.default, torch.tensor([1, -2, 3]), torch.tensor([-1, 2, 2])),
        (ATEN.scalar_tensor.default, 2.5),
    ],
    "complex": [
        (ATEN.fft_rfft.default, r(3, 5)),
        (ATEN.fft_rfft.default, r(3, 4), 3, 0),
        (ATEN.fft_rfft.default, r(3, 4), None, -2, "ortho"),
        (ATEN.fft_rfft.default, r(4), None, -1, "forward"),
        (ATEN.fft_ifft.default, torch.complex(r(2, 3), r(2, 3)), 3, -1, "forward"),
        (ATEN.fft_ifft2.default, torch.complex(r(2, 3), r(2, 3))),
        *[(of.Tensor, PAIRS, other) for of in (ATEN.add, ATEN.sub) for other in (2.5, 3, 1.0 - 2.0j, r(2, 3), PAIRS)],
        *[(ATEN.mul.Tensor, PAIRS, other) for other in (2.5, 1.0 - 2.0j, r(2, 3), PAIRS)],
        (ATEN.mul.Tensor, r(2, 3), PAIRS),
        (ATEN.view_as_complex.default, r(2, 3, 2)),
        (ATEN.view_as_real.default, PAIRS),
        (ATEN.complex.default, r(2, 3), r(2, 3)),
        (ATEN.polar.default, r(2, 3).abs(), r(2, 3)),
        *[(of.default, PAIRS) for of in (ATEN.real, ATEN.imag, ATEN.abs, ATEN.conj_physical, ATEN._to_copy)],
        (ATEN.fft_fft.default, PAIRS, None, -1, "backward"),
        (ATEN.fft_ifft.default, PAIRS, 2, 0, "backward"),
        (ATEN.fft_fftn.default, PAIRS, None, [0, 1], "ortho"),
        (ATEN.constant_pad_nd.default, PAIRS, [1, 2], 2.5),
        (ATEN.constant_pad_nd.default, PAIRS, [-1, 1]),
        (ATEN.pad.default, PAIRS, [1, 0], "constant", 2.5),
        (ATEN.index_select.default, PAIRS, 1, torch.tensor([2, 0])),
        (ATEN.index.Tensor, PAIRS, [None, torch.tensor([2, 0])]),
        (ATEN.sum.dim_IntList, PAIRS, [-1], True),
        (ATEN.cat.default, [PAIRS, PAIRS], 1),
        (ATEN.unbind.int, PAIRS, 1),
    ],
    "layers": [
        (ATEN.conv1d.padding, r(2, 3, 8), r(6, 3, 3), r(6), [2], "valid", [2]),
        (ATEN.conv1d.padding, r(2, 3, 8), r(6, 3, 3), None, [1], "same", [2]),
        (ATEN.conv_transpose1d.default, r(3, 7), r(3, 4, 4), r(4), [2], [1]),
        (ATEN.instance_norm.default, r(2, 3, 4), r(3), r(3), r(3), r(3).abs(), False, 0.1, 0.25, False),
        (ATEN.instance_norm.default, r(2, 3, 4), r(3), None, None, None, True, 0.1, 0.25, False),
        (ATEN.reflection_pad1d.default, r(2, 5), [1, 3]),
        (ATEN.replication_pad1d.default, r(2, 5), [1, 3]),
    ],
    "recurrent": [
        (ATEN.lstm.input, r(2, 4, 2), [r(2, 2, 3), r(2, 2, 3)], LSTM, True, 1, 0.0, False, True, True),
        (ATEN.lstm.input, r(4, 3, 2), [r(2, 3, 3), r(2, 3, 3)], DEEP, False, 2, 0.0, False, False, False),
    ],
}


@pytest.mark.parametrize("group", CALLED)
def test_handlers_have_the_values_of_pytorch(group: str) -> None:
    for operation, *args in CALLED[group]:
        check(operation, *args)


def test_handlers_are_of_operations_of_pytorch() -> None:
    """Those of loops are defined by this package."""
    assert {name for name in CALLS if not hasattr(ATEN, name)} == OTHER_NAMES


OTHER_NAMES = {"carried", "looped"}


def test_handlers_with_named_arguments_have_the_values_of_pytorch() -> None:
    check(ATEN.sort.stable, r(3, 4), stable=True, dim=0)
    check(ATEN.sort.stable, r(3, 4), stable=True, descending=True)
    check(ATEN.var.correction, r(3, 4), [0], correction=2.0)
    check(ATEN.var_mean.correction, r(3, 4), [1], correction=0, keepdim=True)
    check(ATEN.std_mean.correction, r(3, 4), None, correction=None)
    check(ATEN.div.Tensor_mode, BELOW, torch.tensor([2, -2, 3]), rounding_mode="trunc")
    check(ATEN.div.Tensor_mode, HALVES, r(5), rounding_mode="trunc")
    check(ATEN.div.Tensor_mode, HALVES, r(5), rounding_mode="floor")
    check(ATEN.add.Tensor, BELOW, SMALL, alpha=3)
    check(ATEN.sub.Tensor, BELOW, BELOW.flip(0), alpha=-2)
    check(ATEN.rsub.Scalar, SMALL, 2.0, 3.0)
    check(ATEN.addcmul.default, SMALL, r(2, 3), BELOW, value=0.5)
    check(ATEN.addcdiv.default, SMALL, r(2, 3), r(2, 3), value=-2.0)
    check(ATEN.addmm.default, r(3), r(4, 2), r(2, 3), beta=0.5, alpha=3.0)
    check(ATEN.baddbmm.default, r(2, 3, 5), r(2, 3, 4), r(2, 4, 5), beta=0.5, alpha=3.0)
    check(ATEN.isin.Tensor_Tensor, BELOW, torch.tensor([1, -3]), invert=True)
    check(ATEN.bucketize.Tensor, HALVES, torch.tensor([-0.5, 0.5]), right=True)
    check(ATEN.searchsorted.Tensor, torch.tensor([-0.5, 0.5]), HALVES, right=True)
    check(ATEN.linalg_solve_triangular.default, r(2, 3, 3), r(2, 3, 4), upper=False, unitriangular=True)
    check(ATEN.meshgrid.indexing, [r(2), r(3), r(4)], indexing="xy")
    check(ATEN.meshgrid.indexing, [r(2)], indexing="ij")
    check(ATEN.gelu.default, r(7), approximate="tanh")
    check(ATEN.scaled_dot_product_attention.default, r(2, 4, 3, 8), r(2, 2, 5, 8), r(2, 2, 5, 6), enable_gqa=True)
    check(ATEN.scaled_dot_product_attention.default, r(2, 3, 8), r(2, 5, 8), r(2, 5, 6), is_causal=True, scale=0.5)
    check(ATEN.full.default, [2, 3], 2.0, dtype=torch.int64)
    check(ATEN.arange.start_step, 0, 6, 2, dtype=torch.float32)
    check(ATEN.arange.start_step, 6, -6, -1.0, dtype=torch.long)
    check(ATEN.sum.dim_IntList, BELOW, [0], dtype=torch.float32)
    check(ATEN.sum.dim_IntList, FLAGS, [1], True)
    check(ATEN.sum.default, FLAGS)
    check(ATEN.cumsum.default, FLAGS, 1)
    check(ATEN.mean.dim, SMALL, [0, 1])
    check(ATEN._to_copy.default, SMALL, dtype=torch.bool)
    check(ATEN._to_copy.default, SMALL * 9, dtype=torch.int64)
    check(ATEN.scatter.value, SMALL, 1, torch.tensor([[2], [0]]), value=-1.5)
    check(ATEN.pad.default, PAIRS, [1, 0], value=2.5)
    check(ATEN.add.Tensor, PAIRS, 2.0, alpha=3)


@pytest.mark.parametrize("x", [r(2, 3), torch.tensor([[1, -2], [3, 4]])], ids=["reals", "integers"])
def test_numbers_that_become_complex_have_no_imaginary_part(x: Any) -> None:
    check(ATEN._to_copy.default, x, dtype=torch.complex64)


def test_statistics_that_training_would_use_are_not_computed() -> None:
    x, scale, shift = r(1, 4, 3), r(4), r(4)
    direct = Direct()
    types = [Type((1, 4, 3)), Type((4,)), Type((4,))]
    found = direct.call("_native_batch_norm_legit", types, (x, scale, shift, True, 0.1, 0.25), {})
    result, *rest = found
    expected = torch.nn.functional.batch_norm(x, None, None, scale, shift, True, 0.1, 0.25)
    torch.testing.assert_close(direct.value(result).float(), expected)
    assert rest == [None, None]


def test_an_axis_of_any_size_keeps_it_where_another_one_is_resized() -> None:
    direct = Direct()
    x = direct.stored_input("x", (1, 2, HEIGHT, 4))
    direct.stored["input", "x"] = tensor = r(1, 2, 3, 4)
    (found,) = direct.call("upsample_nearest2d", [Type((1, 2, HEIGHT, 6))], (x, None, None, None), {})
    expected = torch.nn.functional.interpolate(tensor, (3, 6))
    torch.testing.assert_close(direct.value(found, {"height": 3}).float(), expected)


def test_an_axis_of_any_size_is_repeated() -> None:
    direct = Direct()
    x = direct.stored_input("x", (1, 2, SEQ))
    (found,) = direct.call("upsample_nearest1d", [Type((1, 2, 3 * SEQ))], (x, None, 3.0), {})
    for size in (1, 4):
        direct.stored["input", "x"] = tensor = r(1, 2, size)
        expected = torch.nn.functional.interpolate(tensor, scale_factor=3)
        assert direct.value(found, {"seq": size}).float().equal(expected)


def test_ends_of_any_size_are_continued() -> None:
    direct = Direct()
    x = direct.given(tensor := r(2, 3, 4))
    (found,) = direct.call("replication_pad2d", [Type((2, SEQ + 5, 5))], (x, [1, 0, SEQ, 2]), {})
    for size in (1, 4):
        expected = torch.nn.functional.pad(tensor, (1, 0, size, 2), mode="replicate")
        assert direct.value(found, {"seq": size}).float().equal(expected)


def test_slices_begin_at_sizes() -> None:
    direct = Direct()
    x = direct.stored_input("x", (2, SEQ))
    types = [Type((2, 3))]
    (found,) = direct.call("slice", types, (x, 1, SEQ - 3), {})
    assert found.array == direct.call("slice", types, (x, 1, dim_max(SEQ - 3, 0)), {})[0].array
    for size in (3, 5):
        direct.stored["input", "x"] = tensor = r(2, size)
        assert direct.value(found, {"seq": size}).float().equal(tensor[:, size - 3 :])


def of(*shape: Any) -> Type:
    return Type(shape)


X, ROWS, MASK = r(4, 3), torch.tensor([0, 2]), torch.tensor([True, False, True, False])

PROJECTED = [r(2, 4, 2), [r(1, 2, 3)] * 2, LSTM[:5], True, 1, 0.0, False, False, True]

REFUSED: dict[str, tuple[str, Type, list[Any], dict[str, Any]]] = {
    "a cosine of repeated numbers": ("cosine_similarity", of(4), [r(3, 4), r(1, 4), 0], {}),
    "a transform of another size": ("fft_fft", Type((3, 3), "complex"), [r(3, 4), 3], {}),
    "a cubic resizing to any size": ("upsample_bicubic2d", of(1, 2, HEIGHT, 3), [r(1, 2, 3, 4), None, False], {}),
    "an aligned resizing to any size": ("upsample_linear1d", of(1, 2, HEIGHT), [r(1, 2, 3), None, True], {}),
    "a resizing to any size by a scale": ("upsample_linear1d", of(1, 2, HEIGHT), [r(1, 2, 3), None, False, 1.5], {}),
    "a root of squares without an epsilon": ("rms_norm", of(4, 3), [X, [3]], {}),
    "reduced scattering": ("scatter", of(4, 3), [X, 1, torch.zeros(4, 2).long(), 1.0], {"reduce": "add"}),
    "scattering of several numbers": ("scatter", of(4, 3), [X, 1, torch.zeros(4, 2).long(), X[:, 1:]], {}),
    "scattering of nothing": ("scatter", of(4, 3), [X, 1, torch.zeros(4, 2).long()], {}),
    "scattering to some rows": ("scatter", of(4, 3), [X, 1, torch.zeros(2, 2).long(), 1.0], {}),
    "scattering to some rows of all": ("scatter", of(4, 3, 5), [r(4, 3, 5), 1, torch.zeros(2, 2, 5).long(), 1.0], {}),
    "how many are not 0": ("norm", of(4), [X, 0, [1]], {}),
    "the least size": ("norm", of(4), [X, float("-inf"), [1]], {}),
    "a norm by name": ("linalg_norm", of(), [r(4), "nuc", [0]], {}),
    "a norm of matrices": ("linalg_norm", of(), [X, 2], {}),
    "a product of many": ("prod", of(4), [r(4, 17), 1], {}),
    "the nearest of four": ("grid_sampler", of(1, 2, 3, 2), [r(1, 2, 4, 3), r(1, 3, 2, 2), 1, 0, False], {}),
    "what continues an image": ("grid_sampler", of(1, 2, 3, 2), [r(1, 2, 4, 3), r(1, 3, 2, 2), 0, 1, False], {}),
    "places of a volume": ("grid_sampler", of(1, 1, 2, 2, 2), [r(1, 1, 2, 2, 2), r(1, 2, 2, 2, 3), 0, 0, False], {}),
    "replaced steps of any size": ("slice_scatter", of(4, 3), [X, r(2, 3), 0, SEQ, None, 2], {}),
    "accumulated elements": ("index_put", of(4, 3), [X, [ROWS], r(2, 3), True], {}),
    "elements at indices of the last axis": ("index_put", of(4, 3), [X, [None, ROWS], torch.ones(())], {}),
    "elements at a mask and indices": ("index_put", of(4, 3), [X, [MASK, ROWS], torch.ones(())], {}),
    "elements at rows of indices": ("index_put", of(4, 3), [X, [torch.zeros(2, 2).long()], torch.ones(())], {}),
    "elements at an index alone": ("index_put", of(4, 3), [X, [torch.tensor(1)], torch.ones(())], {}),
    "elements at indices of two lengths": ("index_put", of(4, 3), [X, [ROWS, ROWS.new_zeros(3)], torch.ones(())], {}),
    "projected states": ("lstm", of(2, 4, 2), PROJECTED, {}),
    "rows of boundaries": ("searchsorted", Type((4, 3), "int"), [r(4, 5), X], {}),
    "boundaries in another order": ("searchsorted", Type((4, 3), "int"), [r(3), X], {"sorter": torch.arange(3)}),
    "the other side of boundaries": ("searchsorted", Type((4, 3), "int"), [r(3), X], {"side": "right"}),
    "less at an end that is mirrored": ("reflection_pad1d", of(4, 3), [X, [-1, 1]], {}),
    "less at the other end": ("reflection_pad1d", of(4, 3), [X, [1, -1]], {}),
    "any size before": ("reflection_pad1d", of(4, SEQ + 4), [X, [SEQ, 1]], {}),
    "any size after": ("reflection_pad1d", of(4, SEQ + 4), [X, [1, SEQ]], {}),
    "an unknown continuation": ("pad", of(4, 5), [X, [1, 1], "other"], {}),
    "steps of any size from a fraction": ("arange", of(3), [0.5, SEQ, SEQ], {}),
    "fractions from any number": ("arange", of(3), [SEQ, SEQ, 0.5], {}),
    "integers with a fraction between them": ("arange", Type((3,), "int"), [0, 2, 0.5], {}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_normal_form_is_refused(what: str) -> None:
    name, type, args, named = REFUSED[what]
    shown = {"fft_fft": "fft", "reflection_pad1d": "pad"}.get(name, name).removesuffix("_bicubic2d")
    with pytest.raises(
        UntranslatableError, match=f"`aten.{shown.removesuffix('_linear1d')}` has no normal form with these"
    ):
        Direct().call(name, [type], args, named)


SQUARE, PART = r(3, 3), r(2)
SPECIAL = {
    "an upper system": ("linalg_solve_triangular", [SQUARE, SQUARE], {"upper": True, "unitriangular": True}),
    "other diagonals": ("linalg_solve_triangular", [SQUARE, SQUARE], {"upper": False}),
    "a system on the right": (
        "linalg_solve_triangular", [SQUARE, SQUARE], {"upper": False, "left": False, "unitriangular": True}
    ),
    "stored statistics in training": ("batch_norm", [r(1, 2, 4), None, None, PART, PART, True, 0.1, 0.5, False], {}),
    "no statistics": ("batch_norm", [r(1, 2, 4), None, None, None, None, False, 0.1, 0.5, False], {}),
    "a mean alone": ("batch_norm", [r(1, 2, 4), None, None, PART, None, True, 0.1, 0.5, False], {}),
    "a variance alone": ("batch_norm", [r(1, 2, 4), None, None, None, PART, False, 0.1, 0.5, False], {}),
    "statistics of two samples": ("batch_norm", [r(2, 2, 4), None, None, None, None, True, 0.1, 0.5, False], {}),
    "dropped elements": ("dropout", [SQUARE, 0.5, True], {}),
}  # fmt: skip


@pytest.mark.parametrize("what", SPECIAL)
def test_what_only_training_or_other_systems_need_is_refused(what: str) -> None:
    name, args, named = SPECIAL[what]
    reasons = "unit lower-triangular|uses batch statistics|dropout is active"
    with pytest.raises(UntranslatableError, match=reasons):
        Direct().call(name, [of(*args[0].shape)], args, named)


def test_indices_that_may_be_negative_count_from_the_end() -> None:
    arrays = Arrays()
    computed = arrays.opaque("unheard", (("most", 3),), [], [((2,), "int")])[0]
    given = arrays.stored("input", "ids", (2,), "int")
    looped = arrays.loop((0, (), 0, 3), [given, given], [((2,), "int")])[0]
    for index in (computed, looped):
        assert wrap_negative_indices(arrays, index, 5) == arrays.array(
            (2,), arrays.elements.integer(arrays.elements.polynomial(index.element) % 5)
        )
    assert wrap_negative_indices(arrays, given, 5) == given


def test_masks_that_select_are_refused() -> None:
    with pytest.raises(UntranslatableError, match="it selects by a mask"):
        Direct().call("index", [of(2, 3)], [X, [MASK]], {})
