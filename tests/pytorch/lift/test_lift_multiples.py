"""Lifting: modules that take only multiples of a number of tokens or samples."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec
from archspec.pytorch.lift.api import lift_subject
from archspec.pytorch.lift.sources.lifting import lift_source
from archspec.pytorch.lift.subject import Subject

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


class Looking(nn.Module):
    """Attention of tokens to frames."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.q, self.k, self.v, self.o = [nn.Linear(8, 8) for _ in range(4)]

    def forward(self, x: Any, frames: Any) -> Any:
        scores = self.q(self.norm(x)) @ self.k(frames).transpose(1, 2)
        return x + self.o(torch.softmax(scores.relu() + 1, -1) @ self.v(frames))


class Halved(nn.Module):
    """Tokens that look at frames, of which there are half as many as of vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.conv = nn.Conv1d(6, 8, 3, stride=2, padding=1)
        self.layers = nn.ModuleList([Looking() for _ in range(2)])

    def forward(self, ids: Any, sound: Any) -> Any:
        x, frames = self.words(ids), self.conv(sound).transpose(1, 2)
        for layer in self.layers:
            x = layer(x, frames)
        return x


def test_a_length_that_is_not_one_of_the_inputs_has_a_name_next_to_others() -> None:
    first = {"ids": torch.zeros(3, 7, dtype=torch.long), "sound": torch.randn(3, 6, 20)}
    other = {"ids": torch.zeros(2, 9, dtype=torch.long), "sound": torch.randn(2, 6, 26)}
    module = Halved().eval()
    text = lift_subject(Subject(module, first, other))
    assert "frames [batch, length, 8])" in text.partition("block Halved")[0]
    assert archspec.equivalent(archspec.loads(text), module).verdict in ("equal", "outputs equal")


class Prefixed(nn.Module):
    """Queries and tokens attend to each other, and go through different layers."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.q, self.k, self.of_queries, self.of_tokens = [nn.Linear(8, 8) for _ in range(4)]

    def forward(self, x: Any, count: int) -> Any:
        shares = torch.softmax(self.q(self.norm(x)) @ self.k(x).transpose(1, 2), -1)
        x = x + shares @ x
        queries, tokens = x[:, :count], x[:, count:]
        return torch.cat([self.of_queries(queries) + queries, self.of_tokens(tokens).relu() + tokens], dim=1)


class WithQueries(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.queries = nn.Parameter(torch.randn(1, 5, 8))
        self.layers = nn.ModuleList([Prefixed() for _ in range(3)])

    def forward(self, ids: Any) -> Any:
        x = torch.cat([self.queries.expand(ids.shape[0], -1, -1), self.words(ids)], dim=1)
        for layer in self.layers:
            x = layer(x, 5)
        return x


def test_a_block_has_one_name_for_a_length_that_adds_a_number() -> None:
    first, other = {"ids": torch.zeros(3, 7, dtype=torch.long)}, {"ids": torch.zeros(2, 9, dtype=torch.long)}
    module = WithQueries().eval()
    text = lift_subject(Subject(module, first, other))
    assert "block Prefixed(x [batch, seq, 8]) -> [batch, seq, 8]" in text
    assert "layers[i]: Prefixed for i in 0..3" in text
    assert archspec.equivalent(archspec.loads(text), module).verdict == "equal"


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


def test_large_chunks_of_an_infinite_limit(tmp_path: Path) -> None:
    """Values of which each chunk has 256 by 256 by 256 are not computed: they would need 16 GiB."""
    transformers = pytest.importorskip("transformers")
    fields: dict[str, Any] = {
        "model_type": "mamba2",
        "architectures": ["Mamba2ForCausalLM"],
        "hidden_size": 64,
        "num_heads": 8,
        "head_dim": 16,
        "state_size": 16,
        "n_groups": 1,
        "num_hidden_layers": 1,
        "vocab_size": 100,
        "chunk_size": 256,
        "time_step_limit": [0.0, {"__float__": "Infinity"}],
        "use_cache": False,
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(fields))
    spec = lift_source(str(path))
    fields["time_step_limit"] = [0.0, math.inf]
    assert "input_ids int [batch, 256 * seq]" in spec
    with torch.device("meta"):
        module = transformers.Mamba2ForCausalLM(transformers.Mamba2Config.from_dict(fields))
    assert archspec.loads(spec).params.total == sum(tensor.numel() for tensor in module.parameters())
