"""Specs of earlier editions of the language: they compile with the totals of that time, or an error says what to write.

Each total was checked with the compiler of its edition. Files are added when the language changes, and never edited.
"""

from pathlib import Path

import pytest

import archspec
from archspec import testing

FOLDER = Path(__file__).parent
TOTALS = {
    "edition-1.arch": {"first": 25_896, "first-large": 101_688},
    "edition-2.arch": {"second": 163},
    "edition-3.arch": {"third": 1_797},
    "edition-4.arch": {"fourth": 144},
    "families.arch": {
        "pre-norm": 5_550,
        "causal": 5_504,
        "normed": 1_816,
        "wide": 2_008,
        "stack": 1_504,
        "summaries": 20_072,
        "gpt2": 1_776,
    },
}
NEW_SPELLINGS = {
    "absent-output.arch": ("output", "write `?` after its shape"),
    "const-name.arch": ("syntax", "expected a name, found the keyword `const`"),
    "head-dropout.arch": ("missing-argument", "missing hyperparameter `classifier_dropout`"),
    "underscores.arch": ("syntax", "put a single `_` between two digits"),
}


def test_every_file_is_tested() -> None:
    assert {path.name for path in FOLDER.glob("*.arch")} == TOTALS.keys()
    assert {path.name for path in FOLDER.glob("changed/*.arch")} == NEW_SPELLINGS.keys()


@pytest.mark.parametrize("name", TOTALS)
def test_a_spec_of_an_earlier_edition_has_its_total(name: str) -> None:
    path = FOLDER / name
    assert testing.check(path) == []
    assert {model: archspec.load(f"{path}:{model}").params.total for model in TOTALS[name]} == TOTALS[name]


@pytest.mark.parametrize("name", NEW_SPELLINGS)
def test_an_error_says_the_new_spelling(name: str) -> None:
    code, text = NEW_SPELLINGS[name]
    errors = testing.check(FOLDER / "changed" / name)
    assert errors and {error.code for error in errors} == {code}
    assert all(text in f"{error.message}\n{error.help}" for error in errors)
