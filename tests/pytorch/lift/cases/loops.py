"""Modules with a loop over a length become a loop of the language, for any length; other loops are for one length."""

from typing import Any

import torch
from torch import nn


class Scan(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(4, 12)

    def forward(self, x: Any) -> Any:
        decay, taken = self.proj(x).chunk(2, -1)
        state = torch.zeros_like(taken[:, 0])
        outputs: Any = []
        for t in range(x.shape[1]):
            state = torch.sigmoid(decay[:, t]) * state + taken[:, t]
            outputs.append(state)
        outputs = torch.stack(outputs, dim=1)
        return outputs


class Cell(nn.Module):
    """A recurrent cell, whose layers are applied in the loop, backwards."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 6)
        self.outer = nn.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        h = x.new_zeros(x.shape[0], 6)
        for t in range(x.shape[1] - 1, -1, -1):
            h = torch.tanh(self.inner(x[:, t]) + self.outer(h))
        return h


class Fibonacci(nn.Module):
    """Two states that are replaced by each other; what is collected is the one before."""

    def forward(self, x: Any) -> Any:
        a, b = x[:, 0], torch.sin(x[:, 0])
        found: list[Any] = []
        for t in range(x.shape[1]):
            found.append(a)
            a, b = torch.cos(b) + x[:, t], torch.tanh(a) * t
        return torch.cat(found, dim=1), a, b


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scan = Scan()
        self.out = nn.Linear(6, 4)

    def forward(self, x: Any) -> Any:
        return x + self.out(self.scan(x))


class Counting(Scan):
    """A loop with a number that is another one in each iteration."""

    def forward(self, x: Any) -> Any:
        decay, taken = self.proj(x).chunk(2, -1)
        state, count = torch.zeros_like(taken[:, 0]), 1
        for t in range(x.shape[1]):
            count = 2 * count
            state = torch.sigmoid(decay[:, t]) * state + taken[:, t] * count
        return state


class Filling(Scan):
    """A loop that puts its outputs in the place of zeros."""

    def forward(self, x: Any) -> Any:
        decay, taken = self.proj(x).chunk(2, -1)
        state = torch.zeros_like(taken[:, 0])
        outputs = torch.zeros_like(taken)
        for t in range(x.shape[1]):
            state = torch.sigmoid(decay[:, t]) * state + taken[:, t]
            outputs[:, t] = state
        return outputs


class Reading(Scan):
    """A loop that reads what it has put in the place of zeros."""

    def forward(self, x: Any) -> Any:
        outputs = torch.zeros_like(x)
        for t in range(1, x.shape[1]):
            outputs[:, t] = torch.tanh(outputs[:, t - 1] + x[:, t])
        return outputs


class Longer(nn.Module):
    """A loop that fills a part of a tensor."""

    def forward(self, x: Any) -> Any:
        outputs = torch.zeros(x.shape[0], x.shape[1] + 1, 4)
        for t in range(x.shape[1]):
            outputs[:, t] = torch.tanh(x[:, t])
        return outputs


class Seen(nn.Module):
    """A loop that reads what it has filled as a whole."""

    def forward(self, x: Any) -> Any:
        state, outputs = x[:, 0], torch.zeros_like(x)
        for t in range(x.shape[1]):
            outputs[:, t] = torch.tanh(x[:, t])
            state = state + outputs.sum(1)
        return outputs, state


class Later(Scan):
    """A loop that does something else from its third iteration on."""

    def forward(self, x: Any) -> Any:
        state = torch.zeros_like(x[:, 0])
        seen: list[Any] = []
        for t in range(x.shape[1]):
            state = torch.sigmoid(x[:, t]) * state + (0 if len(seen) > 2 else self.proj(x[:, t])[:, :4])
            seen.append(state)
        return torch.stack(seen, dim=1)


class Ending(Scan):
    """A loop of which only the output of the last iteration is used, and the length of its list."""

    def forward(self, x: Any) -> Any:
        found: list[Any] = []
        for t in range(x.shape[1]):
            found.append(torch.tanh(x[:, t]))
        return found[-1] * len(found)


class Summing(nn.Module):
    def __init__(self, odd):
        super().__init__()
        self.words, self.odd = nn.Embedding(9, 4), odd

    def forward(self, ids):
        x = self.words(ids)
        state, found = torch.zeros_like(x[:, 0]), []
        for t in range(len(ids[0])):
            state = state * 2 if self.odd and t % 3 else state
            state = state + x[:, t]
            found.append(state)
        return torch.stack(found, 1)


def plain():
    return Summing(False).eval()


def odd():
    return Summing(True).eval()


X = (torch.zeros(2, 5, 4),)

CASES = {
    "a recurrence": (Scan, X, (torch.randn(3, 8, 4),)),
    "layers in a loop": (Cell, X, (torch.randn(3, 8, 4),)),
    "states that are replaced at once": (Fibonacci, X, (torch.randn(3, 8, 4),)),
    "a loop in a layer": (lambda: nn.Sequential(*[Layer() for _ in range(3)]), X),
    "outputs that fill a tensor": (Filling, X, (torch.randn(3, 8, 4),)),
    "another number in each iteration": (Counting, X),
    "the output of the last iteration": (Ending, X),
    "reading what is filled": (Reading, X),
    "filling a part": (Longer, X),
    "reading all that is filled": (Seen, X),
    "another function from the third iteration on": (Later, X),
}

SOURCES = {
    "a loop in a file": (":plain", "ids=int[batch,seq]"),
    "another loop of any length": (":odd", "ids=int[batch,seq]"),
    "another loop of one length": (":odd", "ids=int[batch,7]"),
}

SLOW = "a loop|another loop"
