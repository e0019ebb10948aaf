"""Triangular systems that modules solve at once, or row by row in place."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

CHUNK = 4


def lower(a: Any) -> Any:
    return -a.tril(-1)


def masked(a: Any) -> Any:
    return (-a).masked_fill(torch.triu(torch.ones(CHUNK, CHUNK, dtype=torch.bool)), 0)


def whole(a: Any) -> Any:
    return a / 16


def rows_above(a: Any, i: int) -> Any:
    row = a[..., i, :i].clone()
    return row + (row.unsqueeze(-1) * a[..., :i, :i].clone()).sum(-2)


def rows_below(a: Any, i: int) -> Any:
    row = a[..., i, :i].clone()
    return row - (row.unsqueeze(-1) * a[..., :i, :i].clone()).sum(-2)


def shifted_rows(a: Any, i: int) -> Any:
    row = a[..., i, :i].clone()
    return row + (row.unsqueeze(-1) * a[..., 1 : i + 1, :i].clone()).sum(-2)


class Delta(nn.Module):
    """Chunks of a delta rule, without a state that they carry."""

    def __init__(self, begin: Callable[[Any], Any], step: Callable[[Any, int], Any], identity: float = 1.0) -> None:
        super().__init__()
        self.k = nn.Linear(6, 6)
        self.v = nn.Linear(6, 6)
        self.begin, self.step, self.identity = begin, step, identity

    def forward(self, x: Any) -> Any:
        batch, _, width = x.shape
        k, v = self.k(x).view(batch, -1, CHUNK, width), self.v(x).view(batch, -1, CHUNK, width)
        a = self.begin(k @ k.transpose(-1, -2))
        for i in range(1, CHUNK):
            a[..., i, :i] = self.step(a, i)
        a = a + self.identity * torch.eye(CHUNK) if self.identity != 1.0 else a + torch.eye(CHUNK)
        return (a @ v).reshape(batch, -1, width)


class Solved(nn.Module):
    def __init__(self, **settings: bool) -> None:
        super().__init__()
        self.k = nn.Linear(6, 6)
        self.settings = settings

    def forward(self, x: Any) -> Any:
        k = self.k(x)
        return torch.linalg.solve_triangular(k @ k.transpose(-1, -2), x, **self.settings)


class Either(Delta):
    """Chunks whose systems are solved row by row only when the module is exported."""

    def forward(self, x: Any) -> Any:
        if torch.compiler.is_exporting():
            return super().forward(x)
        batch, _, width = x.shape
        k, v = self.k(x).view(batch, -1, CHUNK, width), self.v(x).view(batch, -1, CHUNK, width)
        system = k @ k.transpose(-1, -2)
        return torch.linalg.solve_triangular(system, v, upper=False, unitriangular=True).reshape(batch, -1, width)


class Chunks(nn.Module):
    """Chunks that read the state of those before, and of which the last one leaves a state that nothing reads."""

    def __init__(self) -> None:
        super().__init__()
        self.k = nn.Linear(6, 6)
        self.v = nn.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        batch, seq, width = x.shape
        x = nn.functional.pad(x, (0, 0, 0, (CHUNK - seq % CHUNK) % CHUNK))
        count = x.shape[1] // CHUNK
        k, v = (part.reshape(batch, count, CHUNK, width) for part in (self.k(x), self.v(x)))
        v = torch.linalg.solve_triangular(k @ k.transpose(-1, -2), v, upper=False, unitriangular=True)
        state, out = v.new_zeros(batch, width, width), torch.zeros_like(v)
        for i in range(count):
            out[:, i] = v[:, i] + k[:, i] @ state
            state = state + k[:, i].transpose(-1, -2) @ v[:, i]
        return out.reshape(batch, -1, width)[:, :seq]


X = torch.zeros(2, 2 * CHUNK, 6)

Y = torch.zeros(2, 5, 6)

CASES = {
    "rows that are solved one by one": (lambda: Delta(lower, rows_above), (X,)),
    "rows of a masked matrix": (lambda: Delta(masked, rows_above), (X,)),
    "half an identity": (lambda: Delta(lower, rows_above, 0.5), (X,)),
    "rows that are shifted": (lambda: Delta(lower, shifted_rows), (X,)),
    "rows that are subtracted": (lambda: Delta(lower, rows_below), (X,)),
    "rows of a matrix that is not triangular": (lambda: Delta(whole, rows_above), (X,)),
    "a lower system with ones": (lambda: Solved(upper=False, unitriangular=True), (Y,)),
    "an upper system": (lambda: Solved(upper=True, unitriangular=True), (Y,)),
    "a lower system without ones": (lambda: Solved(upper=False), (Y,)),
    "a system that is solved by rows when the module is exported": (lambda: Either(lower, rows_above), (X,)),
    "a last state that nothing reads": (Chunks, (torch.zeros(2, 3 * CHUNK, 6),)),
}

SLOW = "rows of|half|rows that are shifted|rows that are subtracted|a last"
