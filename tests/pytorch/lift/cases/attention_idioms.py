"""Scores, weights and masks that are settings of attention, and those that are written as they are."""

from collections.abc import Callable
from typing import Any

import torch

Q = torch.linspace(-1, 1, 240).reshape(2, 3, 5, 8)
BIAS, SEEN = torch.linspace(-1, 1, 75).reshape(3, 5, 5), torch.tensor([[1, 1, 1, 0, 1], [1, 0, 1, 1, 1]]) > 0
INF, LEAST = float("inf"), torch.finfo(torch.float32).min


def softmax(x: Any) -> Any:
    return x.softmax(-1)


def scores(change: Callable[[Any, Any, Any], Any], weigh: Callable[[Any], Any] = softmax) -> Any:
    """Attention with changed scores, and its inputs."""

    def function(q: Any, k: Any, v: Any, bias: Any, seen: Any) -> Any:
        return weigh(change(q @ k.mT, bias, seen)) @ v

    return function, Q, Q + 1, Q + 2, BIAS, SEEN[:, None, None]


def weights(weigh: Callable[[Any], Any]) -> Any:
    return scores(lambda x, bias, seen: x, weigh)


def masked(mask: Callable[[Any, Any, Any], Any]) -> Any:
    """Attention with a mask of the rows and columns of scores, and of an input."""

    def function(x: Any, ids: Any) -> Any:
        places = torch.arange(x.shape[2])
        seen = mask(places[:, None], places, ids)
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, seen)

    return function, Q, torch.ones(2, 5, dtype=torch.int64)


def ahead(x: Any, hidden: float) -> Any:
    places = torch.arange(x.shape[-1])
    return torch.where(places[:, None] >= places, 0.0, hidden)


def capped(x: Any, by: float = 50.0, times: float = 50.0) -> Any:
    return torch.tanh(x / by) * times


def halved(x: Any, steps: int) -> Any:
    for turn in range(steps):
        x = x * 2.0 if turn % 2 else x / 2.0
    return x


def sunk(x: Any, count: int = 1, is_shifted: bool = True) -> Any:
    sinks = torch.linspace(-1, 1, 3)[None, :, None, None].expand(x.shape[0], 3, x.shape[2], 1)
    joined = torch.cat([x, *[sinks] * count], -1)
    joined = joined - joined.amax(-1, keepdim=True) if is_shifted else joined
    return joined.softmax(-1)[..., : x.shape[-1]]


FUNCTIONS = {
    "scores as they are": scores(lambda x, bias, seen: x),
    "scores times a number": scores(lambda x, bias, seen: 0.5 * x),
    "scores times the default": scores(lambda x, bias, seen: x * 8**-0.5),
    "scores in steps": scores(lambda x, bias, seen: halved(x, 3)),
    "scores in many steps": scores(lambda x, bias, seen: halved(x, 9)),
    "scores in many steps and a cap": scores(lambda x, bias, seen: capped(halved(x, 8))),
    "biased": scores(lambda x, bias, seen: x + bias),
    "biased twice": scores(lambda x, bias, seen: bias.exp() + (x + bias)),
    "seen": scores(lambda x, bias, seen: torch.where(seen, x, -INF)),
    "hidden": scores(lambda x, bias, seen: torch.where(seen, -INF, x)),
    "seen twice": scores(lambda x, bias, seen: torch.where(bias > -2, torch.where(seen, x, -INF), -INF)),
    "hidden by the least number": scores(lambda x, bias, seen: torch.where(seen, x, LEAST)),
    "causal": scores(lambda x, bias, seen: x + ahead(x, -INF)),
    "causal by the least number": scores(lambda x, bias, seen: x + ahead(x, LEAST)),
    "causal and biased": scores(lambda x, bias, seen: x + bias + ahead(x, -INF)),
    "scaled and capped": scores(lambda x, bias, seen: capped(x * 0.5)),
    "capped and hidden": scores(lambda x, bias, seen: torch.where(seen, capped(x), LEAST)),
    "not a quotient": scores(lambda x, bias, seen: 4.0 / (x + 40)),
    "not a sum with a number": scores(lambda x, bias, seen: x + 4.0),
    "not a difference": scores(lambda x, bias, seen: x - bias),
    "not exponentials": scores(lambda x, bias, seen: (x / 50).exp()),
    "not factors": scores(lambda x, bias, seen: x * bias[:, :1, :1]),
    "not hidden by another number": scores(lambda x, bias, seen: torch.where(seen, x, -9.0)),
    "not a computed mask": scores(lambda x, bias, seen: x + torch.where(bias.exp() > 0.4, 0.0, -INF)),
    "not hidden by numbers": scores(lambda x, bias, seen: torch.where(seen, x, bias)),
    "not another cap": scores(lambda x, bias, seen: capped(x, 49.0)),
    "not another limit": scores(lambda x, bias, seen: torch.sin(x / 50.0) * 50.0),
    "not biased and capped": scores(lambda x, bias, seen: capped(x + bias)),
    "not hidden and capped": scores(lambda x, bias, seen: capped(torch.where(seen, x, -INF))),
    "not capped twice": scores(lambda x, bias, seen: capped(capped(x))),
    "shifted": weights(lambda x: (x - x.amax(-1, keepdim=True)).softmax(-1)),
    "sinks that are not shifted": weights(lambda x: sunk(x, is_shifted=False)),
    "sinks after a cap": weights(lambda x: sunk(capped(x))),
    "not sinks twice": weights(lambda x: sunk(x, 2)),
    "not shifted by another maximum": weights(lambda x: (x - (x * 2.0).amax(-1, keepdim=True)).softmax(-1)),
    "not along queries": weights(lambda x: x.softmax(2)),
    "not dropped": weights(lambda x: x.softmax(-1) * 2.0),
    "scores that are used elsewhere": (lambda q, k, v: ((s := q @ k.mT).softmax(-1) @ v, s), Q, Q + 1, Q + 2),
    "weights that are used elsewhere": (lambda q, k, v: ((p := (q @ k.mT * 0.5).softmax(-1)) @ v, p), Q, Q + 1, Q + 2),
    "a cap that is used elsewhere": (lambda q, k, v: (sunk(s := capped(q @ k.mT)) @ v, s), Q, Q + 1, Q + 2),
    "the last ones": masked(lambda row, column, ids: (row >= column) & (row - column < 3)),
    "near": masked(lambda row, column, ids: (row - column).abs() < 3),
    "next to it": masked(lambda row, column, ids: (row - column < 2) & (column - row < 2)),
    "near, less far ahead": masked(lambda row, column, ids: (row - column < 3) & (column - row < 2)),
    "the last ones and all ahead": masked(lambda row, column, ids: row - column < 3),
    "a prefix": masked(lambda row, column, ids: (row >= column) | (column < 2) | (column == 4)),
    "padding": masked(lambda row, column, ids: ids[:, None, None] != 0),
    "padding, causal": masked(lambda row, column, ids: (ids[:, None, None] != 0) & (row >= column)),
    "padding, where some rows see nothing": masked(
        lambda row, column, ids: (ids != 0)[:, None, None] & ((row - column).abs() < 2)
    ),
    "padding as booleans": masked(lambda row, column, ids: (ids > 0)[:, None, None] & (row >= column)),
    "padding of queries": masked(lambda row, column, ids: (ids[:, None, :, None] != 0) | (row == column)),
    "padding of each item and positions": masked(lambda row, column, ids: ids[:, None, None] > column - 2),
}
