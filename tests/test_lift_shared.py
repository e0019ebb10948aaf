"""Lifting: tensors of layers that modules also read themselves."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec  # noqa: E402

nn = torch.nn


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(16, 8)
        self.norm = nn.LayerNorm(8)
        self.up = nn.Linear(8, 8)

    def forward(self, ids: Any) -> Any:
        x = self.norm(self.words(ids))
        for _ in range(4):
            x = x + torch.tanh(self.up(x)) * x.sigmoid()
        return x


class Reading(nn.Module):
    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.function = function
        self.words = nn.Embedding(16, 8)
        self.project = nn.Linear(8, 8)
        self.inner = Inner()

    def forward(self, ids: Any) -> Any:
        return self.function(self, ids)


def tied(module: Any, ids: Any) -> Any:
    return module.project(module.words(ids)) @ module.words.weight.t()


def quantized(module: Any, ids: Any) -> Any:
    x, codes = module.project(module.words(ids)), module.words.weight
    distances = (x**2).sum(-1, keepdim=True) - 2 * x @ codes.t() + (codes**2).sum(1)
    return module.words(distances.argmin(-1))


def of_a_block(module: Any, ids: Any) -> Any:
    return module.inner(ids) @ module.inner.words.weight.t()


@pytest.mark.parametrize(
    ("function", "address"),
    [(tied, ".words.weight"), (quantized, ".words.weight"), (of_a_block, ".inner.words.weight")],
)
def test_a_tensor_of_a_layer_that_is_applied(function: Callable[[Any, Any], Any], address: str) -> None:
    module = Reading(function).eval()
    ids = torch.randint(0, 16, (2, 5))
    text = archspec.lift(module, (ids,))
    assert address in text
    ours = archspec.to_torch(archspec.loads(text)).eval()
    ours.load_state_dict(module.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(ours(ids), module(ids))
