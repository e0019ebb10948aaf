"""Lifting: layers of several kinds, or with several inputs, in one loop."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec
from archspec.pytorch.lift.sources.lifting import lift_source

nn = torch.nn
X = torch.linspace(-1, 1, 80).reshape(2, 5, 8)


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


STACKS: dict[str, tuple[Callable[[], Stack], list[str]]] = {
    "two classes": (
        lambda: Stack([Plain(), Gated(), Plain()]),
        ["layers[i]: Plain()(_, y, first) if i % 2 == 0 else layers[i]: Gated()(_, y, first) for i in 0..3"],
    ),
    "two inputs": (
        lambda: Stack([Plain() for _ in range(3)], (1,)),
        ["layers[i]: Plain()(_, y if i % 2 == 0 else z, first) for i in 0..3"],
    ),
    "two sizes and inputs": (
        lambda: Stack([Plain(6, 0.5), Plain(5, 0.5), Plain(6, 0.5)], (1,)),
        [
            "block Plain(outputs)(",
            "layers[i]: Plain(6)(_, y, first) if i % 2 == 0 else layers[i]: Plain(5)(_, z, first) for i in 0..3",
        ],
    ),
    "one length": (
        lambda: Stack([Plain(), Plain()], length=5),
        ["block Plain(x [batch, seq, 8], y [batch, seq, 8], first [batch, seq, 8])", "block Stack(x [batch, 5, 8],"],
    ),
    "one length that is also another size": (
        lambda: Stack([Plain(5), Plain(5)], length=5),
        ["block Plain(x [batch, 5, 8], y [batch, 5, 8], first [batch, 5, 8])", "Plain()(_, y, cos(z)) for i in 0..2"],
    ),
}


@pytest.mark.parametrize("name", STACKS)
def test_layers_are_one_loop_if_their_index_decides(name: str) -> None:
    make, expected = STACKS[name]
    text = " ".join(archspec.lift(make().eval(), (X, X + 1, X + 2)).split())
    assert [part for part in expected if part not in text] == []


ALTERNATING = """
import torch
from torch import nn


class Router(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, width))

    def forward(self, x):
        return torch.topk(nn.functional.linear(x, self.weight).softmax(-1), 2)


class Plain(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.tanh(self.up(x))


class Routed(Plain):
    def __init__(self, width):
        super().__init__(width)
        self.router = Router(width)

    def forward(self, x):
        shares, chosen = self.router(x)
        return super().forward(x) * shares.sum(-1, keepdim=True) + chosen.sum(-1, keepdim=True)


class Net(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.layers = nn.Sequential(*[(Routed if i % 2 else Plain)(width) for i in range(layers)])

    def forward(self, x):
        return self.layers(x)


def make(width=8, layers=3):
    return Net(width, layers).eval()
"""


@pytest.mark.slow
def test_what_only_a_deeper_module_has_several_times_is_a_definition(tmp_path: Path) -> None:
    """With three layers there is one router, with more there are several: it is a definition for all of them."""
    (tmp_path / "net.py").write_text(ALTERNATING, encoding="utf-8")
    text = lift_source(f"{tmp_path / 'net.py'}:make", ["x=real[batch,seq,8]"])
    assert "layer Router(width)" in text
    assert "layers[i]: Plain(..) if i % 2 == 0 else layers[i]: Routed(..) for i in 0..layers" in text
    assert archspec.loads(text, width=6, layers=5).params.total == 5 * (6 * 6 + 6) + 2 * 4 * 6
