"""Numbers and sizes of inputs that follow arguments of the factory."""

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, dim, dim_head, heads, layers, rank, alpha):
        super().__init__()
        self.heads, self.size = heads, dim_head**-0.5
        self.inner = nn.Linear(dim, 3 * heads * dim_head)
        self.down, self.up = nn.Parameter(torch.randn(dim, rank)), nn.Parameter(torch.randn(rank, dim))
        self.by_layers, self.by_rank = (2 * layers) ** -0.5, alpha / rank

    def forward(self, x):
        q, k, v = self.inner(x).unflatten(-1, (self.heads, -1)).chunk(3, -1)
        y = x + self.by_layers * (x @ self.down @ self.up) * self.by_rank
        return y, self.size * q * k * v


def build(dim=24, dim_head=8, heads=4, layers=8, rank=5, alpha=10):
    return Scaled(dim, dim_head, heads, layers, rank, alpha).eval()


SOURCES = {
    "a size of the input as a number": (":build", "x=real[batch,seq,24]"),
    "a size of the input by its name": (":build", "x=real[batch,seq,dim]", {"dim": 12, "layers": 3}),
}

SLOW = "."
