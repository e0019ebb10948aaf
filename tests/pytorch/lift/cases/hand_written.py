"""Functions of the library as people write them, and functions that nearly are these."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

nn = torch.nn

F = nn.functional


class Norm(nn.Module):
    """A norm with tensors of these shapes, after which come other operations."""

    def __init__(self, norm: Callable[[Any, Any], Any], *shapes: tuple[int, ...]) -> None:
        super().__init__()
        self.norm = norm
        self.tensors = nn.ParameterList([nn.Parameter(torch.randn(*shape)) for shape in shapes])
        self.proj = nn.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        return x + self.proj(self.norm(x, self.tensors))


def annotated(x: Any, own: Any) -> Any:
    centre = x - x.mean(-1, keepdim=True)
    return own[0] * centre / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-6) + own[1]


def of_pairs(x: Any, own: Any) -> Any:
    variance, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
    return (x - mean) * torch.rsqrt(variance + 1e-5) * own[0] + own[1]


def of_channels(x: Any, own: Any) -> Any:
    mean = x.mean(1, keepdim=True)
    variance = (x - mean).pow(2).mean(1, keepdim=True)
    return own[0][:, None, None] * ((x - mean) / torch.sqrt(variance + 1e-6)) + own[1][:, None, None]


def of_groups(x: Any, own: Any) -> Any:
    batch, channels, height, width = x.shape
    parts = x.view(batch, 2, -1)
    variance, mean = torch.var_mean(parts, dim=-1, keepdim=True, correction=0)
    return ((parts - mean) / (variance + 1e-5).sqrt()).view(batch, channels, height, width) * own[0] + own[1]


def mean_square(x: Any, own: Any) -> Any:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * own[0]


def from_zero(x: Any, own: Any) -> Any:
    return x / torch.sqrt((x * x).sum(-1, keepdim=True) / x.shape[-1] + 1e-6) * (1 + own[0])


def outside_the_root(x: Any, own: Any) -> Any:
    return own[0] * (x / (x.norm(2, dim=-1, keepdim=True) * 6**-0.5 + 1e-8))


def of_samples(x: Any, own: Any) -> Any:
    """The norm of a tutorial, which divides by the deviation of a sample."""
    return own[0] * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + own[1]


class Rotated(nn.Module):
    """Products of rotated queries and keys."""

    def __init__(self, turn: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.turn = turn
        self.q, self.k = nn.Linear(24, 24), nn.Linear(24, 24)
        self.speeds: torch.Tensor
        self.register_buffer("speeds", 1 / 10000 ** (torch.arange(0, 8, 2).float() / 8))

    def forward(self, x: Any) -> Any:
        batch, seq, _ = x.shape
        angles = torch.outer(torch.arange(seq).float(), self.speeds)
        q, k = [self.turn(f(x).view(batch, seq, 3, 8).transpose(1, 2), angles) for f in (self.q, self.k)]
        return q @ k.transpose(2, 3)


def stacked(x: Any, angles: Any) -> Any:
    a, b = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
    return torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1).flatten(3)


def as_complex(x: Any, angles: Any) -> Any:
    whole = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(whole * torch.polar(torch.ones_like(angles), angles)).flatten(3)


def interleaved(x: Any, angles: Any) -> Any:
    angles = torch.stack((angles, angles), -1).flatten(1)
    a, b = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
    return x * angles.cos() + torch.stack((-b, a), -1).reshape(x.shape) * angles.sin()


def backwards(x: Any, angles: Any) -> Any:
    a, b = x.chunk(2, -1)
    return torch.cat([a * angles.cos() + b * angles.sin(), a * -angles.sin() + b * angles.cos()], -1)


def named_as_a_size(x: Any) -> Any:
    seq = torch.arange(x.shape[1], device=x.device)[:, None]
    return x * seq + seq


X, IMAGE, TOKENS = (torch.randn(2, 5, 6),), (torch.randn(2, 6, 4, 5),), (torch.randn(2, 5, 24),)


def norm(function: Callable[[Any, Any], Any], count: int) -> Any:
    return partial(Norm, function, *[(6,)] * count), X


class Rounded(nn.Module):
    """What is rounded is a number only if variances are positive."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(5)

    def forward(self, x: Any) -> Any:
        x = self.norm(x)
        return x + (torch.floor(x) - x).detach()


def pooled(x: Any) -> Any:
    x = x.transpose(1, 2)
    return F.max_pool1d(x, x.size(2)) + F.avg_pool1d(x, x.size(2))


class OfImages(Norm):
    def __init__(self, norm: Callable[[Any, Any], Any], *shapes: tuple[int, ...]) -> None:
        super().__init__(norm, *shapes)
        self.proj = nn.Conv2d(6, 6, 1)


CASES = {
    "LayerNorm": norm(annotated, 2),
    "LayerNorm of var_mean": norm(of_pairs, 2),
    "LayerNorm of channels": ((lambda: OfImages(of_channels, (6,), (6,))), IMAGE),
    "GroupNorm": ((lambda: OfImages(of_groups, (1, 6, 1, 1), (1, 6, 1, 1))), IMAGE),
    "RMSNorm": norm(mean_square, 1),
    "RMSNorm with a weight from zero": norm(from_zero, 1),
    "no RMSNorm: eps outside of the root": norm(outside_the_root, 1),
    "no LayerNorm: deviation of a sample": norm(of_samples, 2),
    "pairs stacked": ((lambda: Rotated(stacked)), TOKENS),
    "pairs as complex numbers": ((lambda: Rotated(as_complex)), TOKENS),
    "pairs interleaved": ((lambda: Rotated(interleaved)), TOKENS),
    "a batch norm, rounded": (Rounded, X),
    "halves backwards": ((lambda: Rotated(backwards)), TOKENS),
}

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "gelu": ((lambda x: x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))), X[0]),
    "gelu with a root of a tensor": ((lambda x: x * 0.5 * (1.0 + torch.erf(x / torch.sqrt(torch.tensor(2.0))))), X[0]),
    "gelu_tanh": ((lambda x: 0.5 * x * (1 + torch.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x**3)))), X[0]),
    "gelu_tanh with a root of a tensor": (
        (lambda x: 0.5 * x * (1 + torch.tanh(torch.sqrt(torch.tensor(2 / torch.pi)) * (x + 0.044715 * x**3)))),
        X[0],
    ),
    "quick_gelu with a tensor": ((lambda x: x * torch.sigmoid(torch.tensor(1.702) * x)), X[0]),
    "gates": ((lambda x: x * torch.sigmoid(x) * (x + 1)), X[0]),
    "mish": ((lambda x: x * torch.tanh(F.softplus(x))), X[0]),
    "relu2": ((lambda x: torch.clamp(x, min=0) ** 2), X[0]),
    "a rounded value with the gradient of the value": ((lambda x: x + (torch.floor(x) - x).detach()), X[0]),
    "pooling in one window": (pooled, X[0]),
    "a variable with the name of a size": (named_as_a_size, X[0]),
    "no quick_gelu: another factor": ((lambda x: x * torch.sigmoid(1.7 * x)), X[0]),
}

SLOW = "pairs as|pairs inter|halves|LayerNorm of|gelu$|gelu with|mish|relu2"
