"""The bundled models that tests go through: everyday a few that use every operation and kind of tensor between them,
with `-m slow` the others.
"""

import pytest

import archspec

EVERYDAY = (
    "albert-base-v2",
    "bart-base",
    "bert-base-uncased",
    "electra-small-discriminator",
    "gpt2",
    "llama-3.2-1b",
    "modernbert-base",
    "roberta-base-mlm",
    "t5-small",
    "transformer-seq2seq",
)


def each(*others: object) -> list[object]:
    """The parameters of a test of every bundled model, and of others."""
    names = archspec.models()
    return [*[n if n in EVERYDAY else pytest.param(n, marks=pytest.mark.slow) for n in names], *others]


def groups() -> list[object]:
    """The parameters of a test that goes through the models of a group at once: the everyday ones, and all."""
    return [pytest.param(EVERYDAY, id="everyday"), pytest.param(archspec.models(), id="all", marks=pytest.mark.slow)]
