"""Decoding steps: their work, the weights that they read, and the cache, which is that of `transformers`."""

import json
from pathlib import Path
from typing import Any

import pytest

import archspec
from archspec.algebra import substitute
from archspec.cli import main
from archspec.costs.decoding import CachePart, Decoding


def step(model: str | archspec.Model, past: int = 100, **options: Any) -> Decoding:
    found = archspec.cost(model, past=past, **options).decoding
    assert found is not None
    return found


def kinds(found: Decoding) -> list[tuple[str, int, int, int]]:
    return [(part.kind, part.layers, part.positions, part.values) for part in found.cache]


# Work -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gpt2", "llama-3.2-1b", "bloom-560m", "gpt-j-6B", "opt-125m", "mixtral-8x7b"])
@pytest.mark.parametrize("past", [0, pytest.param(1, marks=pytest.mark.slow), 500])
def test_the_work_is_that_of_the_last_position(name: str, past: int) -> None:
    """Without a cache, products of attention are by the square of the positions, and others by their number."""
    model = archspec.load(name, layers=2, **({"joined": True} if name.startswith("mixtral") else {}))
    work = archspec.cost(model, batch=1).work
    attention = work.score_flops + work.mix_flops
    square, linear = substitute(attention, {"seq": 1}), substitute(work.flops - attention, {"seq": 1})
    assert substitute(attention, {"seq": 10}) == 100 * square and substitute(work.flops, {"seq": 3}) == (
        9 * square + 3 * linear
    )
    assert step(model, past).flops == square * (past + 1) + linear
    assert step(model, past, batch=3).flops == 3 * step(model, past).flops


def test_a_window_limits_the_keys() -> None:
    full, window = (
        archspec.load("mistral-7b-v0.1", window=None, layers=2),
        archspec.load("mistral-7b-v0.1", window=51, layers=2),
    )
    assert step(window, 1000).flops == step(full, 50).flops
    assert kinds(step(window, 1000)) == [("window", 2, 50, 2048)]
    assert kinds(step(window, 20)) == [("window", 2, 20, 2048)]


def test_a_state_space_model_takes_the_same_for_any_past() -> None:
    few, many = step("mamba-130m", 10), step("mamba-130m", 10_000)
    assert few.flops == many.flops and few.cache == many.cache
    assert kinds(few) == [("convolution", 24, 4, 1536), ("state", 24, 1, 1536 * 16)]


def test_latent_attention_keeps_the_latent_vectors() -> None:
    model = archspec.load("deepseek-v3", joined=True, layers=4)
    assert kinds(step(model)) == [("attention", 4, 100, 512 + 64)]
    expanded = 2 * 4 * 512 * 128 * (128 + 128)  # keys and values of a position are computed again from them
    scores = 2 * 4 * 128 * (128 + 64 + 128)
    assert step(model, 101).flops - step(model, 100).flops == expanded + scores


def test_a_decoder_keeps_the_keys_of_the_other_sequence() -> None:
    found = step("t5-small", seq=20)
    assert kinds(found) == [("attention", 6, 100, 1024), ("other sequence", 6, 1, 20 * 1024)]
    assert found.dimension == "target"
    with pytest.raises(archspec.ArchError, match="needs sizes of the dimensions `seq`"):
        step("t5-small")


# Memory ---------------------------------------------------------------------------------------------------------------


def test_the_weights_are_those_that_a_token_reads() -> None:
    model = archspec.load("gpt-oss-20b")
    assert step(model, dtype="bfloat16").weights == 2 * (3_608_307_264 + 2880)  # and one row of the word embeddings
    batch = step(model, dtype="bfloat16", batch=100)
    assert batch.weights == 2 * (20_914_757_184 - 579_133_440 + 100 * 2880) and batch.weights_are_bound
    tied = archspec.load("gpt2")
    assert step(tied, dtype="int8").weights == tied.params.total - 1023 * 768  # one row of the positions


def test_the_encoder_is_not_read() -> None:
    model = archspec.load("t5-small")
    encoder = sum(t.params for t in model.tensors if t.name.startswith("encoder"))
    cross = sum(t.params for t in model.tensors if "EncDecAttention.k" in t.name or "EncDecAttention.v" in t.name)
    found = step(model, seq=5, dtype="int8").weights
    table = 32 * 8  # of which a step reads up to all rows
    assert model.params.total - encoder - cross - table <= found <= model.params.total - encoder - cross


@pytest.mark.parametrize(("dtype", "bits"), [("float32", 32), ("bfloat16", 16), ("fp8", 8), ("int8", 8), ("int4", 4)])
def test_data_types(dtype: str, bits: int) -> None:
    model = archspec.load("gpt2")
    cost = archspec.cost(model, dtype=dtype, past=7)
    assert cost.memory.weights == model.params.total * bits // 8
    assert bool(cost.memory.schemes) == (bits >= 16)
    found = step(model, 7, dtype=dtype)
    assert found.cache_dtype == (dtype if bits >= 16 else "bfloat16")
    assert found.cache_bytes == 12 * 7 * 2 * 768 * max(bits, 16) // 8
    assert step(model, 7, dtype=dtype, cache_dtype="fp8").cache_bytes == 12 * 7 * 2 * 768


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bert-base-uncased", "attends to later positions"),
        ("modernbert-base", "attends to later positions"),
        ("vit-base-patch16-224", "no decoding step"),
    ],
)
def test_other_models_have_no_decoding_step(name: str, reason: str) -> None:
    with pytest.raises(archspec.ArchError, match=reason):
        step(name)


def test_every_other_dimension_needs_a_size() -> None:
    with pytest.raises(archspec.ArchError) as caught:
        archspec.cost("t5-small", past=3, batch=1)
    assert str(caught.value) == (
        "error[usage]: a decoding step needs sizes of the dimensions `seq`\nhelp: use `--dim NAME=N`"
    )


ATTENTION = """
import std {{ Linear, split_heads, merge_heads, attention, causal_mask }}
dim batch, seq
block Attend(hidden = 8, heads = 2)(x [batch, seq, hidden]) -> [batch, seq, hidden] {{
  q = query: Linear(hidden, hidden)(x) |> split_heads(heads)
  k = key:   Linear(hidden, hidden)(x) |> split_heads(heads)
  v = value: Linear(hidden, hidden)(x) |> split_heads(heads)
  y = attention(causal = true)(q, k, v) |> merge_heads
  return {result}
}}
model "attend" = Attend()
"""


@pytest.mark.parametrize(
    "result",
    [
        "y + sum(axis = 1, keep = true)(y)",
        "y + roll(1, axis = 1)(y)",
        "y + slice(axis = 1, start = seq - 1)(y)",
        "matmul(matmul(y, transpose(x)), x)",
        "reshape([batch, seq, hidden])(transpose(reshape([batch, hidden, seq])(y)))",
        "softmax(axis = 1)(y)",
        "matmul(y, transpose(y)) |> where(not causal_mask(seq), _, -inf) |> softmax(axis = -1) |> matmul(_, y)",
        "reshape([batch, seq, hidden])(permute([1, 0, 2])(y))",
    ],
)
def test_operations_on_several_positions_are_refused(result: str) -> None:
    assert kinds(step(archspec.loads(ATTENTION.format(result="y")))) == [("attention", 1, 100, 16)]
    with pytest.raises(archspec.ArchError, match="no decoding step"):
        step(archspec.loads(ATTENTION.format(result=result)))


def test_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "gpt2", "--past", "1024"]) == 2  # its positions end there
    assert "largest index is 1023" in capsys.readouterr().err
    assert main(["cost", "gpt2", "--past", "5", "--seq", "5"]) == 2
    assert main(["cost", "gpt2", "--cache-dtype", "int8"]) == 2
    assert main(["cost", "gpt2", "--past", "-1"]) == 2
    capsys.readouterr()
    assert main(["cost", "gpt2", "--past", "5", "--cache-dtype", "int8", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["decoding"]
    assert found["cache"] == [CachePart("attention", 12, 5, 1536, 12 * 5 * 1536)._asdict()]
    assert found["cache_bytes"] == 12 * 5 * 1536


# What transformers keeps ----------------------------------------------------------------------------------------------

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 50, "intermediate_size": 48}
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "full": ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 50}),
    "grouped": ("Llama", {**SMALL, "num_key_value_heads": 2}),
    "window": ("Mistral", {**SMALL, "num_key_value_heads": 2, "sliding_window": 8}),
    "windows and full": ("Gemma2", {**SMALL, "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 8}),
    "sinks": (
        "GptOss",
        {**SMALL, "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 8, "num_local_experts": 4},
    ),
    "latent": (
        "DeepseekV3",
        {
            **SMALL,
            "num_key_value_heads": 4,
            "q_lora_rank": 12,
            "kv_lora_rank": 10,
            "qk_rope_head_dim": 6,
            "qk_nope_head_dim": 8,
            "v_head_dim": 8,
            "n_routed_experts": 8,
            "n_group": 2,
            "topk_group": 1,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 16,
            "first_k_dense_replace": 1,
        },
    ),
    "state space": ("Mamba", {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 50, "state_size": 8}),
}


@pytest.mark.slow
@pytest.mark.parametrize("past", [5, 20])
@pytest.mark.parametrize("kind", CONFIGS)
def test_the_cache_is_as_large_as_that_of_transformers(kind: str, past: int, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    name, settings = CONFIGS[kind]
    config = getattr(transformers, f"{name}Config")(**settings)
    model = getattr(transformers, f"{name}{'LMHeadModel' if name == 'GPT2' else 'ForCausalLM'}")(config).eval()
    with torch.no_grad():
        found = model(torch.ones(3, past, dtype=torch.long), use_cache=True)
    cache = found.cache_params if name == "Mamba" else found.past_key_values
    held = [value for layer in cache.layers for value in vars(layer).values()]
    tensors = [value for entry in held for value in (entry.values() if isinstance(entry, dict) else [entry])]
    kept = sum(t.nbytes for t in tensors if isinstance(t, torch.Tensor) and t.is_floating_point())
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps({**json.loads(config.to_json_string(use_diff=False)), "architectures": [type(model).__name__]})
    )
    assert step(archspec.load(path), past, batch=3).cache_bytes == kept
