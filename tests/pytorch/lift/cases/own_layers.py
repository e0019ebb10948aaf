"""Modules that compute what a layer of the library does, and modules that nearly do."""

from collections.abc import Callable
from typing import Any

import torch

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


def around(make: Callable[[], nn.Module], *shape: int) -> Any:
    return (lambda: Around(make())), (torch.randn(shape),)


CASES = {
    "LayerNorm": around(
        lambda: Own(lambda m, x: F.layer_norm(x, (8,), m.weight, m.bias, 1e-6), weight=(8,), bias=(8,)), 2, 5, 8
    ),
    "LayerNorm without a bias": around(
        lambda: Own(lambda m, x: F.layer_norm(x, (8,), m.weight, None, 1e-6), weight=(8,)), 2, 5, 8
    ),
    "Linear": around(lambda: Own(lambda m, x: F.linear(x, m.weight), weight=(6, 8)), 2, 5, 8),
    "GroupNorm": around(lambda: nn.GroupNorm(2, 4, eps=1e-3), 2, 4, 9),
    "Conv1d": around(lambda: nn.Conv1d(5, 6, 3), 2, 5, 8),
    "Conv2d": around(lambda: nn.Conv2d(4, 6, 3, groups=2), 2, 4, 9, 9),
    "ConvTranspose2d": around(lambda: nn.ConvTranspose2d(4, 6, 3, groups=2, bias=False), 2, 4, 9, 9),
    "BatchNorm of images": around(lambda: nn.BatchNorm2d(4, eps=1e-3), 2, 4, 9, 9),
    "BatchNorm of sequences": around(lambda: nn.BatchNorm1d(5), 2, 5, 8),
    "LayerNorm of two axes": around(lambda: nn.LayerNorm((5, 8)), 2, 5, 8),
    "Linear with another name": around(lambda: Own(lambda m, x: F.linear(x, m.w), w=(6, 8)), 2, 5, 8),
    "Linear with another tensor": around(
        lambda: Own(lambda m, x: F.linear(x, m.weight) + m.scale, weight=(6, 8), scale=(6,)), 2, 5, 8
    ),
    "GroupNorm without a bias": around(
        lambda: Own(lambda m, x: F.group_norm(x, 2, m.weight, None, 1e-3), weight=(4,)), 2, 4, 9
    ),
    "Conv2d with an oblong kernel": around(lambda: nn.Conv2d(4, 6, (3, 5)), 2, 4, 9, 9),
    "Conv3d": around(lambda: nn.Conv3d(2, 3, 3), 2, 2, 5, 5, 5),
}
