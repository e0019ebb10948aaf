"""Mixtures of experts that flatten all tokens, and multiply rows by the matrices of their experts."""

from typing import Any

import torch

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


class Looked(nn.Module):
    """Matrices of tokens, by which all tokens multiply the same vector."""

    def __init__(self) -> None:
        super().__init__()
        self.matrices = nn.Parameter(torch.randn(EXPERTS, 4, 6))
        self.vector = nn.Parameter(torch.randn(6, 1))

    def forward(self, x: Any) -> Any:
        return self.matrices[x.argmax(-1)] @ self.vector


class Rows(nn.Module):
    """A router that chooses among groups, by what is not hidden."""

    def forward(self, x: Any) -> Any:
        rows = x.reshape(-1, 12)
        best = rows.reshape(-1, 3, 4).amax(-1).topk(2, -1)[1]
        seen = torch.zeros_like(rows[:, :3]).scatter(1, best, 1.0)
        seen = seen.unsqueeze(-1).expand(-1, 3, 4).reshape(-1, 12)
        scores = rows.masked_fill(~seen.bool(), -torch.inf).softmax(-1)
        return scores.reshape(x.shape)


X = torch.randn(2, 5, HIDDEN)

CASES = {
    "gated experts": (Mixture, (X,)),
    "gated experts with another activation": (lambda: Mixture(nn.functional.gelu), (X,)),
    "experts with the gate behind": (lambda: Mixture(turned=True), (X,)),
    "experts with biases": (lambda: Mixture(biased=True), (X,)),
    "the biases of other experts": (lambda: Mixture(biased=True, shifted=True), (X,)),
    "matrices of tokens times one vector": (Looked, (X,)),
    "a choice among groups": (Rows, (X,)),
}

SLOW = "gated experts with|the"
