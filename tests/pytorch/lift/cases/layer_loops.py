"""Layers in turn with other operations, which the parent applies itself, are lifted as loops; others are not."""

from typing import Any

import torch
from torch import nn


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(16, 24)
        self.outer = nn.Linear(24, 16)

    def forward(self, x: Any) -> Any:
        return self.outer(torch.relu(self.inner(x)))


class Layers(nn.Module):
    def __init__(self, layers: int = 3) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Mlp() for _ in range(layers)])


class Residual(Layers):
    """A residual around each layer."""

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = x + layer(x)
        return torch.tanh(x)


class Lists(nn.Module):
    """Layers of several parts, in a list of lists."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            [nn.ModuleList([nn.LayerNorm(16), nn.Linear(16, 16), nn.LayerNorm(16), Mlp()]) for _ in range(3)]
        )

    def forward(self, x: Any) -> Any:
        for first, mix, second, mlp in self.layers:
            x = torch.tanh(mix(first(x))) + x
            x = mlp(second(x)) + x
        return x


class Zipped(nn.Module):
    """Two lists from their second layers on, with a matrix that is the same for all."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(16) for _ in range(4)])
        self.blocks = nn.ModuleList([nn.ModuleDict({"ff": nn.Linear(16, 16)}) for _ in range(4)])

    def forward(self, x: Any) -> Any:
        weights = torch.ones(x.shape[1], x.shape[1]).double().tril()
        x = self.norms[0](x)
        for norm, block in zip(self.norms[1:], list(self.blocks)[1:], strict=True):
            x = norm(x + weights @ block["ff"](x))
        return x * self.blocks[0]["ff"](x)


class Shared(Layers):
    """Layers that are applied twice."""

    def forward(self, x: Any) -> Any:
        for _ in range(2):
            for layer in self.layers:
                x = x + layer(x)
            x = torch.tanh(x)
        return x


class TwoStreams(Layers):
    """Layers that pass on two values."""

    def forward(self, x: Any) -> Any:
        y = x
        for layer in self.layers:
            y = y + layer(x)
            x = torch.tanh(y)
        return x * y


class Scaled(Layers):
    """Layers with a tensor of the parent for each, and the number of the layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.scales = nn.ParameterList([nn.Parameter(torch.randn(16)) for _ in range(3)])

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        for turn, layer in enumerate(self.layers):
            x = x + layer(x) * self.scales[turn] * (x.argmax(dim=-1, keepdim=True) == turn)
        return x


class Pair(Mlp):
    def forward(self, x: Any, y: Any) -> Any:
        x = self.outer(torch.relu(self.inner(x)))
        return x * y, torch.tanh(x + y)


class Pairs(nn.Module):
    """Layers with two results, which are the next one's arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Pair() for _ in range(3)])

    def forward(self, x: Any) -> Any:
        y = torch.tanh(x)
        for layer in self.layers:
            x, y = layer(x, y)
        return x * y


class Biased(Mlp):
    def forward(self, x: Any, bias: Any) -> Any:
        return super().forward(x) + bias


class Alternating(nn.Module):
    """A list in which two kinds of layers alternate. A bias for one kind is made after the first norm."""

    def __init__(self) -> None:
        super().__init__()
        kinds = [Biased, Mlp] * 3
        self.layers = nn.ModuleList([nn.ModuleList([nn.LayerNorm(16), kind()]) for kind in kinds])
        self.bias = nn.Embedding(40, 16)

    def forward(self, x: Any) -> Any:
        bias = None
        for norm, layer in self.layers:  # type: ignore[misc]
            h = norm(x)
            bias = self.bias(torch.arange(x.shape[1])) if bias is None else bias
            x = x + (layer(h, bias) if isinstance(layer, Biased) else layer(h))
        return x


class Tanh(Mlp):
    def forward(self, x: Any) -> Any:
        return self.outer(torch.tanh(self.inner(x)))


class OfTwoKinds(nn.Module):
    """Layers of one kind, and then those of another one, in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Mlp() for _ in range(3)] + [Tanh() for _ in range(2)])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = x + layer(x)
        return x


class Again(Layers):
    """A run of layers, the second of which is applied once more."""

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.layers[1](torch.sin(x))


class Shifted(Layers):
    """Layers and the norms after them, which begin with the second."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(16) for _ in range(4)])

    def forward(self, x: Any) -> Any:
        for layer, norm in zip(self.layers, self.norms[1:], strict=True):
            x = norm(x + layer(x))
        return self.norms[0](x)


class SideBySide(Layers):
    """Layers of one input, the results of which are put in one tensor."""

    def forward(self, x: Any) -> Any:
        heads = [torch.tanh(layer(x)) * (x > turn) for turn, layer in enumerate(self.layers)]
        return torch.stack(heads, dim=-2).mean(-2) + x


class Joining(Layers):
    """A part of what each layer computes, beside a part of its input."""

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = torch.cat([layer(x)[..., :8], torch.tanh(x)[..., 8:]], dim=-1)
        return x


class Apart(Layers):
    """Layers in a loop, before others in stacks: one with another function, one scaled otherwise, one that is used."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(16, 16) for _ in range(9)])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = x + layer(x)
        heads = [head(x) for head in self.heads]
        functions = [torch.sin(heads[0]), torch.tanh(heads[1]), torch.tanh(heads[2])]
        scales = [heads[3] * 3.0, heads[4] * torch.cos(x), heads[5] * torch.cos(x)]
        return torch.stack(functions).sum(0), torch.stack(scales).sum(0), torch.stack(heads[6:]).sum(0), heads[7]


class Skipping(Layers):
    """Layers whose results are used after all others."""

    def forward(self, x: Any) -> Any:
        found = []
        for layer in self.layers:
            x = x + layer(x)
            found.append(x)
        return torch.cat(found, dim=-1)


class OneInAStack(Layers):
    """The sum of layers, the first of which is in a stack."""

    def forward(self, x: Any) -> Any:
        return torch.stack([self.layers[0](x)]) * 2 + self.layers[1](x) + self.layers[2](x)


class Unequal(Layers):
    """Layers between which other numbers are used."""

    def forward(self, x: Any) -> Any:
        for turn, layer in enumerate(self.layers, 2):
            x = x + layer(x) * turn
        return x


X = torch.randn(2, 7, 16)

CASES = {
    "a residual around each layer": (Residual, (X,)),
    "many residuals": (lambda: Residual(12), (X,)),
    "lists of layers in a list": (Lists, (X,)),
    "two lists from their second layers on": (Zipped, (X,)),
    "two kinds of layers that alternate": (Alternating, (X,)),
    "layers of one kind, and then of another one": (OfTwoKinds, (X,)),
    "a layer that is applied once more": (Again, (X,)),
    "norms that begin with the second": (Shifted, (X,)),
    "layers that are applied twice": (Shared, (X,)),
    "a tensor of the parent for each layer": (Scaled, (X,)),
    "layers of one input": (SideBySide, (X,)),
    "a part of what each layer computes": (Joining, (X,)),
    "a sum of layers, the first in a stack": (OneInAStack, (X,)),
    "layers with two results": (Pairs, (X,)),
    "layers that pass on two values": (TwoStreams, (X,)),
    "results that are used after all layers": (Skipping, (X,)),
    "other numbers between layers": (Unequal, (X,)),
    "layers that differ stay apart": (Apart, (X,)),
}

SLOW = "many|lists|two lists"
