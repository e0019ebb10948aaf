"""Modules of a class that differ in settings of attention or in masks are of one definition."""

from typing import Any

import torch

nn = torch.nn

HIDDEN, HEADS = 8, 2


class Attention(nn.Module):
    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = [nn.Linear(HIDDEN, HIDDEN) for _ in range(4)]
        self.causal = causal

    def forward(self, x: Any, mask: Any = None) -> Any:
        q, k, v = [part(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in (self.q, self.k, self.v)]
        if self.causal:
            earlier = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
            mask = earlier if mask is None else earlier & mask
        found = nn.functional.scaled_dot_product_attention(q, k, v, mask)
        return self.o(found.transpose(1, 2).flatten(-2))


class Layer(nn.Module):
    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(HIDDEN), Attention(causal)

    def forward(self, x: Any, mask: Any = None) -> Any:
        return x + self.attention(self.norm(x), mask)


class Pair(nn.Module):
    """Layers for texts, which have masks, and for images."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.words, self.patches = nn.Embedding(11, HIDDEN), nn.Linear(3, HIDDEN)
        self.texts = nn.ModuleList([Layer(causal) for _ in range(2)])
        self.images = nn.ModuleList([Layer() for _ in range(2)])

    def forward(self, ids: Any, image: Any, attention_mask: Any = None) -> Any:
        text, image = self.words(ids), self.patches(image)
        visible = None if attention_mask is None else attention_mask.bool()[:, None, None, :]
        for layer in self.texts:
            text = layer(text, visible)
        for layer in self.images:
            image = layer(image)
        return text.mean(1) @ image.mean(1).T


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(HIDDEN))

    def forward(self, x: Any) -> Any:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-3) * (1 + self.weight)


class Rotated(nn.Module):
    """A layer that multiplies by a table that its model computes."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down, self.gate = nn.Linear(HIDDEN, 12), nn.Linear(12, HIDDEN), nn.Linear(HIDDEN, 12)
        self.norm = Norm()

    def forward(self, x: Any, table: Any) -> Any:
        x = self.norm(x)
        gate = torch.sigmoid(self.gate(x * table)) + torch.tanh(self.gate(x)) * 0.5
        return x + self.down(torch.relu(self.up(x)) * gate)


class Tables(nn.Module):
    """Layers of which only one uses a second table; a norm that is a definition follows them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Rotated() for _ in range(8)])
        self.norm = Norm()

    def forward(self, x: Any) -> Any:
        place = torch.arange(x.shape[1])[:, None]
        first, second = torch.cos(place * 0.1), torch.sin(place * 0.01)
        for turn, layer in enumerate(self.layers):
            x = layer(x, second if turn % 6 == 5 else first)
        return self.norm(x)


TEXTS = torch.zeros(2, 4, dtype=torch.long), torch.zeros(3, 5, 3), torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]])

CASES = {
    "a mask that some modules have": (lambda: Pair(False), TEXTS),
    "attention that some modules limit": (lambda: Pair(True), TEXTS),
    "a table that one layer of several uses": (Tables, (torch.zeros(2, 7, HIDDEN),)),
}

SLOW = "."
