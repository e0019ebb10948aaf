"""Parts of the standard library against numpy: norms, transposed convolutions, pooling, windows, biases."""

from typing import Any

import cases
import numpy as np
import pytest
from library import BASES, BATCH, BIASED, GROUP, IMAGE, LINE, RANDOM, TOKENS, WINDOWS, normal, stored
from reference import Array, evaluate_model
from small import findings, load, shapes

import archspec
from archspec import ArchError


def run(text: str, weights: dict[str, Array] | None = None, **inputs: Any) -> Array:
    """The only output of a spec's model in the reference interpreter."""
    values = {name: np.asarray(value) for name, value in inputs.items()}
    (output,) = evaluate_model(load(text), values, weights or {}).outputs.values()
    return output


# Norms and convolutions -----------------------------------------------------------------------------------------------


def test_group_norm_takes_channels_together() -> None:
    x, weights = normal(2, 6, 3, 5), stored(GROUP)
    out = run(GROUP, weights, x=x)
    for group in range(3):
        part = x[:, 2 * group : 2 * group + 2]
        plain = (part - part.mean((1, 2, 3), keepdims=True)) / np.sqrt(part.var((1, 2, 3), keepdims=True) + 0.1)
        for channel in (2 * group, 2 * group + 1):
            scaled = plain[:, channel % 2] * weights["norm.weight"][channel] + weights["norm.bias"][channel]
            np.testing.assert_allclose(out[:, channel], scaled)
    with pytest.raises(ArchError, match="channels must be divisible by groups"):
        load(GROUP.replace("GroupNorm(3", "GroupNorm(4"))


def test_batch_norm_uses_running_statistics() -> None:
    x, weights = normal(2, 4, 3, 5), stored(BATCH)
    out = run(BATCH, weights, x=x)
    for i in range(4):
        mean, variance = weights["norm.running_mean"][i], weights["norm.running_var"][i]
        plain = (x[:, i] - mean) / np.sqrt(variance + 0.1)
        expected = plain * weights["norm.weight"][i] + weights["norm.bias"][i]
        np.testing.assert_allclose(out[:, i], np.maximum(expected, 0.0))
    model = load(BATCH)
    assert model.params.total == 8
    assert [b.name for b in model.buffers] == [
        f"norm.{n}" for n in ("running_mean", "running_var", "num_batches_tracked")
    ]


def test_norms_take_any_number_of_axes() -> None:
    for shape in ("[batch, 6]", "[batch, 6, width]", "[batch, 6, height, width, 2]"):
        for text in (GROUP, BATCH.replace("n = 4", "n = 6").replace("batch, n,", "batch, 6,")):
            short = text.replace("[batch, 6, height, width]", shape)
            dims = "dim " + ", ".join(d for d in ("batch", "height", "width") if d in shape)
            out = load(short.replace("dim batch, height, width", dims))
            assert out.outputs["output"].shape == out.inputs["x"].shape


def test_transposed_convolutions_have_the_tensors_of_pytorch() -> None:
    assert shapes(load(LINE)) == {"up.weight": (4, 3, 4), "up.bias": (6,)}
    assert shapes(load(IMAGE)) == {"up.weight": (4, 5, 4, 4)}
    with pytest.raises(ArchError, match="out_channels must be divisible by groups"):
        load(LINE.replace("groups = 2", "groups = 4"))


# Pooling, windows, biases ---------------------------------------------------------------------------------------------


def test_the_token_at_an_index_of_each_sequence() -> None:
    x, ids = normal(3, 5, 3), np.array([[1, 9, 1, 9, 1], [9, 1, 1, 1, 1], [1, 1, 1, 1, 9]])
    assert (run(TOKENS, x=x, ids=ids) == x[[0, 1, 2], [1, 0, 4]]).all()
    last = TOKENS.replace("token_at(x, argmax(axis = 1)(int(ids == end)))", "last(end)(x, ids)")
    last = last.replace("{ token_at }", "{ last }")
    assert (run(last, x=x, ids=ids) == x[[0, 1, 2], [4, 4, 3]]).all()


def test_windows_of_an_image_and_back() -> None:
    x = normal(2, 6, 4, 3)
    parts = run(WINDOWS, x=x)
    for image, row, column in np.ndindex(2, 3, 2):
        expected = x[image, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        assert (parts[(image * 3 + row) * 2 + column] == expected).all()
    text, _, _ = WINDOWS.partition("block There")
    assert (run(text, x=x) == x).all()
    with pytest.raises(ArchError, match="height and width must be divisible by size"):
        load(WINDOWS.replace("window_partition(2)", "window_partition(4)"))


SAMPLED = """
import std { grid_sample }
dim batch
block Net()(x [batch, 1, 2, 3], grid [batch, 1, 4, 2]) -> [batch, 1, 1, 4] {
  return grid_sample(ALIGNED)(x, grid)
}
"""


@pytest.mark.parametrize(("aligned", "expected"), [("false", [3.5, 0.25, 0.0, 5.75]), ("true", [3.5, 1.0, 0.0, 4.75])])
def test_values_between_the_positions_of_an_image(aligned: str, expected: list[float]) -> None:
    image = np.arange(1.0, 7.0).reshape(1, 1, 2, 3)
    places = [[0.0, 0.0], [-1.0, -1.0], [-3.0, 0.0], [0.5, 0.5]]
    found = run(SAMPLED.replace("ALIGNED", aligned), x=image, grid=np.array([[places]]))
    assert found.flatten().tolist() == expected


@pytest.mark.parametrize("shape", ["[2, seq, seq]", "[batch, 2, seq, seq]", "[1, 2, seq, seq]"])
def test_attention_takes_biases_of_any_leading_axes(shape: str) -> None:
    text = BIASED.replace("[2, seq, seq]", shape)
    q, mask = normal(3, 2, 5, 4), RANDOM.random((5, 5)) < 0.7
    mask[:, 0] = True
    bias = normal(*{"[2": (2, 5, 5), "[b": (3, 2, 5, 5), "[1": (1, 2, 5, 5)}[shape[:2]])
    scores = np.where(mask, q @ q.swapaxes(-1, -2) / 2 + bias, -np.inf)
    power = np.exp(scores)
    np.testing.assert_allclose(run(text, q=q, mask=mask, bias=bias), power / power.sum(-1, keepdims=True) @ q)


def test_biases_have_the_axes_of_the_scores() -> None:
    (found,) = findings(BIASED.replace("bias [2, seq, seq]", "bias [seq, 2, seq]"))
    assert found.message == ("input `bias` of `attention` expects shape [2, seq, seq], found [seq, 2, seq]")


SINKS = """
import std { attention }
dim batch, seq
block Net(cap = none)(q [batch, 2, seq, 4], sinks [2]) -> [batch, 2, seq, 4] {
  return attention(cap = cap, causal = true)(q, q, q, sinks = sinks)
}
"""


@pytest.mark.parametrize("cap", [None, 0.5])
def test_attention_with_capped_products_and_sinks(cap: float | None) -> None:
    q, sinks = normal(3, 2, 5, 4), normal(2)
    scores = q @ q.swapaxes(-1, -2) / 2
    scores = np.where(np.tri(5) > 0, cap * np.tanh(scores / cap) if cap else scores, -np.inf)
    power = np.exp(scores)
    total = power.sum(-1, keepdims=True) + np.exp(sinks)[:, None, None]
    text = SINKS.replace("cap = none", f"cap = {cap}") if cap else SINKS
    np.testing.assert_allclose(run(text, q=q, sinks=sinks), power / total @ q)


def test_a_query_that_sees_no_key_does_not_become_nan() -> None:
    q = normal(1, 2, 3, 4)
    text = """
import std { attention }
dim batch, seq
block Net()(q [batch, 2, seq, 4], mask bool [seq, seq]) -> [batch, 2, seq, 4] {
  return attention(cap = 0.5)(q, q, q, mask)
}
"""
    found = run(text, q=q, mask=np.zeros((3, 3), bool))
    np.testing.assert_allclose(found, np.broadcast_to(q.mean(2, keepdims=True), q.shape))


TURNED = """
import std { rotate }
dim batch, seq
block Net(half = 2)(x [batch, 2, seq, 6], angles [seq, half]) -> [batch, 2, seq, 6] {
  return rotate(ADJACENT)(x, cos(angles), sin(angles))
}
"""


@pytest.mark.parametrize("half", [2, 3])
@pytest.mark.parametrize("adjacent", [False, True])
def test_pairs_are_rotated(adjacent: bool, half: int) -> None:
    x, angles = normal(3, 2, 5, 6), normal(5, half)
    expected = x.copy()
    for i in range(half):
        a, b = (2 * i, 2 * i + 1) if adjacent else (i, i + half)
        turned = (x[..., a] + 1j * x[..., b]) * np.exp(1j * angles[:, i])
        expected[..., a], expected[..., b] = turned.real, turned.imag
    text = TURNED.replace("ADJACENT", f"{str(adjacent).lower()}, {str(half < 3).lower()}").replace(
        "half = 2", f"half = {half}"
    )
    np.testing.assert_allclose(run(text, x=x, angles=angles), expected)


@pytest.mark.parametrize(
    ("heads", "powers"), [(1, [8]), (2, [4, 8]), (3, [4, 8, 2]), (6, [2, 4, 6, 8, 1, 3]), (8, range(1, 9))]
)
def test_slopes_of_biases_for_distance(heads: int, powers: list[int]) -> None:
    text = f"""
import std {{ alibi }}
dim seq
block Net()(x [seq]) -> [{heads}, seq, seq] {{ return x * 0.0 + alibi({heads}, seq) }}
"""
    distance = np.arange(4) - np.arange(4)[:, None]
    np.testing.assert_allclose(run(text, x=np.zeros(4)), [distance * 2.0**-power for power in powers])


# Experts --------------------------------------------------------------------------------------------------------------

MOE = """
import std { top_experts, GatedExperts }
dim batch, seq
layer Moe(hidden = 4, inner = 3, count = 5, best = 2, normalized = true, joined = false)
         (x [batch, seq, hidden]) -> [batch, seq, hidden] {
  gate.weight: param [count, hidden]
  shares, chosen = linear(x, .gate.weight) |> top_experts(best, normalized)
  return ..: GatedExperts(..)(x, shares, chosen)
}
"""


@pytest.mark.parametrize("normalized", [True, False])
def test_experts_are_those_with_the_largest_shares(normalized: bool) -> None:
    source = np.random.default_rng(0)
    apart = load(MOE, normalized=normalized)
    weights = {t.name: source.normal(size=t.shape) for t in apart.tensors}
    x = source.normal(size=(2, 3, 4))
    expected = np.zeros_like(x)
    for place in np.ndindex(2, 3):
        power = np.exp(weights["gate.weight"] @ x[place])
        power /= power.sum()
        best = np.argsort(-power)[:2]
        for e in best:
            gate, up = (weights[f"experts.{e}.{word}_proj.weight"] @ x[place] for word in ("gate", "up"))
            y = weights[f"experts.{e}.down_proj.weight"] @ (gate / (1 + np.exp(-gate)) * up)
            expected[place] += y * power[e] / (power[best].sum() if normalized else 1)
    np.testing.assert_allclose(evaluate_model(apart, {"x": x}, weights).outputs["output"], expected)

    joined = load(MOE, normalized=normalized, joined=True)
    parts = {word: [weights[f"experts.{e}.{word}_proj.weight"] for e in range(5)] for word in ("gate", "up", "down")}
    together = {
        "gate.weight": weights["gate.weight"],
        "experts.gate_up_proj": np.concatenate([parts["gate"], parts["up"]], 1),
        "experts.down_proj": np.array(parts["down"]),
    }
    np.testing.assert_allclose(evaluate_model(joined, {"x": x}, together).outputs["output"], expected)
    assert joined.params == apart.params
    assert archspec.cost(joined).work == archspec.cost(apart).work


# In PyTorch -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "base"), BASES.items(), ids=BASES.values())
def test_layers_are_the_modules_of_pytorch(text: str, base: str) -> None:
    assert f"({base}):" in cases.build(text)
