"""Published numbers of parameters, and the first explanation of each."""

from typing import Any

import pytest

import archspec
from archspec.analysis.explain.explain import Explainer, create_explainer
from archspec.analysis.explain.numbers import read_number

pytestmark = pytest.mark.slow

IDLE = "without the experts that a token does not use"
READ = "without the experts that a token does not use, and the tables that are only read"
WITH_HEAD = "with `discriminator_predictions` (`electra-small-discriminator-pretraining`)"
WITHOUT_TABLES = "without the embedding tables"
PLAIN: list[str] = []
GPT_OSS_120B = {"layers": 36, "experts": 128}

PUBLISHED: list[tuple[str, dict[str, Any], list[tuple[str, list[str]]]]] = [
    ("mixtral-8x7b", {}, [("46.7B", PLAIN), ("12.9B", [IDLE]), ("12.9B active", [IDLE])]),
    ("qwen3-30b-a3b", {}, [("30.5B", PLAIN)]),
    ("deepseek-v3", {}, [("671B", PLAIN), ("37B", [READ]), ("37B active", [READ])]),
    ("gpt-oss-20b", {}, [("20.9B", PLAIN), ("3.6B", [READ])]),
    ("gpt-oss-20b", GPT_OSS_120B, [("116.8B", PLAIN), ("5.1B", [READ])]),
    ("bert-base-uncased", {}, [("110M", PLAIN), ("109M", PLAIN), ("110M active", PLAIN)]),
    ("bert-large-uncased", {}, [("340M", PLAIN)]),
    ("bert-base-multilingual-cased", {}, [("178M", PLAIN)]),
    ("distilbert-base-uncased", {}, [("66M", PLAIN)]),
    ("roberta-base", {}, [("125M", PLAIN)]),
    ("roberta-large", {}, [("355M", PLAIN)]),
    ("albert-base-v2", {}, [("12M", PLAIN)]),
    ("electra-small-discriminator", {}, [("14M", [WITH_HEAD])]),
    ("modernbert-base", {}, [("149M", PLAIN)]),
    ("t5-small", {}, [("60M", PLAIN)]),
    ("t5-base", {}, [("220M", PLAIN)]),
    ("bart-base", {}, [("139M", PLAIN)]),
    ("gpt2", {}, [("124M", PLAIN)]),
    ("gpt2-large", {}, [("774M", PLAIN)]),
    ("llama-2-7b", {}, [("7B", PLAIN), ("6.7B", PLAIN)]),
    ("llama-3.1-8b", {}, [("8B", PLAIN)]),
    ("llama-3.1-70b", {}, [("70.6B", PLAIN)]),
    ("mistral-7b-v0.1", {}, [("7.24B", PLAIN)]),
    ("clip-vit-base-patch32", {}, [("151M", PLAIN)]),
    ("vit-base-patch16-224", {}, [("86M", ["instead the model `vit-base-patch16-224-in21k`"])]),
    ("whisper-tiny", {}, [("38M", PLAIN)]),
    ("whisper-base", {}, [("73M", PLAIN)]),
    ("jamba-v0.1", {}, [("52B", PLAIN), ("12B", [IDLE]), ("12B active", [IDLE])]),  # Lieber et al., 2024, section 1
    ("recurrentgemma-2b", {}, [("2.7B", PLAIN), ("2.0B", [WITHOUT_TABLES])]),  # Botev et al., 2024, table 1
    ("convnext-tiny", {}, [("28.6M", PLAIN), ("29M", PLAIN)]),  # Liu et al., 2022, tables 1 and 9
    ("segformer-b0-ade", {}, [("3.8M", PLAIN)]),  # Xie et al., 2021, table 1
]


def first_of(explainer: Explainer, number: str) -> list[str]:
    """The changes to the plain count in the first match."""
    answer = explainer.explain(read_number(number)).answers[0]
    assert answer.matches, number
    return [step.text for step in answer.matches[0].steps[1:]]


@pytest.mark.parametrize(("model", "overrides", "numbers"), PUBLISHED)
def test_the_first_explanation_is_the_published_one(
    model: str, overrides: dict[str, Any], numbers: list[tuple[str, list[str]]]
) -> None:
    explainer = create_explainer(archspec.load(model, **overrides))
    for number, changes in numbers:
        assert first_of(explainer, number) == changes, number


@pytest.mark.parametrize(
    ("model", "number", "is_active"),
    [("qwen3-30b-a3b", "3.3B", True), ("llama-3.1-405b", "405B", False), ("gpt2-xl", "1.5B", False)],
)
def test_numbers_that_were_truncated_are_said_to_be(model: str, number: str, is_active: bool) -> None:
    answer = archspec.explain(model, number).answers[0]
    assert (answer.cut_off, answer.active_cut_off) == (not is_active, is_active)


@pytest.mark.parametrize(("model", "number"), [("gpt2", "117M"), ("gpt2-medium", "345M"), ("bert-large-uncased", "1B")])
def test_numbers_of_something_else_have_no_explanation(model: str, number: str) -> None:
    """The paper on GPT-2 has wrong numbers; they were corrected later."""
    answers = archspec.explain(model, number).answers
    assert not any(answer.matches or answer.nearest for answer in answers)


def test_the_nearest_count_is_within_two_percent() -> None:
    for number in ("101M", "105M", "109.9M", "111M", "115M", "130M", "200M"):
        for answer in archspec.explain("bert-base-uncased", number).answers:
            middle = (answer.reading.low + answer.reading.high) / 2
            assert all(abs(match.params - middle) <= middle / 50 for match in answer.nearest)


def test_siblings_and_vocabularies_come_first() -> None:
    explainer = create_explainer(archspec.load("bert-base-uncased"))
    assert first_of(explainer, "108310272") == ["with the vocabulary of BERT, cased, 28,996 instead of 30,522"]
    assert first_of(explainer, "335M") == ["instead the model `bert-large-uncased`"]
    assert first_of(create_explainer(archspec.load("gpt2")), "355M") == ["instead the model `gpt2-medium`"]
