"""Lifting: numbers in specs that are nearly right are found out."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec
from archspec.pytorch.lift.check import check_again
from archspec.pytorch.lift.subject import subject_of
from archspec.pytorch.values.arguments import UntranslatableError

nn = torch.nn
SCALE = 0.2


class Attention(nn.Module):
    """Attention without norms, so that scores are small where embeddings are."""

    def __init__(self, has_positions: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 64)
        self.q, self.k, self.v, self.out = (nn.Linear(64, 64) for _ in range(4))
        self.has_positions = has_positions
        if has_positions:
            frequencies = 10000.0 ** -(torch.arange(0, 16, 2).float() / 16)
            self.register_buffer("frequencies", frequencies, persistent=False)

    def forward(self, ids: Any) -> Any:
        words = self.words(ids)
        batch, seq, width = words.shape
        q, k, v = (part(words).view(batch, seq, 4, 16).transpose(1, 2) for part in (self.q, self.k, self.v))
        if self.has_positions:
            q, k = self.rotated(q), self.rotated(k)
        shares = (q @ k.transpose(-1, -2) * SCALE).softmax(-1)
        return self.out((shares @ v).transpose(1, 2).reshape(batch, seq, width))

    def rotated(self, x: Any) -> Any:
        angles = torch.arange(x.shape[-2])[:, None] * self.frequencies
        turned = torch.cat([-x[..., 8:], x[..., :8]], -1)
        return x * torch.cat([angles.cos()] * 2, -1) + turned * torch.cat([angles.sin()] * 2, -1)


@pytest.mark.parametrize(("has_positions", "changes"), [(False, (1e-6,)), (True, (1e-4,))], ids=["exact", "rounded"])
def test_a_scale_of_scores_that_is_nearly_right(has_positions: bool, changes: tuple[float, ...]) -> None:
    module, ids = Attention(has_positions).eval(), torch.zeros(2, 5, dtype=torch.long)
    subject = subject_of(module, (ids,))
    text = archspec.lift(module, (ids,))
    assert text.count(f"(scale = {SCALE})") == 1
    check_again(text, {}, subject)
    for change in changes:
        with pytest.raises(UntranslatableError, match="the outputs of its spec differ"):
            check_again(text.replace(f"scale = {SCALE}", f"scale = {SCALE * (1 + change)!r}"), {}, subject)
