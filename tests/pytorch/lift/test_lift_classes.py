"""Classes of `transformers` that `lift` has not been made for: what is lifted is right, and the share does not fall.

`lift_classes.yaml` has 150 classes, drawn at random from all model types with `random.seed(20)`, and the reason why one
is refused or could not be decided, for those that have been tried. The spec of a class that was lifted has its tensors
and computes the same at two sizes before it is written; `lifted` says what it is at further sizes, as `further.py`
finds it out. The configurations are the defaults of their types. Some of these build no model at all: a package is
missing, or a field that has no default; where checkpoints have such fields, `config` has those of one of them. `with`
names a package that a class needs besides `transformers`; without it, the class is not tried.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from paths import DATA

import archspec
from archspec.pytorch.lift.sources.architecture import Architecture
from archspec.pytorch.lift.sources.configuration import architecture_of
from archspec.pytorch.lift.sources.lifting import lift_source

CLASSES: dict[str, dict[str, Any]] = yaml.safe_load((DATA / "lift_classes.yaml").read_text())
TRIED = {name: entry for name, entry in CLASSES.items() if "refused" in entry or "lifted" in entry}
LIFTED = [name for name, entry in TRIED.items() if "lifted" in entry]
SAMPLE = ("clip_text_model", "ernie")


def test_the_share_of_lifted_classes_does_not_fall() -> None:
    assert len(CLASSES) == 150
    assert len(LIFTED) >= 98
    without_media = [name for name, entry in CLASSES.items() if "it also takes" in entry.get("refused", "")]
    assert len(LIFTED) + len(without_media) >= 120
    assert {*SAMPLE} <= {*LIFTED}


@pytest.mark.slow
def test_the_list_is_complete() -> None:
    transformers = pytest.importorskip("transformers")
    assert all(hasattr(transformers, entry["class"]) for entry in CLASSES.values())


def lifted(name: str, folder: Path) -> tuple[str, Architecture] | None:
    """The spec of a class with its default configuration, and its architecture; None if it is refused."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    path = folder / "config.json"
    entry = CLASSES[name]
    if "with" in entry:
        pytest.importorskip(entry["with"])
    fields = {"model_type": name, "architectures": [entry["class"]], **entry.get("config", {})}
    path.write_text(json.dumps(fields))
    try:
        text = lift_source(os.fspath(path))
    except archspec.ArchError:
        return None
    return text, architecture_of(os.fspath(path))


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_a_class_is_lifted(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CLASSES)
def test_no_class_is_lifted_wrongly(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)


def check(name: str, folder: Path) -> None:
    """Compare the spec with modules of further sizes, if there is a spec; there is one for those that were lifted."""
    found = lifted(name, folder)
    assert found is not None or name not in LIFTED
    if found is None:
        return
    from further import NOT_COMPARED, VERDICTS, compared

    expected = CLASSES[name].get("lifted", NOT_COMPARED)
    verdict = compared(*found)
    assert VERDICTS.index(verdict) >= VERDICTS.index(expected), f"{verdict}, not {expected}"
