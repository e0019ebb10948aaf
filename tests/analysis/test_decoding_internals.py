"""Steps of the code that the tests of decoding cannot reach through public names."""

from functools import partial
from typing import Any

import pytest

import archspec
from archspec import Decoding
from archspec.analysis.cost import decoding
from archspec.analysis.cost.cached_values import find_cached_values
from archspec.analysis.cost.decoding_report import summary
from archspec.analysis.cost.steps import DecodingStep
from archspec.core.algebra import substitute
from archspec.core.reports.text import beside, flops
from archspec.pipeline.model import get_compilation


def step(model: str | archspec.Model, past: int = 100, **options: Any) -> Decoding:
    found = archspec.cost(model, past=past, **options).decoding
    assert found is not None
    return found


def kinds(found: Decoding) -> list[tuple[str, int, int, int]]:
    return [(part.kind, part.layers, part.positions, part.values) for part in found.cache]


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


@pytest.mark.parametrize("batch", [1, 3])
def test_latent_attention_is_absorbed_where_this_takes_less(batch: int) -> None:
    """The matrices of keys and values are applied once to each query and result, or to all latent vectors."""
    model = archspec.load("deepseek-v3", joined=True, layers=4)
    layers, heads, rank, rope, size = 4, 128, 512, 64, 128
    found = {past: step(model, past, batch=batch) for past in (0, 1, 100, 101)}
    matrices = heads * rank * (size + size)
    for past, one in found.items():
        keys = past + 1
        expanded = keys * (matrices + heads * (size + rope + size))
        absorbed = matrices + keys * heads * (rank + rope + rank)
        assert one.expanded_flops is not None and one.absorbed_flops is not None
        assert one.expanded_flops - one.absorbed_flops == 2 * batch * layers * (expanded - absorbed)
        assert one.flops == (one.expanded_flops if past == 0 else one.absorbed_flops)
    assert "latent attention: keys and values of all positions are expanded; absorbed" in summary(found[0], "x")[2]
    line = summary(found[100], "bfloat16")[2]
    assert line.startswith("latent attention: the matrices of keys and values are absorbed in queries and results;")
    assert line.endswith(
        f"expanded, {found[100].expanded_flops:,} FLOPs{beside(flops(found[100].expanded_flops or 0))}"
    )
    assert step("gpt2").expanded_flops is step("gpt2").absorbed_flops is None


LATENT = """
import std {{ Linear, attention, split_heads, merge_heads }}
dim batch, seq
block Net(n = 24, r = 2, heads = 3)(x [batch, seq, n]) -> [batch, seq, n] {{
  latent = x |> down: Linear(n, r, bias = false)
  q = x |> q: Linear(n, n, bias = false) |> split_heads(heads)
  k = latent |> k: Linear(r, n, bias = false) |> {changed} split_heads(heads)
  v = latent |> v: Linear(r, n, bias = false) |> split_heads(heads)
  return attention(causal = true)(q, k, v) |> merge_heads
}}
model "latent" = Net
"""


@pytest.mark.parametrize(("changed", "is_linear"), [("", True), ("tanh |>", False)])
def test_keys_that_are_not_linear_are_expanded(changed: str, is_linear: bool) -> None:
    found = step(archspec.loads(LATENT.format(changed=changed)), 10)
    assert kinds(found) == [("attention", 1, 10, 2)]
    projections, scores, matrices = 24 * 2 + 24 * 24, 2 * 24, 2 * 24 * 2
    assert found.expanded_flops == 2 * (projections + 11 * (scores + matrices))
    assert found.absorbed_flops == (2 * (projections + matrices + 11 * 3 * (2 + 2)) if is_linear else None)
    assert found.flops == (found.absorbed_flops if is_linear else found.expanded_flops)
    assert ("cannot be absorbed" in "".join(summary(found, "float32"))) == (not is_linear)


STACK = """
import std {{ Embedding, split_heads, merge_heads, attention }}
dim batch, seq
layer Weighted(hidden)(x [batch, seq, hidden]) -> [batch, seq, hidden] {{
  weight: param [hidden, hidden]
  return linear(x, .weight)
}}
block Layer(hidden = 16, heads = 2)(x [batch, seq, hidden], kept [batch, seq, hidden], table [seq, hidden])
                                   -> (y [batch, seq, hidden], left [batch, seq, hidden]) {{
  q = query: Weighted(hidden)(x + table) |> split_heads(heads)
  k = key:   Weighted(hidden)({keys}) |> split_heads(heads)
  v = value: Weighted(hidden)(x) |> split_heads(heads)
  y = attention(causal = true)(q, {read}, v) |> merge_heads
  return {residual}y, {left}
}}
block Net(hidden = 16, layers = 5)(ids int [batch, seq]) -> [batch, seq, hidden] {{
  table: param [128, hidden]
  x = words: Embedding(50, hidden)(ids)
  positions = slice(axis = 0, stop = seq)(.table)
  kept = x
  for i in 0..layers {{
    {lines}
  }}
  return x
}}
model "stack" = Net()
"""


LAYER = "x, kept = layers[i]: Layer(hidden)(x, kept, positions)"


@pytest.mark.parametrize(
    ("keys", "read", "residual", "left", "lines", "merges"),
    [
        ("x", "k", "x + ", "kept", LAYER, True),
        ("x + table", "k", "x + ", "kept", LAYER, True),
        ("x", "k", "", "kept", LAYER, True),  # without a residual, a layer is only read by the next one
        # layers that are applied again
        ("x", "k", "x + ", "kept", f"{LAYER}\n    x, kept = .layers[i](x, kept, positions)", True),
        ("x", "k", "x + ", "kept", f"{LAYER}\n    x, kept = .layers[0](x, kept, positions)", True),
        # keys from values that earlier layers compute, for the next layer alone or for all
        ("kept", "k", "x + ", "x", LAYER, True),
        ("kept", "k", "x + ", "k |> merge_heads", LAYER, True),
        ("x", "k + split_heads(heads)(kept)", "x + ", "kept", LAYER, False),
        ("x", "k + split_heads(heads)(kept)", "x + ", "k |> merge_heads", LAYER, False),
        # tied weights, within a layer and between layers
        ("x", "k", "x + ", "kept", f"tie layers[i].key.weight = layers[i].value.weight\n    {LAYER}", True),
        ("x", "k", "x + ", "kept", f"tie layers[i].key.weight = layers[0].value.weight if i > 0\n    {LAYER}", True),
    ],
)
def test_equal_layers_have_equal_figures(
    keys: str, read: str, residual: str, left: str, lines: str, merges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = STACK.format(keys=keys, read=read, residual=residual, left=left, lines=lines)
    body = get_compilation(archspec.loads(text)).body
    found, steps = step(archspec.loads(text)), DecodingStep(body, "seq")
    assert (find_cached_values(steps) is not None) == merges
    monkeypatch.setattr(decoding, "DecodingStep", partial(DecodingStep, merge=False))
    assert found == step(archspec.loads(text))
