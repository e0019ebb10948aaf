"""Numbers put at different indices, or added at any, are lifted as sums over these indices."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class Module(nn.Module):
    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.function = function
        self.gate = nn.Linear(8, 6)

    def forward(self, x: Any, ids: Any) -> Any:
        return self.function(self.gate(x), ids)


def shares(scores: Any, ids: Any) -> Any:
    best, chosen = scores.topk(2)
    return torch.zeros_like(scores).scatter(-1, chosen, best.softmax(-1))


def kept(scores: Any, ids: Any) -> Any:
    order = scores.sort(descending=True)
    return scores.scatter(2, order.indices, order.values * 2)


def counted(scores: Any, ids: Any) -> Any:
    return scores.scatter_add(-1, ids, scores[..., :3])


def histogram(scores: Any, ids: Any) -> Any:
    return torch.zeros_like(scores).scatter_add_(-1, ids, torch.ones_like(ids).to(scores.dtype)) * scores


def added_to_rows(scores: Any, ids: Any) -> Any:
    """What each expert adds to the rows that it has chosen."""
    gates, rows = scores.transpose(1, 2).topk(2, -1)
    at = rows.flatten(1)[..., None].expand(-1, -1, scores.shape[-1])
    return torch.zeros_like(scores).scatter_add(1, at, scores.gather(1, at) * gates.flatten(1)[..., None])


def messages(scores: Any, ids: Any) -> Any:
    """What the nodes of a graph get over its edges."""
    source, target = ids[0].unbind(-1)[:2]
    return scores.index_add(1, target, scores[:, source].tanh()).index_add(0, ids[0, :2, 0] % 2, scores[:2])


def replaced_rows(scores: Any, ids: Any) -> Any:
    """The rows that pass through a layer, in their order."""
    best, rows = scores.sum(-1).topk(2, -1)
    rows, order = rows.sort(-1)
    at = rows[..., None].expand(-1, -1, scores.shape[-1])
    return scores.scatter(1, at, scores.gather(1, at).tanh() * best.gather(1, order)[..., None])


def marked(scores: Any, ids: Any) -> Any:
    """An integer at the only place of a real tensor, which is a real."""
    only = scores[:, 0, :1]
    return scores * torch.zeros_like(only).scatter(1, only.topk(1).indices, 1)[..., None]


class Among(nn.Module):
    """The two largest of all tokens, as many as there are."""

    def forward(self, x: Any) -> Any:
        best, chosen = x.sum(-1).topk(2)
        return x * torch.zeros_like(x[..., 0]).scatter(-1, chosen, best)[..., None]


class Filled(nn.Module):
    """Zeros that are replaced one part after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 5), nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        found = x.new_zeros(x.shape[0], 8)
        found[:, :5] = self.first(x)
        found[:, 5:] = self.second(x)
        return found


class Shifted(nn.Module):
    """Labels behind a start token, as a decoder is trained on them."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 12)

    def forward(self, ids: Any) -> Any:
        found = ids.new_zeros(ids.shape)
        found[..., 1:] = ids[..., :-1].clone()
        found[..., 0] = 2
        return self.words(found.masked_fill(found == -100, 0))


X, IDS = torch.randn(2, 7, 8), torch.randint(0, 6, (2, 7, 3))


def module(function: Callable[[Any, Any], Any]) -> Any:
    return (lambda: Module(function)), {"x": X, "ids": IDS}


CASES = {
    "shares of the best": module(shares),
    "a sort": module(kept),
    "additions": module(counted),
    "a histogram": module(histogram),
    "rows that experts have chosen": module(added_to_rows),
    "rows that pass through a layer": module(replaced_rows),
    "messages in a graph": module(messages),
    "an integer at the only place": module(marked),
    "indices that may be equal": module(lambda scores, ids: scores.scatter(-1, ids, scores[..., :3])),
    "more numbers than indices": module(lambda scores, ids: scores.scatter(-1, scores.topk(2).indices, scores)),
    "the largest numbers of an axis": module(
        lambda scores, ids: scores.scatter(1, scores.argmax(1, keepdim=True), scores[:, :1] * 2)
    ),
    "expanded indices": module(lambda scores, ids: scores.scatter(1, scores.topk(1).indices.expand(-1, -1, 6), scores)),
    "indices along another axis": module(lambda scores, ids: scores.scatter(1, scores.topk(6).indices, scores * 2)),
    "the largest of all tokens": (Among, (torch.randn(2, 7, 8),)),
    "parts that are replaced one after the other": (Filled, (torch.zeros(3, 8),)),
    "a part of an input": (Shifted, (torch.ones(3, 11, dtype=torch.long),)),
}
