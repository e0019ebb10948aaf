"""What is drawn for a model type by its fields' names and its hints, `tests/families/TYPE.yaml`.

A file of hints is needed only where names are not enough. It has
- `draw`: by field, a list of choices, an expression over `rng`, `architecture` and what is drawn before it, also
  outside of a nested configuration, a list by layer (`{each: num_hidden_layers, of: [...]}`), null to leave the
  default, or for a nested configuration its hints or an expression for all of it;
- `inputs`: by input, an expression over `inputs`, its `shape`, `sizes` (by axis), `config`, `rng` and `torch`; null
  leaves it out, and so does None;
- `images`: the `id` of the `tokens` of an image (or a sound) in each text, and their number, as `sizes`;
- `words`: the configuration of words, as `inputs`, where `transformers` does not tell;
- `attention`: the implementation of attention to compare with, where "eager" is not what `transformers` means;
- `sizes`: by axis, an expression over `config` and `rng`; `live`: further inputs of the live model, as `inputs`;
- `overrides`: hyperparameters that no field sets, as `inputs`; null leaves one out;
- `outputs`: by output, an expression over `outputs`, those of the live model, where they have other names;
- `defaults`: fields that have no default;
- `published`: false where `transformers` writes other names than published files have;
- `rescales`: true where the class scales its own weights when it first computes;
- `weights`: how many the smallest configurations have, where these are too many for a record;
- `compare`: `real` where outputs at padding have no meaning (a position that sees only padding).
"""

import random
from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml
from families import document, mapping
from media import plain_input
from paths import ROOT

FOLDER = ROOT / "tests" / "families"
PARTS = ("config", "backbone", "encoder", "decoder")
SHARES = ("rotary", "ratio", "dropout", "rate", "theta", "base", "factor")
"""Numbers whose names say that sizes or angles depend on them are not drawn."""


@cache
def hints(type: str) -> dict[str, Any]:
    path = FOLDER / f"{type}.yaml"
    return yaml.safe_load(path.read_text()) or {} if path.exists() else {}


def evaluated(expression: Any, names: Mapping[str, Any]) -> Any:
    return eval(expression, {**names}) if isinstance(expression, str) else expression


def draw_fields(
    rng: random.Random,
    fields: dict[str, Any],
    prefix: str,
    defaults: dict[str, Any],
    stated: dict[str, Any],
    before: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A value for each field of the mapping under `prefix`, where its name or its hint says which may be drawn.

    `before` is what is drawn before a nested configuration, and the `architecture`.
    """
    sizes, drawn = common_sizes(rng), {}
    for name, default in defaults.items():
        entry = fields.get(prefix + name)
        hint = stated.get(name)
        if isinstance(default, dict) and name.endswith(PARTS) and not isinstance(hint, str):
            hint = hint or {}
            type = hint.get("model_type")
            type = rng.choice(type) if isinstance(type, list) else type
            own = mapping(type).fields if type else fields
            within = "" if type else f"{prefix}{name}."
            hint = {name: value for name, value in hint.items() if name != "model_type"}
            nested = draw_fields(rng, own, within, default, hint, {**(before or {}), **drawn})
            drawn[name] = nested | ({"model_type": type} if type else {})
        elif name in stated or entry is None or "only" in entry:
            continue
        elif name in sizes:
            drawn[name] = sizes[name]
        elif isinstance(default, bool):
            drawn[name] = rng.random() < 0.5
        elif "eps" in name and isinstance(default, float):
            drawn[name] = rng.choice([1e-6, 1e-5, 1e-3])
        elif isinstance(default, float) and "sets" in entry and not any(word in name for word in SHARES):
            drawn[name] = round(default * rng.choice([0.6, 1.0, 1.7]), 6)
        elif entry.get("values") == "activations":
            drawn[name] = rng.choice(list(document("_common")["values"]["activations"]))
    if f"{prefix}rope_parameters.rope_theta" in fields and "rope_parameters" not in stated:
        drawn["rope_parameters"] = {"rope_type": "default", "rope_theta": rng.choice([1e3, 1e4, 5e5])}
        if f"{prefix}rope_parameters.factor" in fields and rng.random() < 0.4:
            drawn["rope_parameters"] |= {"rope_type": "linear", "factor": rng.choice([2.0, 8.0])}
    for name, hint in stated.items():
        if isinstance(hint, list):
            drawn[name] = rng.choice(hint)
        elif isinstance(hint, str):
            drawn[name] = evaluated(hint, {**(before or {}), **drawn, "rng": rng})
        elif isinstance(hint, dict) and "each" in hint:
            drawn[name] = [rng.choice(hint["of"]) for _ in range(evaluated(hint["each"], drawn))]
        elif isinstance(hint, dict) and not name.endswith(PARTS):
            drawn[name] = {k: rng.choice(v) if isinstance(v, list) else v for k, v in hint.items()}
        elif hint is not None and not isinstance(hint, dict):
            drawn[name] = hint
    return drawn


def common_sizes(rng: random.Random) -> dict[str, Any]:
    """Sizes that fit each other, by the names that most configuration classes have for them."""
    heads, size, patch = rng.choice([1, 2, 3, 4]), rng.choice([4, 8, 12]), rng.choice([2, 3, 4])
    groups = rng.choice([n for n in range(1, heads + 1) if heads % n == 0])
    experts = rng.choice([2, 4])
    return {
        **dict.fromkeys(("hidden_size", "d_model", "n_embd"), heads * size),
        **dict.fromkeys(("num_attention_heads", "num_heads", "n_head"), heads),
        **dict.fromkeys(("head_dim", "d_kv"), size),
        **dict.fromkeys(("intermediate_size", "d_ff", "ffn_dim"), rng.randint(8, 70)),
        **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), rng.randint(4, 20)),
        **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layer", "depth"), rng.randint(1, 4)),
        **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), experts),
        "num_key_value_heads": groups,
        "num_experts_per_tok": rng.randint(1, experts),
        "vocab_size": rng.randint(40, 120),
        "max_position_embeddings": rng.randint(24, 60),
        "sliding_window": rng.choice([4, 6]),
        "patch_size": patch,
        "image_size": patch * rng.randint(2, 4),
        "num_channels": rng.choice([1, 3]),
        "pad_token_id": rng.choice([0, 1, 5]),
    }


class Sizes(dict[str, int]):
    """Sizes of the axes of inputs; those not stated are drawn."""

    def __init__(self, rng: random.Random, stated: dict[str, int]) -> None:
        super().__init__({"batch": 2, "texts": 2, "images": 2, "seq": rng.randint(7, 14), **stated})
        self.rng = rng

    def __missing__(self, name: str) -> int:
        self[name] = self.rng.randint(4, 9)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return True


def inputs_by_name(torch: Any, type: str, rng: random.Random, config: Any, types: Mapping[str, Any]) -> dict[str, Any]:
    """Two texts, images or sounds; the second text ends with padding."""
    stated = hints(type)
    names = {"config": config, "rng": rng, "torch": torch}
    sizes = Sizes(rng, {name: evaluated(each, names) for name, each in stated.get("sizes", {}).items()})
    image = {name: evaluated(each, names) for name, each in stated.get("images", {}).items()}
    if image:
        sizes["seq"] = image["tokens"] + rng.randint(6, 9)
    words = evaluated(stated["words"], names) if "words" in stated else config.get_text_config()
    classifies = "SequenceClassification" in (config.architectures or [""])[0]
    padding = getattr(words, "pad_token_id", None) or 0
    inputs: dict[str, Any] = {}
    for name, input in types.items():
        if name in stated.get("inputs", {}):
            continue
        shape = [size if isinstance(size, int) else size.at(sizes) for size in input.shape]
        inputs[name] = plain_input(torch, name, input.dtype, shape)
        if inputs[name] is None:
            most = getattr(words, "type_vocab_size", 2) if name == "token_type_ids" else words.vocab_size
            values = torch.tensor([rng.randrange(max(1, most)) for _ in range(torch.Size(shape).numel())])
            values = values.reshape(shape)
            if name.endswith("input_ids"):
                values[values == padding] = (padding + 1) % most
                if classifies and config.is_encoder_decoder:  # which reads the last end of a text
                    values[values == config.eos_token_id] = config.eos_token_id + 1
                    values[:, [1, shape[1] - 4]] = config.eos_token_id
                if image:
                    values[values == image["id"]] = next(v for v in range(most) if v not in (image["id"], padding))
                    for row, start in enumerate((1, 2)):
                        values[row, start : start + image["tokens"]] = image["id"]
                values[1, ..., shape[-1] - 3 :] = padding
            inputs[name] = values
    names |= {"sizes": sizes, "inputs": inputs}
    for name, each in stated.get("inputs", {}).items():
        if each is not None and name in types:
            shape = [size if isinstance(size, int) else size.at(sizes) for size in types[name].shape]
            inputs[name] = evaluated(each, {**names, "shape": shape})
    return {name: value for name, value in inputs.items() if value is not None}


def live_inputs(torch: Any, type: str, config: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs of the live model, which may have more."""
    names = {"config": config, "torch": torch, "inputs": inputs}
    return {**inputs, **{name: evaluated(each, names) for name, each in hints(type).get("live", {}).items()}}


def overrides(type: str, config: Any) -> dict[str, Any]:
    """Hyperparameters that no field sets."""
    stated = {name: evaluated(each, {"config": config}) for name, each in hints(type).get("overrides", {}).items()}
    return {name: value for name, value in stated.items() if value is not None}


def live_output(type: str, outputs: Any, name: str) -> Any:
    """The output of the live model that has this name in the spec."""
    stated = hints(type).get("outputs", {})
    if name in stated:
        return evaluated(stated[name], {"outputs": outputs})
    return outputs[name] if name in outputs else getattr(outputs, name)
