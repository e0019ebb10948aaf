"""What the standard library computes: its parts, and the example models, through the reference interpreter.

The interpreter holds every value on the way against the type inferred for it, at sizes that the compiler never saw.
"""

import math
from typing import Any

import numpy as np
import pytest
from paths import DATA, SPECS, read_spec
from reference import Array, Result, evaluate_model
from small import DENSE
from small import load as load_text

import archspec

EXAMPLES = SPECS / "std" / "examples.arch"


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def weights_of(model: archspec.Model) -> dict[str, Array]:
    """Random weights for a model."""
    counted = [t for t in model.tensors if t.tied_to is None]
    return {t.name: normal(*t.shape, seed=i) for i, t in enumerate(counted)}


def run(name: str, overrides: dict[str, Any] | None = None, **inputs: Any) -> tuple[Result, dict[str, Array]]:
    """A model of `values.arch` with random weights, and those weights; tables of constants are left to the spec."""
    model = archspec.load(f"{DATA / 'values.arch'}:{name}", **overrides or {})
    weights = {} if name == "positions" else weights_of(model)
    return evaluate_model(model, inputs, weights), weights


def run_example(name: str, overrides: dict[str, Any], **inputs: Array) -> Result:
    model = archspec.load(f"{EXAMPLES}:{name}", **overrides)
    return evaluate_model(model, inputs, weights_of(model))


def close(ours: Array, theirs: Any) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def softmax(x: Array) -> Array:
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


# Parts of the library ------------------------------------------------------------------------------------------------


def test_activations() -> None:
    x = normal(20)
    result, _ = run("activations", x=x)
    gelu, gelu_tanh, relu, silu = result.outputs.values()
    close(gelu, [v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in x])
    close(gelu_tanh, x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    close(relu, np.where(x > 0, x, 0))
    close(silu, x / (1 + np.exp(-x)))


@pytest.mark.parametrize("groups", [4, 2, 1])
@pytest.mark.parametrize(
    "overrides", [{}, {"scale": 0.25}, {"causal": True}, {"window": 1}, {"causal": True, "window": 2}], ids=str
)
def test_attention(groups: int, overrides: dict[str, Any]) -> None:
    q, k, v = normal(2, 4, 5, 6, seed=1), normal(2, groups, 5, 6, seed=2), normal(2, groups, 5, 6, seed=3)
    tokens = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 1]])
    result, _ = run("attention", {"groups": groups, **overrides}, q=q, k=k, v=v, tokens=tokens)
    for b, h in np.ndindex(2, 4):
        group = h * groups // 4
        for i in range(5):
            seen = tokens[b] == 1
            seen &= np.arange(5) <= i if "causal" in overrides else True
            seen &= np.abs(np.arange(5) - i) <= overrides.get("window", 5)
            scores = k[b, group, seen] @ q[b, h, i] * overrides.get("scale", 1 / math.sqrt(6))
            close(result.outputs["output"][b, h, i], softmax(scores) @ v[b, group, seen])


def test_rotary_positions_turn_pairs_of_components() -> None:
    x, positions = normal(3, 2, 4, 6), np.array([0, 1, 5, 9])
    turned = run("rotary", x=x, positions=positions)[0].outputs["output"]
    pairs = x[..., :3] + 1j * x[..., 3:]
    pairs *= np.exp(1j * positions[:, None] * 100.0 ** (-np.arange(3) / 3))
    close(turned, np.concatenate([pairs.real, pairs.imag], -1))


def test_positions() -> None:
    ids = np.array([[7, 3, 9, 1, 1], [1, 4, 1, 4, 4]])
    result = run("positions", ids=ids)[0].outputs
    assert result["after"].tolist() == [[2, 3, 4, 1, 1], [1, 2, 1, 3, 4]]
    rates = [p / 10000 ** (2 * (i // 2) / 6) for p in range(12) for i in range(6)]
    table = np.array([math.cos(rate) if i % 2 else math.sin(rate) for i, rate in enumerate(rates)]).reshape(12, 6)
    close(result["plain"], table)
    table[1] = 0  # the row of padding
    close(result["looked_up"], table[result["after"]])


@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions(groups: int) -> None:
    sound, image = normal(2, 4, 10), normal(2, 4, 6, 4)
    result, weights = run("convolutions", {"groups": groups}, sound=sound, image=image)
    one, two = result.outputs.values()
    assert one.shape == (2, 6, 4) and two.shape == (2, 6, 3, 2)
    padded, ins, outs = np.pad(sound, [(0, 0), (0, 0), (2, 2)]), 4 // groups, 6 // groups
    for o in range(6):
        first = o // outs * ins
        for p in range(4):
            seen = padded[:, first : first + ins, 3 * p : 3 * p + 5 : 2]
            close(one[:, o, p], (seen * weights["one.weight"][o]).sum((1, 2)) + weights["one.bias"][o])
        for y, x in np.ndindex(3, 2):
            seen = image[:, first : first + ins, 2 * y : 2 * y + 2, 2 * x : 2 * x + 2]
            close(two[:, o, y, x], (seen * weights["two.weight"][o]).sum((1, 2, 3)))


def test_norms() -> None:
    x = normal(2, 3, 8) + 1
    result, weights = run("norms", x=x)
    layer, rms = result.outputs.values()
    scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3)
    close(layer, scaled * weights["layer.weight"] + weights["layer.bias"])
    close(rms, x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-3) * weights["rms.weight"])


def test_gated_feed_forward() -> None:
    x = normal(2, 3, 4)
    result, weights = run("gated", x=x)
    gate = x @ weights["mlp.gate_proj.weight"].T
    inner = gate / (1 + np.exp(-gate)) * (x @ weights["mlp.up_proj.weight"].T)
    close(result.outputs["output"], inner @ weights["mlp.down_proj.weight"].T)


def test_cross_attention() -> None:
    x, memory, tokens = normal(2, 3, 12), normal(2, 5, 10), np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
    result, weights = run("crossed", x=x, memory=memory, tokens=tokens)

    def project(stream: Array, name: str, heads: int) -> Array:
        out = stream @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        return out.reshape(*out.shape[:2], heads, 3).swapaxes(1, 2)

    def attend(q: Array, k: Array, v: Array, seen: Array) -> Array:
        scores = np.where(seen, q @ k.swapaxes(2, 3) / math.sqrt(3), -np.inf)
        return (softmax(scores) @ v).swapaxes(1, 2).reshape(2, 3, 12)

    k, v = (project(memory, f"cross.{name}", 4) for name in ("key", "value"))
    close(result.outputs["other"], attend(project(x, "cross.query", 4), k, v, tokens[:, None, None] == 1))
    k, v = (project(x, f"self.{name}", 2).repeat(2, 1) for name in ("key", "value"))
    close(result.outputs["own"], attend(project(x, "self.query", 4), k, v, np.array(True)))


def test_an_argument_is_computed_once() -> None:
    x = normal(2, 3, 4)
    result, weights = run("nested", x=x)
    inner = x @ weights["inner.weight"].T + weights["inner.bias"]
    close(result.outputs["output"], np.maximum(np.tanh(np.sqrt(np.abs(inner))), 0.1 * np.tanh(x)))
    assert list(result.trace) == ["inner"]


def test_loops_carry_values_and_share_tensors() -> None:
    x, ids = normal(2, 3, 4), np.arange(12).reshape(2, 6) % 5
    result, weights = run("looped", x=x, ids=ids)
    h, best, columns = x, np.floor(x[:, :, 0]), np.arange(4)
    for i in range(3):
        a = h * weights["inner.0.scale.weight"] + columns
        b = np.where(columns < 3, a, weights[f"inner.{i}.scale.rest"])
        c = b * weights["inner.0.scale.weight"] + columns
        h = (a + b + c.max(-1, keepdims=True)) @ weights["mix.weight"].T + weights["mix.bias"] + x
        best += c.argmax(-1)
    later = 2 * h[:, 1:].sum((0, 1))
    close(result.outputs["y"], h * later * 3 + 0.5 + weights["inner.0.scale.rest"])
    close(result.outputs["rows"], weights["table.weight"][ids])
    close(result.outputs["best"], best)


# The examples --------------------------------------------------------------------------------------------------------


def changed(before: Array, after: Array) -> list[bool]:
    """Which positions of two streams [batch, seq, features] differ by more than rounding."""
    return (np.abs(before - after).max((0, 2)) > 1e-9).tolist()


def test_the_decoder_never_looks_ahead() -> None:
    sizes = {"vocab": 29, "hidden": 16, "layers": 2, "heads": 4, "groups": 2, "inner": 20}
    ids = np.arange(14).reshape(2, 7)
    before = run_example("small-decoder", sizes, input_ids=ids).outputs["logits"]
    assert before.shape == (2, 7, 29)
    ids[:, 3] = 28
    after = run_example("small-decoder", sizes, input_ids=ids).outputs["logits"]
    assert changed(before, after) == [False, False, False, True, True, True, True]


def test_the_image_encoder_cuts_patches() -> None:
    sizes = {"image": 12, "patch": 4, "hidden": 16, "layers": 2, "heads": 2, "inner": 20}
    pixels = normal(2, 3, 12, 12)
    model = archspec.load(f"{EXAMPLES}:small-vision", **sizes)
    weights = weights_of(model)
    result = evaluate_model(model, {"pixels": pixels}, weights)
    assert result.outputs["output"].shape == (2, 10, 16)
    patch = pixels[:, :, 4:8, 8:12].reshape(2, -1)
    expected = patch @ weights["patches.weight"].reshape(16, -1).T + weights["patches.bias"]
    close(result.trace["patches"][0][:, :, 1, 2], expected)


@pytest.mark.parametrize("frames", [9, 10])
def test_the_speech_model_looks_through_its_window(frames: int) -> None:
    sizes = {"bins": 5, "vocab": 11, "hidden": 16, "layers": 1, "heads": 2, "inner": 20, "window": 2}
    sound, ids = normal(2, 5, frames), np.arange(6).reshape(2, 3)
    before = run_example("small-speech", sizes, sound=sound, ids=ids)
    assert before.outputs["output"].shape == (2, 3, 11)
    sound[:, :, 0] += 1
    after = run_example("small-speech", sizes, sound=sound, ids=ids)
    # The convolutions carry frame 0 to positions 0 and 1, the window from there to 3.
    heard = changed(before.trace["encoder.0"][0], after.trace["encoder.0"][0])
    assert heard == [True, True, True, True, False]
    assert changed(before.outputs["output"], after.outputs["output"]) == [True] * 3


def test_a_carried_number_may_become_a_tensor() -> None:
    model = load_text(DENSE + read_spec("library_values_spec"))
    assert model.params.total == 3 * 20 and not model.warnings
