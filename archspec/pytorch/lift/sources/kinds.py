"""Kinds of the fields of a configuration, by their names."""

from __future__ import annotations

import re
from functools import cache

_KINDS: tuple[tuple[str, str], ...] = (
    ("token", r"(token_id|token_index|token_ids|_start_id|_end_id)$"),
    (
        "kept",
        r"codebook|feat_extract|^num_labels$|adapter|nextn|every_n_|shared_layers|residual_layers|lstm_layers|positions?_buckets",
    ),
    ("width", r"upsample_groups$"),
    (
        "at_layer",
        r"(indexes|indices|idxs|hook_ids|extract_layers|dense_replace|max_window_layers|dense_layers|attention_blocks)$",
    ),
    ("rotary", r"^rotary_dim$"),
    ("layers", r"(^|_)(layers|n_layer|depth)$"),
    ("groups", r"(kv|key_value)_heads?$|^(n_|num_)?kv$"),
    ("heads", r"(heads|n_head)$"),
    ("head", r"head_(dim|size)$|^d_kv$|^kv_channels$|^dim_head$|_head_dim$|(^|_)d_head$"),
    ("vocabulary", r"vocab_size$|^vocab$|vocab_size_per_layer_input$"),
    ("positions", r"(max_\w*positions?(_embeddings)?|n_positions|n_ctx|max_seq_len\w*|context_length)$"),
    ("experts", r"^(moe_)?(num_|n_)(local_|routed_)?experts$"),
    ("queries", r"num_queries$"),
    ("chosen", r"experts_per_tok(en)?$|^moe_(topk|k)$|^top_k$"),
    ("expert_groups", r"^n_group$"),
    ("chosen_groups", r"^topk_group$"),
    (
        "kept",
        r"image|img|spec_size|pos_emb_|patch|kernel|window|crop|chunk|bucket|stride|time|sampl|bins|block_size|pool_size|batch|mel|freq",
    ),
    (
        "hidden",
        r"(hidden_size(_per_layer_input)?|hidden_dim|d_model|n_embd|n_state|embed_dim|^dim|embedding_size|embedding_dim|width|projection_dim)s?$",
    ),
    ("width", r"(size|dim|dims|channels|units|n_inner|d_ff|rank|hidden|filters|inner|features|ffn)s?$"),
)
"""What a field is, by the first pattern that its name contains."""

MIN_VALUES = {
    "layers": 2,
    "heads": 3,
    "groups": 2,
    "head": 8,
    "rotary": 4,
    "vocabulary": 64,
    "positions": 41,
    "queries": 80,
    "hidden": 16,
    "width": 16,
}
"""Smaller values of these kinds stay as they are; those of others below 2."""


@cache
def kind_of(name: str) -> str:
    """Return what a field of this name is."""
    return next((kind for kind, pattern in _KINDS if re.search(pattern, name)), "kept")
