"""Names of outputs, types of sums, and images of other sizes."""

from typing import Any

import torch

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


class Upsampled(nn.Module):
    """Convolutions that make an image larger."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.ConvTranspose2d(6, 8, 2, stride=2)
        self.second = nn.ConvTranspose2d(8, 4, 4, stride=2, padding=1, groups=2, bias=False)

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x).relu())


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(6, 4)

    def forward(self, x: Any) -> dict[str, Any]:
        h = self.dense(x)
        return {"state": h, "pooled": h.mean(1)}


class Towers(nn.Module):
    """Its outputs have those of its parts in them."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = Encoder(), Encoder()

    def forward(self, x: Any) -> dict[str, Any]:
        left, right = self.left(x), self.right(x)
        scores = left["pooled"] @ right["pooled"].T
        return {"scores": scores, "left": left, "right": {"state": right["state"]}}


class Returning(Encoder):
    """A module that returns a mask that it may be called without."""

    def forward(self, x: Any, mask: Any = None) -> dict[str, Any]:
        h = self.dense(x)
        return {"state": h if mask is None else h * mask[..., None], "mask": mask}


class Expected(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bins = torch.nn.Parameter(torch.randn(5))

    def forward(self, x: Any) -> Any:
        return torch.nn.functional.linear(x.softmax(-1), self.bins)


SAMPLES = {"x": torch.randn(3, 26, 12), "queries": torch.randn(3, 7, 12), "places": torch.rand(3, 7, 2, 2)}

X = torch.zeros(3, 5, 6)

Y = torch.randn(3, 4)

CASES = {
    "attention to sampled places": (Sampled, SAMPLES),
    "convolutions that make an image larger": (Upsampled, (torch.randn(3, 6, 5, 4),)),
    "outputs of parts": (Towers, {"x": X}),
    "an output that is an input": (Returning, {"x": X, "mask": torch.ones(3, 5, dtype=torch.int64)}),
    "a product with one row": (Expected, (torch.randn(3, 7, 5),)),
}

FUNCTIONS = {
    "a sum of integers": (lambda x: x.sum(-1, dtype=torch.int64), Y),
    "running sums of integers": (lambda x: x.cumsum(-1, dtype=torch.int64), Y),
    "running sums of reals": (lambda x: x.long().cumsum(1, dtype=torch.float32), Y),
}

SLOW = "attention|convolutions"
