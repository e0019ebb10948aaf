"""Lifting: attention that a module writes out, with caps, sinks, and masks that hide scores by the least number."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec
from archspec import equivalent

nn = torch.nn
HIDDEN, HEADS = 24, 3
LEAST = torch.finfo(torch.float32).min


def causal(scores: Any, hidden: float = LEAST) -> Any:
    positions = torch.arange(scores.shape[-1])
    return torch.where(positions[:, None] >= positions, 0.0, hidden)


def plain(scores: Any, sinks: Any) -> Any:
    return scores.softmax(-1)


def with_sinks(scores: Any, sinks: Any) -> Any:
    batch, _, queries, _ = scores.shape
    joined = torch.cat((scores, sinks[None, :, None, None].expand(batch, -1, queries, 1)), -1)
    return (joined - joined.amax(-1, keepdim=True)).softmax(-1)[..., :-1]


def with_the_first(scores: Any, sinks: Any) -> Any:
    return with_sinks(scores, sinks) + scores.mean()


class Attention(nn.Module):
    """Attention whose scores are changed by `change`, and made to weights by `weigh`."""

    def __init__(self, change: Callable[[Any], Any], weigh: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(HIDDEN, HIDDEN) for _ in range(3)])
        self.sinks = nn.Parameter(torch.randn(HEADS)) if weigh is not plain else None
        self.change, self.weigh = change, weigh

    def forward(self, x: Any) -> Any:
        q, k, v = [part(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.parts]
        weights = self.weigh(self.change(q @ k.transpose(-1, -2) * 8**-0.5), self.sinks)
        return (weights @ v).transpose(1, 2).flatten(2)


@pytest.mark.parametrize(
    ("change", "weigh", "line"),
    [
        (lambda x: x + causal(x), plain, "attention(finite = true, causal = true)(query, key, value)"),
        pytest.param(
            lambda x: torch.where(causal(x) == 0, x, LEAST),
            plain,
            "attention(finite = true, causal = true)(query, key, value)",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda x: torch.tanh(x / 50.0) * 50.0 + causal(x),
            plain,
            "attention(cap = 50.0, causal = true)(query, key, value)",
            marks=pytest.mark.slow,
        ),
        (
            lambda x: torch.tanh(x / 50.0) * 50.0 + causal(x, -torch.inf),
            plain,
            "attention(cap = 50.0, finite = false, causal = true)(query, key, value)",
        ),
        (
            lambda x: x + causal(x, -torch.inf),
            with_sinks,
            "attention(causal = true)(query, key, value, sinks = .sinks)",
        ),
    ],
)
def test_attention_that_is_written_out(change: Any, weigh: Any, line: str) -> None:
    module = Attention(change, weigh).eval()
    text = archspec.lift(module, (torch.zeros(2, 7, HIDDEN),))
    assert line in text
    assert equivalent(archspec.loads(text), module).verdict == "equal"


@pytest.mark.parametrize(
    ("change", "weigh"),
    [
        (lambda x: torch.tanh(x / 50.0) * 49.0, plain),
        pytest.param(lambda x: torch.tanh((x + causal(x)) / 50.0) * 50.0, plain, marks=pytest.mark.slow),
        pytest.param(lambda x: x, with_the_first, marks=pytest.mark.slow),
    ],
)
def test_what_is_nearly_attention_is_written_as_it_is(change: Any, weigh: Any) -> None:
    text = archspec.lift(Attention(change, weigh).eval(), (torch.zeros(2, 7, HIDDEN),))
    assert "attention(" not in text
    assert "softmax(axis = -1)" in text


class Batched(nn.Module):
    """Attention with a batch of all texts and heads, whose scores are changed with all axes or with three."""

    def __init__(
        self, change: Callable[[Any, Any], Any], has_all_axes: bool = False, is_time_first: bool = False
    ) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(HIDDEN, HIDDEN) for _ in range(3)])
        self.change, self.has_all_axes, self.is_time_first = change, has_all_axes, is_time_first

    def flattened(self, x: Any) -> Any:
        if self.is_time_first:
            return x.transpose(0, 1).reshape(x.shape[1], -1, HIDDEN // HEADS).transpose(0, 1)
        return x.unflatten(-1, (HEADS, -1)).transpose(1, 2).flatten(0, 1)

    def forward(self, x: Any, mask: Any = None) -> Any:
        q, k, v = [self.flattened(part(x)) for part in self.parts]
        scores = torch.bmm(q, k.transpose(1, 2)) * 8**-0.5
        if mask is None:
            scores = self.change(scores, mask)
        elif self.has_all_axes:
            scores = self.change(scores.unflatten(0, (-1, HEADS)), mask[:, None, None, :]).flatten(0, 1)
        else:
            scores = self.change(scores, mask.repeat_interleave(HEADS, 0)[:, None, :])
        found = torch.bmm(scores.softmax(-1), v)
        if self.is_time_first:
            return found.transpose(0, 1).reshape(x.shape[1], -1, HIDDEN).transpose(0, 1)
        return found.unflatten(0, (-1, HEADS)).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("is_time_first", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("change", "has_all_axes", "line"),
    [
        (lambda x, _: x, False, "attention(query, key, value)"),
        pytest.param(
            lambda x, _: x + causal(x, -torch.inf),
            False,
            "attention(causal = true)(query, key, value)",
            marks=pytest.mark.slow,
        ),
        (lambda x, mask: x.masked_fill(mask == 0, -torch.inf), True, "attention(query, key, value, h)"),
        (lambda x, mask: x.masked_fill(mask == 0, LEAST), False, "attention(finite = true)(query, key, value, "),
    ],
)
def test_attention_with_the_heads_in_the_batch(change: Any, has_all_axes: bool, line: str, is_time_first: bool) -> None:
    module = Batched(change, has_all_axes, is_time_first).eval()
    masks = [torch.ones(2, 7, dtype=torch.int64)] if "value, " in line else []
    text = archspec.lift(module, (torch.zeros(2, 7, HIDDEN), *masks))
    assert line in text
    assert equivalent(archspec.loads(text), module).verdict == "equal"


class Masked(nn.Module):
    """Scores that are hidden where a test of their positions is false."""

    def __init__(self, test: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.test = test

    def forward(self, x: Any) -> Any:
        places = torch.arange(x.shape[1])
        return (x @ x.transpose(1, 2)).masked_fill(~self.test(places[:, None], places), 0.0)


ROWS = "reshape([seq, 1])(arange(seq))"


@pytest.mark.parametrize(
    ("test", "line"),
    [
        (lambda row, column: (row >= 0) & torch.ones(1, dtype=torch.bool) & (row > column), f"{ROWS} > arange(seq)"),
        (lambda row, column: ~(row >= column), f"arange(seq) > {ROWS}"),
        (lambda row, column: ~(row + column > 3), f"{ROWS} + arange(seq) <= 3"),
    ],
)
def test_masks_of_positions(test: Any, line: str) -> None:
    module = Masked(test).eval()
    text = archspec.lift(module, (torch.zeros(2, 7, 8),))
    assert line in text and "true" not in text and "not " not in text
    assert equivalent(archspec.loads(text), module).verdict == "equal"
