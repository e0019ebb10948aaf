"""Lifting modules that select rows by a mask, compute something of each, and put them back."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec
from archspec import ArchError
from archspec.ir.normal.arrays import Arrays
from archspec.ir.normal.origins import LocationIndex
from archspec.pipeline.model import get_compilation
from archspec.pytorch.lift.api import lift_subject
from archspec.pytorch.lift.subject import Subject
from archspec.pytorch.prove.numeric import array_runner, largest_error, module_runner
from archspec.pytorch.prove.sides import model_outputs

nn = torch.nn


class Routed(nn.Module):
    """Tokens of two kinds go through different layers; `mixed` is what is done with the rows of the first kind."""

    def __init__(self, mixed: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.norm = nn.LayerNorm(8)
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.mixed = mixed

    def forward(self, ids: Any) -> Any:
        x, mask = self.words(ids), ids > 0
        if self.mixed is not None:
            return self.mixed(x, mask)
        x = x.masked_scatter(mask.unsqueeze(-1), self.norm(x[mask]))
        x[~mask] += self.first(x[~mask]).relu()
        found = torch.zeros_like(x)
        found[mask] = self.second(x[mask]).view(-1, 2, 4).flatten(1)
        return found


class Adapted(nn.Module):
    """A block of the items of a batch that a mask selects, whose norm the module around it applies as well."""

    def __init__(self) -> None:
        super().__init__()
        self.dense, self.norm, self.adapter = nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        x = self.norm(self.dense(x))
        mask = torch.ones(x.shape[0], dtype=torch.long) == 1
        found = torch.zeros_like(x)
        found[mask] = self.adapter(x[mask])
        return (found + x).relu() + x.exp().sum(-1, keepdim=True).log()


class Choices(nn.Module):
    """Layers for several sequences of each item, as for questions with choices."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.layers = nn.ModuleList([Adapted() for _ in range(3)])

    def forward(self, ids: Any) -> Any:
        x = self.words(ids.view(-1, ids.shape[-1]))
        for layer in self.layers:
            x = layer.norm(layer(x))
        return x


def test_rows_that_a_mask_selects_are_all_rows() -> None:
    torch.manual_seed(0)
    module = Routed().eval()
    ids = torch.randint(0, 3, (3, 7))
    text = archspec.lift(module, (ids,))
    assert "where(mask, _, 0.0)" in text and "LayerNorm(8, 1e-5)(words) |> where(mask, _, words)" in text
    built = archspec.to_torch(archspec.loads(text))
    built.load_state_dict(module.state_dict())
    with torch.no_grad():
        assert torch.allclose(built.eval()(ids), module(ids), atol=1e-6)


def mean(x: Any, mask: Any) -> Any:
    x[mask] = x[mask] - x[mask].mean(0)
    return x


def in_pairs(x: Any, mask: Any) -> Any:
    return x + torch.softmax(x[mask] @ x[mask].T, -1).sum()


def count(x: Any, mask: Any) -> Any:
    return x * x[mask].shape[0]


def elsewhere(x: Any, mask: Any) -> Any:
    x[mask.flip(0)] = x[mask]
    return x


def selected(x: Any, mask: Any) -> Any:
    return x[mask]


def turned(x: Any, mask: Any) -> Any:
    x[mask] = x[mask].flip(0)
    return x


@pytest.mark.parametrize("mixed", [mean, in_pairs, count, elsewhere, selected, turned])
def test_rows_that_are_combined_are_refused(mixed: Callable[..., Any]) -> None:
    with pytest.raises(ArchError, match=r"it selects rows by a mask, and computes something of several rows$"):
        archspec.lift(Routed(mixed).eval(), (torch.ones((3, 7), dtype=torch.long),))


@pytest.mark.slow
def test_items_of_joint_axes() -> None:
    inputs, others = [{"ids": torch.zeros(shape, dtype=torch.long)} for shape in ((3, 5, 7), (4, 6, 9))]
    text = lift_subject(Subject(Choices().eval(), inputs, others))
    assert "block Adapted(x [batch, length, 8]) -> [batch, length, 8]" in text and "has_norm" not in text


class Best(nn.Module):
    """The rows of each item of a batch with the best scores."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Linear(8, 1)

    def forward(self, x: Any) -> Any:
        _, best = torch.topk(self.scores(x).squeeze(-1), 2, dim=1)
        return x[torch.arange(x.shape[0]).unsqueeze(1), best]


def test_rows_of_each_item_at_indices_of_its_own() -> None:
    text = archspec.lift(Best().eval(), (torch.randn(2, 6, 8),))
    assert "gather(axis = 1)" in text
    assert archspec.equivalent(archspec.loads(text), Best().eval()).verdict == "equal"


class Filled(nn.Module):
    """Rows of images, one after the other, in the places of a token; the mask has one axis of size 1, or all axes."""

    def __init__(self, is_wide: bool) -> None:
        super().__init__()
        self.words, self.images = nn.Embedding(30, 8), nn.Linear(6, 8)
        self.is_wide = is_wide

    def forward(self, ids: Any, image: Any) -> Any:
        x, mask = self.words(ids), (ids == 1).unsqueeze(-1)
        return x.masked_scatter(mask.expand_as(x) if self.is_wide else mask, self.images(image))


@pytest.mark.parametrize("is_wide", [False, True])
def test_rows_in_the_places_of_a_token_are_looked_up_by_their_number(is_wide: bool) -> None:
    module = Filled(is_wide).eval()
    first = {"ids": torch.zeros(3, 7, dtype=torch.long), "image": torch.randn(3, 20, 6)}
    text = lift_subject(
        Subject(module, first, {"ids": torch.zeros(2, 9, dtype=torch.long), "image": torch.randn(2, 20, 6)})
    )
    assert "|> cumsum" in text
    body = get_compilation(archspec.loads(text)).body
    arrays = Arrays()
    ours = model_outputs(arrays, body, LocationIndex(arrays))
    error = largest_error(body, array_runner(arrays, ours), module_runner(module, body))
    assert error is not None and error < 1e-12


def test_elements_in_the_places_of_others_are_refused() -> None:
    class Elements(nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return x.masked_scatter(x > 0, y)

    with pytest.raises(ArchError, match="masked_scatter"):
        archspec.lift(Elements().eval(), {"x": torch.randn(3, 7), "y": torch.randn(3, 7)})
