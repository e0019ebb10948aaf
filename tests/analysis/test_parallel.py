"""The model of one rank under tensor parallelism, and the parameters that `transformers` gives to each rank.

`tests/oracle/parallel/` was recorded with `transformers` and its `base_model_tp_plan`, in processes of gloo.
"""

import json
from typing import Any

import pytest
from paths import ROOT

import archspec
from archspec import ArchError
from archspec.analysis.parallel.rank import divide_model

CASES = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "tests/oracle/parallel").iterdir())}
CLASSES = {"llama": "Llama", "qwen3": "Qwen3", "mixtral": "Mixtral", "deepseek_v3": "DeepseekV3"}


def load(case: dict[str, Any]) -> archspec.Model:
    fields = case["configuration"]
    return archspec.load({**fields, "architectures": [f"{CLASSES[fields['model_type']]}ForCausalLM"]})


@pytest.mark.parametrize("name", [name for name in CASES if "deepseek" not in name])
def test_parameters_of_each_rank(name: str) -> None:
    """The experts of a layer divided by number, as `ep` does, have as many parameters as divided by width."""
    case = CASES[name]
    model, ranks = load(case), case["settings"]["tensor"]
    if not case["measured"][0]["ran"]:  # the engine divides the tensors, and fails in the first step
        with pytest.raises(ArchError, match=rf"tensor parallelism of {ranks} does not divide `(heads|groups) = "):
            divide_model(model, ranks)
        return
    rank = divide_model(model, ranks)
    assert [4 * number for number in rank.parameters] == [measured["parameters"] for measured in case["measured"]]
    assert sum(rank.parameters) == model.params.total + (ranks - 1) * rank.replicated
    shapes = {tensor.name: list(tensor.shape) for tensor in rank.model.tensors}
    sharded = {name: shape for name, shape in case["sharded"].items() if name in shapes}
    assert sharded and sharded == {name: shapes[name] for name in sharded}


def test_latent_attention_is_divided_by_heads() -> None:
    """The plan of `transformers` leaves it whole; with its tensors whole, the parameters are equal."""
    case = CASES["tp-deepseek-tp-2"]
    model = load(case)
    rank = divide_model(model, 2)
    whole = sum(tensor.params for tensor in model.tensors if ".self_attn." in tensor.name)
    divided = sum(tensor.params for tensor in rank.model.tensors if ".self_attn." not in tensor.name)
    assert 4 * (whole + divided) == case["measured"][0]["parameters"]
    latent, entire = (archspec.cost(part, past=100, batch=1).decoding for part in (rank.model, model))
    assert latent is not None and entire is not None and latent.cache_bytes == entire.cache_bytes


def test_the_cache_of_keys_and_values_is_divided() -> None:
    model = archspec.load("llama-3.1-8b")
    rank = divide_model(model, 2)
    caches = [archspec.cost(part, past=8191, batch=1, dtype="bfloat16").decoding for part in (model, rank.model)]
    assert [cache.cache_bytes for cache in caches if cache] == [1_073_610_752, 536_805_376]
    assert divide_model(model, 1).parameters == (8_030_261_248,)


BLOCK = """
import std { Linear, RMSNorm, split_heads, merge_heads, attention }
dim batch, seq
block Layer(hidden = 32, heads = 4, size = 8, ffn = 64)(x [batch, seq, hidden]) -> [batch, seq, hidden] {
  q = q_proj: Linear(hidden, heads * size)(x) |> QUERY split_heads(heads)
  k = k_proj: Linear(hidden, heads * size)(x) |> split_heads(heads)
  return attention(causal = true)(q, k, k) |> merge_heads |> o_proj: Linear(heads * size, hidden)
    |> up: Linear(hidden, ffn) |> FEED down: Linear(ffn, hidden)
}
model "layer" = Layer()
"""


def layer(query: str = "", feed: str = "") -> archspec.Model:
    return archspec.loads(BLOCK.replace("QUERY", query).replace("FEED", feed))


def test_a_spec_of_a_user() -> None:
    rank = divide_model(layer(), 4)
    assert {
        tensor.name: tensor.shape for tensor in rank.model.tensors if "down" in tensor.name or "q_proj" in tensor.name
    } == {
        "q_proj.weight": (8, 32),
        "q_proj.bias": (8,),
        "down.weight": (32, 16),
        "down.bias": (32,),  # added once, after the sum over the ranks
    }
    assert rank.divided == {"heads": (4, 1), "ffn": (64, 16)}
    assert rank.replicated == 32 + 32


@pytest.mark.parametrize(
    "query, feed, message",
    [
        ("norm: RMSNorm(heads * size, 1e-5) |>", "", "needs all of an axis that is divided"),
        ("", "softmax(axis = -1) |>", "`softmax` needs all of an axis that is divided"),
        (
            "",
            'amax(axis = -1) |> repeat("b s -> b s f", f = ffn) |>',
            "needs all",
        ),
        ("", "inner: Linear(ffn, ffn) |>", "several axes of `inner.weight` would be divided"),
    ],
)
def test_what_cannot_be_divided_is_refused(query: str, feed: str, message: str) -> None:
    with pytest.raises(ArchError, match="bad-plan") as caught:
        divide_model(layer(query, feed), 2)
    assert message in str(caught.value)


def test_models_whose_heads_are_unknown_or_fix_their_size() -> None:
    with pytest.raises(ArchError, match=r"on a rank"):
        divide_model(archspec.load("gpt2"), 2)  # `hidden` alone decides the width of the heads together
    with pytest.raises(ArchError, match="no hyperparameter such as `heads`"):
        divide_model(archspec.load("mamba-130m"), 2)
