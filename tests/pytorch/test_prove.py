"""Normal forms: they have the values of the reference, meet where computations are the same, and prove builds."""

from collections.abc import Callable
from typing import Any

import pytest
from small import load

import archspec
from archspec import Model

torch = pytest.importorskip("torch")

from archspec import equivalent

TINY: dict[str, dict[str, Any]] = {
    "bert-base-uncased": {"vocab": 97, "hidden": 32, "layers": 2, "heads": 4, "ffn": 48, "positions": 20},
    "gpt2": {"vocab": 97, "hidden": 32, "layers": 2, "heads": 4, "ffn": 48, "positions": 20},
    "llama-3.1-8b": {"vocab": 97, "hidden": 32, "layers": 2, "heads": 4, "ffn": 48, "groups": 2},
    "t5-small": {"vocab": 97, "hidden": 32, "layers": 2, "heads": 4, "ffn": 48, "size": 8},
    "bart-base": {"vocab": 97, "hidden": 32, "layers": 2, "heads": 4, "ffn": 48, "positions": 20},
    "modernbert-base": {"vocab": 97, "hidden": 32, "layers": 4, "heads": 4, "ffn": 48, "window": 4},
    "transformer-seq2seq": {"words": 97, "hidden": 32, "layers": 2, "heads": 4, "inner": 48, "positions": 13},
}


def tiny(name: str) -> Model:
    return archspec.load(name, **TINY[name])


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


@pytest.mark.slow
def test_falcon_has_biases_for_distances_in_tokens() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 97, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 6}
    config = transformers.FalconConfig(**sizes, alibi=True, multi_query=False, parallel_attn=False, use_cache=False)
    model = archspec.load({**config.to_dict(), "architectures": ["FalconModel"]})
    assert equivalent(model, transformers.FalconModel(config).eval()).verdict in ("equal", "outputs equal")


class Applied(torch.nn.Module):
    """A function, and a table that is not stored."""

    def __init__(self, function: Callable[[Any, Any], Any], *table: Any) -> None:
        super().__init__()
        self.function = function
        self.scale = torch.nn.Buffer(torch.tensor(table), persistent=False)

    def forward(self, x: Any) -> Any:
        return self.function(self, x)


DOUBLED = "dim batch, seq\nblock Net()(x [batch, seq]) -> [batch, seq] { return x * 2.0 }\n"
SHORTER = "dim batch, seq\nblock Net()(x [batch, seq]) -> [batch, seq - 7] { return slice(axis = 1, start = 7)(x) }\n"
TABLED = """
dim batch
block Net()(x [batch, 2]) -> [batch, 2] {
  scale: const [2] = table([1.0, 0.5])
  return x * .scale
}
"""
TWICE, OF_TABLE = (lambda m, x: x * 2.0), (lambda m, x: x * m.scale)
COMPARED = {
    "the same table": (TABLED, Applied(OF_TABLE, 1.0, 0.5), "equal", ""),
    "another table": (TABLED, Applied(OF_TABLE, 1.0, 0.25), "different", "the constant table `scale` has other values"),
    "a table of integers": (TABLED, Applied(OF_TABLE, 1, 0), "different", "`scale` are int numbers"),
    "two outputs": (DOUBLED, Applied(lambda m, x: (x * 2.0, x)), "different", "2 outputs instead of 1"),
    "a branch for long inputs": (
        DOUBLED,
        Applied(lambda m, x: x * 2.0 if x.shape[1] <= 9 else x + x),
        "outputs equal",
        "it can only be exported where `seq` is at most 9",
    ),
    "a branch for short inputs": (
        DOUBLED,
        Applied(lambda m, x: x * 2.0 if x.shape[1] >= 4 else x + x),
        "outputs equal",
        "it can only be exported where `seq` is at least 4",
    ),
    "as short as the model": (SHORTER, Applied(lambda m, x: x[:, 7:]), "outputs equal", ""),
    "an output that draws": (
        DOUBLED,
        Applied(lambda m, x: x * 2.0 + torch.rand(1) * 0),
        "outputs equal",
        "it draws random numbers",
    ),
    "a root of a negative number": (
        "dim batch\nblock Net()(x [batch]) -> [batch] { return sqrt(x) }\n",
        Applied(lambda m, x: x.abs().sqrt() * (x / x)),
        "different",
        "",
    ),
}


@pytest.mark.parametrize("case", COMPARED)
def test_modules_are_compared(case: str) -> None:
    text, module, verdict, reason = COMPARED[case]
    found = equivalent(load(text), module.eval())
    assert found.verdict == verdict and reason in found.reason, found
    assert repr(found).endswith(f": {verdict}>")
