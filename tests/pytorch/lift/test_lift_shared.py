"""Lifting: tensors of layers that modules also read themselves."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec
from archspec.pytorch.lift.values.stored import StoredTensors

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


class Keeping(nn.Module):
    """A module that has its tensors in other places as well, which `torch.export` does not look for."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.weight, self.other = nn.Parameter(torch.randn(2, 8)), nn.Parameter(torch.randn(2, 8))
        self.register_buffer("kept", torch.randn(2, 8))
        self.register_buffer("alias", self.weight.detach() if kind == "alias" else None, persistent=False)
        weight = self.weight
        self.function = (lambda: weight) if kind == "closure" else None
        found = {"weight": self.weight, "buffer": self.kept, "part": self.weight[:1], "own": torch.full((2, 8), 3.0)}
        self.listed = [found[kind]] if kind in found else []

    def forward(self, x: Any) -> Any:
        if self.function is not None:
            return x * self.function().sum(0)
        return x * (self.listed[0] if self.listed else self.alias).sum(0)


@pytest.mark.parametrize(("kind", "read"), [("weight", ".weight"), ("own", "full([2, 8], 3.0)")])
def test_tensors_that_a_list_has_as_well_are_no_constants(kind: str, read: str) -> None:
    text = archspec.lift(Keeping(kind).eval(), (torch.randn(3, 5, 8),))
    assert f"sum(axis = 0)({read})" in text and "table" not in text
    assert ("weight: unused param" in text) == (kind != "weight") and "other:  unused param" in text


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("part", "it reads a part of its `weight` that was taken before the call"),
        ("buffer", "its computation differs from its program"),
        ("alias", "`alias` is in the memory of `weight`, but is another tensor"),
        ("closure", "its computation differs from its program"),
    ],
)
def test_tensors_that_are_others_in_a_copy_are_refused(kind: str, reason: str) -> None:
    with pytest.raises(archspec.ArchError, match=reason):
        archspec.lift(Keeping(kind).eval(), (torch.randn(3, 5, 8),))


def test_tensors_are_declared_as_what_they_are() -> None:
    module = nn.Module()
    module.register_parameter("weight", nn.Parameter(torch.ones(3)))
    module.register_parameter("fixed", nn.Parameter(torch.ones(2), requires_grad=False))
    module.register_buffer("counts", torch.ones(2, dtype=torch.long))
    module.register_buffer("scale", torch.ones(2))
    module.register_buffer("mask", torch.ones(2, dtype=torch.bool))
    module.words = nn.Embedding(4, 3)
    module.head = nn.Linear(3, 4)
    module.head.weight = module.words.weight
    stored = StoredTensors(module)
    assert {name: stored.modifiers(name, "") for name in stored.names} == {
        "weight": "param",
        "fixed": "frozen param",
        "counts": "buffer int",
        "scale": "buffer",
        "mask": "buffer bool",
        "words.weight": "param",
        "head.weight": "param",
        "head.bias": "param",
    }
    assert stored.ties == [("head.weight", "words.weight")]
    assert stored.names_of("head.weight") == ["words.weight", "head.weight"]
    assert stored.name_under("words.weight", "head") == "head.weight" and stored.name_under("fixed", "head") is None
