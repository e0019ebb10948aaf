"""Decoding steps: their work, the weights that they read, and the cache, which is that of `transformers`."""

import json
from pathlib import Path
from typing import Any

import pytest

import archspec
from archspec import CachePart, Decoding
from archspec.testing import main


def step(model: str | archspec.Model, past: int = 100, **options: Any) -> Decoding:
    found = archspec.cost(model, past=past, **options).decoding
    assert found is not None
    return found


# Memory ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "bits"), [("float32", 32), ("bfloat16", 16), ("fp8", 8), ("int8", 8), ("int4", 4)])
def test_data_types(dtype: str, bits: int) -> None:
    model = archspec.load("gpt2", layers=2)
    cost = archspec.cost(model, dtype=dtype, past=7)
    assert cost.memory.weights == model.params.total * bits // 8
    assert bool(cost.memory.schemes) == (bits >= 16)
    found = step(model, 7, dtype=dtype)
    assert found.cache_dtype == (dtype if bits >= 16 else "bfloat16")
    assert found.cache_bytes == 2 * 7 * 2 * 768 * max(bits, 16) // 8
    assert step(model, 7, dtype=dtype, cache_dtype="fp8").cache_bytes == 2 * 7 * 2 * 768


# Refusals -------------------------------------------------------------------------------------------------------------


def test_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert step(archspec.load("gpt2", layers=1), 1023).past == 1023
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
