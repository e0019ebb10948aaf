"""Constants that are written as formulas, and weights that a module normalizes or repeats."""

from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import nn


def regions(size: int, window: int, shift: int) -> torch.Tensor:
    """The mask of attention to shifted windows, as Swin computes it."""
    image = torch.zeros(size, size)
    parts = ((0, -window), (-window, -shift), (-shift, None))
    for number, (rows, columns) in enumerate([(rows, columns) for rows in parts for columns in parts]):
        image[rows[0] : rows[1], columns[0] : columns[1]] = number
    count = size // window
    windows = image.view(count, window, count, window).permute(0, 2, 1, 3).reshape(count * count, window * window)
    differences = windows[:, None] - windows[:, :, None]
    return differences.masked_fill(differences != 0, -100.0).masked_fill(differences == 0, 0.0)


class Stored(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", regions(8, 4, 1), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + self.mask).softmax(-1)


class Computed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        image = x.new_zeros((8, 8))
        parts = ((0, -4), (-4, -2), (-2, None))
        for number, (rows, columns) in enumerate([(rows, columns) for rows in parts for columns in parts]):
            image[rows[0] : rows[1], columns[0] : columns[1]] = number
        windows = image.view(2, 4, 2, 4).permute(0, 2, 1, 3).reshape(4, 16)
        differences = windows[:, None] - windows[:, :, None]
        mask = differences.masked_fill(differences != 0, -100.0).masked_fill(differences == 0, 0.0)
        return (x + mask).softmax(-1)


class Looked(nn.Module):
    """Biases by distance, looked up by a product with vectors that have a single 1."""

    def __init__(self) -> None:
        super().__init__()
        places = torch.arange(7)
        lookup = nn.functional.one_hot(places - places[:, None] + 6, 13).float()
        self.register_buffer("lookup", lookup, persistent=False)
        self.biases = nn.Parameter(torch.randn(5, 13))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.einsum("ck,ijk->cij", self.biases, self.lookup)


class Standardized(nn.Conv2d):
    """A convolution whose weights are normalized for each channel, and whose offsets are repeated."""

    def __init__(self) -> None:
        super().__init__(3, 6, 3)
        self.gain = nn.Parameter(torch.randn(6, 1, 1, 1))
        self.offset = nn.Parameter(torch.randn(2, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat, gain = self.weight.reshape(1, 6, -1), (0.3 * self.gain).view(-1)
        weight = nn.functional.batch_norm(flat, None, None, weight=gain, training=True, momentum=0.0, eps=1e-6)
        return nn.functional.conv2d(x, weight.reshape_as(self.weight), self.bias) + self.offset.tile((3, 2))


class Inner(nn.Module):
    """An embedding under two names, of which one is used, in a block with many steps."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Embedding(30, 8)
        self.words = nn.Embedding(30, 8)
        self.words.weight = self.shared.weight
        self.parts = nn.ModuleList([nn.Linear(8, 8) for _ in range(5)])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids)
        for turn, part in enumerate(self.parts):
            x = x + part(x).tanh() * (turn + 1.5)
        return x


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.blocks = nn.Sequential(nn.Linear(8, 6), *[nn.Sequential(nn.Linear(6, 6), nn.GELU()) for _ in range(3)])
        self.head = nn.Linear(8, 30, bias=False)
        self.head.weight = self.inner.shared.weight

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.inner(ids)
        return self.head(x), self.blocks(x)


class Offset(nn.Module):
    """Tokens of several kinds in one table: the first kind at its beginning, the others after it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("starts", nn.functional.pad(7 + 5 * torch.arange(4), (1, 0)), persistent=False)
        self.table = nn.Embedding(27, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table(ids + self.starts).sum(-2)


class Placed(nn.Module):
    """Rows of a table by how far along each item is, in steps that are rounded."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count, self.table = count, nn.Embedding(count, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        lengths = torch.ones(x.shape[0], self.count, dtype=torch.bool).sum(1)
        places = torch.arange(self.count, dtype=torch.float32)[None] * (1.0 / lengths)[:, None]
        bounds = torch.arange(1 / self.count, 1.0, 1 / self.count)
        return x + self.table(torch.bucketize(places.clamp(max=1.0 - 1e-6), bounds, right=True))


class PlacedByLength(Placed):
    """The lengths are also used as they are."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        lengths = torch.ones(x.shape[0], self.count, dtype=torch.bool).sum(1)
        places = torch.arange(self.count, dtype=torch.float32)[None] * (1.0 / lengths)[:, None]
        bounds = torch.arange(1 / self.count, 1.0, 1 / self.count)
        found = self.table(torch.bucketize(places.clamp(max=1.0 - 1e-6), bounds, right=True))
        return found + x * lengths[:, None, None]


class PlacedExactly(Placed):
    """The bounds are whole numbers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(self.count, dtype=torch.float32)[None].expand(x.shape[0], -1) * 0.5
        return x + self.table(torch.bucketize(places, torch.arange(1.0, self.count, 1.0), right=True))


class Sought(Placed):
    """The lengths are data."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bounds = torch.arange(1 / self.count, 1.0, 1 / self.count)
        return x + self.table(torch.bucketize(x[..., 0], bounds))


class Turning(nn.Module):
    """Frequencies, the first of which are in another order."""

    def __init__(self) -> None:
        super().__init__()
        steps = 500.0 ** -(torch.arange(80) / 80)
        turned = torch.cat([steps[0:44:2], steps[1:44:2], steps[44:]])
        self.register_buffer("turned", turned, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.turned


class Cached(nn.Module):
    """Sines and cosines of positions in tables of their own."""

    def __init__(self, layout: str, width: int) -> None:
        super().__init__()
        angles = torch.outer(
            torch.arange(40), 1e4 ** -(torch.arange(width) / (width - 1 if layout == "last" else width))
        )
        match layout:
            case "halves":
                angles = torch.cat([angles, angles], -1)
            case "each twice":
                angles = angles.repeat_interleave(2, -1)
        self.cos, self.sin = angles.cos(), angles.sin()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length, width = x.shape[1], x.shape[2]
        return x * self.cos[:length, :width] + x.flip(-1) * self.sin[:length, :width]


class Turned(nn.Module):
    """Rotary positions by complex numbers, and operations that PyTorch defines by others."""

    def __init__(self) -> None:
        super().__init__()
        steps = 1.0 / 10000.0 ** (torch.arange(0, 8, 2).float() / 8)
        angles = torch.outer(torch.arange(64), steps).float()
        self.turns = torch.polar(torch.ones_like(angles), angles)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        turned = torch.view_as_real(pairs * self.turns[: x.shape[1]]).flatten(2)
        return torch.hstack([turned, x]), (x > 0) ^ (x < 1), torch.vdot(x[0, 0], x[0, 1])


class Mixed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real


class Scaled(nn.Module):
    """Frequencies of rotary positions as Llama 3 scales them."""

    def __init__(self) -> None:
        super().__init__()
        own = {"rope_theta": 10000.0, "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0}
        own |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 64}
        self.config = SimpleNamespace(rope_parameters=own)
        found = 10000.0 ** (-torch.arange(8) / 8)
        turns = 64 * found / (2 * torch.pi)  # within the context
        smooth = ((turns - 1) / 3).clamp(0, 1)
        self.register_buffer("frequencies", found * (smooth + (1 - smooth) / 8), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.frequencies


class Batch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.batch_norm(x, None, None, training=True)


def nearly_cosines() -> nn.Module:
    module = Cached("once", 2)
    module.cos[30, 1] += 1e-3
    return module


def of_pairs(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: torch.view_as_real(change(torch.view_as_complex(x)))


WINDOWS = torch.randn(2, 4, 16, 16)

ROW = torch.zeros(2, 7, 4)

PAIRS = torch.randn(3, 7, 2)

CASES = {
    "a mask between regions": (Stored, (WINDOWS,)),
    "a mask between regions that a call computes": (Computed, (WINDOWS,)),
    "vectors with a single 1": (Looked, (torch.randn(5, 7, 7),)),
    "weights that are normalized and repeated": (Standardized, (torch.randn(2, 3, 8, 8),)),
    "statistics of a batch": (Batch, (torch.randn(2, 3, 5),)),
    "ties where both tensors are": (Tied, {"ids": torch.randint(0, 30, (2, 7))}),
    "integers that grow after the first one": (Offset, (torch.zeros(2, 3, 5, dtype=torch.long),)),
    "buckets between rounded bounds": (lambda: Placed(7), (ROW,)),
    "many buckets between rounded bounds": (lambda: Placed(49), (torch.zeros(2, 49, 4),)),
    "too many buckets to list": (lambda: Placed(300), (torch.zeros(2, 300, 4),)),
    "buckets of numbers that are also used": (lambda: PlacedByLength(7), (ROW,)),
    "buckets between exact bounds": (lambda: PlacedExactly(7), (ROW,)),
    "buckets of data between rounded bounds": (lambda: Sought(7), (ROW,)),
    "frequencies in turns": (Turning, (torch.zeros(2, 80),)),
    "sines and cosines, once": (lambda: Cached("once", 8), (torch.randn(2, 9, 8),)),
    "sines and cosines, two": (lambda: Cached("once", 2), (torch.randn(2, 9, 2),)),
    "sines and cosines, an odd number": (lambda: Cached("once", 7), (torch.randn(2, 9, 7),)),
    "sines and cosines, with the last frequency": (lambda: Cached("last", 8), (torch.randn(2, 9, 8),)),
    "sines and cosines, in halves": (lambda: Cached("halves", 8), (torch.randn(2, 9, 16),)),
    "sines and cosines, each twice": (lambda: Cached("each twice", 8), (torch.randn(2, 9, 16),)),
    "nearly cosines": (nearly_cosines, (torch.randn(2, 9, 2),)),
    "complex numbers that turn, and composite operations": (Turned, (torch.randn(3, 7, 8),)),
    "a Fourier transform of complex numbers": (Mixed, (torch.randn(3, 7, 8),)),
    "frequencies scaled as in Llama 3": (Scaled, (torch.randn(2, 5, 8),)),
}

FUNCTIONS = {
    "a real number added to complex ones": (of_pairs(lambda z: z + 2.0), PAIRS),
    "complex numbers padded by a real one": (of_pairs(lambda z: nn.functional.pad(z, (1, 1), value=2.0)), PAIRS),
}

SLOW = "ties|complex numbers that"
