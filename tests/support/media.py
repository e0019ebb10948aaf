"""Random small configurations of models of images, sounds and two kinds of input, and inputs for them."""

import random
from collections.abc import Callable, Mapping
from typing import Any

from archspec import Type

Draw = Callable[[random.Random], dict[str, Any]]


def encoder(rng: random.Random) -> dict[str, Any]:
    heads = rng.choice([1, 2, 3, 4])
    return {
        "hidden_size": heads * rng.choice([4, 6, 8]),
        "num_attention_heads": heads,
        "num_hidden_layers": rng.randint(1, 3),
        "intermediate_size": rng.randint(8, 40),
        "layer_norm_eps": rng.choice([1e-12, 1e-5, 1e-3]),
        "hidden_act": rng.choice(["gelu", "quick_gelu", "relu", "silu"]),
    }


def image(rng: random.Random) -> dict[str, Any]:
    patch = rng.choice([2, 3, 4])
    return {"patch_size": patch, "image_size": patch * rng.randint(2, 4), "num_channels": rng.choice([1, 3])}


def vit(rng: random.Random) -> dict[str, Any]:
    drawn = {**encoder(rng), **image(rng), "qkv_bias": rng.random() < 0.7}
    drawn["encoder_stride"] = rng.choice([drawn["patch_size"], 2])
    pooler = {"pooler_output_size": rng.choice([None, 7]), "pooler_act": rng.choice(["tanh", "gelu"])}
    return {**drawn, **pooler}


def dinov2(rng: random.Random) -> dict[str, Any]:
    drawn = {**encoder(rng), **image(rng), "qkv_bias": rng.random() < 0.7}
    del drawn["intermediate_size"]
    return {**drawn, "mlp_ratio": rng.randint(1, 4), "use_swiglu_ffn": rng.random() < 0.5}


def swin(rng: random.Random) -> dict[str, Any]:
    drawn = {**encoder(rng), **image(rng), "qkv_bias": rng.random() < 0.7}
    stages, window = rng.randint(1, 3), rng.randint(2, 4)
    side = window * 2 ** (stages - 1) + rng.randint(0, 3)
    return {
        **{name: drawn[name] for name in ("patch_size", "num_channels", "layer_norm_eps", "hidden_act", "qkv_bias")},
        "image_size": drawn["patch_size"] * side,
        "embed_dim": 12,
        "depths": [rng.randint(1, 3) for _ in range(stages)],
        "num_heads": [rng.choice([1, 2, 3, 4]) for _ in range(stages)],
        "window_size": window,
        "mlp_ratio": rng.choice([1.0, 2.4, 4.0]),
        "use_absolute_embeddings": rng.random() < 0.5,
        "encoder_stride": rng.choice([drawn["patch_size"] * 2 ** (stages - 1), 2]),
    }


def text(rng: random.Random) -> dict[str, Any]:
    return {**encoder(rng), "vocab_size": rng.randint(40, 90), "max_position_embeddings": rng.randint(20, 30)}


def clip_text(rng: random.Random) -> dict[str, Any]:
    return {**text(rng), "eos_token_id": rng.choice([2, 5]), "projection_dim": rng.randint(4, 20)}


def clip_vision(rng: random.Random) -> dict[str, Any]:
    return {**encoder(rng), **image(rng), "projection_dim": rng.randint(4, 20)}


def clip(rng: random.Random) -> dict[str, Any]:
    parts = {"text_config": clip_text(rng), "vision_config": clip_vision(rng)}
    return {**parts, "projection_dim": rng.randint(4, 20)}


def siglip_text(rng: random.Random) -> dict[str, Any]:
    return {**text(rng), "projection_size": rng.choice([None, 7])}


def siglip_vision(rng: random.Random) -> dict[str, Any]:
    return {**encoder(rng), **image(rng), "vision_use_head": rng.random() < 0.7}


def siglip(rng: random.Random) -> dict[str, Any]:
    texts, images = text(rng), {**encoder(rng), **image(rng)}
    sizes = rng.choice([{"projection_size": images["hidden_size"]}, {"hidden_size": images["hidden_size"]}])
    if "hidden_size" in sizes:
        sizes["num_attention_heads"] = images["num_attention_heads"]
    return {"text_config": {**texts, **sizes}, "vision_config": images}


def whisper(rng: random.Random) -> dict[str, Any]:
    drawn = encoder(rng)
    sides = {}
    for side in ("encoder", "decoder"):
        sides[f"{side}_layers"] = rng.randint(1, 3)
        sides[f"{side}_attention_heads"] = drawn["num_attention_heads"]
        sides[f"{side}_ffn_dim"] = drawn["intermediate_size"]
    return {
        **sides,
        "d_model": drawn["hidden_size"],
        "activation_function": drawn["hidden_act"],
        "vocab_size": rng.randint(40, 90),
        "num_mel_bins": rng.randint(4, 10),
        "max_source_positions": rng.randint(4, 12),
        "max_target_positions": rng.randint(12, 20),
        "classifier_proj_size": rng.randint(4, 20),
        "pad_token_id": 0,
    }


def wav2vec2(rng: random.Random) -> dict[str, Any]:
    drawn, count = encoder(rng), rng.randint(1, 3)
    sizes = {name: [rng.randint(*ends) for _ in range(count)] for name, ends in CONVOLUTIONS.items()}
    count = rng.randint(1, 2)
    sizes |= {name: [rng.randint(*ends) for _ in range(count)] for name, ends in TIME_DELAYS.items()}
    return {
        **drawn,
        **sizes,
        "vocab_size": rng.randint(10, 40),
        "conv_bias": rng.random() < 0.5,
        "feat_extract_norm": rng.choice(["group", "layer"]),
        "feat_extract_activation": rng.choice(["gelu", "relu"]),
        "num_conv_pos_embeddings": rng.randint(3, 8),
        "num_conv_pos_embedding_groups": rng.choice([1, drawn["num_attention_heads"]]),
        "do_stable_layer_norm": rng.random() < 0.5,
        "classifier_proj_size": rng.randint(4, 20),
        "xvector_output_dim": rng.randint(4, 20),
        "mask_time_prob": rng.choice([0.0, 0.1]),
        "mask_feature_prob": rng.choice([0.0, 0.1]),
        "use_weighted_layer_sum": rng.random() < 0.5,
    }


CONVOLUTIONS = {"conv_dim": (3, 12), "conv_kernel": (2, 5), "conv_stride": (1, 3)}
TIME_DELAYS = {"tdnn_dim": (3, 12), "tdnn_kernel": (1, 3), "tdnn_dilation": (1, 2)}
MEDIA: dict[str, Draw] = {
    "clip": clip,
    "clip_text_model": clip_text,
    "clip_vision_model": clip_vision,
    "deit": vit,
    "dinov2": dinov2,
    "siglip": siglip,
    "siglip_text_model": siglip_text,
    "siglip_vision_model": siglip_vision,
    "swin": swin,
    "vit": vit,
    "wav2vec2": wav2vec2,
    "whisper": whisper,
}


def reconstructs(config: Any) -> bool:
    """Whether a decoder of patches, if there is one, makes images of the original size."""
    side = config.image_size // config.patch_size
    for _ in getattr(config, "depths", [0])[1:]:
        side = (side + 1) // 2
    return side * getattr(config, "encoder_stride", config.patch_size) == config.image_size


def plain_input(torch: Any, name: str, dtype: str, shape: list[int]) -> Any:
    """Numbers, choices, or a mask with padding at the end of the second text; None for words."""
    if dtype == "real":
        return torch.randn(shape, dtype=torch.float64)
    if dtype == "bool":
        return torch.rand(shape) < 0.3
    if name.endswith("mask"):
        real = torch.arange(shape[-1]) < torch.tensor([[shape[-1]], [shape[-1] - 3]])
        return real.long().reshape(2, *[1] * (len(shape) - 2), shape[-1]).expand(shape).contiguous()
    return None


def media_inputs(torch: Any, rng: random.Random, config: Any, types: Mapping[str, Type]) -> dict[str, Any]:
    """Two texts, images or sounds, or three images for two texts; the second text or sound ends with padding."""
    sizes = {"batch": 2, "texts": 2, "images": 3, "seq": rng.randint(5, 9), "target": rng.randint(4, 9)}
    sizes["samples"] = rng.randint(300, 350)  # at least two frames after all convolutions
    words = getattr(config, "text_config", config)
    inputs: dict[str, Any] = {}
    for name, type in types.items():
        if name == "bool_masked_pos" and not reconstructs(config):
            continue  # the live models do not accept it
        if name == "mask_time_indices" and not config.mask_time_prob and not config.mask_feature_prob:
            continue
        shape = [size if isinstance(size, int) else size.at(sizes) for size in type.shape]
        value = plain_input(torch, name, type.dtype, shape)
        inputs[name] = torch.randint(words.vocab_size, shape) if value is None else value
    return inputs
