"""Configurations against the live models of `transformers`: the same tensors, and the same outputs in float64.

Random small configurations of every family, written by `save_pretrained`.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import archspec
from archspec.configs.family import known_types, read_family
from archspec.resources import specs_root

pytestmark = pytest.mark.slow
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

CONFIGURATIONS = 25
TYPES = known_types(specs_root())
CASES = [(type, seed) for type in TYPES for seed in range(CONFIGURATIONS)]

Draw = Callable[[random.Random], dict[str, Any]]


def common(rng: random.Random) -> dict[str, Any]:
    """Fields that most encoders have."""
    heads = rng.choice([1, 2, 3, 4])
    return {
        "vocab_size": rng.randint(40, 120),
        "hidden_size": heads * rng.choice([4, 6, 8, 10]),
        "num_attention_heads": heads,
        "num_hidden_layers": rng.randint(1, 4),
        "intermediate_size": rng.randint(8, 70),
        "max_position_embeddings": rng.randint(24, 60),
        "tie_word_embeddings": rng.random() < 0.6,
    }


def bert(rng: random.Random) -> dict[str, Any]:
    return {
        **common(rng),
        "type_vocab_size": rng.randint(1, 4),
        "layer_norm_eps": rng.choice([1e-12, 1e-5, 1e-3]),
        "pad_token_id": rng.choice([0, 1, 5]),
    }


ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu", "swish", "tanh", "sigmoid")


def albert(rng: random.Random) -> dict[str, Any]:
    return {**bert(rng), "embedding_size": rng.randint(4, 40), "hidden_act": rng.choice(ACTIVATIONS)}


DRAWS: dict[str, Draw] = {"bert": bert}
"""What is drawn for each model type; what a configuration does not say is left at its default."""


class Drawn:
    """A random configuration of a family with the live class it is for, and the file that `transformers` wrote of it."""

    def __init__(self, type: str, seed: int, folder: Path) -> None:
        rng = random.Random(f"{type} {seed}")
        self.family = read_family(specs_root(), type, {})
        names = [*self.family.architectures]
        name = names[seed % len(names)]
        self.config = transformers.AutoConfig.for_model(type, **DRAWS[type](rng))
        for field, value in self.config.to_dict().items():
            if field in self.family.ignored and isinstance(value, float):
                setattr(self.config, field, round(rng.uniform(0.01, 0.4), 3))  # it must change nothing
        if name != names[0] or rng.random() < 0.5:
            self.config.architectures = [name]
        self.config._attn_implementation = "eager"
        self.live = getattr(transformers, name)
        self.config.save_pretrained(folder)
        self.path = str(folder / "config.json")
        self.rng = rng


def table(live: Any) -> dict[str, tuple[list[int], str | None, bool]]:
    """A live model's tensors: shape, the first name that holds the same one, whether it is trained."""
    first: dict[int, str] = {}
    found: dict[str, tuple[list[int], str | None, bool]] = {}
    for name, tensor in live.named_parameters(remove_duplicate=False):
        counted = first.setdefault(id(tensor), name)
        found[name] = (list(tensor.shape), counted if counted != name else None, tensor.requires_grad)
    return found


def test_every_known_type_is_drawn() -> None:
    assert set(DRAWS) == set(TYPES)


@pytest.mark.parametrize(("type", "seed"), CASES)
def test_the_tensors_are_those_of_the_live_model(type: str, seed: int, tmp_path: Path) -> None:
    drawn = Drawn(type, seed, tmp_path)
    with torch.device("meta"):
        live = drawn.live(drawn.config)
    model = archspec.load(drawn.path)
    assert {t.name: (list(t.shape), t.tied_to, t.trainable) for t in model.tensors} == table(live)
    stored = {name: tuple(b.shape) for name, b in live.named_buffers() if name in live.state_dict()}
    assert {b.name: b.shape for b in model.buffers} == stored
    assert model.params.total == sum(p.numel() for p in live.parameters())


@pytest.mark.parametrize(("type", "seed"), CASES)
def test_the_outputs_are_those_of_the_live_model(type: str, seed: int, tmp_path: Path) -> None:
    drawn = Drawn(type, seed, tmp_path)
    torch.manual_seed(seed)
    live = drawn.live(drawn.config).double().eval()
    with torch.no_grad():
        for tensor in live.parameters():
            tensor.normal_(0.0, 0.3)
    model = archspec.load(drawn.path)
    module = archspec.to_torch(model).double().eval()
    module.load_state_dict(live.state_dict())
    inputs = draw_inputs(drawn, [*model.inputs])
    with torch.no_grad():
        ours, theirs = module(**inputs)._asdict(), live(**inputs)
    assert ours
    for name, value in ours.items():
        assert value.dtype == torch.float64
        assert value.shape == theirs[name].shape
        assert (value - theirs[name]).abs().max() <= 1e-6 * max(1.0, float(value.abs().max())), name


def draw_inputs(drawn: Drawn, names: list[str]) -> dict[str, Any]:
    """Two sequences, the second with padding at its end."""
    rng, config = drawn.rng, drawn.config
    padding = config.pad_token_id or 0
    lengths = {"": rng.randint(5, 16), "decoder_": rng.randint(4, 9)}
    inputs: dict[str, Any] = {}
    for name in names:
        side = "decoder_" if name.startswith("decoder_") else ""
        length = lengths[side]
        most = config.type_vocab_size if name.endswith("token_type_ids") else config.vocab_size
        real = (torch.arange(length) < torch.tensor([[length], [length - 3]])).long()
        if name.endswith("mask"):
            inputs[name] = real
            continue
        values = torch.tensor([[rng.randrange(most) for _ in range(length)] for _ in range(2)])
        inputs[name] = values * real + (1 - real) * (padding if name.endswith("input_ids") else 0)
    return inputs


@pytest.mark.parametrize("type", TYPES)
def test_defaults_are_those_of_the_configuration_class(type: str, tmp_path: Path) -> None:
    """With nothing said, with everything said as it is by default, and with each field left out."""
    family = read_family(specs_root(), type, {})
    config = transformers.AutoConfig.for_model(type)
    config.save_pretrained(tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    for architecture in family.architectures:
        (tmp_path / "config.json").write_text(json.dumps({**written, "architectures": [architecture]}))
        (tmp_path / "empty").mkdir(exist_ok=True)
        (tmp_path / "empty" / "config.json").write_text(json.dumps({"model_type": type, "architectures": [architecture]}))
        said = archspec.load(str(tmp_path / "config.json"))
        unsaid = archspec.load(str(tmp_path / "empty" / "config.json"))
        assert said.hyperparameters == unsaid.hyperparameters
        assert said.tensors == unsaid.tensors
    for name, alias in config.attribute_map.items():
        assert family.fields.get(name) == family.fields.get(alias), name
