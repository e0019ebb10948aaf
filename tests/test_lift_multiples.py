"""Lifting: modules that take only multiples of a number of tokens or samples."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec  # noqa: E402
from archspec.lifting.api import lift_subject  # noqa: E402
from archspec.lifting.subject import Subject  # noqa: E402

nn = torch.nn

pytestmark = pytest.mark.slow


class Framed(nn.Module):
    """Frames of 80 samples, compressed, with a mask of booleans that is moved by a frame."""

    def __init__(self, samples: int = 80) -> None:
        super().__init__()
        self.samples = samples
        self.proj = nn.Linear(samples, 12)

    def forward(self, sound: Any, mask: Any) -> Any:
        h = torch.asinh(self.proj(sound.reshape(sound.shape[0], -1, self.samples)))
        return h * nn.functional.pad(mask, (1, 0))[:, :-1, None]


class Chunked(nn.Module):
    """Tokens that are padded to chunks, in which sums are taken."""

    def __init__(self, chunk: int) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.chunk = chunk

    def forward(self, ids: Any) -> Any:
        missing = (self.chunk - ids.shape[1] % self.chunk) % self.chunk
        h = nn.functional.pad(self.words(ids), (0, 0, 0, missing))
        h = h.reshape(h.shape[0], -1, self.chunk, 8)
        h = torch.cumsum(h.repeat_interleave(2, dim=-1, output_size=16), 2).reshape(h.shape[0], -1, 16)
        return h[:, : ids.shape[1]] if missing else h


def test_a_length_that_must_be_a_multiple_is_one() -> None:
    first = {"sound": torch.randn(3, 2400), "mask": torch.ones(3, 30, dtype=torch.bool)}
    other = {"sound": torch.randn(2, 3200), "mask": torch.ones(2, 40, dtype=torch.bool)}
    module = Framed().eval()
    text = lift_subject(Subject(module, first, other))
    model = archspec.loads(text)
    assert [str(size) for size in model.inputs["sound"].shape] == ["batch", "80*seq"]
    assert archspec.equivalent(model, module).verdict in ("equal", "outputs equal")


@pytest.mark.parametrize("chunk", [4, 16])
def test_padding_to_a_multiple_is_lifted_for_multiples(chunk: int) -> None:
    ids, others = torch.zeros(3, 11, dtype=torch.long), torch.zeros(2, 14, dtype=torch.long)
    module = Chunked(chunk).eval()
    model = archspec.loads(lift_subject(Subject(module, {"ids": ids}, {"ids": others})))
    assert str(model.inputs["ids"].shape[1]) == f"{chunk}*seq"
    assert archspec.equivalent(model, module).verdict == "equal"
