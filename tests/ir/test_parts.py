"""The parts of models: those of bundled ones against their configurations, and of random ones against what they are."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import archspec
from archspec import AttentionFacts, ExpertsFacts, FeedForwardFacts

CONFIGS = sorted(Path(__file__).parent.parent.joinpath("data", "configs").glob("*.json"))
WHOLE = ("clip", "siglip", "swin", "m2m", "mbart", "nllb", "opus", "pegasus", "t5", "whisper", "bart")
"""Models of several stacks, whose configurations state the numbers of each."""


def described(model: archspec.Model) -> str:
    """The parts of a model, equal ones once with their number."""
    lines: dict[str, int] = {}
    for part in model.parts:
        facts = part.facts
        values = ", ".join(f"{name} {value}" for name, value in zip(facts._fields, facts, strict=True) if value)
        line = f"{type(facts).__name__.removesuffix('Facts')}: {values}"
        lines[line] = lines.get(line, 0) + 1
    return "".join(f"  {count} x {line}\n" for line, count in lines.items())


@pytest.mark.slow
def test_parts_of_bundled_models(golden: Callable[[str, str], None]) -> None:
    texts = [(name, described(archspec.load(name))) for name in sorted(archspec.models())]
    golden("parts.txt", "".join(f"{name}\n{text}" for name, text in texts))


def first_of(config: dict[str, Any], *names: str) -> Any:
    return next((config[name] for name in names if config.get(name) is not None), None)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("path", [p for p in CONFIGS if not p.stem.startswith(WHOLE)], ids=lambda path: path.stem)
def test_parts_have_the_facts_of_the_configuration(path: Path) -> None:
    config = json.loads(path.read_text(encoding="utf-8"))
    parts = archspec.load(path.stem).parts
    layers = first_of(config, "num_hidden_layers", "n_layer", "n_layers", "num_layers")
    heads = first_of(config, "num_attention_heads", "n_head", "n_heads")
    attentions = [part.facts for part in parts if isinstance(part.facts, AttentionFacts)]
    if config["model_type"] == "mamba":
        assert not attentions and sum(isinstance(part.facts, archspec.StateSpaceFacts) for part in parts) == layers
        return
    if config["model_type"] != "albert":  # whose layers are one
        assert len(attentions) == layers
    assert {facts.heads for facts in attentions} == {heads}
    groups = first_of(config, "num_key_value_heads", "num_kv_heads") or heads
    groups = 1 if config.get("multi_query") else heads if config["model_type"] == "falcon" else groups
    assert {facts.groups for facts in attentions} == {groups}
    windows = {facts.window for facts in attentions} - {None}
    stated = first_of(config, "sliding_window", "local_attention", "attention_window")
    stated = stated[0] if isinstance(stated, list) else stated
    if windows and config["model_type"] not in ("phi3",):  # Phi-3 keeps one position fewer
        (window,) = windows
        both_sides = config["model_type"] in ("modernbert", "longformer")
        assert stated == (2 * window if both_sides else window + 1)
    inner = first_of(config, "intermediate_size", "ffn_dim", "n_inner", "hidden_dim")
    networks = [part.facts for part in parts if isinstance(part.facts, FeedForwardFacts)]
    if inner is not None and networks and config["model_type"] not in ("falcon", "dinov2"):
        assert {facts.inner for facts in networks} == {inner}
    experts = [part.facts for part in parts if isinstance(part.facts, ExpertsFacts)]
    if experts:
        assert {facts.total for facts in experts} == {
            first_of(config, "num_local_experts", "n_routed_experts", "num_experts")
        }
        assert {facts.chosen for facts in experts} == {config["num_experts_per_tok"]}
        assert {facts.shared for facts in experts} == {
            config.get("n_shared_experts", 0) * config.get("moe_intermediate_size", 0)
        }


# Random blocks --------------------------------------------------------------------------------------------------------


IMPORTS = """import std { Linear, RMSNorm, split_heads, merge_heads, repeat_heads, rotary, alibi }
import std { causal_mask, window_mask }"""


def drawn_attention(rng: random.Random) -> tuple[str, dict[str, Any]]:
    """A decoder of one attention, and what its facts are."""
    groups, size, width = rng.choice([1, 2, 3]), rng.choice([2, 4, 6]), rng.choice([8, 10])
    times, window, latent = rng.choice([1, 2, 4]), rng.choice([None, None, 3]), rng.choice([None, None, 3])
    heads, is_rotary, has_bias = groups * times, rng.random() < 0.5, rng.random() < 0.3
    turned = " |> rotary(_, arange(seq))" if is_rotary else ""
    repeated = f" |> repeat_heads({times})" if times > 1 else ""
    query, shared = heads * size, groups * size
    if latent is None and rng.random() < 0.4:
        lines = [f"a, b, c = x |> qkv: Linear({width}, {query + 2 * shared}) |> split([{query}, {shared}, {shared}])"]
    else:
        lines = [f"low = x |> down: Linear({width}, {latent}) |> norm: RMSNorm({latent})"] if latent else []
        low, low_width = ("low", latent) if latent else ("x", width)
        lines += [
            f"a = x |> query: Linear({width}, {query})",
            f"b = {low} |> key: Linear({low_width}, {shared})",
            f"c = {low} |> value: Linear({low_width}, {shared})",
        ]
    lines += [
        f"q = a |> split_heads({heads}){turned}",
        f"k = b |> split_heads({groups}){turned}{repeated}",
        f"v = c |> split_heads({groups}){repeated}",
        f"scores = matmul(q, transpose(k)) |> * {size**-0.5}"
        if rng.random() < 0.7
        else f"scores = matmul(q * {size**-0.5}, permute([0, 1, 3, 2])(k))",
        f"biased = scores + alibi({heads}, seq)" if has_bias else "biased = scores * 1.0",
        "causal = where(causal_mask(seq), biased, -inf)",
        f"masked = where(window_mask(seq, {window}), causal, -inf)" if window else "masked = causal * 1.0",
        "mixed = softmax(axis = -1)(masked) |> matmul(_, v) |> merge_heads",
        f"return x + (mixed |> out: Linear({query}, {width}))",
    ]
    body = "".join(f"  {line}\n" for line in lines)
    shape = f"[batch, seq, {width}]"
    text = f'{IMPORTS}\ndim batch, seq\nblock Net(x {shape}) -> {shape} {{\n{body}}}\nmodel "net" = Net()\n'
    return text, {
        "heads": heads,
        "groups": groups,
        "key_size": size,
        "value_size": size,
        "causal": True,
        "window": window,
        "is_cross": False,
        "rotary": size if is_rotary else 0,
        "latent": latent,
        "has_bias": has_bias,
    }


@pytest.mark.sampled(30)
@pytest.mark.parametrize("seed", range(200))
def test_random_attention_has_the_facts_that_it_was_written_with(seed: int) -> None:
    text, facts = drawn_attention(random.Random(seed))
    model = archspec.loads(text)
    (part,) = [part for part in model.parts if isinstance(part.facts, AttentionFacts)]
    assert {name: getattr(part.facts, name) for name in facts} == facts, text
    assert part.tensors[-2:] == ("out.weight", "out.bias")
    decoding = archspec.cost(model, past=8).decoding
    assert decoding is not None
    cached = sum(entry.values for entry in decoding.cache)
    assert cached in (2 * facts["groups"] * facts["key_size"], facts["latent"]), text
