"""Functions of PyTorch, several in a module each, and functions that are refused."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

nn = torch.nn

F = nn.functional

Functions = dict[str, Callable[..., Any]]

X = torch.linspace(-3, 3, 80).reshape(2, 5, 8)

Y = torch.linspace(2, -1, 80).reshape(2, 5, 8)

IMAGE = torch.linspace(-1, 1, 384).reshape(2, 4, 6, 8)

SQUARE = torch.linspace(-1, 1, 72).reshape(2, 6, 6)


class Several(nn.Module):
    """Functions of the same inputs."""

    def __init__(self, functions: Functions) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, x: Any, y: Any) -> Any:
        return {name: function(x, y) for name, function in self.functions.items()}


ACTIVATIONS: Functions = {
    "relu6": lambda x, y: F.relu6(x),
    "hardtanh": lambda x, y: F.hardtanh(x, -2.0, 0.5),
    "hardsigmoid": lambda x, y: F.hardsigmoid(x),
    "hardswish": lambda x, y: F.hardswish(x),
    "leaky_relu": lambda x, y: F.leaky_relu(x, 0.2),
    "elu": lambda x, y: F.elu(x, 1.5),
    "celu": lambda x, y: F.celu(x, 1.5),
    "selu": lambda x, y: F.selu(x),
    "softplus": lambda x, y: F.softplus(x),
    "softplus_2": lambda x, y: F.softplus(x, 2.0, 3.0),
    "logit": lambda x, y: torch.logit(torch.sigmoid(x)),
    "mish": lambda x, y: F.mish(x),
    "glu": lambda x, y: F.glu(x, -1),
    "threshold": lambda x, y: F.threshold(x, 0.5, -1.0),
    "gelu": lambda x, y: F.gelu(x),
    "gelu_2": lambda x, y: F.gelu(x, approximate="tanh"),
    "softsign": lambda x, y: F.softsign(x),
    "tanhshrink": lambda x, y: F.tanhshrink(x) + F.silu(y),
}

NUMBERS: Functions = {
    "log2": lambda x, y: torch.log2(x.abs() + 1),
    "log10": lambda x, y: torch.log10(x.abs() + 1),
    "log1p": lambda x, y: torch.log1p(x.abs()),
    "expm1": lambda x, y: torch.expm1(x),
    "exp2": lambda x, y: torch.exp2(x),
    "tan": lambda x, y: torch.tan(x),
    "asinh": lambda x, y: torch.asinh(x),
    "isinf": lambda x, y: torch.isinf(x),
    "trunc": lambda x, y: torch.trunc(x),
    "fmod": lambda x, y: torch.fmod(x, 2.0),
    "ceil": lambda x, y: torch.ceil(x),
    "sign": lambda x, y: torch.sign(x),
    "floor": lambda x, y: torch.floor(x),
    "rsqrt": lambda x, y: torch.rsqrt(x.abs() + 1),
    "reciprocal": lambda x, y: torch.reciprocal(x.abs() + 1),
    "square": lambda x, y: torch.square(x),
    "rsub": lambda x, y: torch.rsub(x, y, alpha=2),
    "clamp": lambda x, y: x.clamp(-1, 2),
    "clamp_2": lambda x, y: x.clamp(max=1) + x.clamp(min=-1),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=2),
    "addcdiv": lambda x, y: torch.addcdiv(x, x, y + 9, value=3),
    "remainder": lambda x, y: torch.remainder(x, 3),
    "floor_divide": lambda x, y: torch.floor_divide(x, 2),
    "maximum": lambda x, y: torch.maximum(x, y) - torch.minimum(x, 2 * y),
    "exclusive": lambda x, y: (x > 0) ^ (y > 0),
    "add": lambda x, y: torch.add(x, y, alpha=3) - torch.sub(x, y, alpha=2),
    "add_2": lambda x, y: torch.add(x, 2, alpha=3) - y * torch.scalar_tensor(2.0),
    "where": lambda x, y: torch.where(x > y, x, 0.0).masked_fill(y > 1, 2.0),
    "powers": lambda x, y: x**3 + (x.abs() + 1) ** 0.5 + 2**y,
    "conditions": lambda x, y: (x > 0) | ~(y > 0) & (x <= 1),
    "erf": lambda x, y: torch.erf(x) + torch.special.expit(y),
    "integers": lambda x, y: (x.long() // 2) * (x.long() % 3) + y,
    "full_like": lambda x, y: torch.full_like(x, 2.0) * x + torch.ones_like(x) - y,
}

REDUCTIONS: Functions = {
    "amin": lambda x, y: x.amin(-1) + x.amax(-1, keepdim=True).squeeze(-1),
    "max": lambda x, y: torch.max(x, -1)[0],
    "max_2": lambda x, y: torch.max(x, 2)[1],
    "min": lambda x, y: torch.min(x, -1)[0],
    "min_2": lambda x, y: torch.min(x, 2)[1],
    "argmin": lambda x, y: x.argmin(-1) + x.argmax(-1),
    "topk": lambda x, y: x.topk(3)[0],
    "topk_2": lambda x, y: x.topk(3, largest=False)[0],
    "topk_3": lambda x, y: x.topk(2, dim=2)[1],
    "sort": lambda x, y: x.sort(-1, descending=True)[0],
    "argsort": lambda x, y: x.argsort(-1),
    "any": lambda x, y: (x > 0).any(-1),
    "all": lambda x, y: (x > 0).all(-1, keepdim=True),
    "std": lambda x, y: x.std(-1),
    "var_mean": lambda x, y: torch.var_mean(x, -1, correction=0)[0],
    "std_mean": lambda x, y: torch.std_mean(x, -1)[1],
    "norm": lambda x, y: x.norm(1, -1) + x.norm(2, -1),
    "vector_norm": lambda x, y: torch.linalg.vector_norm(x, 3, -1, keepdim=True),
    "linalg_norm": lambda x, y: torch.linalg.norm(x, 3, 2) + torch.linalg.norm(y),
    "vector_norm_2": lambda x, y: torch.linalg.vector_norm(x, float("inf"), -1),
    "logsumexp": lambda x, y: torch.logsumexp(x, -1) + torch.logsumexp(y, -1, keepdim=True).squeeze(-1),
    "log_softmax": lambda x, y: x.log_softmax(-1),
    "prod": lambda x, y: x[..., :3].prod(-1),
    "cosine_similarity": lambda x, y: F.cosine_similarity(x, y, -1),
    "cumsum": lambda x, y: x.cumsum(1),
    "mean": lambda x, y: x.mean((1, 2)) + x.sum((1, 2)),
    "sum": lambda x, y: x.sum() + y.mean() + torch.dot(x[0, 0], y[0, 0]),
    "outer": lambda x, y: torch.outer(x[0, 0], y[0, 1]),
    "softmax": lambda x, y: torch.softmax(x, 1),
    "softmax_2": lambda x, y: x.masked_fill(y > 1, float("-inf")).softmax(-1),
    "normalize": lambda x, y: F.normalize(x, dim=-1),
    "max_3": lambda x, y: torch.max(x, y) + torch.min(x, 2 * y),
    "var": lambda x, y: x.var(-1, unbiased=False),
    "layer_norm": lambda x, y: F.layer_norm(x, (8,), x[0, 0], y[0, 0], 1e-3) + F.layer_norm(y, (8,)),
    "layer_norm_2": lambda x, y: F.layer_norm(x, (8,), y[0, 0]),
}

ARRANGEMENTS: Functions = {
    "flip": lambda x, y: x.flip(2),
    "index_select": lambda x, y: x.index_select(2, y[0, 0, :3].long().abs()),
    "unfold": lambda x, y: x.unfold(2, 3, 2),
    "movedim": lambda x, y: x.movedim(0, 2) + y.permute(1, 2, 0),
    "meshgrid": lambda x, y: torch.stack(torch.meshgrid(x[0, 0], y[0, 1], indexing="xy")),
    "meshgrid_2": lambda x, y: torch.stack(torch.meshgrid(x[0, 0], y[0, 1, :3], indexing="ij")),
    "pad": lambda x, y: F.pad(x, (2, 1), mode="reflect"),
    "pad_2": lambda x, y: F.pad(x, (2, 1), mode="circular"),
    "pad_3": lambda x, y: F.pad(x, (-2, 1), value=3.0),
    "reflection_pad1d": lambda x, y: torch._C._nn.reflection_pad1d(x, (2, 1)),
    "pad_integers": lambda x, y: F.pad(x.argmax(-1), (0, 1), value=-1),
    "pad_4": lambda x, y: torch.constant_pad_nd(x, (1, 0), 2.0) + F.pad(y, (0, 1)),
    "slice_scatter": lambda x, y: torch.slice_scatter(x, y[..., :3], 2, 1, 4),
    "slice_scatter_2": lambda x, y: torch.slice_scatter(x, y[..., :4], 2, 0, 8, 2),
    "index": lambda x, y: x.mT[:, y[0, 0, :3].long().abs(), x[0, 1, :2, None].long() + 2],
    "index_2": lambda x, y: x[:, None][:, y[0, 0, :2, None].long() * 0, :, y[0, 0, :3].long().abs()],
    "scatter": lambda x, y: x.scatter(2, y.argmax(-1, keepdim=True), torch.full_like(y[..., :1].long(), 3).to(y.dtype)),
    "select_scatter": lambda x, y: torch.select_scatter(x, y[..., 0], 2, 3),
    "one_hot": lambda x, y: F.one_hot(x.long().abs(), 4) + torch.eye(8, 4).long(),
    "linspace": lambda x, y: torch.linspace(0, 1, 8) * x,
    "diff": lambda x, y: x.diff(dim=2),
    "tile": lambda x, y: x.tile(1, 1, 2) + y.repeat(1, 1, 2),
    "repeat_interleave": lambda x, y: x.repeat_interleave(2, 2),
    "roll": lambda x, y: x.roll(3, 2) + y.narrow(2, 0, 1),
    "tensor_split": lambda x, y: torch.cat(x.tensor_split(3, 2)[::-1], 2),
    "unbind": lambda x, y: torch.stack(y.unbind(2)[:3], 1),
    "gather": lambda x, y: x.gather(2, y.long().abs()),
    "expand_as": lambda x, y: x.expand_as(x) + x.view_as(y) + x.unflatten(2, (2, 4)).flatten(2).ravel().reshape_as(x),
    "tril": lambda x, y: torch.tril(x @ y.mT, -1)[:, 0] + torch.triu(x @ y.mT)[:, 0],
    "swapaxes": lambda x, y: x.swapaxes(1, 2).transpose(1, 2) + x.new_zeros(8) + x.new_full((8,), 2.0),
}

IMAGES: Functions = {
    "pixel_shuffle": lambda x, y: F.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda x, y: F.pixel_unshuffle(x, 2),
    "unfold": lambda x, y: F.unfold(x, (2, 3), dilation=2, padding=1, stride=2),
    "adaptive_avg_pool2d": lambda x, y: F.adaptive_avg_pool2d(x, (3, 2)),
    "adaptive_max_pool2d": lambda x, y: F.adaptive_max_pool2d(x, (3, 2)),
    "max_pool2d": lambda x, y: F.max_pool2d(x, 3, 2, 1),
    "avg_pool2d": lambda x, y: F.avg_pool2d(x, (2, 4)),
    "interpolate": lambda x, y: F.interpolate(x, scale_factor=2, mode="nearest"),
    "interpolate_5": lambda x, y: F.interpolate(x, (6, 5), mode="nearest"),
    "interpolate_2": lambda x, y: F.interpolate(x, (9, 4), mode="bilinear"),
    "interpolate_3": lambda x, y: F.interpolate(x, (9, 4), mode="bilinear", align_corners=True),
    "interpolate_4": lambda x, y: F.interpolate(x, (3, 5), mode="nearest-exact"),
    "conv2d": lambda x, y: F.conv2d(x, y[:, :, :3, :3], stride=2, padding=1),
    "conv_transpose2d": lambda x, y: F.conv_transpose2d(x, y[0, :4, None, :3, :3].expand(4, 1, 3, 3), stride=2),
    "instance_norm": lambda x, y: F.instance_norm(x),
    "instance_norm_2": lambda x, y: F.instance_norm(x, y[0, :, 0, 0], y[0, :, 0, 1].abs(), use_input_stats=False),
    "batch_statistics": lambda x, y: torch.ops.aten._native_batch_norm_legit.no_stats(
        x[:1], y[0, :, 0, 0], None, True, 0.1, 1e-3
    )[0],
    "group_norm": lambda x, y: F.group_norm(x, 2),
    "batch_norm": lambda x, y: F.batch_norm(x, y[0, :, 0, 0], y[0, :, 0, 1].abs(), y[0, :, 0, 2], y[0, :, 0, 3]),
    "grid_sample": lambda x, y: F.grid_sample(x, y[..., :2, :].mT.reshape(2, 8, 4, 2), align_corners=False),
}

PRODUCTS: Functions = {
    "addmm": lambda x, y: torch.addmm(x[0], x[0], y[0]),
    "baddbmm": lambda x, y: torch.baddbmm(x, x, y, beta=2, alpha=3),
    "mv": lambda x, y: torch.mv(x[0], y[0, 0]),
    "einsum": lambda x, y: torch.einsum("bij,bkj->bik", x, y),
    "einsum_2": lambda x, y: torch.einsum("bij,bij,bkj->bik", x, y, x),
    "einsum_3": lambda x, y: torch.einsum("bij->ji", x),
    "einsum_4": lambda x, y: torch.einsum("bij,bjk->k", x, y),
    "einsum_5": lambda x, y: torch.einsum("bii,bij->bj", x, y),
    "diagonal": lambda x, y: x.diagonal(1, 2, 1),
    "bilinear": lambda x, y: F.bilinear(x, y, y[:1], x[0, :1, 0]),
    "adjoint": lambda x, y: x @ y.adjoint(),
    "scaled_dot_product_attention": lambda x, y: F.scaled_dot_product_attention(
        x[:, None], y[:, None], x[:, None], scale=0.5
    ),
    "linear": lambda x, y: F.linear(x, y[0], x[0, 0]),
    "inner": lambda x, y: torch.inner(x[0, 0], y[0, 0]),
}

COMPLEX: Functions = {
    "view_as_real": lambda x, y: torch.view_as_real(torch.fft.fft2(x))[..., 0],
    "mul": lambda x, y: torch.view_as_real(y * torch.polar(x, y)),
    "to": lambda x, y: x.to(torch.complex64).real * y,
}

CASES = {
    "activations": (partial(Several, ACTIVATIONS), (X, Y)),
    "numbers": (partial(Several, NUMBERS), (X, Y)),
    "reductions": (partial(Several, REDUCTIONS), (X, Y)),
    "arrangements": (partial(Several, ARRANGEMENTS), (X, Y)),
    "images": (partial(Several, IMAGES), (IMAGE, -IMAGE)),
    "products": (partial(Several, PRODUCTS), (SQUARE, -SQUARE)),
    "complex": (partial(Several, COMPLEX), (X, Y)),
}

FUNCTIONS = {
    "logit": (lambda x, y: torch.logit(x, 0.1), X, Y),
    "the place of the smallest": (lambda x, y: x.argmin(), X, Y),
    "counts": (lambda x, y: torch.linalg.vector_norm(x, 0, -1), X, Y),
    "norms of matrices": (lambda x, y: torch.linalg.norm(x, "fro", (1, 2)), X, Y),
    "products over a dimension": (lambda x, y: x.prod(1), X, Y),
    "differences of differences": (lambda x, y: x.diff(2), X, Y),
    "all places": (lambda x, y: x.argmax(), X, Y),
    "integers": (lambda x, y: x.long() & 1, X, Y),
    "gaps": (lambda x, y: F.max_pool1d(x, 2, dilation=2), X, Y),
    "dropout": (lambda x, y: F.scaled_dot_product_attention(x, y, x, dropout_p=0.5), X, Y),
    "longer results": (lambda x, y: F.conv_transpose1d(x[:, :4], y[0, :4, None], stride=2, output_padding=1), X, Y),
    "numbers that are not known": (lambda x, y: x.scatter(2, x.long().abs(), y[0, 0, 0].expand(2, 5, 8)), X, Y),
    "sizes": (lambda x, y: x + torch.full((8,), x.shape[1]), X, Y),
    "numbers of numbers": (lambda x, y: x * (torch.full((1,), 12).to(x.dtype) + 0.5).log().floor() - y, X, Y),
    "integers at indices": (lambda x, y: x.long()[:, y[0, 0, :2].long()], X, Y),
    "halves of transforms": (lambda x, y: torch.fft.rfft(x).real, X, Y),
    "imaginary parts": (lambda x, y: torch.view_as_real(torch.fft.fft(x))[..., 1], X, Y),
    "complex outputs": (lambda x, y: torch.polar(x, y), X, Y),
    "fractions from a dimension on": (lambda x, y: x.sum() + torch.arange(x.shape[1], x.shape[1] + 2, 0.25), X, Y),
    "systems": (lambda x, y: torch.linalg.solve_triangular(x @ x.mT, y, upper=False), X, Y),
}
