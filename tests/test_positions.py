"""Where bundled decoders say that a token stands: buckets of relative positions, and frequencies of rotary ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import Array, evaluate

import archspec
from archspec.model import internals

LENGTH = 300
TABLES = [(32, 128, False), (32, 128, True), (8, 12, False), (8, 12, True), (64, 256, False), (16, 100, True)]
"""Rows, furthest, causal: as published first, then what rounds otherwise."""

ROTARY = [(64, 500000.0, 32.0), (128, 500000.0, 8.0), (8, 10000.0, 1.0), (32, 10000.0, 4.0)]
"""Size, theta, factor."""


def load(folder: Path, text: str) -> archspec.Model:
    path = folder / "probe.arch"
    path.write_text(text)
    return archspec.load(str(path))


def buckets(folder: Path, rows: int, furthest: int, causal: bool) -> archspec.Model:
    """A model of the buckets, as reals with a batch axis: what a model returns must come from its inputs."""
    return load(
        folder,
        f"""
import t5 {{ position_buckets }}
dim batch, seq
block Buckets(rows = {rows}, furthest = {furthest}, causal = {str(causal).lower()})
             (x [batch, seq, 1]) -> (buckets [batch, seq, seq]) {{
  none_of_it: param []
  return position_buckets(seq, rows, furthest, causal) + x * .none_of_it
}}
model "buckets" = Buckets()
""",
    )


def frequencies(folder: Path, size: int, theta: float, factor: float) -> archspec.Model:
    return load(
        folder,
        f"""
import std {{ rotary_frequencies }}
import llama {{ longer_context }}
dim batch
block Frequencies(size = {size}, theta = {theta}, factor = {factor})
                 (x [batch, size // 2]) -> (turned [batch, size // 2]) {{
  one: param []
  return longer_context(factor, 1.0, 4.0, 8192)(rotary_frequencies(size, theta)) * x * .one
}}
model "frequencies" = Frequencies()
""",
    )


def bucket(offset: int, rows: int, furthest: int, causal: bool) -> int:
    """By integers alone: a logarithmic range ends where (distance / exact)^n reaches (furthest / exact)^k."""
    side = rows if causal else rows // 2
    exact = side // 2
    distance = max(-offset, 0) if causal else abs(offset)
    n, k = side - exact, 0
    while k < n - 1 and distance**n * exact ** (k + 1) >= furthest ** (k + 1) * exact**n:
        k += 1
    return (distance if distance < exact else exact + k) + side * (offset > 0 and not causal)


@pytest.mark.parametrize(("rows", "furthest", "causal"), TABLES)
def test_buckets_are_exact(rows: int, furthest: int, causal: bool, tmp_path: Path) -> None:
    body = internals(buckets(tmp_path, rows, furthest, causal)).body
    found = evaluate(body, {"x": np.zeros((1, LENGTH, 1))}, {"none_of_it": np.zeros(())}).outputs["buckets"][0]
    by_offset = {o: bucket(o, rows, furthest, causal) for o in range(-LENGTH + 1, LENGTH)}
    assert found.tolist() == [[by_offset[key - query] for key in range(LENGTH)] for query in range(LENGTH)]


@pytest.mark.parametrize(("size", "theta", "factor"), ROTARY)
def test_frequencies_of_longer_contexts(size: int, theta: float, factor: float, tmp_path: Path) -> None:
    """Against the three cases as they are usually written, by wavelengths."""
    body = internals(frequencies(tmp_path, size, theta, factor)).body
    found = evaluate(body, {"x": np.ones((1, size // 2))}, {"one": np.ones(())}).outputs["turned"][0]
    plain = theta ** (-np.arange(0, size, 2) / size)
    wavelength = 2 * np.pi / plain
    kept = (8192 / wavelength - 1.0) / (4.0 - 1.0)
    between = (1 - kept) * plain / factor + kept * plain
    expected = np.where(wavelength > 8192, plain / factor, np.where(wavelength < 8192 / 4, plain, between))
    np.testing.assert_allclose(found, expected, rtol=1e-14)


# Against transformers, where it is installed --------------------------------------------------------------------------


def run(model: archspec.Model, value: float, dtype: Any, **inputs: Array) -> Array:
    """What the PyTorch module of a model with one tensor, all `value`, makes of it."""
    torch = pytest.importorskip("torch")
    module = archspec.to_torch(model).to(dtype)
    for parameter in module.parameters():
        torch.nn.init.constant_(parameter, value)
    with torch.no_grad():
        return module(**{name: torch.tensor(array, dtype=dtype) for name, array in inputs.items()})[0].numpy()


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "furthest", "causal"), TABLES)
def test_buckets_are_those_of_transformers(rows: int, furthest: int, causal: bool, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    place = torch.arange(2 * furthest)
    expected = t5.T5Attention._relative_position_bucket(
        place - place[:, None], bidirectional=not causal, num_buckets=rows, max_distance=furthest
    )
    model = buckets(tmp_path, rows, furthest, causal)
    for dtype in torch.float32, torch.float64:
        found = run(model, 0.0, dtype, x=np.zeros((1, 2 * furthest, 1)))[0]
        assert np.array_equal(found, expected.numpy())


@pytest.mark.slow
@pytest.mark.parametrize(("size", "theta", "factor"), ROTARY)
def test_frequencies_are_those_of_transformers(size: int, theta: float, factor: float, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    utilities = pytest.importorskip("transformers.modeling_rope_utils")
    config = transformers.LlamaConfig(
        hidden_size=2 * size,
        num_attention_heads=2,
        head_dim=size,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": theta,
            "factor": factor,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    )
    expected, scale = utilities.ROPE_INIT_FUNCTIONS["llama3"](config)
    assert scale == 1.0
    found = run(frequencies(tmp_path, size, theta, factor), 1.0, torch.float32, x=np.ones((1, size // 2)))[0]
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-6)
