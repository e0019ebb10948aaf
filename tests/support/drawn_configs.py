"""Random configurations of the classes in `transformers`, and inputs for them."""

import random
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from families import TYPES as TYPES
from families import mapping, values
from hints import draw_fields, hints, inputs_by_name, overrides
from media import MEDIA, media_inputs
from small import live_form, live_names

import archspec

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
torch.set_num_threads(1)  # the models are tiny
Draw = Callable[[random.Random], dict[str, Any]]
ACTIVATIONS = values("bert", "hidden_act")


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


def decoder(rng: random.Random) -> dict[str, Any]:
    return {**bert(rng), "is_decoder": rng.random() < 0.4}


def albert(rng: random.Random) -> dict[str, Any]:
    return {**bert(rng), "embedding_size": rng.randint(4, 40)}


def electra(rng: random.Random) -> dict[str, Any]:
    drawn = decoder(rng)
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
    kind = rng.choice(["default", "linear", "llama3", "yarn", "dynamic"])
    if kind == "yarn":
        rope = yarn(rng)
    elif kind != "default":
        rope |= {"rope_type": kind, "factor": rng.choice([2.0, 8.0])}
    if kind == "llama3":
        turns = {"low_freq_factor": 1.0, "high_freq_factor": rng.choice([2.0, 4.0])}
        rope |= {**turns, "original_max_position_embeddings": rng.choice([8, 16])}
    if kind == "dynamic":
        drawn["max_position_embeddings"] = rng.choice([6, 40])  # the original length
    flags = {name: rng.random() < 0.5 for name in ("attention_bias", "mlp_bias")}
    return {**drawn, **flags, "hidden_act": rng.choice(ACTIVATIONS), "rope_parameters": rope}


WINDOWS = [None, 4, 6]
"""With a shorter one, padding could see nothing, which is NaN in `transformers` in float64."""


def plain_decoder(rng: random.Random, *absent: str) -> dict[str, Any]:
    """What Llama has, without what only some of its descendants have."""
    return {name: value for name, value in llama(rng).items() if name not in ("attention_bias", "mlp_bias", *absent)}


def mistral(rng: random.Random) -> dict[str, Any]:
    return {**plain_decoder(rng), "sliding_window": rng.choice(WINDOWS)}


def mixtral(rng: random.Random) -> dict[str, Any]:
    experts = rng.randint(2, 5)
    return {**mistral(rng), "num_local_experts": experts, "num_experts_per_tok": rng.randint(1, experts)}


def qwen3(rng: random.Random) -> dict[str, Any]:
    return {**plain_decoder(rng), "head_dim": rng.choice([4, 6, 12]), "attention_bias": rng.random() < 0.5}


def qwen3_moe(rng: random.Random) -> dict[str, Any]:
    drawn, experts = qwen3(rng), rng.randint(2, 6)
    if rng.random() < 0.5:
        del drawn["head_dim"]
    drawn |= {"num_experts": experts, "num_experts_per_tok": rng.randint(1, experts)}
    return {**drawn, "moe_intermediate_size": rng.randint(4, 30), "norm_topk_prob": rng.random() < 0.5}


def olmo2(rng: random.Random) -> dict[str, Any]:
    return {**plain_decoder(rng, "head_dim"), "attention_bias": rng.random() < 0.5}


def granite(rng: random.Random) -> dict[str, Any]:
    factors = ("embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling")
    drawn = {**plain_decoder(rng, "head_dim"), **{name: rng.choice([0.22, 1.0, 3.0]) for name in factors}}
    return {**drawn, **{name: rng.random() < 0.5 for name in ("attention_bias", "mlp_bias")}}


def phi3(rng: random.Random) -> dict[str, Any]:
    rope = {"rope_type": "default", "rope_theta": rng.choice([1e3, 1e4, 5e5])}
    drawn: dict[str, Any] = {**plain_decoder(rng, "head_dim"), "rope_parameters": rope}
    drawn["sliding_window"] = rng.choice(WINDOWS)
    size = drawn["hidden_size"] // drawn["num_attention_heads"]
    rope["partial_rotary_factor"] = rng.choice([part for part in (1.0, 0.75, 0.5) if size * part % 2 == 0] or [1.0])
    return drawn


def starcoder2(rng: random.Random) -> dict[str, Any]:
    drawn: dict[str, Any] = {**plain_decoder(rng, "head_dim"), "sliding_window": rng.choice(WINDOWS)}
    eps = drawn.pop("rms_norm_eps")
    return {**drawn, "use_bias": rng.random() < 0.5, "norm_epsilon": eps}


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


FEED_FORWARDS = values("t5", "feed_forward_proj")


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


def gpt_neox(rng: random.Random) -> dict[str, Any]:
    drawn = {**common(rng), "layer_norm_eps": rng.choice([1e-5, 1e-3]), "pad_token_id": rng.choice([0, 1, 5])}
    drawn["hidden_size"] = drawn["num_attention_heads"] * rng.choice([8, 16])
    rope = {"rope_type": "default", "rope_theta": rng.choice([1e3, 1e4])}
    rope["partial_rotary_factor"] = rng.choice([0.25, 0.5, 1.0])
    flags = {name: rng.random() < 0.5 for name in ("attention_bias", "use_parallel_residual")}
    return {**drawn, **flags, "hidden_act": rng.choice(ACTIVATIONS), "rope_parameters": rope}


def gptj(rng: random.Random) -> dict[str, Any]:
    drawn = gpt2(rng)
    del drawn["scale_attn_by_inverse_layer_idx"]
    return {**drawn, "n_embd": drawn["n_head"] * rng.choice([8, 16]), "rotary_dim": rng.choice([2, 4, 6])}


def opt(rng: random.Random) -> dict[str, Any]:
    drawn = {**common(rng), "pad_token_id": rng.choice([0, 1, 5])}
    drawn["ffn_dim"] = drawn.pop("intermediate_size")
    if rng.random() < 0.5:
        drawn["word_embed_proj_dim"] = rng.randint(4, 40)
    flags = {name: rng.random() < 0.5 for name in ("do_layer_norm_before", "enable_bias")}
    return {**drawn, **flags, "activation_function": rng.choice(ACTIVATIONS)}


def bloom(rng: random.Random) -> dict[str, Any]:
    drawn = common(rng)
    drawn = {name: drawn[name] for name in ("vocab_size", "tie_word_embeddings")}
    drawn |= {"n_layer": rng.randint(1, 4), "n_head": rng.choice([1, 2, 3, 4, 6]), "pad_token_id": rng.choice([0, 1])}
    drawn |= {"hidden_size": drawn["n_head"] * rng.choice([4, 8]), "layer_norm_epsilon": rng.choice([1e-5, 1e-3])}
    return {**drawn, "apply_residual_connection_post_layernorm": rng.random() < 0.5}


def falcon(rng: random.Random) -> dict[str, Any]:
    drawn = {**common(rng), "layer_norm_epsilon": rng.choice([1e-5, 1e-3]), "pad_token_id": rng.choice([0, 1, 5])}
    drawn["ffn_hidden_size"] = drawn.pop("intermediate_size")
    heads = drawn["num_attention_heads"] = rng.choice([1, 2, 4])  # with these, ALiBi is exact in bfloat16
    drawn["hidden_size"] = heads * rng.choice([4, 8])
    flags: dict[str, Any] = {name: rng.random() < 0.5 for name in ("multi_query", "parallel_attn", "bias", "alibi")}
    if rng.random() < 0.5:
        flags |= {"new_decoder_architecture": True, "parallel_attn": True}
        flags |= {"num_kv_heads": rng.choice([n for n in range(1, heads + 1) if heads % n == 0])}
        flags |= {"num_ln_in_parallel_attn": rng.choice([None, 1, 2])}
    return {**drawn, **flags, "activation": rng.choice(ACTIVATIONS)}


def grouped(rng: random.Random) -> dict[str, Any]:
    """Fields that most decoders with fewer key/value heads have."""
    drawn = {**common(rng), "rms_norm_eps": rng.choice([1e-6, 1e-5]), "pad_token_id": rng.choice([0, 1, 5])}
    heads = drawn["num_attention_heads"]
    drawn["num_key_value_heads"] = rng.choice([n for n in range(1, heads + 1) if heads % n == 0])
    return {**drawn, "head_dim": rng.choice([4, 6, 12]), "attention_bias": rng.random() < 0.5}


def windows(rng: random.Random, layers: int) -> dict[str, Any]:
    period = rng.randint(1, 4)
    types = ["sliding_attention" if (i + 1) % period else "full_attention" for i in range(layers)]
    # At least 4: the live models make padding that sees no other tokens NaN in float64, and then all the rest.
    return {"sliding_window": rng.choice([4, 5, 8, 30]), **rng.choice([{}, {"layer_types": types}])}


def gemma2(rng: random.Random) -> dict[str, Any]:
    drawn = grouped(rng)
    caps = {name: rng.choice([None, 2.0, 30.0]) for name in ("attn_logit_softcapping", "final_logit_softcapping")}
    drawn |= {**windows(rng, drawn["num_hidden_layers"]), **caps, "query_pre_attn_scalar": rng.choice([8, 24])}
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": rng.choice([1e3, 1e4])}
    rope |= rng.choice([{}, {"rope_type": "linear", "factor": 4.0}])
    return {**drawn, "hidden_activation": rng.choice(ACTIVATIONS), "rope_parameters": rope}


def gemma3(rng: random.Random) -> dict[str, Any]:
    drawn = {**grouped(rng), "query_pre_attn_scalar": rng.choice([8, 24]), "hidden_activation": rng.choice(ACTIVATIONS)}
    whole: dict[str, Any] = {"rope_type": "default", "rope_theta": rng.choice([1e4, 1e6])}
    whole |= rng.choice([{}, {"rope_type": "linear", "factor": 8.0}])
    rope = {
        "full_attention": whole,
        "sliding_attention": {"rope_type": "default", "rope_theta": rng.choice([1e3, 1e4])},
    }
    drawn |= {"final_logit_softcapping": rng.choice([None, 3.0]), "rope_parameters": rope}
    pattern = {"sliding_window": 4, "sliding_window_pattern": rng.randint(1, 3)}
    return {**drawn, **rng.choice([windows(rng, drawn["num_hidden_layers"]), pattern])}


def mamba(rng: random.Random) -> dict[str, Any]:
    drawn = common(rng)
    drawn = {name: drawn[name] for name in ("vocab_size", "hidden_size", "num_hidden_layers", "tie_word_embeddings")}
    drawn |= {"state_size": rng.choice([2, 4]), "expand": rng.choice([1, 2, 3]), "conv_kernel": rng.choice([2, 4])}
    drawn |= {"layer_norm_epsilon": rng.choice([1e-5, 1e-3]), **rng.choice([{}, {"time_step_rank": 3}])}
    return {**drawn, "use_bias": rng.random() < 0.5, "use_conv_bias": rng.random() < 0.5}


def yarn(rng: random.Random) -> dict[str, Any]:
    turns = {
        "beta_fast": rng.choice([2.0, 32.0]),
        "beta_slow": rng.choice([0.25, 1.0]),
        "factor": rng.choice([2.0, 40.0]),
    }
    turns |= {"original_max_position_embeddings": rng.choice([8, 64]), "truncate": rng.random() < 0.5}
    return {"rope_type": "yarn", "rope_theta": rng.choice([1e2, 1e4]), **turns}


def gpt_oss(rng: random.Random) -> dict[str, Any]:
    drawn = {**grouped(rng), "num_local_experts": rng.randint(3, 6), "num_experts_per_tok": rng.randint(1, 3)}
    drawn |= {"swiglu_alpha": rng.choice([1.702, 1.0]), "swiglu_limit": rng.choice([0.3, 7.0])}
    drawn |= windows(rng, drawn["num_hidden_layers"])
    return {**drawn, "rope_parameters": rng.choice([yarn(rng), {"rope_type": "default", "rope_theta": 1e3}])}


def deepseek(rng: random.Random) -> dict[str, Any]:
    drawn = {**grouped(rng), "q_lora_rank": rng.choice([None, 5, 12]), "kv_lora_rank": rng.choice([4, 9])}
    del drawn["head_dim"]
    drawn["num_key_value_heads"] = drawn["num_attention_heads"]
    drawn |= {"qk_nope_head_dim": rng.choice([3, 8]), "qk_rope_head_dim": rng.choice([2, 4, 8])}
    drawn |= {"v_head_dim": rng.choice([5, 8]), "rope_interleave": rng.random() < 0.5}
    drawn |= {"first_k_dense_replace": rng.randint(0, 2), "moe_intermediate_size": rng.randint(4, 20)}
    drawn |= {"n_routed_experts": 8, "n_shared_experts": rng.randint(1, 2), "n_group": rng.choice([2, 4])}
    drawn |= {"topk_group": rng.randint(1, 2), "num_experts_per_tok": rng.randint(1, 2)}
    drawn |= {"norm_topk_prob": rng.random() < 0.5, "routed_scaling_factor": rng.choice([1.0, 2.5])}
    scales = {"mscale": rng.choice([0.7, 1.0]), "mscale_all_dim": rng.choice([0.7, 1.0])}
    rope = rng.choice([{**yarn(rng), **scales}, {"rope_type": "default", "rope_theta": 1e3}])
    return {**drawn, "hidden_act": rng.choice(ACTIVATIONS), "rope_parameters": rope}


def deberta(rng: random.Random) -> dict[str, Any]:
    drawn = {**bert(rng), "type_vocab_size": rng.randint(0, 3), "legacy": rng.random() < 0.7}
    flags = {name: rng.random() < 0.5 for name in ("share_att_key", "position_biased_input")}
    relative = rng.random() < 0.8
    kinds = [["c2p"], ["p2c"], "c2p|p2c", ["p2c", "c2p"]]
    flags |= {"relative_attention": relative, "pos_att_type": rng.choice(kinds if relative else [*kinds, None])}
    flags |= {"norm_rel_ebd": "layer_norm" if relative and rng.random() < 0.5 else "none"}
    flags |= {"position_buckets": rng.choice([-1, 2, 4, 8]), "max_relative_positions": rng.choice([-1, 7, 12])}
    if drawn["legacy"] and rng.random() < 0.5:
        flags["embedding_size"] = rng.randint(4, 40)
    if rng.random() < 0.5:
        flags |= {"conv_kernel_size": rng.choice([0, 1, 3, 5]), "conv_act": rng.choice(ACTIVATIONS)}
        flags |= {"conv_groups": rng.choice([1, 2])}
    return {**drawn, **flags, "pooler_hidden_act": rng.choice(ACTIVATIONS)}


def ernie(rng: random.Random) -> dict[str, Any]:
    return {**decoder(rng), "use_task_id": rng.random() < 0.7, "task_type_vocab_size": rng.randint(1, 4)}


def esm(rng: random.Random) -> dict[str, Any]:
    drawn = {**common(rng), "pad_token_id": rng.choice([0, 1, 5]), "mask_token_id": rng.choice([3, 7])}
    flags = {name: rng.random() < 0.5 for name in ("token_dropout", "emb_layer_norm_before")}
    drawn |= {"layer_norm_eps": rng.choice([1e-12, 1e-5]), "rope_theta": rng.choice([1e3, 1e4])}
    return {**drawn, **flags, "position_embedding_type": rng.choice(["absolute", "rotary"])}


def eurobert(rng: random.Random) -> dict[str, Any]:
    return {**llama(rng), "classifier_pooling": rng.choice(["bos", "mean", "late"])}


def layoutlm(rng: random.Random) -> dict[str, Any]:
    return {**bert(rng), "max_2d_position_embeddings": rng.choice([32, 50])}


def longformer(rng: random.Random) -> dict[str, Any]:
    drawn = bert(rng)
    windows = [rng.choice([4, 8]) for _ in range(drawn["num_hidden_layers"])]
    drawn |= {"attention_window": rng.choice([windows, windows[:1] * len(windows), windows[0]])}
    return {**drawn, "pad_token_id": rng.choice([0, 1, 5]), "sep_token_id": rng.choice([2, 3])}


def mpnet(rng: random.Random) -> dict[str, Any]:
    drawn = {**bert(rng), "relative_attention_num_buckets": rng.choice([32, 40])}
    del drawn["type_vocab_size"]
    return drawn


def nomic_bert(rng: random.Random) -> dict[str, Any]:
    drawn = {**bert(rng), "rope_parameters": {"rope_type": "default", "rope_theta": rng.choice([1e3, 1e4])}}
    return {**drawn, "head_dim": rng.choice([4, 6, 12])} if rng.random() < 0.4 else drawn


DRAWS: dict[str, Draw] = {
    "albert": albert,
    "bart": bart,
    "bert": decoder,
    "bloom": bloom,
    "camembert": decoder,
    "deberta-v2": deberta,
    "deepseek_v3": deepseek,
    "distilbert": distilbert,
    "electra": electra,
    "ernie": ernie,
    "esm": esm,
    "eurobert": eurobert,
    "falcon": falcon,
    "gemma2": gemma2,
    "gemma3_text": gemma3,
    "gpt2": gpt2,
    "gpt_neox": gpt_neox,
    "gpt_oss": gpt_oss,
    "gptj": gptj,
    "granite": granite,
    "layoutlm": layoutlm,
    "llama": llama,
    "longformer": longformer,
    "m2m_100": m2m_100,
    "mamba": mamba,
    "marian": marian,
    "mbart": bart,
    "mistral": mistral,
    "mixtral": mixtral,
    "modernbert": modernbert,
    "mpnet": mpnet,
    "nomic_bert": nomic_bert,
    "olmo2": olmo2,
    "opt": opt,
    "pegasus": bart,
    "phi3": phi3,
    "qwen2": plain_decoder,
    "qwen3": qwen3,
    "qwen3_moe": qwen3_moe,
    "roberta": decoder,
    "starcoder2": starcoder2,
    "t5": t5,
    "xlm-roberta": decoder,
    **MEDIA,
}
"""What is drawn for the first model types; for the others see `hints`. What is not said is left at its default."""


def draw(type: str, rng: random.Random, architecture: str = "") -> dict[str, Any]:
    if type in DRAWS:
        return DRAWS[type](rng)
    defaults = transformers.AutoConfig.for_model(type).to_dict()
    return draw_fields(
        rng, mapping(type).fields, "", defaults, hints(type).get("draw", {}), {"architecture": architecture}
    )


def with_parts(config: Any, prefix: str = "") -> list[tuple[str, Any]]:
    """A configuration and those nested in it, with the beginnings of their fields."""
    parts = [(name, part) for name, part in vars(config).items() if isinstance(part, transformers.PreTrainedConfig)]
    return [(prefix, config), *(each for name, part in parts for each in with_parts(part, f"{prefix}{name}."))]


class Drawn:
    """A random configuration of a family, the live class it is for, and the file that `transformers` wrote of it."""

    def __init__(self, type: str, seed: int, folder: Path, only: str | None = None) -> None:
        rng = random.Random(f"{type} {seed}")
        self.family = mapping(type)
        names = [name for name in self.family.architectures if hasattr(transformers, name)]
        name = only or names[seed % len(names)]
        self.config = transformers.AutoConfig.for_model(type, **draw(type, rng, name))
        for part, config in with_parts(self.config):
            for field, value in config.to_dict().items():
                known = self.family.fields.get(part + field, {})
                without_effect = part + field in self.family.ignored and isinstance(value, float)
                if without_effect or known.get("kind") == "rate":
                    setattr(config, field, round(rng.uniform(0.01, 0.4), 3))  # it must change nothing in evaluation
        if not name.endswith("QuestionAnswering"):  # BART does not write 2, and reads 3 instead
            self.config.num_labels = rng.choice([1, 3, 4, 5]) if type == "bart" else rng.randint(1, 5)
        if name != names[0] or rng.random() < 0.5:
            self.config.architectures = [name]
        # Falcon adds the biases of ALiBi twice in "eager".
        default = "sdpa" if getattr(self.config, "alibi", False) else "eager"
        self.config._attn_implementation = hints(type).get("attention", default)
        if hasattr(self.config, "decoder_layers") and name.endswith("CausalLM"):
            self.config.use_cache = False  # whose size is that of the encoder
        self.config._experts_implementation = "eager"  # the others do not support float64
        self.live = getattr(transformers, name)
        self.config.save_pretrained(folder)
        self.path = str(folder / "config.json")
        self.rng = rng

    def load(self) -> archspec.Model:
        """The imported model, with the tensors of the live one."""
        return archspec.load(self.path, **self.overrides)

    @cached_property
    def overrides(self) -> dict[str, Any]:
        """Hyperparameters that no field sets."""
        return live_form(self.path, **overrides(self.family.type, self.config))


def state_of(model: archspec.Model, live: Any) -> dict[str, Any]:
    """The state of a live model under the names of the spec."""
    state = live.state_dict()
    return {name: state[live_name] for name, live_name in live_names(model).items()}


def draw_inputs(drawn: Drawn, names: list[str]) -> dict[str, Any]:
    """Two sequences, the second with padding at its end; two choices of each where a model chooses."""
    rng, config, type = drawn.rng, drawn.config, drawn.family.type
    if type not in DRAWS:
        return inputs_by_name(torch, type, rng, config, drawn.load().inputs)
    if drawn.family.type in MEDIA:
        return media_inputs(torch, rng, config, archspec.load(drawn.path).inputs)
    padding = config.pad_token_id or 0
    lengths = {"": rng.randint(7, 16), "decoder_": rng.randint(4, 9)}
    if drawn.family.type in ("bart", "mbart", "t5") and drawn.live.__name__.endswith("SequenceClassification"):
        lengths["decoder_"] = lengths[""]  # both read the same text
    counts = {"token_type_ids": "type_vocab_size", "task_type_ids": "task_type_vocab_size"}
    inputs: dict[str, Any] = {}
    for name in names:
        side = "decoder_" if name.startswith("decoder_") else ""
        length = lengths[side]
        most = max(1, getattr(config, counts.get(name, "vocab_size")))
        real = (torch.arange(length) < torch.tensor([[length], [length - 3]])).long()
        if name == "global_attention_mask":
            if rng.random() < 0.5:
                chosen = [[int(i == 0 or rng.random() < 0.3) for i in range(length)] for _ in range(2)]
                inputs[name] = torch.tensor(chosen)
            continue
        if name == "task_type_ids" and drawn.live.__name__ == "ErnieForMultipleChoice":
            continue  # which does not flatten them
        if name == "bbox":
            edges = [
                [sorted(rng.randrange(config.max_2d_position_embeddings) for _ in range(4)) for _ in range(length)]
            ]
            inputs[name] = torch.tensor(edges * 2)
            continue
        if name.startswith("encoder_"):  # of a decoder alone
            mask = (torch.arange(5) < torch.tensor([[5], [2]])).long()
            inputs[name] = mask if name.endswith("mask") else torch.randn(2, 5, config.d_model, dtype=torch.float64)
            continue
        if name.endswith("mask"):
            inputs[name] = real
            continue
        if name == "mc_token_ids":
            inputs[name] = torch.tensor([rng.randrange(length) for _ in range(2)])
            continue
        values = torch.tensor([[rng.randrange(most) for _ in range(length)] for _ in range(2)])
        if name == "input_ids" and drawn.family.type in ("bart", "mbart", "t5"):  # a text ends
            values[values == config.eos_token_id] = config.eos_token_id + 1
            values[:, [1, length - 4]] = config.eos_token_id
        if name == "input_ids" and hasattr(config, "attention_window"):  # a question and an answer
            values[values == config.sep_token_id] = config.sep_token_id + 1
            values[:, [1, 2, length - 4]] = config.sep_token_id
        inputs[name] = values * real + (1 - real) * (padding if name.endswith("input_ids") else 0)
    if drawn.live.__name__.endswith(("MultipleChoice", "DoubleHeadsModel")):
        inputs = {name: torch.stack([value, value.flip(0)], 1) for name, value in inputs.items()}
    return inputs
