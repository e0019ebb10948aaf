"""Lifting: lengths that a module reduces before its layers, and positions that these compute by them."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec
from archspec.pytorch.lift.sources.lifting import lift_source

nn = torch.nn

SOUND = """
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
"""


def test_inputs_that_are_too_short_are_made_longer(tmp_path: Path) -> None:
    (tmp_path / "sound.py").write_text(SOUND)
    text = lift_source(f"{tmp_path / 'sound.py'}:sound", ["x=real[batch,time,4]"])
    assert "block Layer(x [batch, seq, 6], places [2 * seq - 1, 6]) -> [batch, seq, 6] {" in text
    assert "layers[i]: Layer()" in text
    assert "arange(" in text and "* -1" in text


@pytest.mark.parametrize("shape", [(2, 6), (2, 6, 5), (2, 6, 4, 5)])
def test_norms_of_batches_are_those_of_the_library(shape: tuple[int, ...]) -> None:
    class Normed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            kinds = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}
            self.norm = kinds[len(shape)](6, eps=1e-3)

        def forward(self, x: Any) -> Any:
            return self.norm(torch.tanh(x))

    module = Normed().eval()
    text = archspec.lift(module, (torch.zeros(shape),))
    assert "norm: BatchNorm(6, 0.001)" in text
    assert archspec.equivalent(archspec.loads(text), module).verdict == "equal"
