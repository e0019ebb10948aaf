"""Scaffolds of checkpoints that transformers writes: each compiles, is the checkpoint exactly, and is short."""

from pathlib import Path
from typing import Any

import pytest
from checkpoints import read

import archspec
from archspec import testing

pytestmark = pytest.mark.slow
torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

LAYERS = 6
USUAL = {"hidden_size": 16, "num_hidden_layers": LAYERS, "num_attention_heads": 2, "intermediate_size": 32}
DECODER = USUAL | {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 40, "vocab_size": 50}
TWO_SIDES = {"vocab_size": 50, "d_model": 16, "encoder_layers": LAYERS, "decoder_layers": LAYERS}
TWO_SIDES |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
IMAGES = {"image_size": 32, "patch_size": 8}

MODELS: dict[str, tuple[str, dict[str, Any], int]] = {
    "ViTForImageClassification": ("ViTConfig", USUAL | IMAGES, 40),
    "CLIPModel": ("CLIPConfig", {"text_config": USUAL | {"vocab_size": 50}, "vision_config": USUAL | IMAGES}, 50),
    "WhisperForConditionalGeneration": (
        "WhisperConfig",
        TWO_SIDES
        | {"num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 20, "pad_token_id": 0}
        | {"bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1},
        62,
    ),
    "MixtralForCausalLM": ("MixtralConfig", DECODER | {"num_local_experts": 4}, 45),
    "DebertaV2ForMaskedLM": (
        "DebertaV2Config",
        USUAL | {"vocab_size": 50, "relative_attention": True, "position_buckets": 8, "conv_kernel_size": 3},
        50,
    ),
    "XLNetLMHeadModel": (
        "XLNetConfig",
        {"vocab_size": 50, "d_model": 16, "n_layer": LAYERS, "n_head": 2, "d_inner": 32},
        44,
    ),
    "OPTForCausalLM": (
        "OPTConfig",
        USUAL | {"vocab_size": 50, "ffn_dim": 32, "max_position_embeddings": 20, "word_embed_proj_dim": 8},
        42,
    ),
    "BloomForCausalLM": ("BloomConfig", {"vocab_size": 50, "hidden_size": 16, "n_layer": LAYERS, "n_head": 2}, 38),
    "FalconForCausalLM": ("FalconConfig", USUAL | {"vocab_size": 50}, 36),
    "GPTNeoXForCausalLM": ("GPTNeoXConfig", USUAL | {"vocab_size": 50}, 36),
    "PhiForCausalLM": ("PhiConfig", USUAL | {"vocab_size": 50}, 37),
    "Qwen2ForCausalLM": ("Qwen2Config", DECODER, 39),
    "MambaForCausalLM": (
        "MambaConfig",
        {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": LAYERS, "state_size": 4},
        39,
    ),
    "SwinModel": (
        "SwinConfig",
        {
            "image_size": 32,
            "patch_size": 4,
            "embed_dim": 8,
            "depths": [2, 2, 6],
            "num_heads": [2, 2, 2],
            "window_size": 4,
        },
        54,
    ),
    "Wav2Vec2ForCTC": (
        "Wav2Vec2Config",
        USUAL
        | {"vocab_size": 30, "conv_dim": (16, 16, 16), "conv_stride": (5, 2, 2), "conv_kernel": (10, 3, 3)}
        | {"num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2},
        46,
    ),
    "SegformerForSemanticSegmentation": (
        "SegformerConfig",
        {
            "hidden_sizes": [8, 16, 24, 32],
            "depths": [2] * 4,
            "num_attention_heads": [1, 2, 2, 4],
            "decoder_hidden_size": 16,
        },
        84,
    ),
    "MPNetForMaskedLM": ("MPNetConfig", USUAL | {"vocab_size": 50}, 45),
    "FunnelForMaskedLM": (
        "FunnelConfig",
        {
            "vocab_size": 50,
            "block_sizes": [2, 2, 2],
            "num_decoder_layers": 2,
            "d_model": 16,
            "n_head": 2,
            "d_head": 8,
            "d_inner": 32,
        },
        48,
    ),
    "DeepseekV3ForCausalLM": (
        "DeepseekV3Config",
        DECODER
        | {"num_key_value_heads": 4, "moe_intermediate_size": 12, "n_routed_experts": 8, "n_group": 2, "topk_group": 1}
        | {"num_experts_per_tok": 2, "first_k_dense_replace": 1, "q_lora_rank": 6, "kv_lora_rank": 5}
        | {"qk_rope_head_dim": 4, "v_head_dim": 4, "qk_nope_head_dim": 4},
        68,
    ),
    "ResNetForImageClassification": (
        "ResNetConfig",
        {"embedding_size": 8, "hidden_sizes": [8, 16, 24, 32], "depths": [2, 2, 6, 2]},
        75,
    ),
}
"""Of each class: its configuration, and how many lines its scaffold has at most."""


@pytest.mark.parametrize("name", MODELS)
def test_what_transformers_writes(tmp_path: Path, name: str) -> None:
    config, options, most = MODELS[name]
    torch.manual_seed(0)
    theirs = getattr(transformers, name)(getattr(transformers, config)(**options))
    theirs.save_pretrained(tmp_path)
    found = proven(tmp_path, tmp_path / "model.safetensors", most)
    assert archspec.scaffold(tmp_path).split("\n")[1:] == found.split("\n")[1:]
    torch.save(theirs.state_dict(), tmp_path / "all.bin")
    proven(tmp_path, tmp_path / "all.bin", most)
    model = archspec.load(str(tmp_path / "scaffold.arch"))
    buffers = {n: b for n, b in theirs.named_buffers() if n in theirs.state_dict() and b.is_floating_point()}
    unknown = sum(b.numel() for name, b in buffers.items() if ".running_" not in name)  # a file does not tell
    assert model.params.total == theirs.num_parameters() + unknown


def proven(folder: Path, path: Path, most: int) -> str:
    text = archspec.scaffold(path)
    spec = folder / "scaffold.arch"
    spec.write_text(text)
    assert testing.check(str(spec)) == []
    assert archspec.verify(str(spec), path).is_exact
    model = archspec.load(str(spec))
    ours = {t.name: t.shape for t in model.tensors} | {b.name: b.shape for b in model.buffers}
    assert ours == {entry.name: entry.shape for entry in read(str(path)).entries}
    assert text.count("\n") <= most
    return text
