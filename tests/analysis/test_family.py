"""A model's family, found by structure: definitions of its file that own its definition."""

from pathlib import Path

import pytest

import archspec
from archspec import ArchError
from archspec.pipeline.compile import as_model
from archspec.pipeline.family import relatives_of

SPEC = """
import std { Linear }
block Even(n)(x [..., n]) -> [..., n] {
  require n % 2 == 0, "n must be even"
  return x |> a: Linear(n, n)
}
block Body(n = 4, extra = true)(x [..., n]) -> [..., n] {
  return x |> a: Linear(n, n) |> b: (Linear(n, n)) if extra
}
block One(..Body)(x [..., n]) -> [..., n] {
  return x |> body: Body(..) |> head: Even(n)
}
block Two(..Body, extra = false, classes = 3)(x [..., n]) -> [..., classes] {
  return x |> deep.body: Body(..) |> other: Linear(n, n) |> out: Linear(n, classes)
}
block Apart(n = 4)(x [..., n]) -> [..., n] {
  return x |> a: Linear(n, n)
}
model "body" = Body()
model "one"  = One()
model "two"  = Two()
"""


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "s.arch"
    path.write_text(SPEC.replace("b: (Linear(n, n)) if extra", "b: Linear(n, n) if extra"))
    return str(path)


def relatives(spec: str, **overrides: object) -> list[tuple[str, tuple[str, ...], str, str, int]]:
    found = relatives_of(as_model(spec, overrides))
    return [(r.definition, r.models, r.body, r.home, r.table.params.total) for r in found]


def test_what_owns_the_body_is_of_the_family(spec: str) -> None:
    assert relatives(f"{spec}:body") == [
        ("One", ("one",), "body", "", 60),
        ("Two", (), "deep.body", "", 75),
        ("Two", ("two",), "deep.body", "", 55),
    ]


def test_the_family_has_the_hyperparameters_of_the_model(spec: str) -> None:
    assert [total for *_, total in relatives(f"{spec}:body", n=6, extra=False)] == [84, 42 + 42 + 21]


def test_models_with_heads_are_of_one_family(spec: str) -> None:
    assert ("Two", ("two",), "deep.body", "body", 55) in relatives(f"{spec}:one")
    assert ("One", ("one",), "body", "deep.body", 60) in relatives(f"{spec}:two")


def test_what_does_not_compile_is_no_relative_and_leaves_nothing_behind(spec: str) -> None:
    """A head whose `require` does not hold is passed over; whoever asks for it is told all the same."""
    assert [name for name, *_ in relatives(f"{spec}:body", n=3)] == ["Two", "Two"]
    with pytest.raises(ArchError, match="n must be even"):
        archspec.load(f"{spec}:one", n=3)
    assert archspec.load(f"{spec}:one", n=2).params.total == 18


def test_a_file_without_a_family_of_its_own_has_that_of_the_definition(tmp_path: Path) -> None:
    path = tmp_path / "mine.arch"
    path.write_text('import bert { Bert }\nmodel "mine" = Bert(hidden = 96, layers = 2, ffn = 128, vocab = 100)\n')
    assert {name for name, *_ in relatives(str(path))} == {
        "BertForMaskedLM",
        "BertForPreTraining",
        "BertForNextSentencePrediction",
        "BertForSequenceClassification",
        "BertForTokenClassification",
        "BertForQuestionAnswering",
    }
