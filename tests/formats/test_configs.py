"""Configurations against the live models of `transformers`: the same tensors, and the same outputs in float64.

Random small configurations of every family, written by `save_pretrained`.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from drawn_configs import (
    ACTIVATIONS,
    DRAWS,
    TYPES,
    Drawn,
    draw_inputs,
    state_of,
    torch,
    transformers,
)
from paths import ROOT
from small import live_names

import archspec
from archspec.formats.configs.family import read_family

pytestmark = pytest.mark.slow

torch.set_num_threads(1)  # the models are tiny

CONFIGURATIONS, EACH = 25, 3
CASES = [
    pytest.param(type, seed, marks=pytest.mark.exhaustive if seed >= EACH else ())
    for type in TYPES
    for seed in range(CONFIGURATIONS)
]


def table(tensors: list[tuple[str, tuple[int, ...], Any, bool]]) -> dict[str, tuple[tuple[int, ...], list[str], bool]]:
    """For each name its shape, all names of its tensor, and whether that is trained."""
    groups: dict[Any, list[str]] = {}
    for name, _, same, _ in tensors:
        groups.setdefault(same, []).append(name)
    return {name: (shape, sorted(groups[same]), trainable) for name, shape, same, trainable in tensors}


def test_every_known_type_is_drawn() -> None:
    assert set(DRAWS) == set(TYPES)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_the_same(name: str, tmp_path: Path) -> None:
    words = dict(read_family(str(ROOT / "specs"), "bert", {}).fields["hidden_act"].values or ())
    path = tmp_path / "one.arch"
    path.write_text(
        f"import std {{ {words[name]} }}\n"
        "block One(f = %s)(x [8001]) -> [8001] {\n  scale: param []\n  return f(x) * .scale\n}\n"
        'model "one" = One()\n' % words[name]
    )
    module = archspec.to_torch(archspec.load(str(path))).double()
    module.load_state_dict({"scale": torch.tensor(1.0)})
    x = torch.linspace(-40.0, 40.0, 8001, dtype=torch.float64)
    expected = transformers.activations.ACT2FN[name](x)
    assert (module(x) - expected).abs().max() <= 1e-14 * expected.abs().max()


@pytest.mark.parametrize(("type", "seed"), CASES)
def test_tensors_and_outputs_are_those_of_the_live_model(type: str, seed: int, tmp_path: Path) -> None:
    drawn = Drawn(type, seed, tmp_path)
    torch.manual_seed(seed)
    live = drawn.live(drawn.config).double().eval()
    model = drawn.load()
    names = live_names(model)
    named = live.named_parameters(remove_duplicate=False)
    theirs = table([(name, tuple(tensor.shape), id(tensor), tensor.requires_grad) for name, tensor in named])
    ours = [(names[t.name], t.shape, names[t.tied_to or t.name], t.trainable) for t in model.tensors]
    assert table(ours) == theirs
    assert model.params.total == sum(p.numel() for p in live.parameters())
    state = live.state_dict()
    stored = {name: tuple(tensor.shape) for name, tensor in live.named_buffers() if name in state}
    assert {names[b.name]: b.shape for b in model.buffers} == stored

    module = archspec.to_torch(model).double().eval()
    with torch.no_grad():
        for tensor in live.parameters():
            tensor.normal_(0.0, 0.3)
        module.load_state_dict(state_of(model, live))
        inputs = draw_inputs(drawn, [*model.inputs])
        found, expected = module(**inputs)._asdict(), live(**inputs)
    assert found
    for name, value in found.items():
        assert value.dtype == torch.float64
        assert value.shape == expected[name].shape
        assert (value - expected[name]).abs().max() <= 1e-6 * max(1.0, float(value.abs().max())), name


@pytest.mark.parametrize("type", TYPES)
def test_defaults_are_those_of_the_configuration_class(type: str, tmp_path: Path) -> None:
    """With nothing said, with everything said as it is by default, and with each field left out."""
    family = read_family(str(ROOT / "specs"), type, {})
    config = transformers.AutoConfig.for_model(type)
    config.save_pretrained(tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    for architecture in family.architectures:
        (tmp_path / "config.json").write_text(json.dumps({**written, "architectures": [architecture]}))
        (tmp_path / "empty").mkdir(exist_ok=True)
        (tmp_path / "empty" / "config.json").write_text(
            json.dumps({"model_type": type, "architectures": [architecture]})
        )
        said = archspec.load(str(tmp_path / "config.json"))
        unsaid = archspec.load(str(tmp_path / "empty" / "config.json"))
        assert said.hyperparameters == unsaid.hyperparameters
        assert said.tensors == unsaid.tensors
    for name, alias in config.attribute_map.items():
        assert family.fields.get(name) == family.fields.get(alias), name
