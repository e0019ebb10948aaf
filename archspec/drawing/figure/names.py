"""The words of figures."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from archspec.ir.structure.parts import AttentionFacts, EmbeddingFacts, ExpertsFacts, FeedForwardFacts

_ACTIVATIONS = {
    "relu": "ReLU",
    "relu2": "ReLU²",
    "gelu": "GELU",
    "gelu_tanh": "GELU",
    "gelu_fast": "GELU",
    "quick_gelu": "QuickGELU",
    "silu": "SiLU",
    "mish": "Mish",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "softplus": "softplus",
}
ACTIVATIONS = frozenset(_ACTIVATIONS.values())
_GATED = {"SiLU": "SwiGLU", "GELU": "GeGLU", "ReLU": "ReGLU", "Sigmoid": "GLU"}


def activation_of(type: str) -> str | None:
    """Return the name of the activation that a function is called after."""
    return _ACTIVATIONS.get(type)


def format_size(size: object) -> str:
    """Return a size with separators of thousands; `(height + 31)//32` becomes `H/32`."""
    if isinstance(size, int):
        return f"{size:,}"
    text = re.sub(r"\((\w+) [+-] \d+\)//(\d+)", r"\1/\2", str(size)).replace("//", "/")
    return re.sub(r"\bwidth\b", "W", re.sub(r"\bheight\b", "H", text))


def format_shape(shape: Sequence[object], batch: Collection[str] = ()) -> str:
    """Return a shape without its first axis if that is a `batch`."""
    sizes = shape[1:] if shape and str(shape[0]) in batch else shape
    words = map(format_size, sizes)
    return " × ".join([f"({word})" if " " in word and len(sizes) > 1 else word for word in words])


def lower(title: str) -> str:
    """Return a title within a sentence: `SwiGLU` and `RMSNorm` keep their capitals."""
    return title if title[1:2].isupper() or re.match("[A-Z][a-z]+[A-Z]", title) else title[:1].lower() + title[1:]


def humanize(name: str) -> str:
    """Return a name of a program as words: `last_hidden_state` as `Last hidden state`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").strip()
    return words[:1].upper() + (words[1:] if words.isupper() else words[1:].lower()) if words else ""


def embedding_word(name: str, facts: EmbeddingFacts) -> str:
    """Return what a table of vectors is of: tokens, positions, or what its name says."""
    if facts.indexed_by == "position":
        return "Position"
    word = re.sub(r"_?(embed(ding)?s?|emb)_?", "", name)
    is_other = "type" in word or "position" in word or "pos" in word.split("_")
    if not is_other and (not word or re.search("word|tok|wte|shared|in$|src|trg|tgt", word)):
        return "Token"
    return humanize(word)


def attention_text(facts: AttentionFacts) -> tuple[str, str]:
    """Return the title and details of an attention."""
    if facts.is_cross:
        name = "Cross-attention"
    elif facts.latent is not None:
        name = "Latent attention"
    elif facts.groups == 1 and facts.heads != 1:
        name = "Multi-query attention"
    elif facts.groups != facts.heads:
        name = "Grouped-query attention"
    else:
        name = "Causal self-attention" if facts.causal else "Self-attention"
    heads = f"{format_size(facts.heads)} head{'s' if facts.heads != 1 else ''}"
    if facts.groups != facts.heads and facts.groups != 1:
        heads += f", {format_size(facts.groups)} KV"
    details = [f"{heads} × {format_size(facts.key_size)}"]
    if facts.latent is not None:
        details.append(f"latent {format_size(facts.latent)}")
    if facts.rotary != 0:
        details.append("RoPE")
    if facts.has_bias:
        details.append("position bias")
    if facts.window is not None:
        details.append(f"window {window_text(facts)}")
    return name, ", ".join(details)


def window_text(facts: AttentionFacts) -> str:
    """Return the number of keys in a window, or of those on each side."""
    assert facts.window is not None
    return f"{facts.window + 1:,}" if facts.causal else f"±{facts.window:,}"


def feed_forward_text(facts: FeedForwardFacts) -> tuple[str, str]:
    """Return the title and details of a feed-forward network."""
    width, inner = format_size(facts.width), format_size(facts.inner)
    details = f"{width} → {inner} → {width}"
    if facts.is_gated:
        return f"{_GATED.get(facts.activation or '', 'Gated')} feed-forward", details
    return "Feed-forward", f"{details}, {facts.activation}" if facts.activation else details


def experts_text(facts: ExpertsFacts) -> tuple[str, str]:
    """Return the title and details of experts."""
    details = f"top {format_size(facts.chosen)} of {format_size(facts.total)}"
    shared = 0
    if isinstance(facts.shared, int) and isinstance(facts.inner, int) and facts.shared % facts.inner == 0:
        shared = facts.shared // facts.inner
    if shared:
        details += f" + {shared} shared"
    elif facts.shared != 0:
        details += " + shared"
    return "Mixture of experts", details
