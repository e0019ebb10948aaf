"""What is selected at the places where a condition is true is lifted as what a mask selects."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn

import archspec
from archspec import ArchError

SLOW = pytest.mark.slow


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


@pytest.mark.parametrize("apply", [add, *(pytest.param(f, marks=SLOW) for f in (put, accumulate, mask, in_sequences))])
@pytest.mark.parametrize("best", [1, pytest.param(2, marks=SLOW)])
def test_experts_of_the_tokens_that_chose_them(apply: Callable[..., Any], best: int) -> None:
    module = Experts(apply, best).double().eval()
    x = torch.randn(2, 7, 8).double()
    text = archspec.lift(module, {"x": x})
    assert ("experts[i]: Linear(8, 8)" in text) is (apply is not mask)
    ours = archspec.to_torch(archspec.loads(text)).double().eval()
    ours.load_state_dict(module.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(ours(x), module(x))


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


@pytest.mark.parametrize(
    ("apply", "reason"),
    [
        (twice, "which can be several times for one row"),
        (positions, "it computes with the indices at which a condition is true"),
        (table, "it computes with the indices at which a condition is true"),
        (truth, "which can be several times for one row"),
        (others, "it computes with the indices at which a condition is true"),
        (mean, "computes something of several rows"),
    ],
)
def test_other_uses_of_places_are_refused(apply: Callable[..., Any], reason: str) -> None:
    with pytest.raises(ArchError, match=f"{reason}$"):
        archspec.lift(Experts(apply).eval(), {"x": torch.randn(2, 7, 8)})
