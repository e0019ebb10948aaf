"""What people write: flags that depend on lengths, functions that modules keep, caches, tables of numbers."""

from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional as F


class Attended(nn.Module):
    """Attention that is causal for more than one token."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(24, 72)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, seq, width = x.shape
        q, k, v = (part.view(batch, seq, 4, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=seq > 1)
        return y.transpose(1, 2).reshape(batch, seq, width)


class Kept(nn.Module):
    """A function that the constructor keeps, in a list, and a branch for one length."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleDict({"up": nn.Linear(8, 12), "down": nn.Linear(12, 8)})
        parts = self.parts
        self.steps = [lambda x: parts["down"](parts["up"](x).relu())]
        self.register_buffer("seen", torch.tril(torch.ones(7, 7)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seq = x.shape[1]
        scores = (x @ x.transpose(1, 2)).masked_fill(self.seen[:seq, :seq] == 0, float("-inf"))
        return self.steps[0](scores.softmax(-1) @ x)


class Cache:
    """What a model keeps for later calls."""


class Cached(nn.Module):
    """A model that returns a cache unless its configuration says that it does not."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(model_type="cached", use_cache=True)
        self.key, self.out = nn.Linear(8, 8), nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> dict[str, object]:
        kept = {"kept": Cache()} if self.config.use_cache else {}
        return {"logits": self.out(self.key(x).softmax(1)), **kept}


class Changing(Cached):
    """A model whose other outputs depend on whether it returns a cache."""

    def forward(self, x: torch.Tensor) -> dict[str, object]:
        return {"logits": self.out(self.key(x)) + float(self.config.use_cache)}


class Merged(nn.Module):
    """Axes that trade places, and are divided again by the size of the other one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.transpose(1, 2).contiguous().view(x.shape[0], x.shape[1], 8)


class Tabulated(nn.Module):
    """A table without a formula, the same for each item."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        numbers = torch.randn(rows, columns, generator=torch.Generator().manual_seed(0)).mul(64).round().div(4)
        self.register_buffer("numbers", numbers.expand(1, 3, rows, columns), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.numbers


class Stored(nn.Module):
    """A large table that checkpoints have."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("numbers", torch.randn(70, 60))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.numbers


class Empty(nn.Module):
    """Tensors without elements, which are joined to others."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("past", torch.zeros(2, 0, 4), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.past, x, torch.empty(0)], 1).relu()


class StoredEmpty(Empty):
    """A tensor without elements that checkpoints have."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("past", torch.zeros(2, 0, 4))


class Generating(nn.Module):
    """A model that returns the scores of the last position alone, unless it is given targets."""

    def __init__(self, vocab: int) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(vocab, 12), nn.Linear(12, vocab)

    def forward(
        self, ids: torch.Tensor, targets: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        h = self.words(ids).cumsum(1)
        if targets is None:
            return self.head(h[:, [-1]]), None
        logits = self.head(h)
        return logits, F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1), ignore_index=-1)


def generating(vocab: int = 17) -> nn.Module:
    return Generating(vocab).eval()


class Choosing(nn.Module):
    """A branch that depends on data."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x


def upsampling(**settings: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 1), nn.ConvTranspose2d(4, 6, 3, **settings))


CASES = {
    "causal for more than one token": (Attended, (torch.randn(2, 5, 24),), (torch.randn(2, 1, 24),)),
    "a function that is kept": (Kept, (torch.randn(2, 5, 8),), (torch.randn(2, 7, 8),)),
    "a cache": (Cached, (torch.randn(2, 5, 8),)),
    "outputs that depend on the cache": (Changing, (torch.randn(2, 5, 8),)),
    "axes that trade places": (Merged, (torch.randn(2, 5, 8),), (torch.randn(2, 8, 8),), (torch.randn(2, 1, 8),)),
    "padding of a result within the cut": (
        lambda: upsampling(stride=2, padding=1, output_padding=1, groups=2),
        (torch.randn(2, 3, 5, 4),),
    ),
    "padding of a result beyond the cut": (
        lambda: upsampling(stride=3, padding=1, output_padding=2),
        (torch.randn(2, 3, 5, 4),),
    ),
    "a table without a formula": (lambda: Tabulated(11, 7), (torch.randn(2, 3, 11, 7),)),
    "a table of too many numbers": (lambda: Tabulated(65, 64), (torch.randn(2, 3, 65, 64),)),
    "a large table that is stored": (Stored, (torch.randn(2, 70, 60),)),
    "tensors without elements": (Empty, (torch.randn(2, 5, 4),)),
    "a choice by data": (lambda: nn.Sequential(nn.Linear(4, 4), Choosing()), (torch.randn(2, 4),)),
    "a stored tensor without elements": (StoredEmpty, (torch.randn(2, 5, 4),)),
}

SOURCES = {
    "the last position": (":generating", "ids=int[batch,seq]", {"vocab": 9}),
    "all positions, with targets": (":generating", "ids=int[batch,seq]", "targets=int[batch,seq]", {"vocab": 9}),
}
