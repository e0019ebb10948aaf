"""Operations of PyTorch in normal form, and as operations of the language: they have the values of PyTorch."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F

from archspec.core.algebra import symbol
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.pytorch.calls.registry import CALLS
from archspec.pytorch.export.exporting import export_module
from archspec.pytorch.lift.recording import FormRecording, Recording
from archspec.pytorch.numeric.evaluate import Evaluation
from archspec.pytorch.prove.api import run_with_deep_stack
from archspec.pytorch.values.arguments import UntranslatableError, as_list
from archspec.pytorch.values.values import Value

GENERATOR = torch.Generator().manual_seed(0)


def r(*shape: int) -> Any:
    return torch.randn(shape, generator=GENERATOR)


def i(bound: int, *shape: int) -> Any:
    return torch.randint(0, bound, shape, generator=GENERATOR)


def boundaries() -> Any:
    return torch.tensor([-1.0, 0.0, 1.0])


def interleaved(x: Any, y: Any) -> Any:
    found = torch.zeros(x.shape[0], 2 * x.shape[1])
    found[:, 0::2], found[:, 1::2] = x, y
    return found


def without_statistics(x: Any, mean: Any, variance: Any) -> Any:
    return torch.ops.aten._native_batch_norm_legit_no_training(x, None, None, mean, variance, 0.1, 1e-5)[0]


GROUPS: dict[str, list[tuple[Any, ...]]] = {
    "rounding": [
        (torch.sign, r(4, 5)),
        (torch.sign, i(5, 4) - 2),
        (torch.ceil, r(5) * 3),
        (torch.trunc, r(5) * 3),
        (torch.floor, r(9) * 3),
        (torch.fmod, r(8) * 9, r(8)),
    ],
    "activations": [
        (F.relu6, r(9) * 5),
        (F.hardtanh, r(9) * 2),
        (torch.ops.aten.hardtanh, torch.linspace(-3, 3, 9)),
        (F.hardsigmoid, r(9) * 5),
        (F.hardswish, r(9) * 5),
        (lambda x: F.leaky_relu(x, 0.2), r(9)),
        (lambda x: F.elu(x, 0.5), r(9)),
        (F.selu, r(9)),
        (F.celu, r(9)),
        (F.mish, r(9)),
        (F.logsigmoid, r(9)),
        (F.softplus, r(9)),
        (lambda x: F.softplus(x, 2.0), r(9)),
        (F.prelu, r(2, 3, 4), r(3)),
        (F.prelu, r(2, 3, 4), r(1)),
        (lambda x: F.threshold(x, 0.1, 2.0), r(9)),
        (F.glu, r(3, 8)),
    ],
    "functions": [
        (torch.log1p, r(9).abs()),
        (torch.expm1, r(9)),
        (torch.exp2, r(9)),
        (torch.tan, r(9)),
        (torch.asinh, r(9)),
        (torch.log2, r(9).abs()),
        (torch.log10, r(9).abs()),
        (lambda x: torch.logit(x.sigmoid()), r(3)),
        (lambda x: torch.isinf(1 / x), torch.tensor([0.0, 1.0, -2.0])),
        (lambda a, b: torch.lerp(a, b, 0.3), r(9), r(9)),
        (lambda a, b, c: torch.addcmul(a, b, c, value=0.3), r(9), r(9), r(9)),
        (lambda a, b, c: torch.addcdiv(a, b, c, value=0.3), r(9), r(9), r(9)),
        (lambda a, b: torch.logical_xor(a > 0, b > 0), r(9), r(9)),
        (lambda x: x.clamp(-0.1, 0.2), r(9)),
        (lambda x: torch.clamp_max(x, 0.1), r(9)),
        (lambda x: torch.clamp_min(x, 0.1), r(9)),
        (lambda x: torch.zeros_like(x).fill_(3.0) + x, r(4)),
    ],
    "reductions": [
        (lambda x: x.amin(1), r(3, 4)),
        (lambda x: x.max(1), r(3, 4)),
        (lambda x: x.min(), r(3, 4)),
        (lambda x: x.min(-1, keepdim=True), r(3, 4)),
        (lambda x: x.argmin(1), r(3, 4)),
        (lambda x: x.topk(2, dim=1), r(3, 4)),
        (lambda x: x.topk(2, dim=1, largest=False), r(3, 4)),
        (lambda x: x.sort(dim=0), r(3, 4)),
        (lambda x: x.sort(dim=0, descending=True), r(3, 4)),
        (lambda x: x.argsort(), r(3, 4)),
        (lambda x: (x > 0.5).any(1), r(3, 4)),
        (lambda x: (x > -0.5).all(), r(3, 4)),
        (lambda x: x.prod(1), r(3, 4)),
        (lambda x: x.square().mean(), r(3, 4)),
        (lambda x: x.logsumexp(1), r(3, 4) * 200),
        (lambda x: x.log_softmax(-1), r(3, 4) * 200),
    ],
    "statistics": [
        (lambda x: x.var(1), r(3, 4)),
        (lambda x: x.var(1, unbiased=False), r(3, 4)),
        (lambda x: x.std(-1, keepdim=True), r(3, 4)),
        (lambda x: torch.var_mean(x, dim=1, correction=0), r(3, 4)),
        (lambda x: x.norm(dim=1), r(3, 4)),
        (lambda x: x.norm(p=1, dim=1), r(3, 4)),
        (lambda x: torch.linalg.norm(x, ord=2, dim=-1, keepdim=True), r(3, 4)),
        (lambda x: torch.linalg.norm(x), r(3, 4)),
        (lambda x: torch.linalg.norm(x, ord=1), r(4)),
        (lambda x: F.normalize(x, dim=-1), r(3, 4)),
        (lambda a, b: F.cosine_similarity(a, b, dim=-1), r(3, 4), r(3, 4)),
        (lambda v, g: torch._weight_norm(v, g, 0), r(3, 4, 2), r(3, 1, 1)),
        (lambda v, g: torch._weight_norm(v, g, 2), r(3, 4, 2), r(1, 1, 2)),
        (F.batch_norm, r(2, 3, 4, 5), r(3), r(3).abs(), r(3), r(3)),
        (F.instance_norm, r(3, 4, 8)),
        (lambda x: x.norm(p=3, dim=1), r(3, 4)),
        (lambda x: F.rms_norm(x, (4,)), r(3, 4)),
        (lambda x: F.group_norm(x, 2), r(2, 4, 5)),
        (without_statistics, r(4, 3, 5), r(3), r(3).abs()),
    ],
    "products": [
        (lambda a, b: torch.einsum("bij,bjk->bik", a, b), r(2, 3, 4), r(2, 4, 5)),
        (lambda a, b: torch.einsum("...d,kd->...k", a, b), r(2, 3, 4), r(5, 4)),
        (lambda a, b: torch.einsum("bnij,m->bjm", a, b), r(2, 3, 4, 5), r(6)),
        (lambda a, b: torch.einsum("bhid,bhjd->bhij", a, b), r(2, 3, 4, 5), r(2, 3, 6, 5)),
        (lambda a, b, c: torch.einsum("ij,jk,kl->il", a, b, c), r(2, 3), r(3, 4), r(4, 5)),
        (lambda a, b: torch.einsum("i,j", a, b), r(2), r(3)),
        (torch.outer, r(3), r(4)),
        (torch.dot, r(4), r(4)),
        (torch.mv, r(3, 4), r(4)),
        (torch.matmul, r(2, 3, 4), r(4)),
        (torch.matmul, r(4), r(2, 4, 3)),
        (torch.addmm, r(3), r(2, 4), r(4, 3)),
        (lambda x: torch.baddbmm(x, x, x, beta=0.5), r(2, 3, 3)),
        (lambda x, mask: F.scaled_dot_product_attention(x, x, x, attn_mask=mask), r(2, 3, 4), r(3, 3)),
    ],
    "pools": [
        (lambda x: F.adaptive_avg_pool2d(x, 1), r(2, 3, 4, 5)),
        (lambda x: F.adaptive_avg_pool2d(x, (3, 2)), r(2, 3, 4, 5)),
        (lambda x: F.adaptive_max_pool2d(x, 2), r(2, 3, 4, 5)),
        (lambda x: F.max_pool2d(x, 3, 2, 1), r(2, 3, 7, 7)),
        (lambda x: F.max_pool2d(x, 2), r(2, 3, 6, 6)),
        (lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True), r(2, 3, 7, 7)),
        (lambda x: F.avg_pool2d(x, 2, 2, ceil_mode=True), r(2, 3, 7, 7)),
        (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), r(2, 3, 7, 7)),
    ],
    "resizing": [
        *[
            (lambda x, m=mode, a=aligned: F.interpolate(x, size=(7, 3), mode=m, align_corners=a), r(2, 3, 4, 5))
            for mode in ("bilinear", "bicubic")
            for aligned in (False, True)
        ],
        *[
            (lambda x, m=mode: F.interpolate(x, scale_factor=2, mode=m), r(2, 3, 4, 5))
            for mode in ("bilinear", "nearest", "nearest-exact")
        ],
        (lambda x: F.interpolate(x, size=(7, 3), mode="nearest"), r(2, 3, 4, 5)),
        (lambda x: F.interpolate(x, size=9, mode="linear"), r(2, 3, 4)),
        (lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"), r(2, 3, 4, 5)),
    ],
    "sampling": [
        *[
            (lambda x, g, a=aligned: F.grid_sample(x, g, align_corners=a), r(2, 3, 5, 4), r(2, 6, 7, 2))
            for aligned in (False, True)
        ],
    ],
    "convolutions": [
        (lambda x, w: F.conv2d(x, w, padding="same"), r(2, 3, 4, 5), r(6, 3, 3, 3)),
        (F.conv1d, r(3, 4), r(6, 3, 3)),
        (lambda x, w: F.conv1d(x, w, padding="valid"), r(2, 3, 8), r(6, 3, 3)),
        (lambda x, w: F.conv_transpose1d(x, w, stride=2, padding=1), r(2, 3, 7), r(3, 4, 4)),
        (lambda x, w: F.conv_transpose2d(x, w, groups=3), r(2, 3, 5, 7), r(3, 4, 3, 3)),
    ],
    "padding": [
        (lambda x: F.pad(x, (1, 2), mode="reflect"), r(2, 3, 4)),
        (lambda x: F.pad(x, (1, 2, 2, 1), mode="replicate"), r(2, 3, 4, 5)),
        (lambda x: F.pad(x, (1, 2), mode="circular"), r(2, 3, 4)),
        (lambda x: F.pad(x, (-1, 2)), r(2, 3, 4)),
        (lambda x: F.pad(x > 0, (1, 1)), r(2, 3)),
        (lambda x: F.pad(x, (1, 1), value=2.0), i(4, 2, 3)),
    ],
    "replacement": [
        (lambda x, j: torch.zeros_like(x).scatter(1, j, 1.0), r(3, 6), i(6, 3, 2)),
        (lambda x, j: x.scatter(-1, j, float("-inf")), r(3, 6), i(6, 3, 2)),
        (lambda x, j: x.scatter(1, j, 2.0), r(3, 6, 4), i(6, 3, 2, 4)),
        (lambda x, y: torch.slice_scatter(x, y, 1, 1, 3), r(3, 6), r(3, 2)),
        (lambda x, y: torch.select_scatter(x, y, 1, -2), r(3, 6), r(3)),
        (lambda x: torch.index_put(x, (x > 0,), torch.zeros(())), r(3, 6)),
        (lambda x, y: torch.index_put(x, (x[..., 0] > 0,), y), r(3, 6, 4), r(4)),
        (lambda x, j: torch.index_put(x, (torch.arange(3), j - 1), torch.ones(())), r(3, 6, 4), i(6, 3)),
        (lambda x, j: torch.index_put(x, (torch.arange(3), j[:1]), torch.ones(())), r(3, 6, 4), i(6, 3)),
        (lambda x: x.repeat(2, 1, 3), r(3, 6, 4)),
        (lambda x, y: torch.index_put(x, (torch.arange(2) + 1,), y), r(4, 6), r(2, 6)),
        (lambda x, y: x.index_copy(1, torch.arange(2) + 3, y), r(3, 6), r(3, 2)),
        (lambda x: x[torch.arange(2) + 1], r(4, 6)),
        (lambda x, y: torch.slice_scatter(x, y, 1, 1, 6, 2), r(3, 6), r(3, 3)),
        (lambda x: torch.slice_scatter(x, x[:, 1:4:2], 1, 1, 4, 2), r(3, 6)),
        (torch.triu, r(4, 5)),
        (lambda x: torch.tril(x, -1), r(4, 5)),
        (lambda x: torch.triu(x, 1), r(4, 5) > 0),
    ],
    "arrangements": [
        (lambda x: x.unfold(1, 3, 2), r(2, 9, 3)),
        (lambda x: F.unfold(x, (2, 3), padding=1, stride=2), r(2, 3, 6, 7)),
        (lambda x: F.pixel_shuffle(x, 2), r(2, 8, 3, 4)),
        (lambda x: F.pixel_unshuffle(x, 2), r(2, 3, 4, 6)),
        (lambda x: torch.movedim(x, (0, 1), (2, 0)), r(2, 3, 4)),
        (lambda a, b: torch.meshgrid(a, b, indexing="ij"), r(3), r(4)),
        (lambda a, b: torch.meshgrid(a, b, indexing="xy"), r(3), r(4)),
        (lambda x: torch.diff(x, dim=0, prepend=x[:1]), r(3, 4)),
        (lambda x: x.flip(-1), r(3, 4)),
        (lambda x: torch.tile(x, (2, 3)), r(3, 4)),
    ],
    "steps": [
        (interleaved, r(3, 4), r(3, 4)),
        (lambda x, y: torch.slice_scatter(x, y, 1, 2, 9, 3), r(2, 9), r(2, 3)),
        (lambda x, y: torch.slice_scatter(x, y, 1, 1, 8, 3), r(2, 8), r(2, 3)),
        (lambda x, y: torch.slice_scatter(x, y, 1, 3, 9, 3), r(2, 9), r(2, 2)),
    ],
    "positions": [
        (lambda x: torch.eye(4) + x, r(4, 4)),
        (lambda x: F.one_hot(x, 7), i(7, 3, 4)),
        (lambda x: torch.linspace(-1, 1, 5) * x, r(5)),
        (lambda x: torch.arange(0.5, 4) * x, r(4)),
        (lambda x: (x.tile(2), x.tile(2, 1, 3)), r(3, 4)),
        (lambda x: ((x > 0) * (x < 1), (x < 0) + (x > 1), torch.maximum(x < 0, x > 1)), r(3, 4)),
        (lambda x: x.index_select(1, torch.tensor([2, 0])), r(3, 4)),
        (lambda x: torch.arange(-1, 0, 0.25) * x, r(4)),
        (lambda x: torch.bucketize(x, boundaries()), r(3, 4)),
        (lambda x: torch.bucketize(x, boundaries(), right=True), torch.tensor([-1.0, 0.0, 0.5])),
        (lambda x: torch.searchsorted(boundaries(), x), r(4)),
        (lambda x: torch.isin(x, torch.tensor([1, 3])), i(5, 4)),
        (lambda x: x[:, [-1]], r(3, 4)),
        (lambda x: x[..., [-2], :], r(3, 4, 5)),
    ],
    "complex": [
        (lambda x: torch.view_as_real(torch.view_as_complex(x) * torch.polar(x[..., 0], x[..., 1])), r(3, 2, 2)),
        (lambda x: torch.view_as_real(torch.view_as_complex(x).transpose(0, 1)[1:]), r(3, 4, 2)),
        (lambda x: torch.fft.fftn(x, dim=(1, 2)).real, r(2, 3, 4)),
        (lambda x: torch.view_as_complex(x).imag, r(3, 2)),
        (lambda x: torch.view_as_complex(x).abs(), r(3, 2)),
        (lambda x: torch.view_as_real(torch.complex(x[..., 0], x[..., 1])), r(3, 2)),
        (lambda x: torch.view_as_real(torch.view_as_complex(x).conj().resolve_conj()), r(3, 2)),
        (lambda x: torch.view_as_real(torch.stack((torch.view_as_complex(x), torch.view_as_complex(-x)), 1)), r(3, 2)),
        (lambda x: [torch.view_as_real(part) for part in torch.view_as_complex(x).clone().chunk(2)], r(4, 2)),
    ],
}


UNWRITTEN: list[tuple[Any, ...]] = [
    (torch.isnan, torch.tensor([0.0, float("nan"), float("inf")])),
    (torch.isfinite, torch.tensor([0.0, float("nan"), float("inf"), -float("inf")])),
    (torch.round, r(9) * 3),
]
"""Operations without a counterpart in the language."""


class Called(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, a: Any, b: Any = None, c: Any = None, d: Any = None, e: Any = None) -> Any:
        return self.function(*[x for x in (a, b, c, d, e) if x is not None])


def type_of(x: Any) -> Type:
    return Type(tuple(x.shape), "bool" if x.dtype == torch.bool else "real" if x.dtype.is_floating_point else "int")


def recorded(function: Callable[..., Any], tensors: tuple[Any, ...]) -> tuple[Recording, list[Array], list[Value]]:
    """The recording of a function, and its results in normal form and as values."""
    types = dict(zip("abcde", map(type_of, tensors), strict=False))
    module = Called(function).eval()
    recording = Recording(Arrays(), export_module(module, types, {}), module, types)
    values = recording.results()
    return recording, [output.array for output in recording.outputs()], values


def check(function: Callable[..., Any], tensors: tuple[Any, ...]) -> None:
    expected = as_list(function(*[x.clone() for x in tensors]))
    recording, arrays, values = recorded(function, tensors)
    stored = {("input", name): x for name, x in zip("abcde", tensors, strict=False)}
    evaluation = Evaluation(recording.arrays, stored, {})
    assert len(arrays) == len(expected)
    for array, value, tensor in zip(arrays, values, expected, strict=True):
        assert value.array == array
        found = evaluation.array(array)
        assert found.shape == tensor.shape
        torch.testing.assert_close(found.double(), tensor.double(), atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("group", GROUPS)
def test_operations_have_the_values_of_pytorch(group: str) -> None:
    for function, *tensors in GROUPS[group]:
        run_with_deep_stack(lambda f=function, t=tuple(tensors): check(f, t))


@pytest.mark.parametrize(("function", "tensor"), UNWRITTEN)
def test_operations_without_a_counterpart_have_the_values_of_pytorch(function: Callable[..., Any], tensor: Any) -> None:
    def found() -> list[Any]:
        module, types = Called(function).eval(), {"a": type_of(tensor)}
        capture = FormRecording(Arrays(), export_module(module, types, {}), module, types)
        evaluation = Evaluation(capture.arrays, {("input", "a"): tensor}, {})
        return [evaluation.array(value.array) for value in capture.outputs()]

    for value, expected in zip(run_with_deep_stack(found), as_list(function(tensor)), strict=True):
        torch.testing.assert_close(value.double(), expected.double(), atol=2e-5, rtol=1e-5)
    with pytest.raises(UntranslatableError):
        run_with_deep_stack(lambda: recorded(function, (tensor,)))


def test_resizing_to_the_same_size_changes_nothing() -> None:
    def resized(x: Any) -> Any:
        return F.interpolate(x, size=(4, 5), mode="bilinear"), F.adaptive_avg_pool2d(x, (4, 5)), x

    _, found, _ = run_with_deep_stack(lambda: recorded(resized, (r(2, 3, 4, 5),)))
    assert found == [found[-1]] * 3


def test_images_are_resized_to_sizes_that_are_dimensions() -> None:
    height, width = symbol("height"), symbol("width")
    types = {"a": Type((2, 3, 4, 5), "real"), "b": Type((height, width), "real")}

    def resized(x: Any, y: Any) -> Any:
        return F.interpolate(x, size=tuple(y.shape), mode="bilinear") + y

    module = Called(resized).eval()
    recording = Recording(Arrays(), export_module(module, types, {"height": 7, "width": 8}), module, types)
    (value,) = run_with_deep_stack(recording.results)
    for sizes in ({"height": 7, "width": 3}, {"height": 2, "width": 5}, {"height": 4, "width": 12}):
        x, y = r(2, 3, 4, 5), r(*sizes.values())
        found = Evaluation(recording.arrays, {("input", "a"): x, ("input", "b"): y}, sizes).array(value.array)
        torch.testing.assert_close(found.double(), resized(x, y).double(), atol=2e-5, rtol=1e-5)


REFUSED: list[tuple[str, Any, Any]] = [
    ("dropout is active: the module is in training mode", lambda x: F.dropout(x, 0.1, training=True), r(4)),
    ("it draws random numbers", lambda x: x + torch.rand(4), r(4)),
    ("it draws random numbers", lambda x: x[torch.bucketize(torch.rand(4), torch.arange(0.0, 0.3, 0.1))], r(4)),
    ("`aten.cumprod` has no normal form", lambda x: torch.cumprod(x, 0), r(4)),
    ("has no normal form with these arguments", lambda x: x.index_put((torch.tensor([0, 2]),), x[:2]), r(4)),
    ("bitwise operations on integers", lambda x: x & 1, i(5, 4)),
    ("a step that is not a binary fraction", lambda x: torch.arange(0.1, 4) * x, r(4)),
    ("`aten.linalg_norm` has no normal form", lambda x: torch.linalg.norm(x, ord=2), r(3, 4)),
    (
        "has no normal form with these arguments",
        lambda x: F.grid_sample(x, x, padding_mode="border", align_corners=False),
        r(2, 2, 2, 2),
    ),
    ("it changes its inputs", lambda x: x.add_(1.0), r(4)),
    ("it uses the imaginary part", lambda x: torch.fft.fft(x).imag, r(3, 4)),
    ("`aten.exp` has no normal form for complex", lambda x: torch.view_as_complex(x).exp().real, r(3, 2)),
    ("`aten.fft_rfftn` has no normal form for complex", lambda x: torch.fft.rfftn(x).real, r(3, 4)),
    ("attention dropout is active", lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.1), r(1, 2, 3, 4)),
    ("`aten.round` has no normal form with these", lambda x: torch.round(x, decimals=2), r(4)),
    ("`aten.max_pool` has no normal form with these", lambda x: F.max_pool1d(x, 2, dilation=2), r(2, 3, 9)),
    ("`aten.avg_pool` has no normal form", lambda x: F.avg_pool2d(x, 2, divisor_override=3), r(2, 3, 4, 4)),
    ("`aten.conv` has no normal form", lambda x: F.conv1d(x, x[:, :, :2], padding="same"), r(3, 3, 8)),
    ("uses batch statistics", lambda x: F.batch_norm(x, None, None, training=True), r(4, 3, 5)),
    ("`aten.argmax` has no normal form", lambda x: x.argmax(), r(3, 4)),
    ("`aten.argmin` has no normal form", lambda x: x.argmin(), r(3, 4)),
    ("`aten.prod` has no normal form", lambda x: x.prod(), r(3, 4)),
    ("`aten.diff` has no normal form", lambda x: torch.diff(x, n=2), r(3, 4)),
    ("`aten.logit` has no normal form", lambda x: torch.logit(x, 0.1), r(3)),
    ("`aten.scatter` has no normal form", lambda x: x.index_put((torch.arange(0, 4, 2),), x[:2]), r(4, 3)),
    ("it selects rows by a mask", lambda x: x[x > 0], r(4)),
]


@pytest.mark.parametrize(("reason", "function", "tensor"), REFUSED)
def test_what_is_not_known_is_refused(reason: str, function: Callable[..., Any], tensor: Any) -> None:
    with pytest.raises(UntranslatableError, match=rf"{re.escape(reason)}(?!\w)"):
        run_with_deep_stack(lambda: recorded(function, (tensor,)))


OTHER_OVERLOADS = {
    "slice.t": "of lists",
    "slice.str": "of texts",
    "repeat_interleave.Tensor": "without repeats, which the handler must have",
    "lstm.data": "of packed sequences, whose parameters are no list there",
    "gru.data": "of packed sequences, whose parameters are no list there",
    "rnn_tanh.data": "of packed sequences, whose parameters are no list there",
    "rnn_relu.data": "of packed sequences, whose parameters are no list there",
    "var.default": "a boolean in the place of axes is `unbiased`",
    "std.default": "a boolean in the place of axes is `unbiased`",
    "var_mean.default": "a boolean in the place of axes is `unbiased`",
    "std_mean.default": "a boolean in the place of axes is `unbiased`",
    "_native_batch_norm_legit.default": "with statistics: more arguments than the handler has",
    "scatter.value": "a number is what a tensor is elsewhere",
    "scatter.value_reduce": "has an argument that the handler does not have",
}


def test_arguments_have_the_places_that_pytorch_has_them_in() -> None:
    wrong: list[str] = []
    for name, handler in CALLS.items():
        packet = getattr(torch.ops.aten, name, None)
        parameters = [*inspect.signature(handler).parameters.values()][2:]
        places = [item.name for item in parameters if item.kind is item.POSITIONAL_OR_KEYWORD]
        named = {item.name for item in parameters}
        overloads: list[str] = packet.overloads() if packet is not None else []
        for overload in [item for item in overloads if not item.endswith("out")]:
            arguments = [item.name for item in getattr(packet, overload)._schema.arguments if not item.kwarg_only]
            for ours, theirs in zip(places, arguments, strict=False):
                if ours != theirs and (theirs in named or ours in arguments):
                    wrong.append(f"{name}.{overload}")
    assert {*wrong} <= OTHER_OVERLOADS.keys()


def test_a_refusal_has_its_module_and_line() -> None:
    class Outer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Called(lambda x: torch.cumprod(x, 0))

        def forward(self, a: Any) -> Any:
            return self.inner(a) + 1

    module, types = Outer().eval(), {"a": Type((4,))}
    with pytest.raises(UntranslatableError, match=r"in inner \(test_torch_calls.py:\d+\)$"):
        Recording(Arrays(), export_module(module, types, {}), module, types).results()
