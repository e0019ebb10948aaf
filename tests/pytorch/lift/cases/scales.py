"""Modules whose layers are scaled by their number: the spec of a small module has to be that of the actual one."""

from torch import nn


class Scaled(nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(layers)])
        self.scale = 1.0 if layers < 6 else 0.5

    def forward(self, x):
        for layer in self.layers:
            x = x + self.scale * layer(x)
        return x


def build(layers=8):
    return Scaled(24, layers).eval()


def shallow(layers=4):
    return Scaled(24, layers).eval()


SOURCES = {
    "layers that are not followed": (":shallow", "x=real[batch,seq,24]"),
    "a scale of many layers": (":build", "x=real[batch,seq,24]"),
}

SLOW = "."
