"""Every generated module of a bundled model is proven to be equal to its spec; what cannot be proven says why."""

import importlib
from typing import Any

import pytest
from small import load

import archspec

torch = pytest.importorskip("torch")

from archspec import equivalent, testing

SMALL = {"vocab": 97, "words": 97, "hidden": 32, "layers": 2, "heads": 4, "ffn": 48, "positions": 20, "factor": 16}
SMALL |= {"inner": 48, "groups": 2, "size": 8, "window": 4, "experts": 4, "best": 2}
"""Small values of hyperparameters that many families have."""

DEBERTA = {"vocab": 97, "hidden": 32, "layers": 2, "heads": 4, "ffn": 48, "positions": 20, "buckets": 4}
OTHER: dict[str, dict[str, Any]] = {
    "deberta-v2-xlarge": DEBERTA,
    "deberta-v3-base": DEBERTA,
    "deberta-v3-base-mlm": DEBERTA,
    "gpt-j-6B": {"vocab": 97, "hidden": 256, "layers": 2, "heads": 2},
    "nomic-embed-text-v1.5": {"vocab": 128, "hidden": 32, "layers": 2, "heads": 4, "size": 8, "ffn": 48},
    "swin-tiny": {"hidden": 12, "depths": [2, 2], "heads": [2, 4]},
    "swin-tiny-cls": {"hidden": 12, "depths": [2, 2], "heads": [2, 4]},
}
"""Models for which these are invalid."""

UNPROVEN = {"mamba-130m": "a loop or branch in it depends on the size `seq`"}
"""Models that cannot be proven, with the reason."""


def reduced(name: str) -> archspec.Model:
    """A small model of the same family."""
    if name in OTHER:
        return archspec.load(name, **OTHER[name])
    known = archspec.load(name).hyperparameters
    numbers = {key for key, value in known.items() if isinstance(value, int) and not isinstance(value, bool)}
    chosen = {key: value for key, value in SMALL.items() if key in numbers}
    for without in ((), ("size",), ("factor",), ("size", "factor"), ("window",)):
        try:
            return archspec.load(name, **{key: value for key, value in chosen.items() if key not in without})
        except archspec.ArchError as error:
            problem = error
    raise problem


OFTEN = {"bert-base-uncased", "gpt2", "llama-3.2-1b", "mixtral-8x7b", "modernbert-base", "t5-small", "swin-tiny"}
"""The models of the slow tests; the others are for `-m exhaustive`."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in OFTEN else pytest.mark.exhaustive) for n in archspec.models()]
)
def test_builds_of_bundled_models_are_proven(name: str) -> None:
    model = reduced(name)
    found = equivalent(model, archspec.to_torch(model))
    if name in UNPROVEN:
        assert found.verdict == "outputs equal" and UNPROVEN[name] in found.reason
    else:
        assert found.verdict == "equal", found


TIED = """
dim batch
block Net(n = 4)(ids int [batch]) -> [batch, n] {
  words: unused param [n, n]
  head: param [n, n]
  tie head = words
  return embedding(ids, .head)
}
"""


def test_a_tie_that_is_undone_is_found() -> None:
    model = load(TIED)
    module: Any = archspec.to_torch(model)
    assert module.head is module.words
    module.head = torch.nn.Parameter(module.head.detach().clone())
    assert equivalent(model, module).reason == "the tied tensors differ: `head`"


class Scaled(torch.nn.Module):
    """Multiplies by a weight, and does something else that a proof must not ignore."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(8))
        self.what = what
        self.counter = torch.nn.Buffer(torch.zeros(()), persistent=False)

    def forward(self, x: Any) -> Any:
        if self.what == "drops":
            x = torch.nn.functional.dropout(x, 0.5)
        if self.what == "wraps":
            x = x + (x.long().to(torch.uint8) * 0).float()
        if self.what == "counts":
            self.counter += 1
        if self.what == "branches" and x.shape[1] > 4:
            x = x * 1.0
        if (
            (self.what == "odd" and x.shape[1] % 2 == 0)
            or (self.what == "other" and x.shape[1] == 17)
            or (self.what == "compares" and x.shape[1] <= x.shape[0])
            or (self.what == "squares" and x.shape[1] ** 2 < 9)
        ):
            x = x * 2.0
        return x * self.weight


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("drops", "dropout is active"),
        ("wraps", "it computes integers of the type torch.uint8"),
        ("counts", "it changes its inputs or buffers"),
        ("branches", "it can only be exported where `seq` is at"),
        ("odd", "it can only be exported where `seq%2 != 0`"),
        ("other", "it can only be exported where `seq != 17`"),
        ("compares", "it can only be exported where `seq > batch`"),
        ("squares", "it can only be exported where `seq**2 >= 9`"),
    ],
)
def test_what_a_proof_would_ignore_is_refused(what: str, reason: str) -> None:
    model = load("""
dim batch, seq
block Net()(x [batch, seq, 8]) -> [batch, seq, 8] {
  weight: param [8]
  return x * .weight
}
""")
    found = equivalent(model, Scaled(what))
    assert found.verdict != "equal" and reason in found.reason


def test_outputs_have_an_order() -> None:
    text = """
dim batch
block Net()(x [batch]) -> (OUTPUTS) {
  return x * 2.0, x * 3.0
}
"""
    there, back = [
        load(text.replace("OUTPUTS", outputs)) for outputs in ("a [batch], b [batch]", "b [batch], a [batch]")
    ]
    assert equivalent(there, back).reason == "the outputs are in another order: `b`, `a`"


class Shorter(torch.nn.Module):
    """Ends where a sequence of another length would."""

    def forward(self, y: Any, x: Any) -> Any:
        return x[:, -y.shape[1] :] + y


class Marked(torch.nn.Module):
    """Replaces the first element of some rows."""

    def forward(self, x: Any, rows: Any) -> Any:
        return torch.ops.aten.index_put(x, [rows, torch.tensor(0)], torch.tensor(1.0))


def test_arguments_with_a_special_meaning_are_understood() -> None:
    text = """
dim batch, seq
block Net()(y [batch, seq], x [batch, seq + 3]) -> [batch, seq] {
  return slice(axis = 1, WHERE)(x) + y
}
"""
    assert equivalent(load(text.replace("WHERE", "start = 3")), Shorter())
    assert equivalent(load(text.replace("WHERE", "stop = seq")), Shorter()).verdict == "different"
    marked = load("""
dim batch
block Net()(x [batch, 8], rows bool [batch]) -> [batch, 8] {
  return where(reshape([batch, 1])(rows), 1.0, x)
}
""")
    assert not equivalent(marked, Marked())


def test_complex_outputs_are_different() -> None:
    class Complex(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.complex(x + x, x)

    model = load("""
dim batch
block Net()(x [batch, 8]) -> [batch, 8] {
  return x + x
}
""")
    found = equivalent(model, Complex())
    assert found.verdict == "different" and found.reason == "it has complex outputs"


def test_a_real_number_is_added_to_real_parts_alone() -> None:
    class Shifted(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.view_as_real(torch.view_as_complex(x) + 2.0)

    def model(result: str) -> archspec.Model:
        return load(f"dim batch\nblock Net()(x [batch, 2]) -> [batch, 2] {{\n  return {result}\n}}\n")

    assert equivalent(model("stack(axis = -1)(pick(-1, 0)(x) + 2.0, pick(-1, 1)(x))"), Shifted())
    assert equivalent(model("x + 2.0"), Shifted()).verdict == "different"


@pytest.mark.slow
def test_generated_files_are_proven_without_values(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "build", "bert-base-uncased", "--set=layers=1", "--prove"
    assert not testing.run(*command).status
    source = importlib.import_module("archspec.app.cli.run.build").torch_source
    monkeypatch.setattr(
        "archspec.app.cli.run.build.torch_source", lambda model: source(model).replace("gelu(", "relu(")
    )
    result = testing.run(*command)
    assert result.status == 1 and result.errors.startswith("error[unproven]")
    assert "is not proven to be equal to it: Not proven (the normal forms differ; " in result.errors
