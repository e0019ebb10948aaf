"""Normal forms: they have the values of the reference, meet where computations are the same, and prove builds."""

import logging
import math
from typing import Any

import numpy as np
import pytest
import reference
from paths import read_spec
from small import load
from test_prove import TINY

import archspec
from archspec import Model, Polynomial
from archspec.core.algebra import symbols
from archspec.core.optional import silence_loggers
from archspec.ir.module import canonical_name, iter_tensors
from archspec.ir.normal.arrays import Arrays
from archspec.pipeline.model import get_compilation

torch = pytest.importorskip("torch")

from archspec.ir.normal.origins import LocationIndex
from archspec.pytorch.numeric.evaluate import Evaluation
from archspec.pytorch.prove.numeric import RELATIVE_TOLERANCE as SAME_OUTPUTS
from archspec.pytorch.prove.numeric import array_runner, largest_error, module_runner
from archspec.pytorch.prove.sides import example_sizes, model_outputs


def test_loggers_are_silent_meanwhile(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("archspec.tests")
    logger.setLevel(logging.INFO)
    with silence_loggers("archspec.tests"):
        logger.error("inside")
    logger.info("after")
    assert caplog.messages == ["after"]


def tiny(name: str) -> Model:
    return archspec.load(name, **TINY[name])


MASKED = read_spec("prove_values_masked")


def test_large_numbers_that_cancel_leave_scores_as_they_are() -> None:
    """As in `lowest * (1 - mask)`, which is a difference of two large numbers in normal form."""
    model = archspec.loads(MASKED)
    body, arrays = get_compilation(model).body, Arrays()
    runs = array_runner(arrays, model_outputs(arrays, body)), module_runner(archspec.to_torch(model), body)
    error = largest_error(body, *runs)
    assert error is not None and error < SAME_OUTPUTS


@pytest.mark.parametrize("name", TINY)
def test_normal_forms_have_the_values_of_the_reference(name: str) -> None:
    body = get_compilation(tiny(name)).body
    module = body.module
    assert module is not None
    generator = np.random.default_rng(0)
    names = {
        size: 2 + 3 * i
        for i, size in enumerate(sorted({s for _, t in body.inputs for d in t.shape for s in symbols(d)}))
    }

    def drawn(shape: tuple[int, ...], dtype: str) -> Any:
        return generator.standard_normal(shape) * 0.3 if dtype == "real" else generator.integers(0, 2, shape)

    weights = {
        canonical_name(module, a): drawn(leaf.weight.shape, leaf.weight.type.dtype) for a, leaf in iter_tensors(module)
    }
    inputs: dict[str, Any] = {}
    for name, type in body.inputs:
        inputs[name] = drawn(tuple(d.at(names) if isinstance(d, Polynomial) else d for d in type.shape), type.dtype)
        inputs[name][:, 0] = 1  # something is visible
    expected = reference.evaluate(body, inputs, weights).outputs
    arrays = Arrays()
    stored = {("input", name): torch.tensor(value) for name, value in inputs.items()}
    stored |= {("tensor", name): torch.tensor(value) for name, value in weights.items()}
    values = Evaluation(arrays, stored, names)
    found = model_outputs(arrays, body, LocationIndex(arrays))
    for output, array in zip(body.named_outputs(), found, strict=True):
        np.testing.assert_allclose(values.array(array).numpy(), expected[output], atol=1e-12)


def test_huge_elements_do_not_hide_others() -> None:
    body = get_compilation(load("layer Net()(x [4]) -> [4] {\n  return exp(x)\n}\n")).body
    hidden = torch.tensor([1.0, -3e38, -math.inf, 2.0], dtype=torch.float64)

    def error(change: list[float]) -> float | None:
        other = hidden + torch.tensor(change, dtype=torch.float64)
        return largest_error(body, lambda *_: [hidden], lambda *_: [other])

    assert error([0.0, 0.0, 0.0, 0.0]) == 0.0
    assert error([1e-3, 0.0, 0.0, 0.0]) == pytest.approx(5e-4)
    assert error([0.0, 3e37, 0.0, 0.0]) == pytest.approx(0.1)
    assert error([0.0, math.inf, 0.0, 0.0]) == math.inf


def test_models_with_as_many_parameters_as_may_be_are_run() -> None:
    model = tiny("gpt2")
    body, arrays = get_compilation(model).body, Arrays()
    run = array_runner(arrays, model_outputs(arrays, body, LocationIndex(arrays)))
    total = model.params.total
    assert largest_error(body, run, run, {"batch": 1, "seq": 2}, most=total) == 0
    assert largest_error(body, run, run, {"batch": 1, "seq": 2}, most=total - 1) is None


def test_many_convolutions_are_compared_at_values_of_ordinary_size() -> None:
    layers = "\n".join([f"    |> layer{turn}: Conv1d(96, 96, 7, padding = 3)" for turn in range(24)])
    body = get_compilation(load(f"import std {{ Conv1d }}\ndim seq\nblock Net()(x [4, 96, seq]) -> [4, 96, seq] {{\n"
                          f"  return x\n{layers}\n}}\n")).body  # fmt: skip
    found: list[float] = []

    def run(values: Any, sizes: Any) -> list[Any]:
        x = values["input", "x"]
        for turn in range(24):
            weight, bias = (values["tensor", f"layer{turn}.{name}"] for name in ("weight", "bias"))
            x = torch.nn.functional.conv1d(x, weight, bias, padding=3)
        found.append(float(x.abs().max()))
        return [x]

    assert largest_error(body, run, run, {"seq": 16}) == 0.0
    assert 0.1 < found[0] < 100


def test_sizes_of_examples_are_only_as_large_as_they_have_to_be() -> None:
    model = load("dim batch, seq, n\nblock Net()(x [batch, seq], y [n]) -> ([batch, seq // 320], [n]) {\n"
                 "  return slice(axis = -1, stop = seq // 320)(x), y\n}\n")  # fmt: skip
    body = get_compilation(model).body
    sizes = example_sizes(body)
    assert sizes["batch"] == 3 and sizes["seq"] // 320 >= 2
    assert len({*example_sizes(body, 4).values()}) == 3
