"""Classes of `transformers` that `lift` has not been made for: what is lifted is right, and the share does not fall.

`lift_classes.yaml` has 150 classes, drawn at random from all model types with `random.seed(20)`, and the reason why one
is refused or could not be decided, for those that have been tried. The spec of a class that was lifted has its tensors
and computes the same at two sizes before it is written; `lifted` says what it is at further sizes. The configurations
are the defaults of their types. Some of these build no model at all: a package is missing, or a field that has no
default; where checkpoints have such fields, `config` has those of one of them. `with` names a package that a class
needs besides `transformers`; without it, the class is not tried.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

import archspec
from archspec.equivalence.api import equivalent
from archspec.lifting.sources.architecture import subject_of, uncropped, unrolled
from archspec.lifting.sources.configuration import architecture_of
from archspec.lifting.sources.lifting import lift_source

CLASSES: dict[str, dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "lift_classes.yaml").read_text())
TRIED = {name: entry for name, entry in CLASSES.items() if "refused" in entry or "lifted" in entry}
LIFTED = [name for name, entry in TRIED.items() if "lifted" in entry]
SAMPLE = ("clip_text_model", "ernie")

ROUNDED = "up to the rounding of tables to float32"
IN_FLOAT64 = "exactly, with tables in float64"
AT_ITS_SIZES = "with a size that does not follow the hyperparameters"
NOT_COMPARED = "without a comparison at further sizes"


def test_the_share_of_lifted_classes_does_not_fall() -> None:
    assert len(CLASSES) == 150
    assert len(LIFTED) >= 122
    assert {*SAMPLE} <= {*LIFTED}


@pytest.mark.slow
def test_the_list_is_complete() -> None:
    transformers = pytest.importorskip("transformers")
    assert all(hasattr(transformers, entry["class"]) for entry in CLASSES.values())


def lifted(name: str, folder: Path) -> tuple[Any, Any] | None:
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
    return archspec.loads(text), (text, architecture_of(os.fspath(path)))


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_a_class_is_lifted(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CLASSES)
def test_no_class_is_lifted_wrongly(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)


def check(name: str, folder: Path) -> None:
    """Compare the spec with a module of other sizes, if there is a spec; there is one for those that were lifted."""
    found = lifted(name, folder)
    assert found is not None or name not in LIFTED
    if found is None:
        return
    model, (text, architecture) = found
    if CLASSES[name].get("lifted") not in (AT_ITS_SIZES, NOT_COMPARED):
        large = uncropped(architecture)
        small = [architecture, unrolled(architecture), large, unrolled(large) if large else None]
        others = [other for other in small if other is not None]
        assert any(is_like(model, text, other, CLASSES[name].get("lifted", "")) for other in others)


def is_like(model: Any, text: str, architecture: Any, how: str) -> bool:
    """Whether a spec is a second small module of an architecture; one where the lists of sizes stay as they are if the
    spec has no hyperparameters for these. `how` says whether tables that the module keeps in float32 are to be computed
    in float64, or their rounding is to be allowed for.
    """
    try:
        second = subject_of(architecture).second
    except archspec.ArchError:  # one whose lists name more layers than a small one has
        return False
    assert second is not None
    other = in_float64(second) if how == IN_FLOAT64 else second()
    overrides: dict[str, Any] = {name: other.numbers[name] for name in model.hyperparameters if name in other.numbers}
    if len(overrides) < len(model.hyperparameters):
        return True
    try:
        found = equivalent(archspec.loads(text, **overrides), other.module)
    except archspec.ArchError:  # one whose layers are written one by one is no spec of fewer
        return False
    return found.verdict in ("equal", "outputs equal") or (how == ROUNDED and "rounding to float32" in found.reason)


def in_float64(make: Callable[[], Any]) -> Any:
    """What is made of a module that computes in float64 what is to be in float32, such as its tables."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Exact(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.Tensor.float:
                return args[0].double()
            args = [torch.float64 if arg is torch.float32 else arg for arg in args]
            named = {name: torch.float64 if arg is torch.float32 else arg for name, arg in (kwargs or {}).items()}
            return func(*args, **named)

    modes: list[Exact] = []

    def enter(*_: Any) -> None:
        modes.append(Exact())
        modes[-1].__enter__()

    def leave(*_: Any) -> None:
        modes.pop().__exit__(None, None, None)

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Exact(), mock.patch.object(torch, "FloatTensor", torch.DoubleTensor):
            made = make()
    finally:
        torch.set_default_dtype(before)
    made.module.register_forward_pre_hook(enter)  # a call may be in another thread, which has no modes
    made.module.register_forward_hook(leave, always_call=True)
    return made
