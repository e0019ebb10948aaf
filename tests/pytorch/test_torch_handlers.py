"""Operations of PyTorch with the arguments that they have in exported programs: they have the values of PyTorch."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from builders import builder, given

torch = pytest.importorskip("torch")

from archspec.ir.module import Type
from archspec.pytorch.calls.registry import CALLS
from archspec.pytorch.calls.rows import convert
from archspec.pytorch.lift.idioms.constants import constant
from archspec.pytorch.numeric.evaluate import Evaluation
from archspec.pytorch.values.arguments import as_list
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import Value

GENERATOR = torch.Generator().manual_seed(0)
Tensor = torch.Tensor


def r(*shape: int) -> Tensor:
    return torch.randn(shape, generator=GENERATOR)


def i(bound: int, *shape: int) -> Tensor:
    return torch.randint(0, bound, shape, generator=GENERATOR)


def b(*shape: int) -> Tensor:
    return r(*shape) > 0


class Known(NamedTuple):
    """A constant of a module."""

    value: Tensor


class Case(NamedTuple):
    name: str
    args: tuple[Any, ...]
    keywords: dict[str, Any]


def call(name: str, *args: Any, **keywords: Any) -> Case:
    return Case(name, args, keywords)


def recurrent(
    name: str,
    gates: int,
    layers: int = 1,
    is_biased: bool = False,
    is_double: bool = False,
    is_batch_first: bool = False,
    starts: Callable[..., Tensor] = torch.zeros,
) -> Case:
    """A recurrent layer from 3 to 4 features, for two sequences of five tokens."""
    count, states = gates * 4, [starts(layers * (1 + is_double), 2, 4) for _ in range(2 if name == "lstm" else 1)]
    params: list[Tensor] = []
    for layer in range(layers):
        for _ in range(1 + is_double):
            params += [r(count, (1 + is_double) * 4 if layer else 3), r(count, 4), *[r(count)] * 2 * is_biased]
    x = r(2, 5, 3) if is_batch_first else r(5, 2, 3)
    first = states if name == "lstm" else states[0]
    return call(name, x, first, params, is_biased, layers, 0.0, False, is_double, is_batch_first)


GROUPS: dict[str, list[Case]] = {
    "arithmetic": [
        call("add", r(3, 4), r(4), alpha=3),
        call("add", i(9, 3), i(9, 3), alpha=2),
        call("add", b(6), b(6)),
        call("add", b(6), r(6)),
        call("sub", r(3, 4), r(3, 1), alpha=2),
        call("sub", r(3), 2),
        call("rsub", r(3, 4), r(4), alpha=2),
        call("rsub", i(5, 3), 2),
        call("mul", b(6), b(6)),
        call("mul", b(6), i(6, 6)),
        call("div", i(9, 4), 2),
        call("div", r(4), r(4), rounding_mode="floor"),
        call("div", i(9, 9) - 4, 3, rounding_mode="floor"),
        call("floor_divide", i(9, 9) - 4, 2),
        call("remainder", i(9, 9) - 4, 3),
        call("remainder", r(9) * 5, r(9)),
        call("fmod", r(9) * 5, 2.0),
        call("fmod", r(9) * 5, 2),
        call("pow", r(4).abs(), 0.5),
        call("pow", 2.0, r(4)),
        call("pow", i(5, 4), 2),
        call("minimum", b(6), b(6)),
        call("maximum", r(6), r(6)),
        call("lerp", r(4), r(4), 0.3),
        call("lerp", r(4), r(4), r(4)),
        call("addcmul", r(4), r(4), r(4), value=2),
        call("addcdiv", r(4), r(4), r(4) + 9, value=2),
        call("rsqrt", r(4).abs()),
        call("reciprocal", r(4)),
        call("square", r(4)),
        call("sign", i(3, 9) - 1),
        call("sign", r(4)),
        call("ceil", r(9) * 3),
        call("trunc", r(9) * 3),
        call("clamp", r(9), -0.5),
        call("clamp", r(9), None, 0.5),
        call("clamp", i(9, 9), 2, 5),
        call("clamp_max", i(9, 9), 5),
    ],
    "conditions": [
        *[call(name, r(3, 4), r(4)) for name in ("eq", "ne", "lt", "le", "gt", "ge")],
        *[call(name, i(3, 9), 1) for name in ("eq", "ne", "lt", "le", "gt", "ge")],
        *[call(name, b(9), b(9)) for name in ("logical_and", "logical_or", "logical_xor")],
        call("logical_not", b(9)),
        call("bitwise_not", b(9)),
        call("where", b(3, 1), r(3, 4), r(4)),
        call("where", b(3), i(9, 3), r(3)),
        call("masked_fill", r(3, 4), b(4), 2.0),
        call("masked_fill", i(9, 4), b(4), 2),
        call("isinf", torch.tensor([0.0, float("inf"), -float("inf")])),
        call("_to_copy", b(4), dtype=torch.float32),
        call("_to_copy", r(4) * 3, dtype=torch.int64),
        call("_to_copy", torch.tensor([0.0, -0.5, 2.0]), dtype=torch.bool),
        call("_to_copy", i(2, 4), dtype=torch.bool),
        call("fill", r(4), 2),
        call("fill", i(9, 4), 2.0),
        call("copy", r(3, 4), r(4)),
        call("copy", r(3, 4), i(9, 3, 4)),
    ],
    "functions": [
        call("threshold", r(9), 0.1, 2.0),
        call("glu", r(3, 8)),
        call("glu", r(8, 3), 0),
        call("gelu", r(9), approximate="tanh"),
        call("elu", r(9), 0.5),
        call("elu", r(9), 0.5, 2.0),
        call("leaky_relu", r(9)),
        call("hardtanh", r(9), -0.5, 0.25),
        call("softplus", r(9) * 5, 2, 3),
        call("prelu", r(2, 3), r(3)),
        call("logit", r(5).sigmoid()),
    ],
    "reductions": [
        *[call(name, r(3, 4, 2), [1]) for name in ("sum", "mean", "amax", "amin")],
        *[call(name, r(3, 4, 2), [0, -1], True) for name in ("sum", "mean", "amax", "amin")],
        call("sum", r(3, 4)),
        call("sum", r(3, 4), []),
        call("sum", b(3, 4), [1]),
        call("sum", i(5, 3, 4), [1], dtype=torch.float32),
        call("mean", r(3, 4)),
        call("cumsum", r(3, 4), 1),
        call("cumsum", b(3, 4), 0),
        *[call(name, r(3, 4), -1, True) for name in ("argmax", "argmin", "max", "min")],
        *[call(name, r(3, 4), 0) for name in ("argmax", "argmin", "max", "min")],
        *[call(name, r(3, 4)) for name in ("max", "min")],
        *[call(name, r(3, 4), r(4)) for name in ("max", "min")],
        *[call(name, r(3, 4), 2) for name in ("topk",)],
        call("topk", r(5, 3), 2, 0, False),
        call("sort", r(5, 3), 0),
        call("sort", r(5, 3), -1, True),
        call("argsort", r(5, 3), 0, True),
        *[call(name, b(3, 2), 1) for name in ("any", "all")],
        *[call(name, b(3, 2), 0, True) for name in ("any", "all")],
        *[call(name, b(3, 2)) for name in ("any", "all")],
        *[call(name, i(2, 3, 2), 1) for name in ("any", "all")],
        *[call(name, r(3, 4), [1]) for name in ("var", "std", "var_mean", "std_mean")],
        *[call(name, r(3, 4), [0], correction=0, keepdim=True) for name in ("var", "std", "var_mean", "std_mean")],
        call("var", r(3, 4)),
        *[call(name, r(3, 4), is_unbiased) for name in ("var", "std_mean") for is_unbiased in (False, True)],
        call("norm", r(3, 4), 2, [1], True),
        call("norm", r(3, 4), 1, [0]),
        call("linalg_vector_norm", r(3, 4)),
        call("linalg_vector_norm", r(3, 4), 3, [1]),
        call("linalg_vector_norm", r(3, 4), float("inf"), [1], True),
        call("logsumexp", r(3, 4), [1], True),
        call("logsumexp", r(3, 4), [0, 1]),
        call("log_softmax", r(3, 4), 0),
        call("softmax", r(3, 4), 0),
        call("prod", r(3, 4), 1),
        call("prod", r(3, 4), 0, True),
        call("cosine_similarity", r(3, 4), r(3, 4), 0),
        call("bucketize", r(9), torch.tensor([-0.5, 0.0, 0.5])),
        call("bucketize", torch.tensor([-0.5, 0.0, 0.25]), torch.tensor([-0.5, 0.0, 0.5]), right=True),
        call("searchsorted", torch.tensor([-0.5, 0.0, 0.5]), torch.tensor([-0.5, 0.0, 0.25]), right=True),
        call("searchsorted", torch.tensor([-0.5, 0.0, 0.5]), torch.tensor([-0.5, 0.0, 0.25])),
        call("isin", i(5, 4), Known(torch.tensor([1, 3]))),
        call("isin", i(5, 4), torch.tensor([1, 3]), invert=True),
    ],
    "products": [
        call("mm", r(3, 4), r(4, 5)),
        call("bmm", r(2, 3, 4), r(2, 4, 5)),
        call("matmul", r(4), r(4, 5)),
        call("matmul", r(3, 4), r(4)),
        call("matmul", r(2, 3, 1), r(1, 5)),
        call("mv", r(3, 4), r(4)),
        call("linear", r(2, 4), r(5, 4)),
        call("linear", r(2, 4), r(5, 4), r(5)),
        call("linear", r(2, 4), r(4)),
        call("addmm", r(5), r(3, 4), r(4, 5)),
        call("baddbmm", r(2, 3, 5), r(2, 3, 4), r(2, 4, 5)),
        call("baddbmm", r(2, 3, 5), r(2, 3, 4), r(2, 4, 5), beta=2, alpha=3),
        call("baddbmm", r(2, 3, 5), r(2, 3, 4), r(2, 4, 5), beta=0),
        call("einsum", "bij,bjk->bik", [r(2, 3, 4), r(2, 4, 5)]),
        call("einsum", "...d,kd->...k", [r(2, 3, 4), r(5, 4)]),
        call("einsum", "ij,ij", [r(3, 4), r(3, 4)]),
        call("einsum", "ba,ac", [r(3, 4), r(4, 5)]),
        call("einsum", "ij->ji", [r(3, 4)]),
        call("outer", r(3), r(4)),
        call("dot", r(4), r(4)),
        call("inner", r(4), r(4)),
        call("bilinear", r(2, 3), r(2, 4), r(5, 3, 4), r(5)),
        call("bilinear", r(2, 3), r(2, 4), r(5, 3, 4)),
        call("scaled_dot_product_attention", r(2, 3, 4), r(2, 5, 4), r(2, 5, 6)),
        call("scaled_dot_product_attention", r(2, 3, 5, 4), r(2, 3, 5, 4), r(2, 3, 5, 4), None, 0.0, True),
        call(
            "scaled_dot_product_attention", r(1, 2, 5, 4), r(1, 2, 5, 4), r(1, 2, 5, 4), b(5, 5) | torch.eye(5).bool()
        ),
        call("scaled_dot_product_attention", r(1, 2, 5, 4), r(1, 2, 5, 4), r(1, 2, 5, 4), r(5, 5), scale=0.3),
        call("scaled_dot_product_attention", r(1, 4, 5, 4), r(1, 2, 5, 4), r(1, 2, 5, 4), enable_gqa=True),
    ],
    "normalization": [
        call("layer_norm", r(3, 4), [4]),
        call("layer_norm", r(3, 4), [4], r(4), r(4), 1e-3),
        call("layer_norm", r(3, 4), [4], r(4), None),
        call("layer_norm", r(2, 3, 4), [3, 4], r(3, 4), r(3, 4)),
        call("rms_norm", r(3, 4), [4], r(4), 1e-3),
        call("group_norm", r(2, 4, 3), 2),
        call("group_norm", r(2, 4, 3), 2, r(4), r(4), 1e-3),
        call("instance_norm", r(2, 3, 4), r(3), r(3), None, None, True, 0.1, 1e-3, False),
        call("instance_norm", r(2, 3, 4), None, None, None, None, True, 0.1, 1e-5, False),
        call("batch_norm", r(2, 3, 4), r(3), r(3), r(3), r(3).abs(), False, 0.1, 1e-3, False),
        call("batch_norm", r(2, 3), None, None, r(3), r(3).abs(), False, 0.1, 1e-5, False),
        call("_weight_norm", r(3, 4, 2), r(3, 1, 1), 0),
        call("_weight_norm", r(3, 4, 2), r(1, 1, 2), 2),
    ],
    "axes": [
        call("view", r(2, 12), [2, 3, -1]),
        call("squeeze", r(2, 1, 3), 1),
        call("squeeze", r(2, 1, 3), 0),
        call("unsqueeze", r(2, 3), -1),
        call("flatten", r(2, 3, 4), 1),
        call("unflatten", r(2, 12), 1, [3, 4]),
        call("expand", r(2, 1), [3, -1, 4]),
        call("permute", r(2, 3, 4), [2, 0, 1]),
        call("transpose", r(2, 3, 4), 0, -1),
        call("t", r(2, 3)),
        call("mT", r(2, 3, 4)),
        call("movedim", r(2, 3, 4), [0], [-1]),
        call("slice", r(5, 8), 1, 2, -1),
        call("slice", r(5, 8), 0, -3),
        call("slice", r(5, 8), 1, 1, 100, 3),
        call("slice", r(5, 8), 1, None, 6, 2),
        call("slice", r(5, 8), 0, 0, 5),
        call("narrow", r(5, 8), 1, 2, 3),
        call("select", r(2, 3, 4), 1, 0),
        call("select", r(2, 3, 4), -1, -2),
        call("cat", [r(2, 3), r(2, 4)], 1),
        call("cat", [r(2, 3), r(1, 3)]),
        call("cat", [torch.zeros(0), r(3)]),
        call("stack", [r(2, 3), r(2, 3)], -1),
        call("stack", [r(2, 3), r(2, 3)]),
        call("split", r(7, 2), 3),
        call("split_with_sizes", r(2, 7), [3, 4], -1),
        call("chunk", r(7, 2), 3),
        call("unbind", r(2, 3)),
        call("unbind", r(2, 3), 1),
        call("repeat", r(2, 3), [2, 1, 3]),
        call("tile", r(2, 3), [2]),
        call("repeat_interleave", r(2, 3), 2, 1),
        call("roll", r(4, 5), [2], [1]),
        call("roll", r(4, 5), [-1, 2], [0, 1]),
        call("flip", r(3, 4), [0, 1]),
        call("diagonal", r(3, 4)),
        call("diagonal", r(3, 4), 1),
        call("diagonal", r(3, 4, 5), -1, 0, 2),
        call("diagonal", r(3, 4, 5), 1, 1, 2),
        call("meshgrid", [r(3), r(4)], indexing="ij"),
        call("meshgrid", [r(3), r(4), r(2)], indexing="xy"),
        call("diff", r(3, 4)),
        call("diff", r(3, 4), 1, 0, r(1, 4), r(2, 4)),
        call("unfold", r(9, 2), 0, 3, 2),
        call("im2col", r(2, 3, 6, 7), [2, 3], [1, 2], [1, 0], [2, 1]),
        call("pixel_shuffle", r(2, 8, 3, 4), 2),
        call("pixel_unshuffle", r(2, 3, 4, 6), 2),
        call("triu", r(3, 4), 1),
        call("tril", r(3, 4), -1),
        call("tril", i(9, 4, 3)),
        call("triu", b(4, 3)),
        call("pad", r(3, 4), [1, 2]),
        call("pad", r(3, 4), [-1, 2, 1, 0], "constant", 2.0),
        call("constant_pad_nd", r(3, 4), [-1, -1, 2, 0], 3),
        call("constant_pad_nd", b(3, 4), [1, 1], 1),
        *[call(f"{mode}_pad1d", r(2, 3, 5), [2, 1]) for mode in ("reflection", "replication")],
        *[call(f"{mode}_pad2d", r(3, 4, 5), [2, 0, 1, 3]) for mode in ("reflection", "replication")],
    ],
    "elements": [
        call("index", r(5, 4), [i(5, 3)]),
        *[
            call("index", r(5, 4), [*lead, Known(torch.tensor(ids))])
            for lead in ([], [None])
            for ids in ([-1, 2], [-2])
        ],
        call("index", r(5, 4, 3), [Known(torch.tensor([-1, 2])), None, i(3, 2)]),
        call("index", r(5, 4), [Known(torch.arange(2) + 1)]),
        call("index", r(5, 4), [None, Known(torch.tensor([2, -1, 0, 3]))]),
        call("index", r(5, 4), [None, Known(torch.tensor([2, 1, 0, 3]))]),
        call("index", r(5, 4, 3), [i(5, 2), i(4, 2)]),
        call("index", r(5, 4, 3), [i(5, 2), None, i(3, 2)]),
        call("index", r(5, 4, 3), [None, i(4, 2, 1), i(3, 2)]),
        call("index", r(5, 4, 3), [Known(torch.arange(5)), i(4, 5)]),
        call("index", r(5, 4, 3), [Known(torch.arange(5)[:, None]), i(4, 5, 2)]),
        call("index", i(9, 5, 4), [i(5, 3)]),
        call("index", b(5, 4), [i(5, 3)]),
        call("index_select", r(5, 4), 1, i(4, 3)),
        call("index_select", r(5, 4), 0, i(5, 3)),
        call("gather", r(5, 4), 1, i(4, 5, 2)),
        call("gather", r(5, 4), 0, i(5, 2, 4)),
        call("embedding", r(5, 4), i(5, 2, 3)),
        call("scatter", r(3, 6), 1, i(6, 3, 2), 1.0),
        call("scatter", r(3, 6), 0, i(3, 2, 6), 2),
        call("scatter", r(3, 6), 1, i(6, 3, 2), Known(torch.ones(3, 2))),
        call("slice_scatter", r(3, 6), r(3, 2), 1, 1, 3),
        call("slice_scatter", r(3, 6), r(1, 6), 0, -1),
        call("slice_scatter", r(3, 6), r(3, 3), 1, 0, 6, 2),
        call("slice_scatter", r(3, 6), r(3, 2), 1, 1, 4, 2),
        call("slice_scatter", r(3, 6), i(9, 3, 6), 1),
        call("select_scatter", r(3, 6), r(6), 0, 1),
        call("select_scatter", r(3, 6), r(3), -1, -2),
        call("index_copy", r(3, 6), 1, Known(torch.arange(2) + 3), r(3, 2)),
        call("index_put", r(3, 6), [b(3, 6)], Known(torch.zeros(()))),
        call("index_put", r(3, 6), [Known(torch.arange(3)), i(6, 3)], Known(torch.ones(()))),
        call("index_put", r(4, 6), [Known(torch.arange(2) + 1)], r(2, 6)),
        call("index_put", r(3, 6), [b(3)], r(6)),
        call("one_hot", i(7, 3, 4), 7),
        call("masked_scatter", r(4, 3), b(4, 1), r(5, 3)),
        call("masked_scatter", r(4, 2, 3), b(4, 1, 1), r(5, 2, 3)),
    ],
    "numbers": [
        call("arange", 5),
        call("arange", 2, 7),
        call("arange", 7, 1, -2),
        call("arange", 0.5, 4),
        call("arange", -1, 0, 0.25),
        call("linspace", -1, 1, 5),
        call("linspace", -1, 1, 2),
        call("linspace", -1, 1, 1),
        call("eye", 3),
        call("full", [2, 3], 4),
        call("full", [2, 3], 0.5),
        call("full", [2], True),
        call("full_like", r(2), 3),
        call("new_full", i(9, 2), [3], 2.0),
        call("zeros", [2, 3]),
        call("ones_like", i(9, 2)),
        call("new_ones", r(2), [4]),
        call("zeros_like", b(2)),
        call("scalar_tensor", 2),
    ],
    "windows": [
        call("conv1d", r(2, 3, 8), r(6, 3, 3)),
        call("conv1d", r(3, 8), r(6, 3, 3), r(6), [2], [1]),
        call("conv1d", r(2, 3, 8), r(6, 3, 3), None, [1], "valid"),
        call("conv1d", r(2, 3, 8), r(6, 3, 3), None, [1], "same", [2]),
        call("conv2d", r(2, 4, 5, 6), r(6, 2, 3, 1), r(6), [1, 2], [1, 0], [1, 1], 2),
        call("conv3d", r(1, 2, 3, 4, 5), r(3, 2, 2, 2, 2), None, [1, 2, 1], [0, 1, 0]),
        call("conv_transpose1d", r(2, 3, 7), r(3, 4, 4), r(4), [2], [1]),
        call("conv_transpose2d", r(2, 4, 3, 4), r(4, 2, 3, 2), None, [1, 2], [0, 1], [0, 0], 2),
        call("conv_transpose1d", r(2, 3, 7), r(3, 4, 2), None, [1], [0], [0], 1, [2]),
        call("max_pool1d", r(2, 3, 9), [3]),
        call("max_pool2d", r(2, 3, 7, 8), [3, 2], [2, 1], [1, 0]),
        call("max_pool2d", r(2, 3, 7, 8), [2], [2], [0], [1], True),
        call("avg_pool1d", r(2, 3, 9), [3], [2], [1]),
        call("avg_pool2d", r(2, 3, 7, 8), [3, 2], [], [1, 0], False, False),
        call("avg_pool2d", r(2, 3, 7, 8), [2], [2], [0], True),
        call("adaptive_avg_pool1d", r(2, 3, 9), [3]),
        call("adaptive_avg_pool2d", r(2, 3, 7, 5), [3, 1]),
        call("adaptive_avg_pool2d", r(2, 3, 4, 5), [8, 5]),
        call("adaptive_max_pool1d", r(2, 3, 9), [4]),
        call("adaptive_max_pool2d", r(2, 3, 7, 5), [1, 2]),
        call("upsample_nearest1d", r(2, 3, 4), [7]),
        call("upsample_nearest2d", r(2, 3, 4, 5), [3, 10]),
        call("_upsample_nearest_exact1d", r(2, 3, 4), [7]),
        call("upsample_linear1d", r(2, 3, 4), [7], False),
        call("upsample_linear1d", r(2, 3, 4), [7], True),
        call("upsample_bilinear2d", r(2, 3, 4, 5), [3, 9], False),
        call("upsample_bilinear2d", r(2, 3, 4, 5), [3, 1], True),
        call("upsample_bicubic2d", r(1, 2, 4, 5), [6, 3], False),
        call("upsample_trilinear3d", r(1, 2, 2, 3, 4), [3, 2, 5], False),
        *[call("grid_sampler_2d", r(1, 2, 4, 3), r(1, 2, 3, 2), 0, 0, aligned) for aligned in (False, True)],
    ],
    "recurrence": [
        *[recurrent(name, gates) for name, gates in (("gru", 3), ("lstm", 4), ("rnn_tanh", 1), ("rnn_relu", 1))],
        recurrent("gru", 3, is_biased=True, starts=r, is_batch_first=True),
        recurrent("lstm", 4, starts=r, is_batch_first=True),
        recurrent("lstm", 4, is_double=True),
        recurrent("rnn_tanh", 1, layers=2, is_batch_first=True),
    ],
}


def type_of(x: Any) -> Type:
    return Type(tuple(x.shape), "bool" if x.dtype == torch.bool else "real" if x.dtype.is_floating_point else "int")


def mapped(function: Callable[[Any], Any], item: Any) -> Any:
    return [mapped(function, part) for part in item] if isinstance(item, list) else function(item)


def check(case: Case) -> None:
    made = builder()
    tensors: dict[str, Tensor] = {}

    def value(item: Any) -> Any:
        if isinstance(item, Known):
            return constant(made, item.value, "it")
        if isinstance(item, Tensor):
            tensors[f"x{len(tensors)}"] = item
            return given(made, f"x{len(tensors) - 1}", *type_of(item))
        return item

    args = mapped(lambda item: item.value if isinstance(item, Known) else item, [*case.args])
    expected = as_list(getattr(torch.ops.aten, case.name)(*args, **case.keywords))
    types = [type_of(x) for x in expected]
    values = mapped(value, [*case.args])
    plain = Builder(made.arrays)
    of_plain, of_spec = [
        as_list(convert(b, results, types[0].dtype) if isinstance(results, Value) else results)
        for b in (plain, made)
        for results in [CALLS[case.name](b, types, *values, **case.keywords)]
    ]
    evaluation = Evaluation(made.arrays, {("input", name): x for name, x in tensors.items()}, {})
    for own, other, tensor in zip(of_plain, of_spec, expected, strict=True):
        if own is not None and other is not None:
            assert other.array == own.array
            numbers = evaluation.array(own.array)
            assert numbers.shape == tensor.shape
            torch.testing.assert_close(numbers.double(), tensor.double(), atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("group", GROUPS)
def test_operations_have_the_values_of_pytorch(group: str) -> None:
    for case in GROUPS[group]:
        try:
            check(case)
        except Exception as error:
            raise AssertionError(case) from error
