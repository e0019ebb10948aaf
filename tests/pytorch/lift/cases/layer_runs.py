"""Layers that are applied one after the other, and what each of them is given."""

from typing import Any

import torch

nn = torch.nn


class Given(nn.Module):
    """A layer with an input of its own."""

    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.up, self.gate, self.down = nn.Linear(hidden, inner), nn.Linear(hidden, inner), nn.Linear(inner, hidden)

    def forward(self, x: Any, own: Any) -> Any:
        gate = torch.sigmoid(self.gate(x)) + torch.tanh(self.up(x)) * 0.5
        return x + self.down(torch.relu(self.up(x)) * gate) * own


class Stack(nn.Module):
    """Layers that each take a slice of what is computed once; `wide` are the indices of those that are wider."""

    def __init__(self, count: int, wide: tuple[int, ...] = (), shift: int = 0) -> None:
        super().__init__()
        self.count, self.shift = count, shift
        self.inputs = nn.Linear(8, count * 8)
        self.layers = nn.ModuleList([Given(8, 16 if turn in wide else 12) for turn in range(count)])

    def forward(self, x: Any) -> Any:
        own = self.inputs(x).unflatten(-1, (self.count, 8))
        for turn, layer in enumerate(self.layers):
            x = layer(x, own[:, (turn + self.shift) % self.count])
        return x


class Scaled(nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 6)
        self.register_buffer("scale", torch.tensor(scale), persistent=False)

    def forward(self, ids: Any) -> Any:
        return self.words(ids) * self.scale


class Reading(nn.Module):
    """Layers whose results are normalized and scored by modules that a call is given."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])

    def forward(self, x: Any, norm: nn.Module, scores: nn.ModuleList) -> Any:
        found: list[Any] = []
        for layer, score in zip(self.layers, scores, strict=True):
            x = torch.tanh(layer(x)) * 0.5 + x
            found.append(score(norm(x)))
        return torch.stack(found, 1)


class Lending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.decoder, self.decoder_norm = Reading(), nn.LayerNorm(8)
        self.scores = nn.ModuleList([nn.Linear(8, 3) for _ in range(2)])

    def forward(self, x: Any) -> Any:
        return self.decoder(self.decoder_norm(x), self.decoder_norm, self.scores)


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        return self.second(torch.relu(self.first(x)))


class Borrowing(nn.Module):
    """A block of which a layer is applied alone as well."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Perceptron() for _ in range(2)])

    def forward(self, x: Any) -> Any:
        y = x
        for layer in self.layers:
            x = layer(x)
        for layer in self.layers:
            y = torch.tanh(layer.first(y))
        return x + y


class Near(nn.Module):
    """Causal attention, in a window if one is given."""

    def __init__(self, window: int | None) -> None:
        super().__init__()
        self.window = window
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        places = torch.arange(x.shape[1])
        mask = places[:, None] >= places
        if self.window is not None:
            mask = mask & (places[:, None] - places <= self.window)
        q, k, v = self.qkv(x).unflatten(-1, (2, 12)).transpose(1, 2).chunk(3, -1)
        found = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return x + self.out(found.transpose(1, 2).flatten(2)).tanh()


class Layers(nn.Module):
    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Any) -> Any:
        return self.layers(x)


X = torch.zeros(2, 8)

IDS = torch.zeros(2, 3, dtype=torch.long)


def near(*windows: int | None) -> nn.Module:
    return Layers([Near(window) for window in windows])


CASES = {
    "layers that take slices": (lambda: Stack(5), (X,)),
    "layers that take slices in another order": (lambda: Stack(5, shift=1), (X,)),
    "layers of two kinds that alternate": (lambda: Stack(6, wide=(1, 3, 5)), (X,)),
    "layers of two kinds without a rule": (lambda: Stack(12, wide=(1, 2, 5, 8, 9)), (X,)),
    "a root in float32": (lambda: Scaled(48**0.5), (IDS,)),
    "the inverse of a root in float32": (lambda: Scaled(48**-0.5), (IDS,)),
    "an exact number in float32": (lambda: Scaled(2.5), (IDS,)),
    "a number in float32": (lambda: Scaled(1.2345678806304932), (IDS,)),
    "modules that a call is given": (Lending, (X,)),
    "blocks that lend a layer": (Borrowing, (torch.randn(2, 5, 8),)),
    "a setting that every second layer lacks": (lambda: near(3, None, 3, None, 3), (torch.zeros(2, 7, 8),)),
    "a setting that every third layer lacks": (lambda: near(3, 3, None, 3, 3, None), (torch.zeros(2, 7, 8),)),
}

SLOW = "layers|a setting that every third"
