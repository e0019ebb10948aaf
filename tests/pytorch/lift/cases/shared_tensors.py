"""Tensors of layers that modules also read themselves, and tensors in other places as well."""

from collections.abc import Callable
from typing import Any

import torch

nn = torch.nn


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(16, 8)
        self.norm = nn.LayerNorm(8)
        self.up = nn.Linear(8, 8)

    def forward(self, ids: Any) -> Any:
        x = self.norm(self.words(ids))
        for _ in range(4):
            x = x + torch.tanh(self.up(x)) * x.sigmoid()
        return x


class Reading(nn.Module):
    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.function = function
        self.words = nn.Embedding(16, 8)
        self.project = nn.Linear(8, 8)
        self.inner = Inner()

    def forward(self, ids: Any) -> Any:
        return self.function(self, ids)


def tied(module: Any, ids: Any) -> Any:
    return module.project(module.words(ids)) @ module.words.weight.t()


def quantized(module: Any, ids: Any) -> Any:
    x, codes = module.project(module.words(ids)), module.words.weight
    distances = (x**2).sum(-1, keepdim=True) - 2 * x @ codes.t() + (codes**2).sum(1)
    return module.words(distances.argmin(-1))


def of_a_block(module: Any, ids: Any) -> Any:
    return module.inner(ids) @ module.inner.words.weight.t()


class Keeping(nn.Module):
    """A module that has its tensors in other places as well, which `torch.export` does not look for."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.weight, self.other = nn.Parameter(torch.randn(2, 8)), nn.Parameter(torch.randn(2, 8))
        self.register_buffer("kept", torch.randn(2, 8))
        self.register_buffer("alias", self.weight.detach() if kind == "alias" else None, persistent=False)
        weight = self.weight
        self.function = (lambda: weight) if kind == "closure" else None
        found = {"weight": self.weight, "buffer": self.kept, "part": self.weight[:1], "own": torch.full((2, 8), 3.0)}
        self.listed = [found[kind]] if kind in found else []

    def forward(self, x: Any) -> Any:
        if self.function is not None:
            return x * self.function().sum(0)
        return x * (self.listed[0] if self.listed else self.alias).sum(0)


IDS, X = (torch.randint(0, 16, (2, 5)),), (torch.randn(3, 5, 8),)


class Declared(nn.Module):
    """Tensors of several kinds, two of which are tied."""

    def __init__(self) -> None:
        super().__init__()
        self.fixed = nn.Parameter(torch.ones(2), requires_grad=False)
        self.register_buffer("counts", torch.ones(2, dtype=torch.long))
        self.register_buffer("scale", torch.ones(2))
        self.register_buffer("mask", torch.ones(2, dtype=torch.bool))
        self.words, self.head = nn.Embedding(4, 2), nn.Linear(2, 4)
        self.head.weight = self.words.weight

    def forward(self, ids: Any) -> Any:
        return self.head(torch.where(self.mask, self.words(ids) * self.fixed * self.scale, 0.0) + self.counts)


CASES = {
    "tied by a product": (lambda: Reading(tied), IDS),
    "the nearest code": (lambda: Reading(quantized), IDS),
    "a tensor of a block": (lambda: Reading(of_a_block), IDS),
    "a list of a weight": (lambda: Keeping("weight"), X),
    "a list of a tensor": (lambda: Keeping("own"), X),
    "a part of a weight": (lambda: Keeping("part"), X),
    "a list of a buffer": (lambda: Keeping("buffer"), X),
    "an alias": (lambda: Keeping("alias"), X),
    "a closure": (lambda: Keeping("closure"), X),
    "kinds of tensors": (Declared, (torch.zeros(2, 3, dtype=torch.long),)),
}
