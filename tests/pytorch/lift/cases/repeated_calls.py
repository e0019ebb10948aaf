"""What a module keeps has to be the same after each call."""

import math
import random
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

CALLS = [0]
"""How often a module was called: a global variable is not seen."""


class Keeping(nn.Module):
    """A module with an attribute that is one of two objects, for three calls each."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.kept, self.name, CALLS[0] = VALUES[name][0], name, 0

    def forward(self, x: Any) -> Any:
        CALLS[0] += 1
        self.kept = VALUES[self.name][CALLS[0] // 3 % 2]
        return x * 2


class Alternating(nn.Module):
    """A module that computes one of two functions in turn."""

    def forward(self, x: Any) -> Any:
        CALLS[0] += 1
        return x + 1 if CALLS[0] % 2 else x * 1


class Slotted:
    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


def counting(number: int) -> Callable[[], int]:
    def result() -> int:
        return number

    return result


VALUES: dict[str, tuple[Any, Any]] = {
    "an equal integer": (1, 1),
    "another integer": (1, 2),
    "no number": (math.nan, math.nan),
    "an equal dictionary in a list": ([1, {"a": 2}], [1, {"a": 2}]),
    "another dictionary in a list": ([1, {"a": 2}], [1, {"a": 3}]),
    "a longer list": ([1], [1, 1]),
    "another key": ({"a": 1}, {"b": 1}),
    "an equal tensor": (torch.ones(2), torch.ones(2)),
    "another tensor": (torch.ones(2), torch.ones(2) * 2),
    "a longer tensor": (torch.ones(2), torch.ones(3)),
    "a tensor of another type": (torch.ones(2), torch.ones(2, dtype=torch.float64)),
    "nothing": (torch.ones(2), None),
    "a tensor without values": (torch.ones(2, device="meta"), torch.ones(2, device="meta")),
    "a tensor of no number": (torch.tensor([math.nan]), torch.tensor([math.nan])),
    "a tensor of other integers": (torch.arange(2), torch.arange(2) + 1),
    "an empty tensor": (torch.empty(0), torch.empty(0)),
    "an equal namespace": (SimpleNamespace(a=1), SimpleNamespace(a=1)),
    "another namespace": (SimpleNamespace(a=1), SimpleNamespace(a=2)),
    "an equal set": ({1, 2}, {2, 1}),
    "another set": ({1, 2}, {1, 3}),
    "another queue": (deque([1, 2]), deque([1, 3])),
    "an equal iterator": (iter([1, 2]), iter([1, 2])),
    "another counter": (count(1), count(2)),
    "another generator": (random.Random(1), random.Random(2)),
    "another list in a tuple": ((1, [2]), (1, [3])),
    "an equal object with slots": (Slotted(1), Slotted(1)),
    "another object with slots": (Slotted(1), Slotted(2)),
    "another closure": (counting(1), counting(2)),
    "another partial function": (partial(max, 1), partial(max, 2)),
}

CASES = {
    **{name: (partial(Keeping, name), (torch.ones(3, 2),)) for name in VALUES},
    "one of two functions in turn": (Alternating, (torch.ones(3, 2),)),
}
