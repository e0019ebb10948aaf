"""Small models of `transformers` to lift, each with another one of other sizes as evidence."""

import inspect
from typing import Any

import torch
import transformers

from archspec.pytorch.lift.subject import Subject

Numbers = dict[str, Any]

CONFIGS: dict[str, tuple[str, str, Numbers, Numbers]] = {
    "bert": (
        "BertModel",
        "BertConfig",
        {
            "vocab_size": 97,
            "hidden_size": 48,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 83,
            "max_position_embeddings": 40,
            "type_vocab_size": 5,
            "layer_norm_eps": 1e-6,
        },
        {
            "vocab_size": 89,
            "hidden_size": 60,
            "num_hidden_layers": 2,
            "num_attention_heads": 6,
            "intermediate_size": 107,
            "max_position_embeddings": 41,
            "type_vocab_size": 7,
            "layer_norm_eps": 2e-6,
        },
    ),
    "distilbert": (
        "DistilBertModel",
        "DistilBertConfig",
        {"vocab_size": 97, "dim": 48, "n_layers": 3, "n_heads": 4, "hidden_dim": 83, "max_position_embeddings": 40},
        {"vocab_size": 89, "dim": 60, "n_layers": 2, "n_heads": 6, "hidden_dim": 107, "max_position_embeddings": 41},
    ),
    "albert": (
        "AlbertModel",
        "AlbertConfig",
        {
            "vocab_size": 97,
            "hidden_size": 48,
            "embedding_size": 29,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 83,
            "max_position_embeddings": 40,
            "type_vocab_size": 5,
            "layer_norm_eps": 1e-6,
        },
        {
            "vocab_size": 89,
            "hidden_size": 60,
            "embedding_size": 37,
            "num_hidden_layers": 4,
            "num_attention_heads": 6,
            "intermediate_size": 107,
            "max_position_embeddings": 41,
            "type_vocab_size": 7,
            "layer_norm_eps": 2e-6,
        },
    ),
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {
            "vocab_size": 97,
            "n_embd": 48,
            "n_layer": 3,
            "n_head": 4,
            "n_positions": 40,
            "n_inner": 83,
            "layer_norm_epsilon": 1e-6,
        },
        {
            "vocab_size": 89,
            "n_embd": 60,
            "n_layer": 2,
            "n_head": 6,
            "n_positions": 41,
            "n_inner": 107,
            "layer_norm_epsilon": 2e-6,
        },
    ),
    "llama": (
        "LlamaForCausalLM",
        "LlamaConfig",
        {
            "vocab_size": 97,
            "hidden_size": 48,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 14,
            "intermediate_size": 83,
            "rms_norm_eps": 1e-5,
            "rope_theta": 5000.0,
        },
        {
            "vocab_size": 89,
            "hidden_size": 60,
            "num_hidden_layers": 2,
            "num_attention_heads": 6,
            "num_key_value_heads": 3,
            "head_dim": 22,
            "intermediate_size": 107,
            "rms_norm_eps": 2e-5,
            "rope_theta": 7000.0,
        },
    ),
    "vit": (
        "ViTModel",
        "ViTConfig",
        {
            "hidden_size": 48,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 83,
            "image_size": 24,
            "patch_size": 4,
            "num_channels": 3,
            "layer_norm_eps": 1e-6,
        },
        {
            "hidden_size": 60,
            "num_hidden_layers": 2,
            "num_attention_heads": 6,
            "intermediate_size": 107,
            "image_size": 35,
            "patch_size": 5,
            "num_channels": 2,
            "layer_norm_eps": 2e-6,
        },
    ),
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {
            "vocab_size": 97,
            "d_model": 51,
            "num_layers": 3,
            "num_decoder_layers": 5,
            "num_heads": 7,
            "d_kv": 10,
            "d_ff": 83,
            "relative_attention_num_buckets": 24,
            "relative_attention_max_distance": 90,
            "layer_norm_epsilon": 1e-6,
        },
        {
            "vocab_size": 89,
            "d_model": 63,
            "num_layers": 2,
            "num_decoder_layers": 4,
            "num_heads": 9,
            "d_kv": 14,
            "d_ff": 107,
            "relative_attention_num_buckets": 44,
            "relative_attention_max_distance": 130,
            "layer_norm_epsilon": 2e-6,
        },
    ),
}
"""The class, its configuration, and two choices of sizes of which no two are simply related."""


def subject(name: str, **changes: Any) -> Subject:
    """Return what the model of this name is lifted from; `changes` are to its first configuration."""
    kind, config, first, second = CONFIGS[name]
    whole = _subject(kind, config, {**first, **changes}, name)
    return Subject(
        whole.module,
        whole.inputs,
        whole.other_inputs,
        lambda: _subject(kind, config, second, name),
        whole.numbers,
        None,
        name,
    )


def _subject(kind: str, config: str, numbers: Numbers, name: str) -> Subject:
    made = getattr(transformers, config)(**numbers, use_cache=False)
    torch.manual_seed(0)
    module = getattr(transformers, kind)(made).eval()
    return Subject(
        module, inputs(module, numbers, 2, 7, 5), inputs(module, numbers, 3, 9, 6), None, numbers, None, name
    )


def inputs(module: torch.nn.Module, numbers: Numbers, batch: int, length: int, target: int) -> dict[str, torch.Tensor]:
    """Return inputs for a model, with padding."""
    if "image_size" in numbers:
        image = numbers["image_size"]
        return {"pixel_values": torch.randn(batch, numbers["num_channels"], image, image)}
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[0, -2:] = 0
    ids = torch.randint(3, 80, (batch, length))
    named = {
        "input_ids": ids,
        "attention_mask": mask,
        "token_type_ids": ids % 2,
        "decoder_input_ids": torch.randint(3, 80, (batch, target)),
    }
    taken = inspect.signature(module.forward).parameters
    given = {name: named[name] for name in taken if name in named}
    return {name: value for name, value in given.items() if name != "token_type_ids" or "type_vocab_size" in numbers}
