"""Lifting: sounds that are long enough."""

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec
from archspec.pytorch.lift.sources.architecture import Architecture
from archspec.pytorch.lift.sources.lifting import lift_or_replace
from archspec.pytorch.lift.sources.subjects import source_of_architecture

nn = torch.nn
FIELDS = {"hidden_size": 64}


class Listener(nn.Module):
    """Frames of four samples, weighted by what is in them."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__()
        self.conv = nn.Conv1d(1, fields["hidden_size"], 4, stride=4)

    def forward(self, sound: Any) -> Any:
        frames = self.conv(sound[:, None])
        return (frames * torch.softmax(frames, -1)).sum(-1)


@pytest.mark.slow
def test_sounds_are_longer_where_short_ones_have_a_single_frame() -> None:
    def inputs(module: Any, turn: int) -> Iterator[dict[str, Any]]:
        for length in (5, 14):
            yield {"sound": torch.randn(3 - turn, length + turn)}

    own = Architecture("Listener", dict(FIELDS), lambda changed: Listener({**FIELDS, **changed}), inputs)
    model = archspec.loads(lift_or_replace(source_of_architecture(own)))
    assert archspec.equivalent(model, Listener(FIELDS).eval()).verdict in ("equal", "outputs equal")
