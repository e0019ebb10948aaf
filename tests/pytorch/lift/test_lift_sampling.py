"""Lifting what changes the sizes of images, or reads them at places between their positions."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

import archspec

nn = torch.nn
MAPS = ((5, 4), (3, 2))


class Sampled(nn.Module):
    """Two heads of 6 features that each read 3 places of each map."""

    def __init__(self) -> None:
        super().__init__()
        self.values = nn.Linear(12, 12)
        self.offsets = nn.Linear(12, 2 * len(MAPS) * 3 * 2)
        self.weights = nn.Linear(12, 2 * len(MAPS) * 3)

    def forward(self, x: Any, queries: Any, places: Any) -> Any:
        batch, count, _ = queries.shape
        values = self.values(x).view(batch, -1, 2, 6).split([height * width for height, width in MAPS], dim=1)
        offsets = self.offsets(queries).view(batch, count, 2, len(MAPS), 3, 2)
        weights = self.weights(queries).view(batch, count, 2, -1).softmax(-1).transpose(1, 2).flatten(0, 1)
        grids = 2 * (places[:, :, None, :, None, :] + offsets) - 1
        read: list[Any] = []
        for turn, (value, (height, width)) in enumerate(zip(values, MAPS, strict=True)):
            image = value.permute(0, 2, 3, 1).reshape(batch * 2, 6, height, width)
            grid = grids[:, :, :, turn].transpose(1, 2).flatten(0, 1)
            read.append(nn.functional.grid_sample(image, grid, align_corners=False))
        found = (torch.cat(read, dim=-1) * weights[:, None]).sum(-1)
        return found.reshape(batch, 12, count).transpose(1, 2)


def test_attention_to_sampled_places() -> None:
    inputs = {"x": torch.randn(3, 26, 12), "queries": torch.randn(3, 7, 12), "places": torch.rand(3, 7, 2, 2)}
    module = Sampled().eval()
    text = archspec.lift(module, inputs)
    assert text.count("grid_sample(") == len(MAPS)
    assert archspec.equivalent(archspec.loads(text), module).verdict == "equal"


class Upsampled(nn.Module):
    """Convolutions that make an image larger."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.ConvTranspose2d(6, 8, 2, stride=2)
        self.second = nn.ConvTranspose2d(8, 4, 4, stride=2, padding=1, groups=2, bias=False)

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x).relu())


def test_transposed_convolutions_are_layers() -> None:
    module = Upsampled().eval()
    text = archspec.lift(module, (torch.randn(3, 6, 5, 4),))
    assert "first:  ConvTranspose2d(6, 8, 2, stride = 2)" in text
    assert "second: ConvTranspose2d(8, 4, 4, stride = 2, padding = 1, groups = 2, bias = false)" in text
    assert archspec.equivalent(archspec.loads(text), module).verdict == "equal"
