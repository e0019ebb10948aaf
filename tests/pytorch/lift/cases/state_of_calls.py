"""Modules that keep something of a call."""

from typing import Any

import torch

nn = torch.nn


class Keeping(nn.Module):
    """A layer that keeps something of each call."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(12, 12)
        self.calls, self.kept, self.last = 0, list[Any](), None


class Counting(Keeping):
    def forward(self, x: Any) -> Any:
        self.calls += 1
        return self.layer(x) * (1.0 if self.calls < 20 else 2.0)


class Collecting(Keeping):
    def forward(self, x: Any) -> Any:
        self.kept.append(1)
        return self.layer(x) * len(self.kept)


COUNTS = [0]


class Hidden(Keeping):
    def forward(self, x: Any) -> Any:
        COUNTS[0] += 1
        return self.layer(x) * COUNTS[0]


class Observed(Keeping):
    def forward(self, x: Any) -> Any:
        self.calls, self.last = 5, torch.ones(3)
        return self.layer(x)


class Cached(Keeping):
    def forward(self, x: Any) -> Any:
        if self.last is None or self.last.shape[0] < x.shape[1]:
            self.last = torch.arange(x.shape[1]) * 0.1
        return self.layer(x) + self.last[: x.shape[1], None]


class Registered(Keeping):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", None, persistent=False)

    def forward(self, x: Any) -> Any:
        if self.table is None or self.table.shape[0] < x.shape[1]:
            self.register_buffer("table", torch.arange(x.shape[1]) * 0.1, persistent=False)
        return self.layer(x) + self.table[: x.shape[1], None]


X = (torch.randn(3, 7, 12),)

CASES = {
    "a number of calls": (Counting, X),
    "a list of results": (Collecting, X),
    "a number of the file": (Hidden, X),
    "a buffer that a call registers": (Registered, X),
    "a table for all calls": (Cached, X),
    "attributes that are not read": (Observed, X),
}
