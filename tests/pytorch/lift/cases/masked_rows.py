"""Modules that select rows by a mask, compute something of each, and put them back."""

from collections.abc import Callable
from typing import Any

import torch

nn = torch.nn


class Routed(nn.Module):
    """Tokens of two kinds go through different layers; `mixed` is what is done with the rows of the first kind."""

    def __init__(self, mixed: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.norm = nn.LayerNorm(8)
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.mixed = mixed

    def forward(self, ids: Any) -> Any:
        x, mask = self.words(ids), ids > 0
        if self.mixed is not None:
            return self.mixed(x, mask)
        x = x.masked_scatter(mask.unsqueeze(-1), self.norm(x[mask]))
        x[~mask] += self.first(x[~mask]).relu()
        found = torch.zeros_like(x)
        found[mask] = self.second(x[mask]).view(-1, 2, 4).flatten(1)
        return found


class Adapted(nn.Module):
    """A block of the items of a batch that a mask selects, whose norm the module around it applies as well."""

    def __init__(self) -> None:
        super().__init__()
        self.dense, self.norm, self.adapter = nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        x = self.norm(self.dense(x))
        mask = torch.ones(x.shape[0], dtype=torch.long) == 1
        found = torch.zeros_like(x)
        found[mask] = self.adapter(x[mask])
        return (found + x).relu() + x.exp().sum(-1, keepdim=True).log()


class Choices(nn.Module):
    """Layers for several sequences of each item, as for questions with choices."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.layers = nn.ModuleList([Adapted() for _ in range(3)])

    def forward(self, ids: Any) -> Any:
        x = self.words(ids.view(-1, ids.shape[-1]))
        for layer in self.layers:
            x = layer.norm(layer(x))
        return x


def mean(x: Any, mask: Any) -> Any:
    x[mask] = x[mask] - x[mask].mean(0)
    return x


def in_pairs(x: Any, mask: Any) -> Any:
    return x + torch.softmax(x[mask] @ x[mask].T, -1).sum()


def count(x: Any, mask: Any) -> Any:
    return x * x[mask].shape[0]


def elsewhere(x: Any, mask: Any) -> Any:
    x[mask.flip(0)] = x[mask]
    return x


def selected(x: Any, mask: Any) -> Any:
    return x[mask]


def turned(x: Any, mask: Any) -> Any:
    x[mask] = x[mask].flip(0)
    return x


class Best(nn.Module):
    """The rows of each item of a batch with the best scores."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Linear(8, 1)

    def forward(self, x: Any) -> Any:
        _, best = torch.topk(self.scores(x).squeeze(-1), 2, dim=1)
        return x[torch.arange(x.shape[0]).unsqueeze(1), best]


class Filled(nn.Module):
    """Rows of images, one after the other, in the places of a token; the mask has one axis of size 1, or all axes."""

    def __init__(self, is_wide: bool) -> None:
        super().__init__()
        self.words, self.images = nn.Embedding(30, 8), nn.Linear(6, 8)
        self.is_wide = is_wide

    def forward(self, ids: Any, image: Any) -> Any:
        x, mask = self.words(ids), (ids == 1).unsqueeze(-1)
        return x.masked_scatter(mask.expand_as(x) if self.is_wide else mask, self.images(image))


class Elements(nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        return x.masked_scatter(x > 0, y)


IDS = (torch.randint(0, 3, (3, 7)),)

IMAGES = {"ids": torch.zeros(3, 7, dtype=torch.long), "image": torch.randn(3, 20, 6)}

CASES = {
    "rows that a mask selects": (Routed, IDS),
    "the mean of rows": (lambda: Routed(mean), IDS),
    "products of rows": (lambda: Routed(in_pairs), IDS),
    "the number of rows": (lambda: Routed(count), IDS),
    "rows in the places of others": (lambda: Routed(elsewhere), IDS),
    "rows alone": (lambda: Routed(selected), IDS),
    "rows in another order": (lambda: Routed(turned), IDS),
    "items of joint axes": (Choices, {"ids": torch.zeros(3, 5, 7, dtype=torch.long)}),
    "rows of each item": (Best, (torch.randn(2, 6, 8),)),
    "images in the places of a token": (lambda: Filled(False), IMAGES),
    "images in the places of a token, with a wide mask": (lambda: Filled(True), IMAGES),
    "elements in the places of others": (Elements, {"x": torch.randn(3, 7), "y": torch.randn(3, 7)}),
}

SLOW = "items"
