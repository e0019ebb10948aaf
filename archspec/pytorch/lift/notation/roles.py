"""Roles of layers, where the name of a class or an address reveals them."""

from __future__ import annotations

import re
from collections.abc import Sequence

ROLES = {
    "embedding": "embeddings?",
    "attention": "attention|attn|.*attention|self_attn|cross_attn|encoder_attn|.*_attn",
    "feed_forward": "mlp|ffn|ffn_.*|feed_?forward|intermediate|densereludense|fc[12]|linear[12]|ff",
    "pooler": "pooler",
    "head": "lm_head|cls|classifier|score|qa_outputs|heads?|decoder_head|.*_head",
}
"""The words of addresses that name a role."""

CLASSES = {
    "embedding": ".*Embeddings?",
    "attention": ".*Attention[0-9]*",
    "feed_forward": ".*(MLP|Mlp|FeedForward|FFN|DenseActDense|GLU)",
    "pooler": ".*Pooler",
    "head": ".*Head",
}

NONE = ("Embedding", "LayerNorm", "RMSNorm", "GroupNorm", "BatchNorm")
"""Layers that have a role of their own."""


def role_of_class(kind: str) -> str | None:
    """Return the role of everything in a module of this class."""
    return next((role for role, pattern in CLASSES.items() if re.fullmatch(pattern, kind)), None)


def role_of_address(address: str) -> str | None:
    """Return the role of a layer with this address in a block."""
    for word in address.lower().split("."):
        for role, pattern in ROLES.items():
            if re.fullmatch(pattern, word):
                return role
    return None


def role_statements(kind: str, layers: Sequence[str], owns: bool) -> list[str]:
    """Return the statements that give roles to layers with these addresses, or to everything that a block `owns`."""
    own = role_of_class(kind)
    if own is not None:
        return [f"role {own}"] if owns else []
    found: dict[str, list[str]] = {}
    for address in layers:
        role = role_of_address(address)
        if address.startswith("output.") and any(other.startswith("intermediate.") for other in layers):
            role = "feed_forward"
        if role is not None:
            found.setdefault(role, []).append(address)
    return [f"role {role} for {', '.join(addresses)}" for role, addresses in found.items()]
