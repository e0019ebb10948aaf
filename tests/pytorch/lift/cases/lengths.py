"""Lengths that a module reduces before its layers, and positions that these compute by them."""

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.place = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x, places):
        length = x.shape[1]
        scores = self.query(x) @ self.place(places).mT
        shifted = nn.functional.pad(scores, (1, 0)).view(x.shape[0], 2 * length, length)
        return x + shifted[:, 1:].reshape(x.shape[0], length, 2 * length - 1)[..., :length] @ x


class Sound(nn.Module):
    def __init__(self):
        super().__init__()
        self.reduce = nn.Conv1d(4, 6, 3, 4)
        self.layers = nn.ModuleList([Layer() for _ in range(2)])

    def forward(self, x):
        x = self.reduce(x.mT).mT
        places = torch.arange(x.shape[1] - 1, -x.shape[1], -1.0)
        places = places[:, None] * torch.arange(1, 7)
        for layer in self.layers:
            x = layer(x, places)
        return x


def sound():
    return Sound().eval()


SOURCES = {"inputs that are made longer": (":sound", "x=real[batch,time,4]")}
