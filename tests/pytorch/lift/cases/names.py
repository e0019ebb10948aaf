"""Names of values: their variables, also in functions that `forward` calls, their layers, and their roles."""

from typing import Any

import torch

nn = torch.nn

F = nn.functional

X = torch.linspace(-1, 1, 120).reshape(2, 5, 12)


def turned(x: Any, angles: Any) -> Any:
    """A function with variables of its own, which two calls in one line share."""
    first, second = x.chunk(2, -1)
    crossed = torch.cat([-second, first], -1)
    return x * angles.cos() + crossed * angles.exp()


class OtherNames(nn.Module):
    """Attention whose keys are called `q`, queries `v` and values `k`, as are other values after it."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(12, 12) for _ in range(3)])

    def forward(self, x: Any) -> Any:
        q, v, k = [part(x).unflatten(-1, (3, 4)).transpose(1, 2) for part in self.parts]
        y = F.scaled_dot_product_attention(v, q, k)
        k = y.transpose(1, 2).flatten(2).tanh()
        return k * k.exp()


class Helpers(nn.Module):
    """A residual that takes the name of the input, and functions with variables of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.attn, self.mlp = nn.LayerNorm(12), nn.Linear(12, 12), nn.Linear(12, 12)

    def rotated(self, x: Any) -> Any:
        angles = x.mean(-1, keepdim=True)
        return turned(x, angles)

    def forward(self, x: Any) -> Any:
        x = x + self.attn(self.norm(self.rotated(x)))
        return x + self.mlp(x).tanh()


class Twice(nn.Module):
    """Layers at two addresses, which are called at both."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(12, 12)
        self.second = self.first
        self.block = nn.Sequential(nn.LayerNorm(12), nn.Linear(12, 12))
        self.again = self.block

    def forward(self, x: Any) -> Any:
        x = self.second(self.first(x).tanh())
        return self.again(self.block(x).sin()) + self.first(x)


class Signal(nn.Module):
    """A signal of any length, and an image of any height and width."""

    def __init__(self) -> None:
        super().__init__()
        self.signal, self.image = nn.Conv1d(4, 6, 3, padding=1), nn.Conv2d(3, 6, 3, padding=1)

    def forward(self, signal: Any, image: Any) -> Any:
        return self.signal(signal).tanh(), self.image(image).tanh()


CASES: dict[str, Any] = {
    "attention whose operands have other names": (OtherNames, (X,)),
    "variables of functions": (Helpers, (X,)),
    "layers at two addresses": (Twice, (X,)),
    "axes of signals and images": (Signal, (torch.zeros(2, 4, 9), torch.zeros(2, 3, 8, 7))),
}
