"""Numbers put at different indices, or added at any, are lifted as sums over these indices."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn

import archspec
from archspec import ArchError


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


@pytest.mark.parametrize("function", [shares, kept, counted, histogram, added_to_rows, replaced_rows, messages, marked])
def test_numbers_at_indices(function: Callable[..., Any]) -> None:
    module = Module(function).double().eval()
    inputs = {"x": torch.randn(2, 7, 8).double(), "ids": torch.randint(0, 6, (2, 7, 3))}
    text = archspec.lift(module, inputs)
    ours = archspec.to_torch(archspec.loads(text)).double().eval()
    ours.load_state_dict(module.state_dict())
    given = {name: value for name, value in inputs.items() if name == "x" or "ids int" in text}
    with torch.no_grad():
        torch.testing.assert_close(ours(**given), module(**inputs))


@pytest.mark.parametrize(
    "function",
    [
        lambda scores, ids: scores.scatter(-1, ids, scores[..., :3]),
        lambda scores, ids: scores.scatter(-1, scores.topk(2).indices, scores),
        lambda scores, ids: scores.scatter(1, scores.argmax(1, keepdim=True), scores[:, :1] * 2),
        lambda scores, ids: scores.scatter(1, scores.topk(1).indices.expand(-1, -1, 6), scores),
        lambda scores, ids: scores.scatter(1, scores.topk(6).indices, scores * 2),
    ],
)
def test_other_indices_are_refused(function: Callable[..., Any]) -> None:
    inputs = {"x": torch.randn(2, 7, 8), "ids": torch.randint(0, 6, (2, 7, 3))}
    with pytest.raises(ArchError, match="scatter"):
        archspec.lift(Module(function).eval(), inputs)


class Among(nn.Module):
    """The two largest of all tokens, as many as there are."""

    def forward(self, x: Any) -> Any:
        best, chosen = x.sum(-1).topk(2)
        return x * torch.zeros_like(x[..., 0]).scatter(-1, chosen, best)[..., None]


def test_nothing_is_printed_of_programs_that_have_sizes_as_numbers(recwarn: pytest.WarningsRecorder) -> None:
    archspec.lift(Among().eval(), (torch.randn(2, 7, 8),))
    assert [str(warning.message) for warning in recwarn] == []


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


def test_parts_that_are_replaced_one_after_the_other_are_joined() -> None:
    text = archspec.lift(Filled().eval(), (torch.zeros(3, 8),))
    assert "concat(axis = 1)(first, second)" in text and "slice" not in text and "full" not in text


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


def test_a_part_of_an_input_is_a_slice_of_it() -> None:
    text = archspec.lift(Shifted().eval(), (torch.ones(3, 11, dtype=torch.long),))
    assert "concat(axis = 1)(expand([batch, 1])(full([], 2)), slice(axis = 1, stop = seq - 1)(ids))" in text
