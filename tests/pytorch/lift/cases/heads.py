"""Attention that modules write in other ways, their masks, and heads that stand for several."""

from collections.abc import Callable
from typing import Any

import torch

nn = torch.nn

F = nn.functional

INF = float("inf")

Q = torch.linspace(-1, 1, 240).reshape(2, 4, 5, 6)


class Optional(nn.Module):
    """Attention that may be scaled otherwise without a mask."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: Any, mask: Any = None) -> Any:
        return F.scaled_dot_product_attention(x, x, x, mask, scale=1.0 if mask is not None else self.scale)


class Split(nn.Module):
    """Heads that are scaled as tokens, and then split."""

    def forward(self, x: Any) -> Any:
        q = (x.unflatten(-1, (2, 4)) * 0.5).transpose(1, 2)
        k = x.unflatten(-1, (2, 4)).transpose(1, 2)
        return (q @ k.mT).softmax(-1) @ k


class Padded(nn.Module):
    """Two layers with a mask of padding, which may be left out."""

    def forward(self, x: Any, attention_mask: Any = None) -> Any:
        visible = None if attention_mask is None else attention_mask.bool()[:, None, None, :]
        return F.scaled_dot_product_attention(x, x, F.scaled_dot_product_attention(x, x, x, visible), visible)


class Counted(nn.Module):
    """Attention with a bias for the places that a mask counts, of which an omitted one counts all, if it is `full`."""

    def __init__(self, full: int) -> None:
        super().__init__()
        self.full = full

    def forward(self, x: Any, attention_mask: Any = None) -> Any:
        mask = attention_mask if attention_mask is not None else torch.full((x.shape[0], 5), self.full)
        places = mask.cumsum(1) * mask
        visible = torch.where(mask[:, None, None, :] != 0, 0.0, -INF)
        return F.scaled_dot_product_attention(x, x, x + places[:, None, :, None], visible)


class Cut(nn.Module):
    """Rows that a mask may count, whose size no other input has."""

    def forward(self, x: Any, mask: Any = None) -> Any:
        return x + (1 if mask is None else mask.amax())


class Recurrent(nn.Module):
    """Recurrent layers that begin with given states."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.layer = nn.LSTM(8, 12, bias=bias, batch_first=True)

    def forward(self, x: Any, state: Any) -> Any:
        return self.layer(x, (state, state * 2))[0]


M = (torch.arange(5)[:, None] + torch.arange(5)) % 2 == 0

X, STATE = torch.linspace(-1, 1, 80).reshape(2, 5, 8), torch.ones(1, 2, 12)


def written(weights: Callable[[Any, Any, Any], Any]) -> Any:
    """Return attention that multiplies values by the softmax of weights, with its inputs."""
    return (lambda q, k, v, mask: weights(q, k, mask).softmax(-1) @ v), Q, Q + 1, Q + 2, M


def twice(x: Any) -> Any:
    return x[:, :2].repeat_interleave(2, 1)


attention = F.scaled_dot_product_attention

FUNCTIONS = {
    "hidden where it is not visible": written(lambda q, k, mask: torch.where(mask, q @ k.mT * 0.25, -INF)),
    "hidden where it is not to be seen": written(lambda q, k, mask: torch.where(mask, -INF, q @ k.mT / 8.0)),
    "less visible": written(lambda q, k, mask: torch.where(mask, q @ k.mT * 0.25, -50.0)),
    "less visible where it is not to be seen": written(lambda q, k, mask: torch.where(mask, -50.0, q @ k.mT * 0.25)),
    "hidden, but not infinite": written(
        lambda q, k, mask: torch.where(mask, q @ k.mT, -INF).clamp(min=torch.finfo(torch.float32).min)
    ),
    "scaled before": written(lambda q, k, mask: torch.where(mask, (q * 0.5) @ (k / 4.0).mT, -INF)),
    "repeated keys": (lambda q, k, v, mask: attention(q, twice(k), twice(v), mask), Q, Q + 1, Q + 2, M),
    "repeated keys alone": (lambda q, k, v, mask: attention(q, twice(k), v, mask), Q, Q + 1, Q + 2, M),
    "the lowest number": (lambda q, k, mask: torch.where(mask, q @ k.mT, torch.finfo(torch.float32).min), Q, Q + 1, M),
}

TRIANGLE = {"x": Q, "mask": torch.ones(2, 1, 5, 5, dtype=torch.bool).tril()}

PADDED = Q, torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])

CASES = {
    "a mask that may be left out": (lambda: Optional(1.0), TRIANGLE),
    "a mask without which the scale is another one": (lambda: Optional(2.0), TRIANGLE),
    "heads that are scaled before they are split": (Split, (X,)),
    "a mask of padding": (Padded, PADDED),
    "a mask that counts places": (lambda: Counted(1), PADDED),
    "a mask that counts places, or hides all": (lambda: Counted(0), PADDED),
    "a mask of a size of its own": (Cut, (X, torch.tensor([[1, 1, 1], [1, 1, 0]]))),
    "recurrent layers with states": (lambda: Recurrent(False), (X, STATE)),
    "recurrent layers with states and biases": (lambda: Recurrent(True), (X, STATE)),
}
