"""With three layers there is one router, with more there are several: it is a definition for all of them."""

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


SOURCES = {"layers of two kinds": (":make", "x=real[batch,seq,8]", {"width": 6, "layers": 5})}

SLOW = "."
