"""Configurations against the live models of `transformers`: the same tensors, and the same outputs in float64.

Random small configurations of every family, written by `save_pretrained`.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from media import MEDIA, media_inputs
from small import live_names

import archspec
from archspec.configs.family import known_types, read_family
from archspec.resources import specs_root

pytestmark = pytest.mark.slow
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

torch.set_num_threads(1)  # the models are tiny

CONFIGURATIONS = 25
TYPES = known_types(specs_root())
CASES = [(type, seed) for type in TYPES for seed in range(CONFIGURATIONS)]

Draw = Callable[[random.Random], dict[str, Any]]

ACTIVATIONS = [name for name, _ in read_family(specs_root(), "bert", {}).fields["hidden_act"].values or ()]


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
        "hidden_act": rng.choice(ACTIVATIONS),
    }


def albert(rng: random.Random) -> dict[str, Any]:
    return {**bert(rng), "embedding_size": rng.randint(4, 40)}


def electra(rng: random.Random) -> dict[str, Any]:
    drawn = bert(rng)
    return {**drawn, "embedding_size": rng.choice([drawn["hidden_size"], rng.randint(4, 40)])}


def distilbert(rng: random.Random) -> dict[str, Any]:
    names = {"hidden_size": "dim", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"}
    names |= {"intermediate_size": "hidden_dim"}
    drawn = {names.get(name, name): value for name, value in common(rng).items()}
    return {**drawn, "activation": rng.choice(ACTIVATIONS), "sinusoidal_pos_embds": rng.random() < 0.5}


def modernbert(rng: random.Random) -> dict[str, Any]:
    drawn = {**common(rng), "pad_token_id": 0, "norm_eps": rng.choice([1e-5, 1e-3])}
    biases = ("attention_bias", "mlp_bias", "norm_bias", "classifier_bias", "decoder_bias")
    flags: dict[str, Any] = {name: rng.random() < 0.5 for name in biases}
    flags |= {name: rng.choice(ACTIVATIONS) for name in ("hidden_activation", "classifier_activation")}
    drawn["classifier_pooling"] = rng.choice(["cls", "mean"])
    period = rng.randint(1, 4)
    layers = ["sliding_attention" if i % period else "full_attention" for i in range(drawn["num_hidden_layers"])]
    rope = {name: {"rope_theta": rng.choice([5e3, 1e4, 1.6e5])} for name in ("full_attention", "sliding_attention")}
    forms: list[dict[str, Any]] = [{}, {"global_attn_every_n_layers": period}, {"layer_types": layers}]
    more = rng.choice([*forms, {"layer_types": layers, "rope_parameters": rope}])
    return {**drawn, **flags, "local_attention": rng.choice([6, 7, 12, 20]), **more}


def gpt2(rng: random.Random) -> dict[str, Any]:
    names = {"hidden_size": "n_embd", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer"}
    names |= {"max_position_embeddings": "n_positions", "intermediate_size": "n_inner"}
    drawn = {names.get(name, name): value for name, value in common(rng).items()}
    if rng.random() < 0.5:
        del drawn["n_inner"]
    drawn |= {"activation_function": rng.choice(ACTIVATIONS), "layer_norm_epsilon": rng.choice([1e-5, 1e-3])}
    drawn["pad_token_id"] = rng.choice([0, 1, 5])
    return {**drawn, "scale_attn_by_inverse_layer_idx": rng.random() < 0.5}


def llama(rng: random.Random) -> dict[str, Any]:
    drawn = {**common(rng), "rms_norm_eps": rng.choice([1e-6, 1e-5]), "pad_token_id": rng.choice([0, 1, 5])}
    heads = drawn["num_attention_heads"]
    drawn["num_key_value_heads"] = rng.choice([n for n in range(1, heads + 1) if heads % n == 0])
    if rng.random() < 0.4:
        drawn["head_dim"] = rng.choice([4, 6, 12])
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": rng.choice([1e3, 1e4, 5e5])}
    kind = rng.choice(["default", "linear", "llama3"])
    if kind != "default":
        rope |= {"rope_type": kind, "factor": rng.choice([2.0, 8.0])}
    if kind == "llama3":
        turns = {"low_freq_factor": 1.0, "high_freq_factor": rng.choice([2.0, 4.0])}
        rope |= {**turns, "original_max_position_embeddings": rng.choice([8, 16])}
    flags = {name: rng.random() < 0.5 for name in ("attention_bias", "mlp_bias")}
    return {**drawn, **flags, "hidden_act": rng.choice(ACTIVATIONS), "rope_parameters": rope}


def bart(rng: random.Random) -> dict[str, Any]:
    drawn = common(rng)
    sides = {}
    for side in ("encoder", "decoder"):
        sides[f"{side}_layers"] = rng.randint(1, 3)
        sides[f"{side}_attention_heads"] = drawn["num_attention_heads"]
        sides[f"{side}_ffn_dim"] = drawn["intermediate_size"]
    kept = {name: drawn[name] for name in ("vocab_size", "max_position_embeddings")}
    kept |= {"activation_function": rng.choice(ACTIVATIONS), "scale_embedding": rng.random() < 0.5}
    return {**kept, **sides, "d_model": drawn["hidden_size"]}


def marian(rng: random.Random) -> dict[str, Any]:
    drawn = bart(rng)
    return {**drawn, "pad_token_id": drawn["vocab_size"] - 1}


def m2m_100(rng: random.Random) -> dict[str, Any]:
    return {**bart(rng), "pad_token_id": rng.choice([0, 1, 5])}


FEED_FORWARDS = [name for name, _ in read_family(specs_root(), "t5", {}).fields["feed_forward_proj"].values or ()]


def t5(rng: random.Random) -> dict[str, Any]:
    drawn = common(rng)
    named = {"vocab_size": drawn["vocab_size"], "d_model": drawn["hidden_size"], "d_ff": drawn["intermediate_size"]}
    named |= {"num_layers": rng.randint(1, 3), "num_heads": drawn["num_attention_heads"], "d_kv": rng.choice([4, 6, 9])}
    if rng.random() < 0.5:
        named["num_decoder_layers"] = rng.randint(1, 3)
    named |= {"relative_attention_num_buckets": rng.choice([8, 12, 32])}
    named |= {"relative_attention_max_distance": rng.choice([20, 128])}
    named |= {"feed_forward_proj": rng.choice(FEED_FORWARDS)}
    return {**named, "tie_word_embeddings": rng.random() < 0.5}  # which only decides about a scale


DRAWS: dict[str, Draw] = {
    "albert": albert,
    "bart": bart,
    "bert": bert,
    "camembert": bert,
    "distilbert": distilbert,
    "electra": electra,
    "gpt2": gpt2,
    "llama": llama,
    "m2m_100": m2m_100,
    "marian": marian,
    "mbart": bart,
    "modernbert": modernbert,
    "pegasus": bart,
    "roberta": bert,
    "t5": t5,
    "xlm-roberta": bert,
    **MEDIA,
}
"""What is drawn for each model type; what a configuration does not say is left at its default."""


class Drawn:
    """A random configuration of a family, the live class it is for, and the file that `transformers` wrote of it."""

    def __init__(self, type: str, seed: int, folder: Path) -> None:
        rng = random.Random(f"{type} {seed}")
        self.family = read_family(specs_root(), type, {})
        names = [name for name in self.family.architectures if hasattr(transformers, name)]
        name = names[seed % len(names)]
        self.config = transformers.AutoConfig.for_model(type, **DRAWS[type](rng))
        for part in ("", "text_config.", "vision_config."):
            config = getattr(self.config, part[:-1], None) if part else self.config
            for field, value in config.to_dict().items() if config is not None else ():
                known = self.family.fields.get(part + field)
                without_effect = part + field in self.family.ignored and isinstance(value, float)
                if without_effect or (known and known.kind == "rate"):
                    setattr(config, field, round(rng.uniform(0.01, 0.4), 3))  # it must change nothing in evaluation
        if not name.endswith("QuestionAnswering"):
            self.config.num_labels = rng.randint(1, 5)
        if name != names[0] or rng.random() < 0.5:
            self.config.architectures = [name]
        self.config._attn_implementation = "eager"
        self.live = getattr(transformers, name)
        self.config.save_pretrained(folder)
        self.path = str(folder / "config.json")
        self.rng = rng


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
    words = dict(read_family(specs_root(), "bert", {}).fields["hidden_act"].values or ())
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
    model = live_form(drawn.path)
    names = live_names(model)
    named = live.named_parameters(remove_duplicate=False)
    theirs = table([(name, tuple(tensor.shape), id(tensor), tensor.requires_grad) for name, tensor in named])
    assert table([(names[t.name], t.shape, t.tied_to or t.name, t.trainable) for t in model.tensors]) == theirs
    assert model.params.total == sum(p.numel() for p in live.parameters())
    state = live.state_dict()
    stored = {name: tuple(tensor.shape) for name, tensor in live.named_buffers() if name in state}
    assert {names[b.name]: b.shape for b in model.buffers} == stored

    module = archspec.to_torch(model).double().eval()
    with torch.no_grad():
        for tensor in live.parameters():
            tensor.normal_(0.0, 0.3)
        load_live(module, live, model)
        inputs = draw_inputs(drawn, [*model.inputs])
        found, expected = module(**inputs)._asdict(), live(**inputs)
    assert found
    for name, value in found.items():
        assert value.dtype == torch.float64
        assert value.shape == expected[name].shape
        assert (value - expected[name]).abs().max() <= 1e-6 * max(1.0, float(value.abs().max())), name


def live_form(path: str) -> archspec.Model:
    """The model of a configuration, with the tensors of the live one."""
    model = archspec.load(path)
    joined = model.hyperparameters.get("joined")
    return model if joined is None else archspec.load(path, joined=not joined)


def load_live(module: Any, live: Any, model: archspec.Model) -> None:
    """Load the weights of the live model."""
    state = live.state_dict()
    module.load_state_dict({name: state[live_name] for name, live_name in live_names(model).items()})


def draw_inputs(drawn: Drawn, names: list[str]) -> dict[str, Any]:
    """Two sequences, the second with padding at its end."""
    rng, config = drawn.rng, drawn.config
    if drawn.family.type in MEDIA:
        return media_inputs(torch, rng, config, archspec.load(drawn.path).inputs)
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
        (tmp_path / "empty" / "config.json").write_text(
            json.dumps({"model_type": type, "architectures": [architecture]})
        )
        said = archspec.load(str(tmp_path / "config.json"))
        unsaid = archspec.load(str(tmp_path / "empty" / "config.json"))
        assert said.hyperparameters == unsaid.hyperparameters
        assert said.tensors == unsaid.tensors
    for name, alias in config.attribute_map.items():
        assert family.fields.get(name) == family.fields.get(alias), name
