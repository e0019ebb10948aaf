"""Dropout: the identity in evaluation, which no result but generated code shows."""

from typing import Any

import numpy as np
import pytest
import reference
from small import findings, load

import archspec
from archspec.codegen.build import torch_source
from archspec.pipeline.model import get_compilation

NET = """
import std { Linear, Dropout, SelfAttention, gelu }
dim batch, seq
fn dropped(x [...]) -> [...] {
  return x |> dropout(0.3) |> dropout(0.2)
}
block Layer(hidden, rate)(x [batch, seq, hidden]) -> [batch, seq, hidden] {
  return x
    |> self:    SelfAttention(hidden, 2)
    |> dropout: Dropout(rate)
    |> out:     Linear(hidden, hidden)
    |> dropped
    |> + x
    |> dropout(rate)
}
block Net(rate = 0.1)(x [batch, seq, 8]) -> [batch, seq, 8] {
  return x |> layers[i]: Layer(8, rate) for i in 0..2
}
"""
DROPS = ("    |> dropout: Dropout(rate)\n", "    |> dropped\n", "    |> dropout(rate)\n")
HEAD = """
fn dropped(x [...]) -> [...] {
  return x |> dropout(0.3) |> dropout(0.2)
}
"""


def without_dropout() -> str:
    text = NET.replace(HEAD, "\n").replace("Dropout, ", "").replace("(hidden, rate)", "(hidden)")
    text = text.replace("(rate = 0.1)", "()").replace("(8, rate)", "(8)")
    for line in DROPS:
        text = text.replace(line, "")
    assert "drop" not in text and "rate" not in text
    return text


def shown(graph: Any) -> tuple[Any, ...]:
    """A graph without where its nodes come from."""
    nodes = {name: {k: v for k, v in data.items() if k != "source"} for name, data in graph.nodes.items()}
    return nodes, dict(graph.edges.items()), graph.graph["blocks"]


@pytest.mark.parametrize("fold", [False, True])
def test_graphs_show_it_at_op_level_only(fold: bool) -> None:
    with_it, without = load(NET), load(without_dropout())
    for level, depth in (("layer", None), ("block", 1), ("block", 2)):
        assert shown(with_it.graph(level, depth, fold=fold)) == shown(without.graph(level, depth, fold=fold))
    ops = [data["type"] for _, data in with_it.graph("op").nodes.items()]
    assert ops.count("dropout") == 2 * 4
    rates = [d["hyperparameters"]["rate"] for _, d in with_it.graph("op").nodes.items() if d["type"] == "dropout"]
    assert rates == [0.1, 0.3, 0.2, 0.1] * 2


def test_it_costs_nothing_and_hides_no_attention() -> None:
    model, without = load(NET), load(without_dropout())
    assert archspec.cost(model).work == archspec.cost(without).work
    in_attention = archspec.cost(
        load(NET.replace("SelfAttention(hidden, 2)", "SelfAttention(hidden, 2, dropout = 0.5)"))
    )
    assert in_attention.work == archspec.cost(without).work
    assert in_attention.work.score_macs and in_attention.work.mix_macs


def test_diff_reports_no_difference_and_compare_the_rate() -> None:
    model = load(NET)
    for other in (load(NET.replace("rate = 0.1", "rate = 0.2")), load(without_dropout())):
        assert not archspec.diff(model, other)
    (setting,) = archspec.compare("bert-base-uncased", archspec.load("bert-base-uncased", hidden_dropout=0.0)).settings
    assert (setting.name, setting.values) == ("hidden_dropout", {0: 0.1, 1: 0.0})


def test_diff_describes_other_changes_without_it() -> None:
    changed, without = (
        NET.replace("|> dropped", "|> gelu |> dropped"),
        without_dropout().replace("|> + x", "|> gelu |> + x"),
    )
    before = archspec.diff(load(without_dropout()), load(without)).operations
    assert before and archspec.diff(load(NET), load(changed)).operations == before


def test_values_are_those_of_evaluation() -> None:
    model = load(NET)
    rng = np.random.default_rng(0)
    weights = {t.name: rng.normal(size=t.shape) for t in model.tensors}
    inputs = {"x": rng.normal(size=(2, 3, 8))}
    outputs = [
        reference.evaluate(get_compilation(m).body, inputs, weights).outputs for m in (model, load(without_dropout()))
    ]
    assert np.array_equal(outputs[0]["output"], outputs[1]["output"])


def test_residuals_are_seen_through_it() -> None:
    assert "no-residual" not in [warning.code for warning in load(NET).warnings]
    assert "no-residual" in [warning.code for warning in load(NET.replace("    |> + x\n", "")).warnings]


def test_generated_modules_drop_in_training_mode() -> None:
    text = torch_source(load(NET))
    assert "return F.dropout(x, 0.1, self.training)" in text
    assert "def dropped(x: Tensor, *, training: bool) -> Tensor:" in text
    assert "return F.dropout(F.dropout(x, 0.3, training), 0.2, training)" in text
    assert "dropped(h, training=self.training)" in text
    assert "dropout" not in torch_source(load(without_dropout()))
    assert "F.dropout" not in torch_source(load(NET.replace("dropped\n", "gelu\n"), rate=0.0))


def test_attention_drops_its_weights() -> None:
    spec = NET.replace("SelfAttention(hidden, 2)", "SelfAttention(hidden, 2, dropout = rate)")
    text = torch_source(load(spec))
    assert "F.scaled_dot_product_attention(q, k, v, dropout_p=0.1 if training else 0.0)" in text
    assert "attention(q, k, v, training=self.training)" in text
    text = torch_source(load(spec.replace("Layer(8, rate)", "Layer(8, rate * i)")))  # 0 in the first layer
    assert "q, k, v, dropout_p=dropout if training else 0.0\n" in text
    assert "attention(q, k, v, dropout=self.dropout, training=self.training)" in text


ONE = """
layer One()(x [4], ids int [4]) -> (y [4], z [4], same int [4]) {
  weight: param [4]
  return %s, x * .weight, ids
}
"""


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("dropout(1.5)(x)", "`dropout` expects a number from 0 to below 1 as `rate`, found the real 1.5"),
        ("dropout(1)(x)", "`dropout` expects a number from 0 to below 1 as `rate`, found 1"),
        ("dropout(-0.1)(x)", "`dropout` expects a number from 0 to below 1 as `rate`, found the real -0.1"),
        ("dropout(true)(x)", "`dropout` expects a number from 0 to below 1 as `rate`, found true"),
        ("dropout(none)(x)", "`dropout` expects a number from 0 to below 1 as `rate`, found `none`"),
        ("dropout(x)", "missing hyperparameter `rate` in call to `dropout`"),
        ("dropout(0.1)(ids)", "`dropout` expects real elements as `x`, found int [4]"),
        ("dropout(0.1)(ids == 1)", "`dropout` expects numbers, found bool [4]"),
    ],
)
def test_wrong_rates_and_operands_are_refused(expression: str, message: str) -> None:
    assert [d.message for d in findings(ONE % expression) if d.severity == "error"] == [message]


NO_DROPOUT = (
    *("bloom", "clip", "deepseek", "deit", "dinov2", "esm2", "eurobert", "falcon", "gemma", "gpt-j", "gpt-neox"),
    *("gpt-oss", "llama", "mistral", "mixtral", "modernbert", "nomic", "olmo", "phi", "pythia", "qwen", "swin", "vit"),
    "whisper",
)
NOT_DROPPED = {
    "albert": ("hidden_dropout", "attention_dropout"),
    "m2m100_418M": ("activation_dropout",),
    "mbart": ("attention_dropout", "activation_dropout"),
    "nllb": ("activation_dropout",),
    "opt": ("attention_dropout",),
    "wav2vec2-base": ("activation_dropout",),
    "wav2vec2-large-lv60": ("activation_dropout",),
    "opus": ("attention_dropout", "activation_dropout"),
}


@pytest.mark.parametrize("name", archspec.models())
def test_published_rates(name: str) -> None:
    """The rates of the bundled models: 0.1, or 0 where their configurations say so."""
    rates = {k: v for k, v in archspec.load(name).hyperparameters.items() if "dropout" in k and type(v) is float}
    assert rates or name.startswith(("clip-vit-base-patch32", "clip-vit-large", "mamba", "siglip"))
    none = name.startswith(NO_DROPOUT)
    for word, rate in rates.items():
        expected = 0.0 if none or word in NOT_DROPPED.get(name, NOT_DROPPED.get(name.partition("-")[0], ())) else 0.1
        assert rate == (0.3 if name == "transformer-big" else expected), word


def test_a_hyperparameter_that_hides_the_operation() -> None:
    (found,) = findings(ONE.replace("One()", "One(dropout = 0.1)") % "dropout(dropout)(x)")
    assert found.message == "cannot apply the real 0.1"
    assert found.help == "rename `dropout`, which hides the operation `dropout`"
