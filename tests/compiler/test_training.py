"""Dropout: the identity in evaluation, which no result but generated code shows."""

import numpy as np
import pytest
import reference
from paths import read_spec
from small import load

import archspec

NET = read_spec("training_net")
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


def test_diff_reports_no_difference_and_compare_the_rate() -> None:
    model = load(NET)
    for other in (load(NET.replace("rate = 0.1", "rate = 0.2")), load(without_dropout())):
        assert not archspec.diff(model, other)
    (setting,) = archspec.compare("bert-base-uncased", archspec.load("bert-base-uncased", hidden_dropout=0.0)).settings
    assert (setting.name, setting.values) == ("hidden_dropout", {0: 0.1, 1: 0.0})


def test_values_are_those_of_evaluation() -> None:
    model = load(NET)
    rng = np.random.default_rng(0)
    weights = {t.name: rng.normal(size=t.shape) for t in model.tensors}
    inputs = {"x": rng.normal(size=(2, 3, 8))}
    outputs = [reference.evaluate_model(m, inputs, weights).outputs for m in (model, load(without_dropout()))]
    assert np.array_equal(outputs[0]["output"], outputs[1]["output"])


NO_DROPOUT = (
    *("bloom", "clip", "deepseek", "deit", "dinov2", "esm2", "eurobert", "falcon", "gemma", "gpt-j", "gpt-neox"),
    *("gpt-oss", "llama", "mistral", "mixtral", "modernbert", "nomic", "olmo", "phi-1", "phi-3", "pythia", "qwen"),
    *("swin", "vit", "whisper", "afm", "apertus", "bitnet", "codegen", "command", "dots", "ernie-4.5", "ettin"),
    *("exaone", "glm", "gpt-neo", "helium", "hunyuan", "jais", "minimax", "ministral", "minitron", "mpt", "nemotron"),
    *("persimmon", "stablelm"),
)
IN_PARTS = (
    "aya-vision",
    "clip-vit-base-patch32",
    "clip-vit-large",
    "gemma-3-4b",
    "idefics3",
    "internvl3",
    "llava",
    "mamba",
    "mistral-small-3.1",
    "qwen2-audio",
    "qwen2-vl",
    "qwen2.5-vl",
    "qwen3-vl",
    "siglip",
)
NOT_DROPPED = {
    "albert": ("hidden_dropout", "attention_dropout"),
    "biogpt": ("activation_dropout",),
    "blenderbot": ("attention_dropout", "activation_dropout"),
    "m2m100_418M": ("activation_dropout",),
    "mbart": ("attention_dropout", "activation_dropout"),
    "nllb": ("activation_dropout",),
    "opt": ("attention_dropout",),
    "phi-2": ("attention_dropout", "embedding_dropout"),
    "plbart": ("activation_dropout",),
    "wav2vec2-base": ("activation_dropout",),
    "wav2vec2-large-lv60": ("activation_dropout",),
    "opus": ("attention_dropout", "activation_dropout"),
    "xglm": ("activation_dropout",),
}


@pytest.mark.parametrize("name", archspec.models())
def test_published_rates(name: str) -> None:
    """The rates of the bundled models: 0.1, or 0 where their configurations say so."""
    rates = {k: v for k, v in archspec.load(name).hyperparameters.items() if "dropout" in k and type(v) is float}
    assert rates or name.startswith(IN_PARTS)
    none = name.startswith(NO_DROPOUT)
    for word, rate in rates.items():
        expected = 0.0 if none or word in NOT_DROPPED.get(name, NOT_DROPPED.get(name.partition("-")[0], ())) else 0.1
        assert rate == (0.3 if name == "transformer-big" else expected), word
