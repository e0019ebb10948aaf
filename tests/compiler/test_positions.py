"""Where bundled models say that a token stands: buckets of relative positions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import Array, evaluate_model

import archspec

LENGTH = 300
TABLES = [(32, 128, False), (32, 128, True), (8, 12, False), (8, 12, True), (64, 256, False), (16, 100, True)]
"""Rows, furthest, causal: as published first, then what rounds otherwise."""


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
    model = buckets(tmp_path, rows, furthest, causal)
    found = evaluate_model(model, {"x": np.zeros((1, LENGTH, 1))}, {"none_of_it": np.zeros(())}).outputs["buckets"][0]
    by_offset = {o: bucket(o, rows, furthest, causal) for o in range(-LENGTH + 1, LENGTH)}
    assert found.tolist() == [[by_offset[key - query] for key in range(LENGTH)] for query in range(LENGTH)]


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
