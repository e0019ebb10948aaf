"""`archspec explain`: the counting conventions that give a number."""

import contextlib
import io
from collections.abc import Callable

import pytest
from paths import DATA, read_spec
from small import load

import archspec
from archspec.testing import main

pytestmark = pytest.mark.usefixtures("explainers_made_once")

QUESTIONS = [
    ("bert-base-uncased", "108808704"),
    ("bert-base-uncased", "109_482_240"),
    ("bert-base-uncased", "110M"),
    ("bert-base-uncased", "110,106,428"),
    ("bert-base-uncased", "109418952"),
    ("bert-base-uncased", "7087872"),
    ("bert-large-uncased", "335,043,584"),
    ("bert-large-uncased", "340M"),
    ("transformer-seq2seq", "10152448"),
    ("transformer-seq2seq", "15,676,928"),
    ("transformer-seq2seq", "10,157,448"),
    ("albert-base-v2", "89,650,176"),
]
"""A model and a published number, or one that is a well-known mistake."""


def printed(*arguments: str) -> tuple[str, int]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = main(arguments)
    return out.getvalue(), status


def test_what_people_see(golden: Callable[[str, str], None]) -> None:
    answers = [(f"$ archspec explain {spec} {number}", *printed("explain", spec, number)) for spec, number in QUESTIONS]
    golden("explain.txt", "\n".join(f"{command}\n{text}[{status}]\n" for command, text, status in answers))


# All conventions, and back


PLAIN = "every tensor of the model, each counted once"
TIED = DATA / "faults" / "explain_tied.arch"


@pytest.mark.parametrize(
    ("model", "number", "steps", "parts"),
    [
        ("even", "346", [(f"{PLAIN}; 32 names of shared tensors not counted again", 346)], [(4, 82), (1, 18)]),
        (
            "even",
            "1002",
            [
                (f"{PLAIN}; 32 names of shared tensors not counted again", 346),
                ("with shared tensors counted once per name", 656),
            ],
            [(12, 82), (1, 18)],
        ),
        ("uneven", "834", [(f"{PLAIN}; 8 names of shared tensors not counted again", 834)], [(1, 816), (1, 18)]),
        (
            "uneven",
            "1002",
            [
                (f"{PLAIN}; 8 names of shared tensors not counted again", 834),
                ("with shared tensors counted once per name", 168),
            ],
            [(12, 82), (1, 18)],
        ),
    ],
)
def test_tied_layers_are_counted_as_they_are(
    model: str, number: str, steps: list[tuple[str, int]], parts: list[tuple[int, int]]
) -> None:
    (answer,) = archspec.explain(f"{TIED}:{model}", number).answers
    (match,) = answer.matches
    assert [tuple(step) for step in match.steps] == steps
    assert [(part.times, part.each) for part in match.parts] == parts


@pytest.mark.parametrize("model", ["albert-base-v2", "electra-small-discriminator", "bert-base-uncased", "bart-base"])
def test_the_embedding_tables_are_tables(model: str) -> None:
    table = archspec.load(model)
    role = sum(t.params for t in table.tensors if t.role == "embedding")
    tables = sum(t.params for t in table.tensors if t.role == "embedding" and t.type == "Embedding")
    for text, params in (("the embedding tables", tables), ("the tensors with role `embedding`", role)):
        (answer,) = archspec.explain(model, str(table.params.total - params)).answers
        found = [step for match in answer.matches for step in match.steps if step.params == -params]
        assert found
        if role != tables:
            assert f"without {text}" in [step.text for step in found]
        assert role == params or "without the tensors with role `embedding`" not in [step.text for step in found]


RELATIVES = read_spec("explain_relatives")


def test_the_limit_on_matches_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(RELATIVES.partition("block Labels")[0])

    def remarks(limit: int) -> tuple[int, str]:
        for module in ("explain", "report"):
            monkeypatch.setattr(f"archspec.analysis.explain.{module}.MAX_MATCHES", limit)
        found = archspec.explain(model, 160 - 8)
        return len(found.answers[0].matches), str(found).splitlines()[-1]

    assert [remarks(limit) for limit in (1, 2, 3, 5, 6)] == [
        (1, "there may be more: at most 1 are shown"),
        (2, "there may be more: at most 2 are shown"),
        (2, "at least 3 others with one more adjustment"),
        (2, "at least 5 others with one more adjustment"),
        (2, "5 others with one more adjustment"),
    ]
