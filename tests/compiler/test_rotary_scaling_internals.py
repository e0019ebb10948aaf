"""Steps of the code that the tests of rotary scaling cannot reach through public names."""

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from families import mapping
from reference import Array, evaluate_model
from small import live_names
from test_rotary_scaling import probe

import archspec

SIZE, THETA = 8, 100.0


PLAIN = THETA ** (-np.arange(0, SIZE, 2) / SIZE)


SHORT, LONG = [1.0, 1.5, 2.0, 3.0], [2.0, 3.0, 4.0, 5.5]


Frequencies = Callable[[int], tuple[Array, float]]


def llama3(factor: float, context: int) -> Frequencies:
    """As it is usually written, by wavelengths."""
    wavelength = 2 * np.pi / PLAIN
    kept = (context / wavelength - 1.0) / (4.0 - 1.0)
    between = (1 - kept) * PLAIN / factor + kept * PLAIN
    found = np.where(wavelength > context, PLAIN / factor, np.where(wavelength < context / 4, PLAIN, between))
    return lambda length: (found, 1.0)


def yarn(factor: float, context: int, strength: float, fast: float = 32.0, rounded: bool = True) -> Frequencies:
    """Pair by pair: by the place between those with `fast` rotations and with one."""
    first, last = (SIZE * math.log(context / (turns * 2 * math.pi)) / (2 * math.log(THETA)) for turns in (fast, 1.0))
    if rounded:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, SIZE - 1)
    slowed = [min(max((i - first) / (last - first), 0.0), 1.0) for i in range(SIZE // 2)]
    found = np.array([PLAIN[i] * (1 - s) + PLAIN[i] / factor * s for i, s in enumerate(slowed)])
    return lambda length: (found, strength)


def dynamic(factor: float, positions: int) -> Frequencies:
    """By another theta for each length."""

    def found(length: int) -> tuple[Array, float]:
        growth = factor * max(length, positions) / positions - (factor - 1)
        theta = THETA * growth ** (SIZE / (SIZE - 2))
        return theta ** (-np.arange(0, SIZE, 2) / SIZE), 1.0

    return found


def longrope(context: int, strength: float) -> Frequencies:
    return lambda length: (PLAIN / (LONG if length > context else SHORT), strength)


LONGER = f"longrope_scaling(short = {SHORT}, long = {LONG}, context = 10"


CASES: dict[str, Frequencies] = {
    "no_scaling": lambda length: (PLAIN, 1.0),
    "linear_scaling(factor = 4.0)": lambda length: (PLAIN / 4.0, 1.0),
    "llama3_scaling(factor = 4.0, context = 64)": llama3(4.0, 64),
    "llama3_scaling(factor = 1.0)": lambda length: (PLAIN, 1.0),
    "yarn_scaling(factor = 4.0, context = 64)": yarn(4.0, 64, 0.1 * math.log(4.0) + 1.0),
    "yarn_scaling(factor = 4.0, context = 640, fast = 8.0, rounded = false, strength = 1.5)": yarn(
        4.0, 640, 1.5, 8.0, rounded=False
    ),
    "yarn_scaling(factor = 4.0, context = 64, mscale = 0.7, mscale_all = 1.3)": yarn(
        4.0, 64, (0.07 * math.log(4.0) + 1.0) / (0.13 * math.log(4.0) + 1.0)
    ),
    "yarn_scaling(factor = 4.0, context = 64, mscale = 0.7)": yarn(4.0, 64, 0.1 * math.log(4.0) + 1.0),
    "dynamic_scaling(factor = 2.0, positions = 10)": dynamic(2.0, 10),
    f"{LONGER})": longrope(10, 1.0),
    f"{LONGER}, positions = 40)": longrope(10, math.sqrt(1 + math.log(4.0) / math.log(10))),
    f"{LONGER}, positions = 40, factor = 8.0)": longrope(10, math.sqrt(1 + math.log(8.0) / math.log(10))),
    f"{LONGER}, strength = 1.25)": longrope(10, 1.25),
}


@pytest.mark.parametrize("scaling", CASES)
def test_cosines_and_sines_at_every_length(scaling: str, tmp_path: Path) -> None:
    model = probe(tmp_path, scaling)
    for length in (1, 9, 10, 11, 40):
        frequencies, strength = CASES[scaling](length)
        angles = np.arange(length)[:, None] * frequencies
        found = evaluate_model(model, {"x": np.ones((length, SIZE // 2))}, {"one": np.ones(())}).outputs
        np.testing.assert_allclose(found["cosines"], np.cos(angles) * strength, atol=1e-13)
        np.testing.assert_allclose(found["sines"], np.sin(angles) * strength, atol=1e-13)


LISTS = {"short_factor": [1, 1.5, 2, 3], "long_factor": LONG}


FAMILIES = [
    *("eurobert", "falcon", "gpt_neox", "granite", "llama", "mistral", "mixtral", "olmo2", "phi3"),
    *("qwen2", "qwen3", "qwen3_moe", "starcoder2"),
]


CONTEXT = 8


ROPE: dict[str, dict[str, Any]] = {
    "linear": {"factor": 4.0},
    "llama3": {"factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    "yarn": {"factor": 4.0, "beta_fast": 4.0},
    "dynamic": {"factor": 2.0},
    "longrope": LISTS,
}


TINY = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": SIZE,
    "intermediate_size": 24,
    "num_experts": 2,
    "num_local_experts": 2,
    "num_experts_per_tok": 1,
    "moe_intermediate_size": 12,
    "sliding_window": None,
    "pad_token_id": 0,
}


def configuration(type: str, kind: str) -> dict[str, Any]:
    """A tiny configuration of a family, with the fields that it knows; `dynamic` has only one length."""
    known = mapping(type)
    fields = {name: value for name, value in TINY.items() if name in known.fields}
    if type == "phi3":
        fields["original_max_position_embeddings"] = CONTEXT
    rope = {"rope_type": kind, "rope_theta": THETA, **ROPE[kind]}
    if kind in ("llama3", "yarn", "longrope"):
        rope["original_max_position_embeddings"] = CONTEXT
    if type == "gpt_neox":
        rope["partial_rotary_factor"] = 1.0
    longest = CONTEXT if kind == "dynamic" else 4 * CONTEXT
    return {"model_type": type, **fields, "max_position_embeddings": longest, "rope_parameters": rope}


@pytest.mark.slow
@pytest.mark.parametrize("type", FAMILIES)
def test_lengths_are_those_of_the_configuration_class(type: str) -> None:
    """Where a configuration states none; scalings use them."""
    config = pytest.importorskip("transformers").AutoConfig.for_model(type)
    fields = mapping(type).fields
    assert fields["max_position_embeddings"]["default"] == config.max_position_embeddings
    original = fields.get("original_max_position_embeddings")
    assert (original and original["default"]) == getattr(config, "original_max_position_embeddings", None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ROPE)
@pytest.mark.parametrize("type", FAMILIES)
def test_models_have_the_outputs_of_transformers(type: str, kind: str, tmp_path: Path) -> None:
    """At lengths up to the original one and above it; each with a live model that has seen no other length.

    `transformers` keeps the frequencies of the longest sequence that a model with `dynamic` has seen until a shorter
    one than the original length follows.
    """
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    if type == "phi3" and kind != "longrope":
        pytest.skip("Phi-3 has no other scaling in transformers")
    config = configuration(type, kind)
    first = transformers.AutoConfig.for_model(type, **{name: config[name] for name in config if name != "model_type"})
    first._attn_implementation = first._experts_implementation = "eager"
    first.save_pretrained(tmp_path)
    model = archspec.load(str(tmp_path / "config.json"))
    if model.hyperparameters.get("joined") is not None:
        model = archspec.load(str(tmp_path / "config.json"), joined=not model.hyperparameters["joined"])
    module = archspec.to_torch(model).double().eval()
    torch.manual_seed(0)
    live = transformers.AutoModel.from_config(first).double().eval()
    with torch.no_grad():
        for tensor in live.parameters():
            tensor.normal_(0.0, 0.3)
    state = live.state_dict()
    module.load_state_dict({name: state[live_name] for name, live_name in live_names(model).items()})
    for length in (CONTEXT - 1, CONTEXT, CONTEXT + 1, 3 * CONTEXT):
        ids = torch.randint(1, 50, (2, length))
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        with torch.no_grad():
            found = module(**inputs).last_hidden_state
            expected = copy.deepcopy(live)(**inputs).last_hidden_state
        assert (found - expected).abs().max() <= 1e-6 * max(1.0, float(expected.abs().max())), length
        arrays = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
        evaluated = evaluate_model(model, {name: tensor.numpy() for name, tensor in inputs.items()}, arrays).outputs
        np.testing.assert_allclose(
            found.numpy(), evaluated["last_hidden_state"], atol=1e-12 * max(1.0, float(expected.abs().max()))
        )
