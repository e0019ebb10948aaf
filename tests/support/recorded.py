"""Recorded models: weights, inputs and outputs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import paths
from paths import DATA
from reference import Array, read_safetensors
from small import live_names

import archspec

ORACLE = paths.ORACLE / "numeric"
TINY = {"vocab": 97, "hidden": 32, "layers": 2, "heads": 4, "ffn": 48, "positions": 20}
MODERN = {"vocab": 97, "hidden": 32, "layers": 4, "heads": 4, "ffn": 48, "window": 4}
LATENT = {"q_rank": 12, "kv_rank": 8, "nope_size": 8, "rope_size": 4, "value_size": 8}
LATENT |= {"expert_ffn": 16, "experts": 8, "expert_groups": 2, "best_groups": 1, "best": 2}
SHARED = "encoder.albert_layer_groups.0.albert_layers.0"
PARTLY_FLOAT32 = {
    "t5",
    "t5-v1_1",
    "llama",
    "mamba",
    "mistral",
    "mixtral",
    "qwen2",
    "qwen3",
    "qwen3_moe",
    "phi3",
    "gpt_neox",
    "gptj",
    "opt",
    "bloom",
    "falcon",
    "gemma2",
    "gpt_oss",
    "deepseek_v3",
    "vit",
    "swin",
    "clip",
}


class Case(NamedTuple):
    """A spec that is a recorded model.

    `prefix` goes before the spec's addresses (as they are in a live model, if that has other names) in the recorded
    ones. `states` are the applications whose first output, or the sum of whose first outputs, is the hidden state after
    0, 1, ... layers; of the encoder, where there are `decoder` states besides. `named` are other recorded outputs with
    their applications. `absent` are optional inputs that were not recorded, with values of the same meaning. In float64
    the largest difference to the record is the recorded one, up to `rounding`: what the recording itself rounded to
    float32 in its float64 run.
    """

    family: str
    spec: str
    overrides: dict[str, Any]
    prefix: str = ""
    states: tuple[str, ...] = ()
    decoder: tuple[str, ...] = ()
    rounding: float = 1e-12
    named: Mapping[str, str] = {}
    absent: Mapping[str, Array] = {}

    def __str__(self) -> str:
        return f"{self.family}: {Path(self.spec).name}"


def layers(prefix: str, first: str = "embeddings.LayerNorm", stack: str = "encoder.layer") -> tuple[str, ...]:
    return tuple(f"{prefix}{name}" for name in (first, f"{stack}.0", f"{stack}.1"))


def shared(prefix: str) -> tuple[str, ...]:
    return tuple(f"{prefix}{name}" for name in ("encoder.embedding_hidden_mapping_in", SHARED, f"{SHARED}@2"))


def stack(prefix: str, first: str, layer: str, count: int = 2, norm: str = "") -> tuple[str, ...]:
    """What goes into the layers, and what each of them makes; of the last one after the `norm` that follows, if any."""
    layers = [f"{prefix}{layer}.{i}" for i in range(count)]
    return (first, *layers[:-1], prefix + norm if norm else layers[-1])


def bart(prefix: str, norm: str = "") -> dict[str, tuple[str, ...]]:
    sides = ((name, f"{prefix}{side}.") for name, side in (("states", "encoder"), ("decoder", "decoder")))
    return {name: stack(side, f"{side}layernorm_embedding", "layers", norm=norm) for name, side in sides}


def clip() -> dict[str, str]:
    texts, images = "text_model.", "vision_model."
    words = f"{texts}embeddings.token_embedding + {texts}embeddings.position_embedding"
    sides = {
        "text": stack(texts, words, "encoder.layers"),
        "vision": stack(images, f"{images}pre_layrnorm", "encoder.layers"),
    }
    last = {"text_last_hidden_state": f"{texts}final_layer_norm", "vision_last_hidden_state": sides["vision"][-1]}
    pooled = {"text_pooler_output": "text_projection", "vision_pooler_output": "visual_projection"}
    states = {f"{side}_hidden_{i}": state for side, names in sides.items() for i, state in enumerate(names)}
    return {**states, **last, **pooled}


def t5(decoder_layers: int) -> dict[str, tuple[str, ...]]:
    sides = (("states", "encoder.", 2), ("decoder", "decoder.", decoder_layers))
    return {n: stack(s, f"{s}embed_tokens", "block", count, "final_layer_norm") for n, s, count in sides}


SMALL = {name: value for name, value in TINY.items() if name != "positions"}
DECODER = {**SMALL, "groups": 2, "theta": 10000.0}
DECODED = stack("model.", "model.embed_tokens", "layers", norm="norm")
T5 = {**SMALL, "size": 8, "rows": 8, "furthest": 12}


def modern(prefix: str) -> tuple[str, ...]:
    return tuple(f"{prefix}{name}" for name in ("embeddings.norm", "layers.0", "layers.1", "layers.2", "final_norm"))


WHOLE = [
    Case("bert", "bert-base-uncased-pretraining", TINY, "", layers("bert.")),
    Case("albert", "albert-base-v2-pretraining", {**TINY, "factor": 16}, "", shared("albert.")),
    Case("roberta", "roberta-base-mlm", TINY, "", layers("roberta.")),
    Case(
        "electra",
        "electra-small-discriminator-pretraining",
        {**TINY, "factor": 16},
        "",
        layers("electra.", "embeddings_project"),
    ),
    Case("distilbert", "distilbert-base-uncased-mlm", TINY, "", layers("distilbert.", stack="transformer.layer")),
    Case("modernbert", "modernbert-base-mlm", MODERN, "", modern("model."), rounding=1e-6),  # rotary angles
    Case("bart", "bart-base", TINY, **bart("model.")),
    Case("t5", "t5-small", T5, **t5(2)),
    Case(
        "t5-v1_1",
        "t5-v1_1-base",
        {**T5, "size": 16, "decoder_layers": 3, "tied": True, "scaled": False},  # see oracle/README.md on ties
        **t5(3),
    ),
    Case(
        "gpt2",
        "gpt2",
        {**TINY, "ffn": 128},
        states=stack("transformer.", "transformer.wte + transformer.wpe", "h", norm="ln_f"),
    ),
    Case("llama", "llama-3.1-8b", {**DECODER, "scaling": "no_scaling", "eps": 1e-6}, states=DECODED),
    Case("mistral", "mistral-7b-v0.1", {**DECODER, "window": 4, "eps": 1e-6}, states=DECODED),
    Case("mixtral", "mixtral-8x7b", {**DECODER, "experts": 4, "joined": True}, states=DECODED),
    Case("qwen2", "qwen2-7b", DECODER, states=DECODED),
    Case("qwen3", "qwen3-8b", {**DECODER, "size": 16, "tied": True}, states=DECODED),
    Case(
        "qwen3_moe",
        "qwen3-30b-a3b",
        {**DECODER, "size": 16, "ffn": 16, "experts": 4, "best": 2, "joined": True},
        states=DECODED,
    ),
    Case("phi3", "phi-3-mini-4k", {**DECODER, "window": None}, states=DECODED),
    Case(
        "mamba",
        "mamba-130m",
        {"vocab": 97, "hidden": 32, "layers": 2, "states": 4, "rank": 3},
        states=("backbone.layers.0", "backbone.layers.1", "backbone.norm_f"),  # recorded after the layers only
    ),
    Case(
        "gpt_neox",
        "pythia-160m",
        {**SMALL, "rotated": 0.5},
        states=stack("gpt_neox.", "gpt_neox.embed_in", "layers", norm="final_layer_norm"),
    ),
    Case(
        "gptj",
        "gpt-j-6B",
        {**SMALL, "ffn": 128, "rotated": 4},
        states=stack("transformer.", "transformer.wte", "h", norm="ln_f"),
    ),
    Case(
        "opt",
        "opt-350m",
        {**TINY, "word_hidden": 16},
        states=stack(
            "model.decoder.", "model.decoder.project_in + model.decoder.embed_positions", "layers", norm="project_out"
        ),
    ),
    Case(
        "bloom",
        "bloom-560m",
        {name: value for name, value in SMALL.items() if name != "ffn"},
        states=stack("transformer.", "transformer.word_embeddings_layernorm", "h", norm="ln_f"),
    ),
    Case(
        "falcon",
        "falcon-7b",
        {**SMALL, "ffn": 128},
        states=stack("transformer.", "transformer.word_embeddings", "h", norm="ln_f"),
    ),
    Case(
        "gemma2",
        "gemma-2-2b",
        {**SMALL, "groups": 2, "size": 16, "divisor": 16, "window": 4},
        states=stack("model.", "model.embed_tokens", "layers", norm="norm"),
    ),
    Case(
        "gpt_oss",
        "gpt-oss-20b",
        {**SMALL, "groups": 2, "size": 8, "experts": 4, "chosen": 2, "window": 4, "theta": 10000.0, "factor": 1.0},
        states=stack("model.", "model.embed_tokens", "layers", norm="norm"),
    ),
    Case(
        "deepseek_v3",
        "deepseek-v3",
        {**SMALL, **LATENT, "dense_layers": 1, "factor": 1.0, "joined": True},
        states=stack("model.", "model.embed_tokens", "layers", norm="norm"),
    ),
    Case(
        "transformer-seq2seq",
        "transformer-seq2seq",
        {"words": 53, "hidden": 32, "layers": 2, "heads": 4, "inner": 48, "positions": 13},
    ),
    Case(
        "deberta-v2", "deberta-v3-base-mlm", {**TINY, "buckets": 4}, states=layers("deberta."), rounding=1e-6
    ),  # the factor of the products
    Case(
        "deberta-v2-conv",
        "deberta-v2-xlarge",
        {**TINY, "buckets": 4, "shared": False},
        states=("embeddings.LayerNorm", "encoder.conv", "encoder.layer.1"),
        rounding=1e-6,
    ),
    Case("mpnet", "mpnet-base-mlm", {**TINY, "eps": 1e-12}, states=layers("mpnet.")),
    Case("mbart", "mbart-large-50", TINY, **bart("model.", norm="layer_norm")),
    Case(
        "whisper",
        "whisper-tiny",
        {**SMALL, "bins": 8, "frames": 10, "positions": 12},
        states=stack("model.encoder.", "model.encoder.embed_positions", "layers", norm="layer_norm"),
        decoder=stack(
            "model.decoder.", "model.decoder.embed_tokens + model.decoder.embed_positions", "layers", norm="layer_norm"
        ),
    ),
    Case(
        "wav2vec2",
        "wav2vec2-base",
        {
            **{name: TINY[name] for name in ("hidden", "layers", "heads", "ffn")},
            **{"widths": [16, 16], "strides": [4, 2], "kernels": [8, 3], "position_kernel": 8, "position_groups": 4},
        },
        states=stack("", "encoder.layer_norm", "encoder.layers"),
        absent={"attention_mask": np.ones((2, 200)), "mask_time_indices": np.zeros((2, 24), bool)},
    ),
    Case(
        "vit",
        "vit-base-patch16-224",
        {**{name: TINY[name] for name in ("hidden", "layers", "heads", "ffn")}, "image": 16, "patch": 4, "labels": 5},
        states=stack("vit.", "vit.embeddings", "encoder.layer"),
    ),
    Case(
        "swin",
        "swin-tiny-cls",
        {"hidden": 8, "depths": [2, 2], "heads": [2, 4], "window": 4, "image": 32, "patch": 2, "labels": 5},
        states=stack("swin.", "swin.embeddings.norm", "encoder.layers"),
    ),
    Case("clip", str(DATA / "clip.arch"), {}, named=clip()),
]
SEQUENCES = [
    case for case in WHOLE if case.states and case.family not in {"mamba", "whisper", "wav2vec2", "vit", "swin"}
]
"""The models of texts."""
PARTS = [
    Case("bert", "bert-base-uncased", TINY, "bert.", layers("")),
    Case("bert", "bert-base-uncased-nopooler", TINY, "bert.", layers("")),
    Case("bert", "bert-base-uncased-mlm", TINY, "", layers("bert.")),
    Case("albert", "albert-base-v2", {**TINY, "factor": 16}, "albert.", shared("")),
    Case("albert", "albert-base-v2-mlm", {**TINY, "factor": 16}, "", shared("albert.")),
    Case("roberta", "roberta-base", {**TINY, "pooler": False}, "roberta.", layers("")),
    Case("bart", "bart-base-model", TINY, "model.", **bart("")),
    Case(
        "electra", "electra-small-discriminator", {**TINY, "factor": 16}, "electra.", layers("", "embeddings_project")
    ),
    Case("distilbert", "distilbert-base-uncased", TINY, "distilbert.", layers("", stack="transformer.layer")),
    Case("modernbert", "modernbert-base", MODERN, "model.", modern("")),
]


class Record(NamedTuple):
    """What was recorded of a model; `compared` says which positions are worth comparing (None: all)."""

    meta: dict[str, Any]
    weights: dict[str, Array]
    inputs: dict[str, Array]
    outputs: dict[str, Array]
    compared: Array | None

    def is_scale(self, difference: float, precision: float) -> bool:
        """Whether the largest difference that is found in float64 is the one recorded."""
        return abs(difference - self.meta["f64_max_abs_diff"]) < (
            1e-6 if self.meta["family"] in PARTLY_FLOAT32 else precision
        )

    def differences(self, result: dict[str, Array]) -> dict[str, float]:
        """The largest difference of each output that is in `result`."""
        found: dict[str, float] = {}
        for name, value in result.items():
            assert value.shape == self.outputs[name].shape
            difference = np.abs(value - self.outputs[name])
            if self.compared is not None and value.shape[:2] == self.compared.shape:
                difference = difference[self.compared]
            found[name] = float(difference.max())
        return found


def record(family: str) -> Record:
    folder = ORACLE / family
    meta = json.loads((folder / "meta.json").read_text())
    with np.load(folder / "io.npz") as file:
        arrays = dict(file.items())
    inputs = {name[3:]: value for name, value in arrays.items() if name.startswith("in_")}
    outputs = {name[4:]: value for name, value in arrays.items() if name.startswith("out_")}
    compared = arrays[meta["compare_mask"]] != 0 if meta["compare_mask"] else None
    return Record(meta, read_safetensors(folder / "weights.safetensors"), inputs, outputs, compared)


def load(case: Case) -> archspec.Model:
    return archspec.load(case.spec, **case.overrides)


def recorded_names(case: Case, model: archspec.Model) -> dict[str, str]:
    """The names of the spec's tensors, and those in the record."""
    return {name: case.prefix + live for name, live in live_names(model).items()}


def applications(case: Case) -> dict[str, str]:
    """The recorded names of hidden states, and the applications of which each is the output or the sum."""
    sides = {"encoder_hidden": case.states, "decoder_hidden": case.decoder} if case.decoder else {"hidden": case.states}
    states = {f"{side}_{i}": state for side, names in sides.items() for i, state in enumerate(names)}
    return {**states, **case.named}


def hidden_states(case: Case, trace: Mapping[str, Sequence[Array]]) -> dict[str, Array]:
    """The hidden states under their recorded names, from the outputs of all applications."""
    states = applications(case).items()
    return {name: sum((trace[part][0] for part in state.split(" + ")), np.zeros(())) for name, state in states}
