"""Sizes that are those of a field by accident, and modules that compute something else at other sizes."""

import math
from typing import Any

import torch

nn: Any = torch.nn


class Branching(nn.Module):
    """Another function of short or long sequences."""

    def __init__(self, least: int, most: int) -> None:
        super().__init__()
        self.least, self.most = least, most

    def forward(self, x: Any) -> Any:
        return x.exp() if self.least <= x.shape[1] <= self.most else x


class Interpolated(nn.Module):
    """A table of positions for any length: at its own length it is as it is, and doubled if `doubles`."""

    def __init__(self, doubles: bool) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, 8, 20))
        self.doubles = doubles

    def forward(self, x: Any) -> Any:
        table = self.table
        if x.shape[1] != 20:
            table = nn.functional.interpolate(table, size=x.shape[1], mode="linear")
        elif self.doubles:
            table = 2 * table
        return x + table.transpose(1, 2)


class Shifted(nn.Module):
    """Adds what follows, which is nothing for two elements: a branch at the size `seq - 1 == 1`."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8))
        self.by = by

    def forward(self, x: Any) -> Any:
        following = x[:, 1:] * self.weight
        if following.shape[1] == 1:
            following = self.by * following
        return x + nn.functional.pad(following, (0, 0, 0, 1))


class Divided(nn.Module):
    """Heads in two parts, next to widths that are given in the same way."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__()
        self.head, self.part = fields["index_head_dim"], fields["rope_head_dim"]
        self.words = nn.Embedding(fields["vocab_size"], self.head)
        self.others = nn.ModuleList([nn.Linear(self.head, fields[name]) for name in ("value_head_dim", "key_head_dim")])

    def forward(self, ids: Any) -> Any:
        x = self.words(ids)
        first, second = x.split([self.part, self.head - self.part], -1)
        return torch.cat([second, first, *[other(x) for other in self.others]], -1)


class Growing(nn.Module):
    """A table of positions that a call makes longer, in which later rows may turn faster."""

    def __init__(self, faster: float) -> None:
        super().__init__()
        self.words, self.faster = nn.Embedding(9, 8), faster
        self.grow(20, 1.0)

    def grow(self, rows: int, speed: float) -> None:
        steps = torch.exp(torch.arange(4).float() * -(math.log(10000) / 3))
        angles = torch.arange(rows).float()[:, None] * steps * speed
        table = torch.cat([angles.sin(), angles.cos()], 1)
        self.register_buffer("table", table.to(torch.get_default_dtype()), persistent=False)

    def forward(self, ids: Any) -> Any:
        if ids.shape[1] >= self.table.shape[0]:
            self.grow(ids.shape[1] + 1, self.faster)
        return self.words(ids) + self.table[(ids != 1).cumsum(1)]


class Grouped(nn.Module):
    """Groups of states, as many of these as a fifth of the width; a field that nothing follows is 5."""

    def __init__(self, fields: dict[str, int]) -> None:
        super().__init__()
        width, groups = fields["width"], fields["groups"]
        self.states = nn.Linear(width, groups * fields["state_size"])
        self.scores = nn.Linear(width, groups)

    def forward(self, x: Any) -> Any:
        return self.states(x), self.scores(x)


class Convolved(nn.Module):
    """A convolution in groups, after a norm whose groups are its channels; both are as many in small modules."""

    def __init__(self, fields: dict[str, int]) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, 4)
        self.up = nn.Conv1d(4, fields["width"], 1)
        self.groups = fields["conv_groups"]
        self.weight = nn.Parameter(torch.randn(fields["width"], fields["width"] // self.groups, 3))

    def forward(self, x: Any) -> Any:
        return nn.functional.conv1d(self.up(self.norm(x)), self.weight.exp(), groups=self.groups)


class Fixed(nn.Module):
    """A table whose rows no field decides, but several have their number."""

    def __init__(self, fields: dict[str, int]) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(4, fields["width"]))

    def forward(self, x: Any) -> Any:
        return x @ self.table.T


class Squeezed(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.sum(-1, keepdim=True).squeeze()


class Overlapping(nn.Module):
    def forward(self, x: Any) -> Any:
        h = x.exp()
        h[:, 1:] += h[:, :-1]
        return h


class Fraction(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * (1 / x.shape[1])


def grouped(width=70, kernel=5, groups=7, state_size=2):
    return Grouped(locals()).eval()


def convolved(width=40, conv_groups=4, masks=2):
    return Convolved(locals()).eval()


def fixed(width=70, patch_size=4, count=4):
    return Fixed(locals()).eval()


def divided(rope_head_dim=64, value_head_dim=256, key_head_dim=192, index_head_dim=128, vocab_size=200):
    return Divided(locals()).eval()


ROW, X, IDS = (torch.zeros(3, 11),), (torch.zeros(3, 11, 8),), (torch.zeros(3, 11, dtype=torch.long),)

CASES = {
    "another function of short sequences": (lambda: Branching(6, 10**9), ROW),
    "another function of long sequences": (lambda: Branching(0, 49), ROW),
    "a table for any length": (lambda: Interpolated(doubles=False), X),
    "a table that is doubled at its own length": (lambda: Interpolated(doubles=True), X),
    "a branch without effect for a part of a length": (lambda: Shifted(1.0), X),
    "a branch for a part of a length": (lambda: Shifted(2.0), X),
    "a table that grows": (lambda: Growing(1.0), IDS),
    "a table that changes": (lambda: Growing(1.5), IDS),
    "other axes for a batch of one": (Squeezed, (torch.zeros(3, 7, 8),)),
    "changes that read what they change": (Overlapping, (torch.zeros(3, 7, 8),)),
    "fractions of sizes": (Fraction, (torch.zeros(3, 7, 8),)),
}

SOURCES = {
    "a field with the name of a size": (
        ":grouped",
        "x=real[batch,width]",
        {"width": 105, "state_size": 3, "groups": 5},
    ),
    "a field that one size follows": (":convolved", "x=real[batch,4,seq]", {"width": 56}),
    "fields with the number of rows": (":fixed", "x=real[batch,width]", {"width": 105}),
    "sizes that differ alike by accident": (":divided", "ids=int[batch,seq]"),
}

SLOW = "sizes"
