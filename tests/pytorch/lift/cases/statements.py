"""Lifting: how what a module computes is divided into statements, chains of steps, and arguments."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

nn = torch.nn


class Layers(nn.Module):
    """What a function computes of layers and an input."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        for name in {*"abcd"} & {*function.__code__.co_names}:
            setattr(self, name, nn.Linear(16 if name == "d" else 8, 8, bias=False))
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(self, x)


def twice(m: Layers, x: Any) -> Any:
    h = m.a(x)
    return h * h


def several(m: Layers, x: Any) -> Any:
    h = m.a(x)
    return h, m.b(h) - h


def heads(x: Any) -> Any:
    return x.unflatten(-1, (2, 4)).transpose(1, 2)


def attention(m: Layers, x: Any) -> Any:
    mask = (torch.arange(5) * 3 % 4)[:, None] >= torch.arange(5)
    found = nn.functional.scaled_dot_product_attention(heads(m.a(x)), heads(m.b(x)), heads(x.sin().cos()), mask)
    return m.c(found.transpose(1, 2).flatten(2))


COMPUTED: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda m, x: m.a(x) + m.b(x),
    "product, the second longer": lambda m, x: m.a(x) * m.b(m.c(x)),
    "product of as many": lambda m, x: m.a(x) * torch.tanh(m.b(x)),
    "difference from the input": lambda m, x: x - m.a(x),
    "quotient": lambda m, x: x / m.a(x),
    "residual": lambda m, x: x + m.a(x),
    "square": twice,
    "number": lambda m, x: 1.0 - m.a(x) * 2,
    "sum of three, the last first": lambda m, x: m.a(x) + (m.b(x) + m.c(x)),
    "sum times another": lambda m, x: (m.a(x) + m.b(x)) * m.c(x),
    "sum of the longer one": lambda m, x: m.a(x) + m.b(m.c(x)),
    "two steps as a factor": lambda m, x: torch.tanh(torch.sin(x)) * m.a(x),
    "three steps as a factor": lambda m, x: torch.exp(torch.tanh(torch.sin(x))) * m.a(x),
    "two steps without layers": lambda m, x: torch.tanh(torch.sin(x)) * torch.cos(x),
    "three steps without layers": lambda m, x: torch.exp(torch.tanh(torch.sin(x))) * torch.cos(torch.exp(x)),
    "layer as an argument": lambda m, x: torch.where(x > 0, m.a(x), m.b(x)),
    "joined": lambda m, x: m.d(torch.cat([m.a(x), m.b(x)], -1)),
    "joined, and a product": lambda m, x: torch.cat([m.a(x)[..., :4], x[..., :4]], -1) * m.b(x),
    "joined, and steps": lambda m, x: torch.tanh(torch.cat([m.a(x), torch.exp(torch.tanh(torch.sin(x)))], -1)),
    "matrix and input": lambda m, x: m.a(x).softmax(-1) @ x.transpose(1, 2),
    "largest of the input": lambda m, x: torch.maximum(torch.sin(x), m.b(x)),
    "parts": lambda m, x: m.a(x).topk(2),
    "parts of the middle": lambda m, x: torch.cat(torch.split(m.a(x), [2, 4, 2], -1)[1:], -1),
    "positions twice": lambda m, x: x * torch.arange(8) + torch.arange(8) * m.a(x),
    "two results": lambda m, x: (m.a(x), x + 1),
    "two results, one of three steps": lambda m, x: (m.a(x), torch.exp(torch.tanh(torch.sin(x)))),
    "two results, one of the other": several,
    "the input as a result": lambda m, x: (x, torch.tanh(x) * 2),
    "attention": attention,
}
"""What modules compute."""

CASES = {name: (partial(Layers, function), (torch.randn(2, 5, 8),)) for name, function in COMPUTED.items()}
