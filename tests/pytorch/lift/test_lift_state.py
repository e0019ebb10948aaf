"""Lifting modules that keep something of a call, or that are other modules than small ones of their class."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec
from archspec.pytorch.lift.sources.lifting import lift_source
from archspec.pytorch.patches.intercepting import restore_attributes

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


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Counting, "a call changes its attribute `calls`"),
        (Collecting, "a call changes its attribute `kept`"),
        (Hidden, "it is stateful|differs from its program"),
        (Registered, "`forward` creates `"),
    ],
)
def test_a_module_whose_calls_change_it_is_refused(kind: type[Keeping], reason: str) -> None:
    with pytest.raises(archspec.ArchError, match=reason):
        archspec.lift(kind().eval(), (torch.randn(3, 7, 12),))


def test_what_a_module_keeps_may_be_the_same_for_all_calls() -> None:
    assert "arange(seq)" in archspec.lift(Cached().eval(), (torch.randn(3, 7, 12),))


def test_a_module_may_keep_what_it_does_not_read() -> None:
    module = Observed().eval()
    assert "Linear(12, 12)" in archspec.lift(module, (torch.randn(3, 7, 12),))
    assert (module.calls, module.last) == (0, None)


def test_attributes_are_restored() -> None:
    module = Keeping()
    with restore_attributes(module):
        module.calls, module.other = 3, 4
        module.kept.append(5)
        module.register_buffer("buffer", torch.zeros(2))
    assert (module.calls, module.kept) == (0, [])
    assert not hasattr(module, "other") and not hasattr(module, "buffer")


FILE = """
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(layers)])
        self.scale = 1.0 if layers < 6 else 0.5
    def forward(self, x):
        for layer in self.layers:
            x = x + self.scale * layer(x)
        return x

def build(layers=8):
    return Scaled(24, layers).eval()

def shallow(layers=4):
    return Scaled(24, layers).eval()
"""


@pytest.mark.slow
def test_the_spec_of_a_small_module_has_to_be_that_of_the_actual_one(tmp_path: Path) -> None:
    path = tmp_path / "scaled.py"
    path.write_text(FILE)
    shallow = lift_source(f"{path}:shallow", ["x=real[batch,seq,24]"])
    assert "# Not followed: layers = 4 (the spec of two small ones does not hold for other sizes" in shallow
    text = lift_source(f"{path}:build", ["x=real[batch,seq,24]"])
    assert "* 0.5" in text and "Scaled(layers" not in text


SIZED = """
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self, dim, dim_head, heads, layers, rank, alpha):
        super().__init__()
        self.heads, self.size = heads, dim_head ** -0.5
        self.inner = nn.Linear(dim, 3 * heads * dim_head)
        self.down, self.up = nn.Parameter(torch.randn(dim, rank)), nn.Parameter(torch.randn(rank, dim))
        self.by_layers, self.by_rank = (2 * layers) ** -0.5, alpha / rank
    def forward(self, x):
        q, k, v = self.inner(x).unflatten(-1, (self.heads, -1)).chunk(3, -1)
        y = x + self.by_layers * (x @ self.down @ self.up) * self.by_rank
        return y, self.size * q * k * v

def build(dim=24, dim_head=8, heads=4, layers=8, rank=5, alpha=10):
    return Scaled(dim, dim_head, heads, layers, rank, alpha).eval()
"""


@pytest.mark.slow
def test_sizes_of_inputs_follow_arguments_of_the_factory(tmp_path: Path) -> None:
    path = tmp_path / "scaled.py"
    path.write_text(SIZED)
    for size in ("24", "dim"):
        text = lift_source(f"{path}:build", [f"x=real[batch,seq,{size}]"])
        assert "Scaled(dim = 24, dim_head = 8, heads = 4, layers = 8)" in text and "param [dim, 5]" in text
        assert "(2 * layers) ** -0.5" in text and "dim_head ** -0.5" in text
