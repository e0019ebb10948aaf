"""Lifting modules that keep numbers as tensors, and compute sizes of them, as audio codecs do."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec
from archspec import ArchError

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


@pytest.mark.parametrize("mode", ["constant", "replicate"])
def test_sizes_of_numbers_kept_as_tensors(mode: str) -> None:
    module = Codec(Padded(4, 5, 3, mode), Padded(4, 4, 2, mode)).eval()
    text = archspec.lift(module, {"ids": torch.zeros(2, 31, dtype=torch.long)})
    assert "(ids int [batch, seq]) -> [batch, 4, (seq + 5) // 6]" in text
    built = archspec.to_torch(archspec.loads(text)).eval()
    built.load_state_dict(module.state_dict())
    for length in (2, 3, 6, 7, 31, 48):  # also where there is one window
        ids = torch.randint(9, (3, length))
        torch.testing.assert_close(built(ids), module(ids))


def test_numbers_of_checkpoints_are_no_constants() -> None:
    module = Codec(Padded(4, 5, 3, "constant", persistent=True)).eval()
    with pytest.raises(ArchError, match="cannot lift"):
        archspec.lift(module, {"ids": torch.zeros(2, 31, dtype=torch.long)})


class Repeated(nn.Module):
    """A row for each item, as many as the length of the input says."""

    def __init__(self) -> None:
        super().__init__()
        self.row, self.out = nn.Parameter(torch.zeros(1, 4)), nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.out(x + self.row.expand(len(x), 4)) * len([self.row])


def test_the_length_of_a_tensor_is_a_size() -> None:
    module = Repeated().eval()
    text = archspec.lift(module, (torch.zeros(2, 4),))
    assert "(x [batch, 4]) -> [batch, 3]" in text
    assert "len" not in vars(__import__(Repeated.__module__, fromlist=["len"]))


class Checked(nn.Module):
    """A module that checks its input, by operations that the language does not have."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        torch._check_tensor_all(x.nextafter(x + 1.0) >= x)
        return self.out(x)


def test_what_only_a_check_needs_is_not_written() -> None:
    text = archspec.lift(Checked().eval(), (torch.zeros(2, 4),))
    assert "return out: Linear(4, 3)(x)" in text


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


@pytest.mark.parametrize("own", [True, False])
def test_numbers_that_a_call_changes(own: bool) -> None:
    with pytest.raises(ArchError, match=r"it changes a number in place$"):
        archspec.lift(Codec(Counting(own)).eval(), {"ids": torch.zeros(2, 31, dtype=torch.long)})


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


def test_sizes_that_are_1_for_short_sequences() -> None:
    ids = torch.zeros(2, 31, dtype=torch.long)
    module = Pooled(False).eval()
    text = archspec.lift(module, {"ids": ids})
    assert "[batch, 4, (seq + 3) // 4]" in text
    built = archspec.to_torch(archspec.loads(text)).eval()
    built.load_state_dict(module.state_dict())
    torch.testing.assert_close(built(ids[:, :3]), module(ids[:, :3]))
    with pytest.raises(ArchError, match="only be exported where"):
        archspec.lift(Pooled(True).eval(), {"ids": ids})


def test_transposed_convolutions() -> None:
    """Their channels are the other way round, and divided into groups at the other end."""
    first = nn.ConvTranspose1d(4, 6, 5, stride=2, groups=2, bias=False)
    module = Codec(first, nn.ConvTranspose1d(6, 2, 4, stride=2, padding=1)).eval()
    text = archspec.lift(module, {"ids": torch.zeros(2, 5, dtype=torch.long)})
    assert "ConvTranspose1d(4, 6, 5, stride = 2, groups = 2, bias = false)" in text
    assert "ConvTranspose1d(6, 2, 4, stride = 2, padding = 1)" in text
