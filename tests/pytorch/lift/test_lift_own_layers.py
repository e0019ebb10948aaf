"""Lifting: modules that compute what a layer of the library does, and modules that nearly do."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec

nn = torch.nn
F = nn.functional


class Own(nn.Module):
    """A function of an input and of tensors of these shapes."""

    def __init__(self, function: Callable[[Any, Any], Any], **shapes: tuple[int, ...]) -> None:
        super().__init__()
        self.function = function
        for name, shape in shapes.items():
            setattr(self, name, nn.Parameter(torch.randn(*shape)))

    def forward(self, x: Any) -> Any:
        return self.function(self, x)


class Around(nn.Module):
    def __init__(self, own: nn.Module) -> None:
        super().__init__()
        self.own = own

    def forward(self, x: Any) -> Any:
        return self.own(x) * 2


def lifted(own: nn.Module, *shape: int) -> str:
    return " ".join(archspec.lift(Around(own).eval(), (torch.randn(*shape),)).split())


@pytest.mark.parametrize(
    ("make", "shape", "layer"),
    [
        (
            lambda: Own(lambda m, x: F.layer_norm(x, (8,), m.weight, m.bias, 1e-6), weight=(8,), bias=(8,)),
            (2, 5, 8),
            "LayerNorm(8, 1e-6)",
        ),
        (
            lambda: Own(lambda m, x: F.layer_norm(x, (8,), m.weight, None, 1e-6), weight=(8,)),
            (2, 5, 8),
            "LayerNorm(8, 1e-6, bias = false)",
        ),
        (
            lambda: Own(lambda m, x: F.linear(x, m.weight), weight=(6, 8)),
            (2, 5, 8),
            "Linear(8, 6, bias = false)",
        ),
        (lambda: nn.GroupNorm(2, 4, eps=1e-3), (2, 4, 9), "GroupNorm(2, 4, 0.001)"),
        (lambda: nn.Conv1d(5, 6, 3), (2, 5, 8), "Conv1d(5, 6, 3)"),
        (lambda: nn.Conv2d(4, 6, 3, groups=2), (2, 4, 9, 9), "Conv2d(4, 6, 3, groups = 2)"),
        (
            lambda: nn.ConvTranspose2d(4, 6, 3, groups=2, bias=False),
            (2, 4, 9, 9),
            "ConvTranspose2d(4, 6, 3, groups = 2, bias = false)",
        ),
        (lambda: nn.BatchNorm2d(4, eps=1e-3), (2, 4, 9, 9), "BatchNorm(4, 0.001)"),
        (lambda: nn.BatchNorm1d(5), (2, 5, 8), "BatchNorm(5, 1e-5)"),
    ],
)
def test_modules_that_are_layers(make: Callable[[], Any], shape: tuple[int, ...], layer: str) -> None:
    assert f"return own: {layer}(x) |> * 2 }}" in lifted(make(), *shape)


@pytest.mark.parametrize(
    ("make", "shape", "layer"),
    [
        (lambda: nn.LayerNorm((5, 8)), (2, 5, 8), "LayerNorm("),
        (lambda: Own(lambda m, x: F.linear(x, m.w), w=(6, 8)), (2, 5, 8), "Linear("),
        (lambda: Own(lambda m, x: F.linear(x, m.weight) + m.scale, weight=(6, 8), scale=(6,)), (2, 5, 8), "Linear("),
        (
            lambda: Own(lambda m, x: F.group_norm(x, 2, m.weight, None, 1e-3), weight=(4,)),
            (2, 4, 9),
            "GroupNorm(",
        ),
        (lambda: nn.Conv2d(4, 6, (3, 5)), (2, 4, 9, 9), "Conv2d("),
        (lambda: nn.Conv3d(2, 3, 3), (2, 2, 5, 5, 5), "Conv3d("),
    ],
)
def test_modules_that_are_nearly_layers(make: Callable[[], Any], shape: tuple[int, ...], layer: str) -> None:
    assert layer not in lifted(make(), *shape)
