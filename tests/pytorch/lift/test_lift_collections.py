"""Models of timm and torchvision that `lift` has not been made for: what is lifted is right, and none is lost again.

`lift_timm.yaml` has 50 models, `random.seed(20)` and `random.sample(timm.list_models(), 50)` of timm 1.0.31, with what
became of each. The collections are not in the environment of CI: the tests need `pip install timm torchvision`.
"""

import pytest
import yaml
from paths import DATA

torch = pytest.importorskip("torch")

import archspec
from archspec import equivalent, testing

MODELS: dict[str, dict[str, str]] = yaml.safe_load((DATA / "lift_timm.yaml").read_text())
LIFTED = [name for name, entry in MODELS.items() if "lifted" in entry]


def test_the_list_is_complete() -> None:
    assert len(MODELS) == 50
    assert all(entry.keys() in ({"lifted"}, {"refused"}, {"untried"}) for entry in MODELS.values())


def check(source: str) -> bool:
    """Whether there is a spec; it is equivalent to another module of the model, whose tensors have other values."""
    result = testing.run("lift", source)
    if result.status:
        return False
    collection, _, name = source.partition(":")
    package = pytest.importorskip("timm" if collection == "timm" else "torchvision.models")
    build = package.create_model if collection == "timm" else package.get_model
    module = build(name).eval()
    assert equivalent(archspec.loads(result.output), module).verdict in ("equal", "outputs equal")
    return True


@pytest.mark.slow
def test_a_model_of_timm_is_lifted() -> None:
    pytest.importorskip("timm")
    assert check("timm:test_byobnet")


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MODELS)
def test_no_model_of_timm_is_lifted_wrongly(name: str) -> None:
    pytest.importorskip("timm")
    assert check(f"timm:{name}") or name not in LIFTED


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["resnet18", "vit_b_16", "swin_t", "convnext_tiny"])
def test_the_families_of_torchvision_are_lifted(name: str) -> None:
    pytest.importorskip("torchvision")
    assert check(f"torchvision:{name}")
