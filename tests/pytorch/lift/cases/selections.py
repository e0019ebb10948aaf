"""What is selected at the places where a condition is true is lifted as what a mask selects."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class Experts(nn.Module):
    """Experts that each compute the tokens that chose them, in a way that differs."""

    def __init__(self, apply: Callable[..., Any], best: int = 2) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.experts = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])
        self.apply_expert = apply
        self.best = best

    def forward(self, x: Any) -> Any:
        flat = x.reshape(-1, 8)
        shares, chosen = torch.topk(self.gate(flat), self.best)
        found = torch.zeros_like(flat)
        for turn, expert in enumerate(self.experts):
            found = self.apply_expert(found, flat, shares, chosen, turn, expert)
        return found.reshape(x.shape)


def put(found: Any, x: Any, shares: Any, chosen: Any, turn: int, expert: Any) -> Any:
    tokens, nth = torch.where(chosen == turn)
    found[tokens] += shares[tokens, nth, None] * expert(x[tokens])
    return found


def add(found: Any, x: Any, shares: Any, chosen: Any, turn: int, expert: Any) -> Any:
    nth, tokens = torch.where((chosen == turn).t())
    return found.index_add_(0, tokens, expert(x[tokens]) * shares[tokens, nth].unsqueeze(-1))


def accumulate(found: Any, x: Any, shares: Any, chosen: Any, turn: int, expert: Any) -> Any:
    tokens, nth = (chosen == turn).nonzero(as_tuple=True)
    return found.index_put((tokens,), expert(x[tokens]) * shares[tokens, nth][:, None], accumulate=True)


def mask(found: Any, x: Any, shares: Any, chosen: Any, turn: int, expert: Any) -> Any:
    (tokens,) = torch.where((chosen == turn).any(dim=-1))
    found[tokens] = expert(x[tokens])
    return found


def in_sequences(found: Any, x: Any, shares: Any, chosen: Any, turn: int, expert: Any) -> Any:
    x, shares, chosen, found = [item.unflatten(0, (2, -1)) for item in (x, shares, chosen, found)]
    rows, tokens, nth = torch.where(chosen == turn)
    found[rows, tokens] += shares[rows, tokens, nth, None] * expert(x[rows, tokens])
    return found.flatten(0, 1)


def twice(found: Any, x: Any, shares: Any, chosen: Any, turn: int, expert: Any) -> Any:
    tokens, nth = torch.where(chosen // 2 == turn)  # two choices of a token can be equal
    found[tokens] += shares[tokens, nth, None] * expert(x[tokens])
    return found


def positions(found: Any, x: Any, shares: Any, chosen: Any, turn: int, expert: Any) -> Any:
    tokens, _ = torch.where(chosen == turn)
    found[tokens] += tokens[:, None] * expert(x[tokens])
    return found


def others(found: Any, x: Any, shares: Any, chosen: Any, turn: int, expert: Any) -> Any:
    tokens, nth = torch.where(chosen == turn)
    found[nth] += expert(x[tokens])
    return found


def table(found: Any, x: Any, shares: Any, chosen: Any, turn: int, expert: Any) -> Any:
    tokens, _ = torch.where(chosen == turn)
    found[tokens] += expert(x[tokens]) + torch.arange(50.0)[tokens, None]
    return found


def truth(found: Any, x: Any, shares: Any, chosen: Any, turn: int, expert: Any) -> Any:
    tokens, nth = torch.where(chosen.bool() == 1)
    found[tokens] += shares[tokens, nth, None] * expert(x[tokens])
    return found


def mean(found: Any, x: Any, shares: Any, chosen: Any, turn: int, expert: Any) -> Any:
    tokens, _ = torch.where(chosen == turn)
    found[tokens] += expert(x[tokens]) - x[tokens].mean(0)
    return found


X = torch.randn(2, 7, 8)

CASES = {
    "an expert of each token": (lambda: Experts(add, 1), (X,)),
    "two experts of each token": (lambda: Experts(add), (X,)),
    "rows that are put": (lambda: Experts(put), (X,)),
    "rows that are accumulated": (lambda: Experts(accumulate), (X,)),
    "rows of a mask": (lambda: Experts(mask), (X,)),
    "rows of sequences": (lambda: Experts(in_sequences), (X,)),
    "one expert, rows that are put": (lambda: Experts(put, 1), (X,)),
    "one expert, rows of a mask": (lambda: Experts(mask, 1), (X,)),
    "one expert, rows of sequences": (lambda: Experts(in_sequences, 1), (X,)),
    "a row that is put twice": (lambda: Experts(twice), (X,)),
    "positions of rows": (lambda: Experts(positions), (X,)),
    "a table at positions of rows": (lambda: Experts(table), (X,)),
    "a condition of several choices": (lambda: Experts(truth), (X,)),
    "rows at positions of choices": (lambda: Experts(others), (X,)),
    "a mean of several rows": (lambda: Experts(mean), (X,)),
}

SLOW = "two|rows that|rows of|one"
