"""Layers of several kinds, or with several inputs, in one loop."""

from typing import Any

import torch

nn = torch.nn


class Plain(nn.Module):
    def __init__(self, inner: int = 6, scale: float = 1.0) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, inner), nn.Linear(inner, 8)
        self.scale = scale

    def forward(self, x: Any, y: Any, first: Any) -> Any:
        return x + self.down(torch.tanh(self.up(x))) * y * self.scale - first


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.gate = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Any, y: Any, first: Any) -> Any:
        return x + torch.sigmoid(self.gate(x)) * torch.tanh(self.up(x)) * y - first


class Stack(nn.Module):
    """Layers of which each is given one of two inputs."""

    def __init__(self, layers: list[nn.Module], second: tuple[int, ...] = (), length: int = 1) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.second = second
        self.table = nn.Parameter(torch.zeros(length, 8))

    def forward(self, x: Any, y: Any, z: Any) -> Any:
        first = torch.cos(z)
        for turn, layer in enumerate(self.layers):
            x = layer(x, z if turn in self.second else y, first)
        return x + z * self.table


X = torch.linspace(-1, 1, 80).reshape(2, 5, 8)
INPUTS = (X, X + 1, X + 2)

CASES = {
    "two classes": (lambda: Stack([Plain(), Gated(), Plain()]), INPUTS),
    "two inputs": (lambda: Stack([Plain() for _ in range(3)], (1,)), INPUTS),
    "two sizes and inputs": (lambda: Stack([Plain(6, 0.5), Plain(5, 0.5), Plain(6, 0.5)], (1,)), INPUTS),
    "one length": (lambda: Stack([Plain(), Plain()], length=5), INPUTS),
    "one length that is also another size": (lambda: Stack([Plain(5), Plain(5)], length=5), INPUTS),
}
