"""What families of architectures need, each in a small spec."""

import networkx
import pytest
from small import load, output, shapes


def test_weights_may_be_stored_in_by_out() -> None:
    model = load(
        """
layer Conv1D(n, m)(x [..., n]) -> [..., m] {
  weight: param [n, m]
  bias:   param [m]
  return matmul(x, .weight) + .bias
}
dim batch, seq
block Net()(x [batch, seq, 4]) -> [batch, seq, 12] {
  return x |> c_attn: Conv1D(4, 12)
}
"""
    )
    assert shapes(model) == {"c_attn.weight": (4, 12), "c_attn.bias": (12,)}


@pytest.mark.parametrize("layout", ["side by side", "head by head", "grouped"])
def test_queries_keys_and_values_may_be_fused_in_several_layouts(layout: str) -> None:
    cut = {
        "side by side": "q, k, v = split([hidden, hidden, hidden], axis = -1)(mixed)",
        "head by head": """parts = mixed |> reshape([batch, seq, heads, 3, hidden // heads])
  q = parts |> pick(axis = 3, index = 0) |> reshape([batch, seq, hidden])
  k = parts |> pick(axis = 3, index = 1) |> reshape([batch, seq, hidden])
  v = parts |> pick(axis = 3, index = 2) |> reshape([batch, seq, hidden])""",
        "grouped": """threes = mixed |> reshape([batch, seq, 3, hidden]) |> permute([2, 0, 1, 3])
  q = threes |> pick(axis = 0, index = 0)
  k = threes |> pick(axis = 0, index = 1)
  v = threes |> pick(axis = 0, index = 2)""",
    }[layout]
    model = load(
        f"""
import std {{ Linear, attention, split_heads, merge_heads }}
dim batch, seq
block Net(hidden = 8, heads = 2)(x [batch, seq, hidden]) -> [batch, seq, hidden] {{
  mixed = x |> qkv: Linear(hidden, 3 * hidden)
  {cut}
  return attention(split_heads(heads)(q), split_heads(heads)(k), split_heads(heads)(v))
    |> merge_heads
    |> proj: Linear(hidden, hidden)
}}
"""
    )
    assert shapes(model)["qkv.weight"] == (24, 8)
    assert output(model) == ["batch", "seq", "8"]


def test_a_head_need_not_be_hidden_over_heads() -> None:
    model = load(
        """
import std { Linear, attention, split_heads, merge_heads }
dim batch, seq
block Net(hidden = 6, heads = 4, size = 5)(x [batch, seq, hidden]) -> [batch, seq, hidden] {
  q = q: Linear(hidden, heads * size, bias = false)(x) |> split_heads(heads)
  k = k: Linear(hidden, size, bias = false)(x)         |> split_heads(1)
  v = v: Linear(hidden, size, bias = false)(x)         |> split_heads(1)
  return attention(q, k, v)
    |> merge_heads
    |> o: Linear(heads * size, hidden, bias = false)
}
"""
    )
    assert shapes(model) == {"q.weight": (20, 6), "k.weight": (5, 6), "v.weight": (5, 6), "o.weight": (6, 20)}


@pytest.mark.parametrize(
    ("step", "weight", "frames"),
    [
        ("Conv1d(4, 8, 3, padding = 1)", (8, 4, 3), "32"),
        ("Conv1d(4, 8, 3, groups = 2)", (8, 2, 3), "30"),
        ("Conv1d(4, 4, 3, groups = 4, padding = 2, dilation = 2)", (4, 1, 3), "32"),
        ("Conv1d(4, 8, 4, stride = 4)", (8, 4, 4), "8"),
        ("Up(4, 2, 4)", (4, 2, 4), "66"),
    ],
)
def test_convolutions_grouped_depthwise_and_transposed(step: str, weight: tuple[int, ...], frames: str) -> None:
    used = "Conv1d" if "Conv1d" in step else "Linear"
    up = """
layer Up(from, to, kernel)(x [batch, from, length]) -> [batch, to, 2 * (length - 1) + kernel] {
  weight: param [from, to, kernel]
  return conv(stride = 2, transposed = true)(x, .weight)
}
"""
    model = load(
        f"""
import std {{ {used} }}
dim batch{", length" if used == "Linear" else ""}
{up if used == "Linear" else ""}
block Net()(x [batch, 4, 32]) -> [batch, {weight[1] if used == "Linear" else weight[0]}, {frames}] {{
  {"scaled = x |> pre: Linear(32, 32)" if used == "Linear" else "scaled = x * 2.0"}
  return scaled |> conv: {step}
}}
"""
    )
    assert shapes(model)["conv.weight"] == weight


def test_a_bias_table_that_layer_0_owns_serves_all() -> None:
    """T5: the table of relative positions stands in the first layer's attention."""
    model = load(
        """
import std { Linear, Embedding, split_heads, merge_heads }
dim batch, seq
fn distance(length) -> int [length, length] {
  position = arange(length)
  return min(abs(position - reshape([length, 1])(position)), 31)
}
block Attention(hidden, heads, first)
               (x [batch, seq, hidden], bias [1, heads, seq, seq] = none)
               -> (out [batch, seq, hidden], bias [1, heads, seq, seq]) {
  if first {
    table = distance(seq)
      |> relative_attention_bias: Embedding(32, heads)
      |> permute([2, 0, 1])
      |> reshape([1, heads, seq, seq])
  }
  used = table if first else bias
  q = q: Linear(hidden, hidden, bias = false)(x) |> split_heads(heads)
  k = k: Linear(hidden, hidden, bias = false)(x) |> split_heads(heads)
  weights = softmax(matmul(q, transpose(k)) + used)
  return matmul(weights, k) |> merge_heads |> + x, used
}
block Net(layers = 3)(x [batch, seq, 8]) -> [batch, seq, 8] {
  h, bias = block[0].attention: Attention(8, 2, true)(x)
  for i in 1..layers {
    h, _ = block[i].attention: Attention(8, 2, false)(h, bias)
  }
  return h
}
"""
    )
    tables = [t.name for t in model.tensors if "relative" in t.name]
    assert tables == ["block.0.attention.relative_attention_bias.weight"]
    graph = model.graph()
    assert all(networkx.has_path(graph, tables[0][:-7], f"block.{i}.attention#softmax.0") for i in range(3))


def test_experts_may_lie_in_one_tensor_with_the_best_of_them_chosen() -> None:
    model = load(
        """
import std { Linear, gelu }
dim batch, seq
layer Experts(count, n, m)(x [..., n], chosen int [...]) -> [..., m] {
  weight: param [count, m, n]
  bias:   param [count, m]
  return expert_linear(x, chosen, .weight, .bias)
}
block Net(n = 4, m = 8, count = 6, best = 2)(x [batch, seq, n]) -> [batch, seq, n] {
  scores = x |> router: Linear(n, count, bias = false)
  top, chosen = topk(k = best)(scores)
  shares = softmax(top) |> reshape([batch, seq, best, 1])
  each = x |> reshape([batch, seq, 1, n]) |> expand([batch, seq, best, n])
  wide = up: Experts(count, n, m)(each, chosen) |> gelu
  down = down: Experts(count, m, n)(wide, chosen)
  return sum(axis = 2)(down * shares)
}
"""
    )
    assert shapes(model) == {
        "router.weight": (6, 4),
        "up.weight": (6, 8, 4),
        "up.bias": (6, 8),
        "down.weight": (6, 4, 8),
        "down.bias": (6, 4),
    }
    assert output(model) == ["batch", "seq", "4"]
