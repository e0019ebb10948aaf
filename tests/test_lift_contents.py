"""Lifting: modules that take images or sounds besides tokens."""

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec  # noqa: E402
from archspec.lifting.sources.architecture import Architecture  # noqa: E402
from archspec.lifting.sources.lifting import lifted  # noqa: E402
from archspec.lifting.sources.subjects import source_of_architecture  # noqa: E402

nn = torch.nn
FIELDS = {"hidden_size": 64, "vocab_size": 100, "is_random": False}


class Reader(nn.Module):
    """Tokens, to which a picture may be added: with noise, no spec computes the same."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__()
        self.words = nn.Embedding(fields["vocab_size"], fields["hidden_size"])
        self.tower = nn.Linear(5, fields["hidden_size"])
        self.head = nn.Linear(fields["hidden_size"], fields["vocab_size"])
        self.is_random = fields["is_random"]

    def forward(self, ids: Any, picture: Any = None) -> Any:
        x = self.words(ids)
        if picture is not None:
            x = x + self.tower(picture)[:, None]
            x = x * torch.rand_like(x) if self.is_random else x
        return self.head(x)


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
    model = archspec.loads(lifted(source_of_architecture(own)))
    assert archspec.equivalent(model, Listener(FIELDS).eval()).verdict in ("equal", "outputs equal")


def architecture(fields: dict[str, Any]) -> Architecture:
    def inputs(module: Any, turn: int) -> Iterator[dict[str, Any]]:
        batch, length = ((3, 11), (2, 14))[turn]
        ids = torch.zeros((batch, length), dtype=torch.long)
        yield {"ids": ids, "picture": torch.randn(batch, 5)}
        yield {"ids": ids}

    return Architecture("Reader", fields, lambda changed: Reader({**fields, **changed}), inputs)


@pytest.mark.slow
@pytest.mark.parametrize("is_random", [False, True])
def test_contents_that_cannot_be_lifted_are_left_out(is_random: bool) -> None:
    fields = {**FIELDS, "is_random": is_random}
    text = lifted(source_of_architecture(architecture(fields)))
    assert ("picture" in text) != is_random
    model = archspec.loads(text)
    assert {"tower.weight", "tower.bias"} <= {tensor.name for tensor in model.tensors}
    assert archspec.equivalent(model, Reader(fields).eval()).verdict in ("equal", "outputs equal")
