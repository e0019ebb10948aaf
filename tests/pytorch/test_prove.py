"""Normal forms: they have the values of the reference, meet where computations are the same, and prove builds."""

import ast
import logging
import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import reference
from small import load

import archspec
from archspec import Model, Polynomial
from archspec.core.algebra import symbols
from archspec.core.optional import silence_loggers
from archspec.ir.module import canonical_name, iter_tensors
from archspec.ir.normal.arrays import Arrays
from archspec.pipeline.model import get_compilation

torch = pytest.importorskip("torch")

from archspec import equivalent
from archspec.ir.normal.origins import LocationIndex
from archspec.pytorch.numeric.evaluate import Evaluation
from archspec.pytorch.prove.numeric import RELATIVE_TOLERANCE as SAME_OUTPUTS
from archspec.pytorch.prove.numeric import array_runner, largest_error, module_runner
from archspec.pytorch.prove.sides import example_sizes, model_outputs

TINY: dict[str, dict[str, Any]] = {
    "bert-base-uncased": {"vocab": 97, "hidden": 32, "layers": 2, "heads": 4, "ffn": 48, "positions": 20},
    "gpt2": {"vocab": 97, "hidden": 32, "layers": 2, "heads": 4, "ffn": 48, "positions": 20},
    "llama-3.1-8b": {"vocab": 97, "hidden": 32, "layers": 2, "heads": 4, "ffn": 48, "groups": 2},
    "t5-small": {"vocab": 97, "hidden": 32, "layers": 2, "heads": 4, "ffn": 48, "size": 8},
    "bart-base": {"vocab": 97, "hidden": 32, "layers": 2, "heads": 4, "ffn": 48, "positions": 20},
    "modernbert-base": {"vocab": 97, "hidden": 32, "layers": 4, "heads": 4, "ffn": 48, "window": 4},
    "transformer-seq2seq": {"words": 97, "hidden": 32, "layers": 2, "heads": 4, "inner": 48, "positions": 13},
}


def test_loggers_are_silent_meanwhile(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("archspec.tests")
    logger.setLevel(logging.INFO)
    with silence_loggers("archspec.tests"):
        logger.error("inside")
    logger.info("after")
    assert caplog.messages == ["after"]


def tiny(name: str) -> Model:
    return archspec.load(name, **TINY[name])


MASKED = """
dim batch, seq
block Masked(n)(x [batch, seq, n], mask int [batch, seq]) -> [batch, seq, n] {
  table  = where(arange(n) > reshape([n, 1])(arange(n)), 0.0, 1.0)
  seen   = table |> reshape([1, n, n]) |> slice(axis = 1, stop = seq) |> slice(axis = -1, stop = seq)
  hidden = (1.0 - reshape([batch, 1, seq])(mask)) * lowest
  y      = matmul(softmax(axis = -1)(matmul(x, transpose(x)) * seen + (1 - seen) * -10000.0 + hidden), x)
  return matmul(softmax(axis = -1)(matmul(y, transpose(y)) * seen + (1 - seen) * -10000.0 + hidden), y)
}
model "masked" = Masked(8)
"""


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


SAME = [
    ("x * 2.0 + x", "x * 3.0"),
    ("(x + 1.0) * 2.0", "2.0 + x + x"),
    ("x / 4.0", "0.25 * x"),
    ("sqrt(abs(x)) * sqrt(abs(x))", "abs(x)"),
    ("(x * x + 1.0) / (1.0 + x * x)", "x * 0.0 + 1.0"),
    ("where(x > 0.0, stack(axis = 0)(x, x) |> pick(0, 1), 1.0)", "where(0.0 < x, x, 1.0)"),
    ("transpose(0, 1)(transpose(0, 1)(x))", "x"),
    ("reshape([batch, seq, 8])(reshape([batch, seq, 2, 4])(x))", "x"),
    ("concat(axis = -1)(slice(axis = -1, stop = 3)(x), slice(axis = -1, start = 3)(x))", "x"),
    ("softmax(x + sum(axis = -1, keep = true)(x))", "softmax(x)"),
    ("sum(axis = -1, keep = true)(x * 3.0) + x", "3.0 * sum(axis = -1, keep = true)(x) + x"),
    ("where(x > 0.0, x, 0.0 - x)", "where(0.0 >= x, 0.0 - x, x)"),
    ("where(arange(8) >= 0, x, 1.0)", "x"),
    ("roll(3)(x)", "concat(axis = -1)(slice(axis = -1, start = 5)(x), slice(axis = -1, stop = 5)(x))"),
    ("permute([1, 0, 2])(x) |> permute([1, 0, 2])", "x"),
    ("layer_norm(1e-5)(x)", "centred(x)"),
]
DIFFERENT = [
    ("x - 1.0", "1.0 - x"),
    ("softmax(axis = -1)(x)", "softmax(axis = 1)(x)"),
    ("transpose(0, 1)(transpose(0, 1)(x)) + 1.0", "x"),
    ("roll(3)(x)", "roll(4)(x)"),
    ("x * table([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])", "x"),
    ("where(x > 0.0, x, 0.0 - x)", "where(x > 1.0, x, 0.0 - x)"),
    ("x * x", "x"),
    ("layer_norm(1e-5)(x)", "layer_norm(1e-6)(x)"),
    ("abs(x)", "x"),
    ("sqrt(x) * sqrt(x)", "x"),
    ("(x * x) ** 0.5", "x"),
    ("max(x, 0.0) / max(x, 0.0)", "x / x"),
    ("where(x > 0.0, 0.0 - inf, x) * 0.0", "x * 0.0"),
    ("reshape([batch, seq, 8])(transpose(2, 3)(reshape([batch, seq, 2, 4])(x)))", "x"),
]
CENTRED = """
fn centred(x [batch, seq, 8]) -> [batch, seq, 8] {
  mean = sum(axis = -1, keep = true)(x) / 8
  rest = x - mean
  return rest / sqrt(sum(axis = -1, keep = true)(rest ** 2) / 8 + 1e-5)
}
"""


def net(expression: str) -> Model:
    return load(f"""
dim batch, seq
{CENTRED if "centred" in expression else ""}
block Net()(x [batch, seq, 8]) -> [batch, seq, 8] {{
  weight: param [8]
  return ({expression}) * .weight
}}
""")


@pytest.mark.parametrize(("a", "b"), SAME)
def test_other_spellings_of_a_computation_are_equal(a: str, b: str) -> None:
    assert equivalent(net(a), net(b)).verdict == "equal"


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_other_computations_are_different(a: str, b: str) -> None:
    found = equivalent(net(a), net(b))
    assert found.verdict == "different" and found.error and found.error > 1e-6


def test_the_first_difference_is_located() -> None:
    found = equivalent(net("softmax(axis = -1)(x)"), net("softmax(axis = 1)(x)"))
    assert found.unequal is not None and found.unequal.output == "output"
    assert found.unequal.a is not None and found.unequal.a.source.endswith(":6")


def test_models_with_other_tensors_are_not_compared() -> None:
    found = equivalent(
        tiny("bert-base-uncased"), archspec.load("bert-base-uncased", **TINY["bert-base-uncased"] | {"ffn": 64})
    )
    assert found.verdict == "different" and "encoder.layer.0.intermediate.dense.weight" in found.reason


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("x [batch]) -> [batch] { return x }", "y [batch]) -> [batch] { return y }", "the inputs differ: `x`"),
        ("x [batch], m bool [batch]) -> [batch] { return where(m, x, 0.0) }",
         "x [batch], m bool [batch] = none) -> [batch] { return where(m, x, 0.0) if m != none else x }",
         "the optional inputs differ: `m`"),
        ("x [batch]) -> [batch] { return x }", "x [batch]) -> [1, batch] { return reshape([1, batch])(x) }",
         "the outputs differ: `output`"),
        ("x [batch]) -> (a [batch], b [batch]) { return x, exp(x) }",
         "x [batch]) -> (b [batch], a [batch]) { return x, exp(x) }", "the outputs are in another order: `b`, `a`"),
    ],
)  # fmt: skip
def test_models_with_other_inputs_or_outputs_are_not_compared(first: str, second: str, reason: str) -> None:
    a, b = [load(f"dim batch\nblock Net()({body}") for body in (first, second)]
    found = equivalent(a, b)
    assert (found.verdict, found.reason) == ("different", reason)


@pytest.mark.parametrize(
    ("integer", "reason"),
    [
        ("(n + m + l + 1) ** 8 * (n + 2 * m + 3 * l + 5) ** 8 * (l + 3 * m + 2 * n) ** 8", "more than 1,000 terms"),
        ("pick(-1, 0)(7 // arange(8)) + n + m + l", "division of a dimension by zero"),
        ("(n + m + l) * full([1], LARGE) ** 8 * full([1], LARGE) ** 8 * full([1], LARGE) ** 8", "too large"),
    ],
)
def test_integers_without_a_normal_form_are_not_proven(integer: str, reason: str) -> None:
    model = load(f"""
dim batch
block Net()(x [batch], n int [batch], m int [batch], l int [batch]) -> [batch] {{
  weight: param [1]
  return x * real({integer.replace("LARGE", "10 ** 17")}) * .weight
}}
""")
    found = equivalent(model, model)
    assert found.verdict == "not proven" and reason in found.reason


def test_two_modules_are_refused() -> None:
    with pytest.raises(TypeError, match=r"found two modules$"):
        equivalent(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))


def test_a_module_is_proven_or_told_apart() -> None:
    model = net("x * 2.0")

    class Twice(torch.nn.Module):
        def __init__(self, by: float) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(8))
            self.by = by

        def forward(self, x: Any) -> Any:
            return x * self.weight * self.by

    assert equivalent(model, Twice(2.0))
    assert equivalent(Twice(2.0), model)
    found = equivalent(model, Twice(2.5))
    assert found.verdict == "different" and found.unequal is not None
    for other in (torch.nn.Linear(8, 8), torch.nn.ReLU()):
        assert equivalent(model, other).reason == "the tensors differ: `weight`"
    more = Twice(2.0)
    more.bias = torch.nn.Parameter(torch.zeros(8))
    assert equivalent(model, more).reason == "the tensors differ: `bias`"


@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_builds_are_proven(name: str) -> None:
    model = tiny(name)
    assert equivalent(model, archspec.to_torch(model)).verdict == "equal"


SWAPS: dict[type[ast.operator], ast.operator] = {ast.Add: ast.Sub(), ast.Sub: ast.Add(), ast.Mult: ast.Add()}


def mutants(text: str, seed: int, count: int) -> Iterator[str]:
    """Yield copies of a generated file that compute something else: operands, axes, numbers or names are others."""
    generator = random.Random(seed)
    tree = ast.parse(text)
    forwards = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name not in ("__init__", "build")
    ]
    places = [(function, i) for function in forwards for i, node in enumerate(ast.walk(function)) if _changes(node)]
    for function, place in generator.sample(places, min(count, len(places))):
        copy = ast.parse(text)
        twin = next(
            n
            for n in ast.walk(copy)
            if isinstance(n, ast.FunctionDef) and (n.name, n.lineno) == (function.name, function.lineno)
        )
        node = list(ast.walk(twin))[place]
        _change(node)
        yield ast.unparse(copy)


def _changes(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return type(node.op) in SWAPS
    if isinstance(node, ast.Call):
        return len(node.args) > 1 and all(isinstance(part, ast.Name) for part in node.args[:2])
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def _change(node: ast.AST) -> None:
    if isinstance(node, ast.BinOp):
        node.op = SWAPS[type(node.op)]
    elif isinstance(node, ast.Call):
        node.args[0], node.args[1] = node.args[1], node.args[0]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        node.operand.value = node.operand.value + 1


@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_changed_builds_are_never_proven(name: str) -> None:
    """A change is found, breaks the file, or leaves the outputs as they are."""
    from archspec.codegen.build import torch_source

    model = tiny(name)
    for text in mutants(torch_source(model), 0, 8):
        namespace: dict[str, Any] = {"__name__": "mutant"}
        try:
            exec(compile(text, "mutant.py", "exec"), namespace)
            module = namespace["build"]()
        except Exception:
            continue
        if equivalent(model, module):
            body, arrays = get_compilation(model).body, Arrays()
            outputs = array_runner(arrays, model_outputs(arrays, body, LocationIndex(arrays)))
            error = largest_error(body, outputs, module_runner(module, body))
            assert error is not None and error <= SAME_OUTPUTS, text


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


@pytest.mark.slow
def test_falcon_has_biases_for_distances_in_tokens() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 97, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 6}
    config = transformers.FalconConfig(**sizes, alibi=True, multi_query=False, parallel_attn=False, use_cache=False)
    model = archspec.load({**config.to_dict(), "architectures": ["FalconModel"]})
    assert equivalent(model, transformers.FalconModel(config).eval()).verdict in ("equal", "outputs equal")
