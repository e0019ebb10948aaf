"""Least times on a device: against figures computed by hand, and against each other."""

import json
from pathlib import Path
from typing import Any

import pytest
from small import load

import archspec
from archspec import ArchError, StepTime
from archspec.formats.devices import Device
from archspec.pipeline.model import ModelLike

NET = """
import std { Linear, Embedding, attention, split_heads, merge_heads }
dim batch, seq
block Layer(n, heads)(x [batch, seq, n]) -> [batch, seq, n] {
  q = x |> q: Linear(n, n, bias = false) |> split_heads(heads)
  k = x |> k: Linear(n, n, bias = false) |> split_heads(heads)
  v = x |> v: Linear(n, n, bias = false) |> split_heads(heads)
  return attention(causal = true)(q, k, v) |> merge_heads |> o: Linear(n, n, bias = false)
}
block Net(vocab = 10, n = 4, layers = 1)(ids int [batch, seq]) -> [batch, seq, vocab] {
  return ids |> embed: Embedding(vocab, n) |> layer[i]: Layer(n, heads = 2) for i in 0..layers
    |> head: Linear(n, vocab, bias = false)
}
"""
"""40 parameters in the table and in the head, and 4 * 16 in the layer."""


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """A device of 1,000 FLOPs and 1,000 bytes per second."""
    path = tmp_path / "card.json"
    path.write_text(json.dumps({"memory": 1e9, "bandwidth": 1000, "peak": {"float32": 1000, "tf32": 4000}}))
    return path


def least(model: ModelLike, **options: Any) -> StepTime:
    time = archspec.cost(model, **options).time
    assert time is not None
    return time


def moved(time: StepTime) -> list[tuple[str, int, str]]:
    return [(entry.name, entry.bytes, entry.kind) for entry in time.traffic]


def test_prefill(card: Path) -> None:
    """Per position, 4 * 16 products of the layer; of each of 2 sequences, 10 * 4 of the head for the last position,
    and for 1 + 2 + 3 pairs of positions, 4 of scores and 4 of mixes. The table is only indexed.
    """
    time = least(load(NET), batch=2, seq=3, device=card)
    assert (time.step, time.flops, time.kind) == ("prefill", 2 * (2 * 3 * 64 + 2 * 40 + 2 * 6 * 8), "exact")
    assert moved(time) == [("weights read", 4 * (64 + 40), "exact"), ("cache written", 4 * 2 * 3 * (4 + 4), "exact")]
    assert (time.compute_seconds, time.memory_seconds) == (1.12, 0.608)
    assert (time.seconds, time.seconds_apart, time.limit, time.is_estimate) == (1.12, 1.12, "compute", False)
    half = least(load(NET), batch=2, seq=3, device=card, utilization=0.5, bandwidth_utilization=0.1)
    assert (half.compute_seconds, half.limit, half.is_estimate) == (2.24, "memory", True)
    assert half.seconds == pytest.approx(6.08)


def test_decoding(card: Path) -> None:
    """The fourth position reads 4 keys. Each of 2 sequences reads a row of the table."""
    time = least(load(NET), batch=2, past=3, device=card)
    assert (time.step, time.flops) == ("decoding step", 2 * 2 * (64 + 40 + 4 * 8))
    assert moved(time) == [("weights read", 4 * (64 + 40 + 2 * 4), "exact"), ("cache read", 4 * 2 * 3 * 8, "exact")]
    assert (time.seconds, time.limit) == (0.64, "memory")


def test_training(card: Path) -> None:
    """Backward, each product twice, of heads at all positions. Weights: forward without the table, and by Adam."""
    options: dict[str, Any] = {"batch": 2, "seq": 3, "training": True, "device": card}
    time = least(load(NET), **options)
    assert (time.step, time.flops) == ("training step", 3 * 2 * (2 * 3 * (64 + 40) + 2 * 6 * 8))
    assert moved(time) == [
        ("weights read, forward", 4 * 104, "exact"),
        ("weights read again", 4 * 144, "at least"),
        ("gradients, written and read", 2 * 4 * 144, "exact"),
        ("moments of Adam, read and written", 2 * 2 * 4 * 144, "assumed"),
    ]
    blocks = least(load(NET), checkpoint="blocks", **options)
    again = 2 * (2 * 3 * 3 * 16 + 2 * 6 * 8)  # of the layer, without the last product
    assert (blocks.flops, moved(blocks)[1][1]) == (time.flops + again, 2 * 4 * 144)
    frozen = least(load(NET), frozen=["embed", "layer"], **options)
    assert frozen.flops == 2 * (2 * 3 * (64 + 40) + 2 * 6 * 8 + 2 * 3 * 40)
    assert [entry.bytes for entry in frozen.traffic] == [416, 160, 320, 640]


@pytest.mark.parametrize(
    ("name", "overrides"),
    [("gpt2", {"layers": 2}), ("gemma-3-1b", {"layers": 7, "window": 5}), ("mixtral-8x7b", {"layers": 2})],
)
def test_a_prefill_computes_what_its_positions_do(name: str, overrides: dict[str, Any]) -> None:
    """Decoding counts the keys of each position in another way. The head is due once."""
    model, length = archspec.load(name, **overrides), 12
    steps = [archspec.cost(model, past=past).decoding for past in range(length)]
    flops = sum(step.flops for step in steps if step is not None)
    whole = archspec.cost(model, batch=1, seq=length).work.flops
    time = least(model, batch=1, seq=length, device="h100", dtype="bfloat16")
    head = 2 * model.tensors[0].size  # as large as the table
    assert time.flops == flops - head * (length - 1) and isinstance(whole, int) and time.flops < whole


def test_latent_attention_is_absorbed() -> None:
    """Expanded, a step of DeepSeek-V3 takes 107 times as much."""
    result = archspec.cost("deepseek-v3", past=32_768, dtype="fp8", device="h200")
    assert result.time is not None and result.decoding is not None and result.decoding.expanded_flops is not None
    assert f"{result.time.flops / 1e12:.3f}" == "0.630"
    assert f"{result.decoding.expanded_flops / 1e12:.1f}" == "67.3"


def test_experts_of_one_token_and_of_many() -> None:
    """Of 8 experts, a token chooses 2: 3 * 4096 * 14336 parameters each, in 32 layers."""
    expert = 2 * 32 * 3 * 4096 * 14336
    one, two, nine = [least("mixtral-8x7b", past=100, batch=n, device="h100", dtype="bfloat16") for n in (1, 2, 9)]
    assert one.seconds_apart == one.seconds and one.traffic[0].kind == "exact"
    assert two.traffic[0].apart - two.traffic[0].bytes == 2 * expert + 2 * 4096  # and a row of the table
    assert nine.traffic[0].apart - nine.traffic[0].bytes == 6 * expert + 2 * 8 * 4096
    assert two.traffic[0].kind == "at least" and two.seconds_apart > two.seconds
    prefill = least("mixtral-8x7b", seq=2, batch=1, device="h100", dtype="bfloat16").traffic[0]
    assert prefill.apart - prefill.bytes == 2 * expert
    training = least("mixtral-8x7b", seq=2, batch=1, device="h100", dtype="bfloat16", training=True).traffic
    assert [entry.apart - entry.bytes for entry in training] == [2 * expert, 6 * expert, 12 * expert, 24 * expert]


@pytest.mark.parametrize("name", ["gemma-3-1b", "deepseek-v2-lite", "bert-base-uncased", "t5-small", "mamba-130m"])
def test_more_takes_no_less(name: str) -> None:
    model = archspec.load(name)
    names = [*archspec.cost(model).dims]
    for training in (False, True):
        sizes = dict.fromkeys(names, 4)
        options: dict[str, Any] = {"training": training, "device": "h100"}
        start = least(model, dims=sizes, dtype="bfloat16", **options)
        for larger in names:
            time = least(model, dims={**sizes, larger: 8}, dtype="bfloat16", **options)
            assert (time.flops, time.memory_seconds) >= (start.flops, start.memory_seconds)
        wider = least(model, dims=sizes, dtype="float32", **options)
        assert wider.memory_seconds == 2 * (start.memory_seconds or 0) and wider.compute_seconds is None


def test_masks_that_are_not_followed_are_at_least() -> None:
    """ModernBERT sees a window to both sides."""
    time = least("modernbert-base", batch=1, seq=1000, device="h100", dtype="bfloat16")
    assert time.kind == "at least"
    whole = archspec.cost("modernbert-base", batch=1, seq=1000).work.flops
    assert isinstance(whole, int) and time.flops < whole


def test_a_peak_is_that_of_the_type(card: Path) -> None:
    text = str(archspec.cost(load(NET), batch=1, seq=3, device="h100"))
    assert "h100 has no peak for float32; tf32 is another type, so the products have no time" in text
    with pytest.raises(ArchError, match="neither a peak for bfloat16 nor a bandwidth"):
        bare = Device("bare", 1, None, {"float32": 1}, None, "")
        archspec.cost(load(NET), batch=1, seq=3, dtype="bfloat16", device=bare)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "h10"}, "unknown device `h10`"),
        ({"device": "h100"}, "a time needs sizes of the dimensions `batch`, `seq`"),
        ({"device": "h100", "utilization": 50}, "expected a utilization above 0 and at most 1, found 50"),
        ({"device": "h100", "bandwidth_utilization": 0}, "expected a bandwidth utilization above 0 and at most 1"),
        ({"device": "h100", "batch": 1, "seq": 4, "training": True, "dtype": "int8"}, "models are not trained with"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArchError) as caught:
        archspec.cost("gpt2", **options)
    assert caught.value.diagnostics[0].message.startswith(message)
