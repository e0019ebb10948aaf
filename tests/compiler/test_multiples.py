"""Inputs whose size is a multiple of a dimension, such as `80 * seq`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import read_spec
from reference import evaluate_model
from small import load

import archspec

FRAMES = read_spec("multiples_frames")
INNER = read_spec("multiples_inner")


def test_a_dimension_is_the_size_divided_by_the_factor() -> None:
    model = load(FRAMES)
    assert str(model.inputs["x"].shape[1]) == "4*seq"
    rng = np.random.default_rng(0)
    x, weight, mask = rng.normal(size=(2, 20)), rng.normal(size=(3, 4)), np.arange(10).reshape(2, 5) % 3 > 0
    found = evaluate_model(model, {"x": x, "mask": mask}, {"weight": weight}).outputs["output"]
    assert np.allclose(found, np.where(mask[..., None], x.reshape(2, 5, 4) @ weight.T, 0))


def test_costs_and_formulas_are_in_the_dimension(tmp_path: Path) -> None:
    path = tmp_path / "frames.arch"
    path.write_text(FRAMES + 'model "frames" = Frames()\n')
    assert str(archspec.cost(path).work.flops) == "24*batch*seq"
    assert archspec.cost(path, batch=2, seq=5).work.flops == 2 * 5 * 24
    assert str(archspec.formula(path, ["hop", "n"]).total) == "hop*n"
    model = archspec.load(path)
    assert model.graph().edges["input:x", "#framed.0"]["shape"] == model.inputs["x"].shape


def test_a_formula_assumes_that_the_size_is_divisible(tmp_path: Path) -> None:
    path = tmp_path / "outer.arch"
    path.write_text(INNER.replace("SIZE", "by * seq") + 'model "outer" = Outer()\n')
    (found,) = archspec.formula(path, ["n"]).assumptions
    assert (found.operator, str(found.left), found.right) == ("divisible", "n", 4)


@pytest.fixture(name="module")
def module_fixture() -> Any:
    pytest.importorskip("torch")
    return archspec.to_torch(load(FRAMES))


@pytest.mark.slow
def test_generated_code_computes_the_same_and_checks_the_size(module: Any) -> None:
    import torch

    x, mask = torch.randn(2, 20), torch.ones(2, 5, dtype=torch.bool)
    assert torch.allclose(module(x, mask), x.reshape(2, 5, 4) @ module.weight.T)
    with pytest.raises(ValueError, match=r"x has shape \[2, 21\], expected \[batch, hop \* seq\]"):
        module(torch.randn(2, 21), mask)
    with pytest.raises(ValueError, match=r"mask has shape \[2, 6\], expected \[2, 5\]"):
        module(x, torch.ones(2, 6, dtype=torch.bool))


@pytest.mark.slow
def test_generated_code_is_proven_equal_to_the_spec(module: Any) -> None:
    assert archspec.equivalent(load(FRAMES), module).verdict == "equal"
    assert archspec.equivalent(load(FRAMES, hop=2), module).verdict == "different"


@pytest.mark.slow
def test_activations_are_in_the_dimension(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "frames.arch"
    path.write_text(FRAMES + 'model "frames" = Frames()\n')
    formula = archspec.cost(path, attention="math").activations
    number = archspec.cost(path, attention="math", batch=2, seq=5).activations
    assert formula is not None and number is not None
    assert formula.bytes.at({"batch": 2, "seq": 5}) == number.bytes
