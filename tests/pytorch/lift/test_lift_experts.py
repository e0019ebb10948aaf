"""Lifting: mixtures of experts that flatten all tokens, and multiply rows by the matrices of their experts."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec
from archspec import equivalent

nn = torch.nn
HIDDEN, INNER, EXPERTS, BEST = 12, 10, 7, 3


class Mixture(nn.Module):
    """A router and experts: with `activation`, their biases if they are `biased`, and those of others if `shifted`. The
    second half is the gate if they are `turned`.
    """

    def __init__(
        self, activation: Any = nn.functional.silu, biased: bool = False, shifted: bool = False, turned: bool = False
    ) -> None:
        super().__init__()
        self.gate = nn.Linear(HIDDEN, EXPERTS, bias=False)
        self.up = nn.Parameter(torch.randn(EXPERTS, 2 * INNER, HIDDEN))
        self.down = nn.Parameter(torch.randn(EXPERTS, INNER, HIDDEN))
        self.bias = nn.Parameter(torch.randn(EXPERTS, 2 * INNER)) if biased else None
        self.activation, self.shifted, self.turned = activation, shifted, turned

    def forward(self, x: Any) -> Any:
        rows = x.reshape(-1, HIDDEN)
        shares, chosen = self.gate(rows).softmax(-1).topk(BEST, -1)
        ids = chosen.reshape(-1)
        both = torch.bmm(self.up[ids], rows.repeat_interleave(BEST, 0).unsqueeze(-1)).squeeze(-1)
        if self.bias is not None:
            both = both + self.bias[ids.flip(0) if self.shifted else ids]
        gate, up = both.chunk(2, -1)[:: -1 if self.turned else 1]
        found = torch.bmm((self.activation(gate) * up).unsqueeze(1), self.down[ids]).squeeze(1)
        found = found * shares.reshape(-1, 1)
        return found.reshape(-1, BEST, HIDDEN).sum(1).reshape(x.shape)


def lifted(module: nn.Module) -> str:
    text = archspec.lift(module.eval(), (torch.zeros(2, 5, HIDDEN),))
    assert equivalent(archspec.loads(text), module).verdict == "equal"
    return text


@pytest.mark.parametrize(
    ("activation", "settings"),
    [(nn.functional.silu, ""), pytest.param(nn.functional.gelu, "(activation = gelu)", marks=pytest.mark.slow)],
)
def test_gated_experts_are_those_of_the_library(activation: Any, settings: str) -> None:
    text = lifted(Mixture(activation))
    assert f"return gated_experts{settings}(x, shares, chosen, .up, transpose(.down))" in text
    assert "batch * seq" not in text


def test_experts_with_the_gate_behind_are_not_those_of_the_library() -> None:
    text = lifted(Mixture(turned=True))
    assert "gated_experts" not in text and text.count("expert_linear(") == 2 and "batch * seq" not in text


class Looked(nn.Module):
    """Matrices of tokens, by which all tokens multiply the same vector."""

    def __init__(self) -> None:
        super().__init__()
        self.matrices = nn.Parameter(torch.randn(EXPERTS, 4, 6))
        self.vector = nn.Parameter(torch.randn(6, 1))

    def forward(self, x: Any) -> Any:
        return self.matrices[x.argmax(-1)] @ self.vector


def test_matrices_of_tokens_times_one_vector_are_a_product() -> None:
    text = lifted(Looked())
    assert "expert_linear" not in text and "embedding(" in text


def test_a_bias_is_that_of_the_expert() -> None:
    text = lifted(Mixture(biased=True))
    assert "expert_linear(reshape([batch, seq, 1, 12])(x), chosen, .up, .bias)" in text
    assert "batch * seq" not in text


@pytest.mark.slow
def test_the_bias_of_another_expert_is_added() -> None:
    text = lifted(Mixture(biased=True, shifted=True))
    assert ", .up)" in text


class Rows(nn.Module):
    """A router that chooses among groups, by what is not hidden."""

    def forward(self, x: Any) -> Any:
        rows = x.reshape(-1, 12)
        best = rows.reshape(-1, 3, 4).amax(-1).topk(2, -1)[1]
        seen = torch.zeros_like(rows[:, :3]).scatter(1, best, 1.0)
        seen = seen.unsqueeze(-1).expand(-1, 3, 4).reshape(-1, 12)
        scores = rows.masked_fill(~seen.bool(), -torch.inf).softmax(-1)
        return scores.reshape(x.shape)


def test_rows_are_not_flattened() -> None:
    text = lifted(Rows())
    assert "batch * seq" not in text
    assert 'rearrange("b s (h d) -> b s h d", h = 3)' in text
    assert "-inf)" in text and "not " not in text
