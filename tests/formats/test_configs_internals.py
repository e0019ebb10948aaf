"""Steps of the code that the tests of configs cannot reach through public names."""

import json
from pathlib import Path

import pytest
from drawn_configs import ACTIVATIONS, TYPES, torch, transformers
from hints import hints
from paths import ROOT

import archspec
from archspec.formats.configs.family import read_family

torch.set_num_threads(1)  # the models are tiny


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


@pytest.mark.sampled(8)
@pytest.mark.parametrize("type", TYPES)
def test_defaults_are_those_of_the_configuration_class(type: str, tmp_path: Path) -> None:
    """With nothing said, with everything said as it is by default, and with each field left out."""
    family = read_family(str(ROOT / "specs"), type, {})
    stated = hints(type).get("defaults", {})
    config = transformers.AutoConfig.for_model(type, **stated)
    config.save_pretrained(tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    for architecture in family.architectures:
        (tmp_path / "config.json").write_text(json.dumps({**written, "architectures": [architecture]}))
        (tmp_path / "empty").mkdir(exist_ok=True)
        (tmp_path / "empty" / "config.json").write_text(
            json.dumps({"model_type": type, "architectures": [architecture], **stated})
        )
        said = archspec.load(str(tmp_path / "config.json"))
        unsaid = archspec.load(str(tmp_path / "empty" / "config.json"))
        assert said.hyperparameters == unsaid.hyperparameters or not archspec.diff(said, unsaid)
        assert said.tensors == unsaid.tensors
    for name, alias in config.attribute_map.items():
        assert family.fields.get(name) == family.fields.get(alias), name
