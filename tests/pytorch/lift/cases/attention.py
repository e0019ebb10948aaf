"""Attention that a module writes out, with caps, sinks, and masks that hide scores by the least number."""

from collections.abc import Callable
from typing import Any

import torch

nn = torch.nn

HIDDEN, HEADS = 24, 3

LEAST = torch.finfo(torch.float32).min


def causal(scores: Any, hidden: float = LEAST) -> Any:
    positions = torch.arange(scores.shape[-1])
    return torch.where(positions[:, None] >= positions, 0.0, hidden)


def plain(scores: Any, sinks: Any) -> Any:
    return scores.softmax(-1)


def with_sinks(scores: Any, sinks: Any) -> Any:
    batch, _, queries, _ = scores.shape
    joined = torch.cat((scores, sinks[None, :, None, None].expand(batch, -1, queries, 1)), -1)
    return (joined - joined.amax(-1, keepdim=True)).softmax(-1)[..., :-1]


def with_the_first(scores: Any, sinks: Any) -> Any:
    return with_sinks(scores, sinks) + scores.mean()


class Attention(nn.Module):
    """Attention whose scores are changed by `change`, and made to weights by `weigh`."""

    def __init__(self, change: Callable[[Any], Any], weigh: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(HIDDEN, HIDDEN) for _ in range(3)])
        self.sinks = nn.Parameter(torch.randn(HEADS)) if weigh is not plain else None
        self.change, self.weigh = change, weigh

    def forward(self, x: Any) -> Any:
        q, k, v = [part(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.parts]
        weights = self.weigh(self.change(q @ k.transpose(-1, -2) * 8**-0.5), self.sinks)
        return (weights @ v).transpose(1, 2).flatten(2)


class Batched(nn.Module):
    """Attention with a batch of all texts and heads, whose scores are changed with all axes or with three."""

    def __init__(
        self, change: Callable[[Any, Any], Any], has_all_axes: bool = False, is_time_first: bool = False
    ) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(HIDDEN, HIDDEN) for _ in range(3)])
        self.change, self.has_all_axes, self.is_time_first = change, has_all_axes, is_time_first

    def flattened(self, x: Any) -> Any:
        if self.is_time_first:
            return x.transpose(0, 1).reshape(x.shape[1], -1, HIDDEN // HEADS).transpose(0, 1)
        return x.unflatten(-1, (HEADS, -1)).transpose(1, 2).flatten(0, 1)

    def forward(self, x: Any, mask: Any = None) -> Any:
        q, k, v = [self.flattened(part(x)) for part in self.parts]
        scores = torch.bmm(q, k.transpose(1, 2)) * 8**-0.5
        if mask is None:
            scores = self.change(scores, mask)
        elif self.has_all_axes:
            scores = self.change(scores.unflatten(0, (-1, HEADS)), mask[:, None, None, :]).flatten(0, 1)
        else:
            scores = self.change(scores, mask.repeat_interleave(HEADS, 0)[:, None, :])
        found = torch.bmm(scores.softmax(-1), v)
        if self.is_time_first:
            return found.transpose(0, 1).reshape(x.shape[1], -1, HIDDEN).transpose(0, 1)
        return found.unflatten(0, (-1, HEADS)).transpose(1, 2).flatten(2)


class Masked(nn.Module):
    """Scores that are hidden where a test of their positions is false."""

    def __init__(self, test: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.test = test

    def forward(self, x: Any) -> Any:
        places = torch.arange(x.shape[1])
        return (x @ x.transpose(1, 2)).masked_fill(~self.test(places[:, None], places), 0.0)


X, MASK = torch.randn(2, 7, HIDDEN), torch.ones(2, 7, dtype=torch.int64)


def written(change: Callable[[Any], Any], weigh: Callable[[Any, Any], Any] = plain) -> Any:
    return (lambda: Attention(change, weigh)), (X,)


def batched(change: Callable[[Any, Any], Any], *settings: bool, inputs: Any = (X,)) -> Any:
    return (lambda: Batched(change, *settings)), inputs


def of_positions(test: Callable[[Any, Any], Any]) -> Any:
    return (lambda: Masked(test)), (torch.randn(2, 7, 8),)


def hidden(number: float) -> Callable[[Any, Any], Any]:
    return lambda x, mask: x.masked_fill(mask == 0, number)


def behind(x: Any, mask: Any) -> Any:
    return x + causal(x, -torch.inf)


CASES = {
    "a finite mask": written(lambda x: x + causal(x)),
    "a finite mask that selects": written(lambda x: torch.where(causal(x) == 0, x, LEAST)),
    "a cap and a finite mask": written(lambda x: torch.tanh(x / 50.0) * 50.0 + causal(x)),
    "a cap and a mask": written(lambda x: torch.tanh(x / 50.0) * 50.0 + causal(x, -torch.inf)),
    "sinks": written(lambda x: x + causal(x, -torch.inf), with_sinks),
    "another cap": written(lambda x: torch.tanh(x / 50.0) * 49.0),
    "a mask below a cap": written(lambda x: torch.tanh((x + causal(x)) / 50.0) * 50.0),
    "sinks and the mean": written(lambda x: x, with_the_first),
    "heads in the batch": batched(lambda x, _: x),
    "heads in the batch, causal": batched(behind),
    "heads in the batch, a mask of all axes": batched(hidden(-torch.inf), True, inputs=(X, MASK)),
    "heads in the batch, a finite mask": batched(hidden(LEAST), inputs=(X, MASK)),
    "tokens before heads in the batch": batched(lambda x, _: x, False, True),
    "tokens before heads in the batch, causal": batched(behind, False, True),
    "tokens before heads in the batch, a mask of all axes": batched(hidden(-torch.inf), True, True, inputs=(X, MASK)),
    "tokens before heads in the batch, a finite mask": batched(hidden(LEAST), False, True, inputs=(X, MASK)),
    "a mask of positions": of_positions(
        lambda row, column: (row >= 0) & torch.ones(1, dtype=torch.bool) & (row > column)
    ),
    "a negated mask of positions": of_positions(lambda row, column: ~(row >= column)),
    "a mask of sums of positions": of_positions(lambda row, column: ~(row + column > 3)),
}

SLOW = "a finite mask that|a cap and a finite|a mask below|sinks and|heads in the batch, causal|tokens"
