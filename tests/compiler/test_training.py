"""Dropout: the identity in evaluation, which no result but generated code shows."""

from collections.abc import Callable

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


@pytest.mark.slow
def test_published_rates(golden: Callable[[str, str], None]) -> None:
    """The rates of the bundled models, as their configurations state them."""
    lines: list[str] = []
    for name in sorted(archspec.models()):
        values = archspec.load(name).hyperparameters.items()
        rates = [f"{word} {rate}" for word, rate in values if "dropout" in word and type(rate) is float and rate]
        lines += [f"{name}: {', '.join(rates)}\n"] if rates else []
    golden("rates.txt", "".join(lines))
