"""Modules that keep numbers as tensors, and compute sizes of them, as audio codecs do."""

from typing import Any

import torch

nn = torch.nn


class Padded(nn.Module):
    """A convolution over as many windows as a sequence begins; `persistent` numbers are part of checkpoints."""

    def __init__(self, channels: int, kernel: int, stride: int, mode: str, persistent: bool = False) -> None:
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, kernel, stride)
        self.mode = mode
        self.register_buffer("stride", torch.tensor(stride), persistent=persistent)
        self.register_buffer("extra", torch.tensor(kernel - stride), persistent=persistent)

    def forward(self, x: Any) -> Any:
        length = x.shape[-1]
        windows = torch.ceil((length - self.stride) / self.stride + 1).to(torch.int64)
        return self.conv(nn.functional.pad(x, (self.extra, windows * self.stride - length), self.mode))


class Codec(nn.Module):
    def __init__(self, first: nn.Module, *rest: nn.Module) -> None:
        super().__init__()
        self.codes = nn.Embedding(9, 4)
        self.layers = nn.Sequential(first, nn.Tanh(), *rest)

    def forward(self, ids: Any) -> Any:
        return self.layers(self.codes(ids).transpose(1, 2))


class Repeated(nn.Module):
    """A row for each item, as many as the length of the input says."""

    def __init__(self) -> None:
        super().__init__()
        self.row, self.out = nn.Parameter(torch.zeros(1, 4)), nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.out(x + self.row.expand(len(x), 4)) * len([self.row])


class Checked(nn.Module):
    """A module that checks its input, by operations that the language does not have."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        torch._check_tensor_all(x.nextafter(x + 1.0) >= x)
        return self.out(x)


class Counting(Padded):
    """A module with a number that its calls change, or a tensor that is computed of it."""

    def __init__(self, own: bool) -> None:
        super().__init__(4, 5, 3, "constant")
        self.own = own

    def forward(self, x: Any) -> Any:
        if self.own:
            self.extra += 1
            return super().forward(x)
        extra = self.extra * 1
        view = extra.view(1)
        view += 1
        return self.conv(nn.functional.pad(x, (extra, 0)))


class Pooled(nn.Module):
    """One value for every four tokens, and `dropped`: no axis for these if there is one only."""

    def __init__(self, dropped: bool) -> None:
        super().__init__()
        self.codes = nn.Embedding(9, 4)
        self.conv = nn.Conv1d(4, 4, 4, 4)
        self.dropped = dropped

    def forward(self, ids: Any) -> Any:
        x = self.conv(nn.functional.pad(self.codes(ids).transpose(1, 2), (0, 3)))
        return x.squeeze(-1) if self.dropped else x + 1


def ids(length: int, batch: int = 3) -> dict[str, Any]:
    return {"ids": torch.randint(9, (batch, length))}


ZEROS = {"ids": torch.zeros(2, 31, dtype=torch.long)}

LENGTHS = [ids(length) for length in (2, 3, 6, 7, 31, 48)]  # also where there is one window

X = torch.zeros(2, 4)


def transposed() -> nn.Module:
    """Their channels are the other way round, and divided into groups at the other end."""
    first = nn.ConvTranspose1d(4, 6, 5, stride=2, groups=2, bias=False)
    return Codec(first, nn.ConvTranspose1d(6, 2, 4, stride=2, padding=1))


CASES = {
    "windows of zeros": (lambda: Codec(Padded(4, 5, 3, "constant"), Padded(4, 4, 2, "constant")), ZEROS, *LENGTHS),
    "windows of repeated ends": (
        lambda: Codec(Padded(4, 5, 3, "replicate"), Padded(4, 4, 2, "replicate")),
        ZEROS,
        *LENGTHS,
    ),
    "numbers of checkpoints": (lambda: Codec(Padded(4, 5, 3, "constant", persistent=True)), ZEROS),
    "the length of a tensor as a size": (Repeated, (X,)),
    "operations that only a check needs": (Checked, (X,)),
    "a number that a call changes": (lambda: Codec(Counting(True)), ZEROS),
    "a number that is computed and changed": (lambda: Codec(Counting(False)), ZEROS),
    "sizes that are 1 for short sequences": (lambda: Pooled(False), ZEROS, ids(3, 2)),
    "an axis that is dropped where its size is 1": (lambda: Pooled(True), ZEROS),
    "transposed convolutions": (transposed, {"ids": torch.zeros(2, 5, dtype=torch.long)}),
}
