"""Lifting: names of outputs."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec  # noqa: E402

nn = torch.nn


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(6, 4)

    def forward(self, x: Any) -> dict[str, Any]:
        h = self.dense(x)
        return {"state": h, "pooled": h.mean(1)}


class Towers(nn.Module):
    """Its outputs have those of its parts in them."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = Encoder(), Encoder()

    def forward(self, x: Any) -> dict[str, Any]:
        left, right = self.left(x), self.right(x)
        scores = left["pooled"] @ right["pooled"].T
        return {"scores": scores, "left": left, "right": {"state": right["state"]}}


def test_outputs_of_parts_begin_with_the_name_of_the_part() -> None:
    model = archspec.loads(archspec.lift(Towers().eval(), {"x": torch.zeros(3, 5, 6)}))
    assert [*model.outputs] == ["scores", "left_state", "left_pooled", "right_state"]
