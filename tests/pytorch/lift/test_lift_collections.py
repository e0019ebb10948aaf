"""Models of timm and torchvision that `lift` has not been made for: what is lifted is right, and none is lost again.

`lift_timm.yaml` has 50 models, `random.seed(20)` and `random.sample(timm.list_models(), 50)` of timm 1.0.31, with what
became of each. The collections are not in the environment of CI: the tests need `pip install timm torchvision`.
"""

import pytest
import yaml
from paths import DATA

torch = pytest.importorskip("torch")

import archspec
from archspec import equivalent
from archspec.pytorch.lift.sources.file import subject_of_collection
from archspec.pytorch.lift.sources.lifting import lift_source

MODELS: dict[str, dict[str, str]] = yaml.safe_load((DATA / "lift_timm.yaml").read_text())
LIFTED = [name for name, entry in MODELS.items() if "lifted" in entry]


def test_the_list_is_complete() -> None:
    assert len(MODELS) == 50
    assert all(entry.keys() in ({"lifted"}, {"refused"}, {"untried"}) for entry in MODELS.values())


def check(source: str) -> None:
    """Compare the spec with another module of the model, whose tensors have other values."""
    text = lift_source(source)
    assert equivalent(archspec.loads(text), subject_of_collection(source).module).verdict in ("equal", "outputs equal")


@pytest.mark.slow
def test_a_model_of_timm_is_lifted() -> None:
    pytest.importorskip("timm")
    check("timm:test_byobnet")


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MODELS)
def test_no_model_of_timm_is_lifted_wrongly(name: str) -> None:
    pytest.importorskip("timm")
    try:
        check(f"timm:{name}")
    except archspec.ArchError:
        assert name not in LIFTED


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["resnet18", "vit_b_16", "swin_t", "convnext_tiny"])
def test_the_families_of_torchvision_are_lifted(name: str) -> None:
    pytest.importorskip("torchvision")
    check(f"torchvision:{name}")
