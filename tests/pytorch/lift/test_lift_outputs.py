"""Lifting: names of outputs."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec

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


class Returning(Encoder):
    """A module that returns a mask that it may be called without."""

    def forward(self, x: Any, mask: Any = None) -> dict[str, Any]:
        h = self.dense(x)
        return {"state": h if mask is None else h * mask[..., None], "mask": mask}


def test_an_input_that_is_an_output_is_not_optional() -> None:
    inputs = {"x": torch.zeros(3, 5, 6), "mask": torch.ones(3, 5, dtype=torch.int64)}
    text = archspec.lift(Returning().eval(), inputs)
    assert "mask int [batch, seq])" in text and [*archspec.loads(text).outputs] == ["state", "mask"]
