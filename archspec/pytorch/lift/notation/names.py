"""Names that are free in a definition."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import takewhile

from archspec.pytorch.values.arguments import UntranslatableError

# Roles of layers, where the name of a class or an address reveals them.

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


def role_statements(kind: str, layers: Sequence[str], owns: bool, written: Callable[[str], str]) -> list[str]:
    """Return the statements that give roles to layers with these addresses, which are `written` in them, or to
    everything that a block `owns`.
    """
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
    return [f"role {role} for {', '.join(map(written, addresses))}" for role, addresses in found.items()]


KEYWORDS = frozenset(
    "if else for in return tie require role param buffer const unused expect and or not true false none inf as".split()  # noqa: SIM905
)
"""Words that cannot be names."""

RESERVED = KEYWORDS | {"pi", "i"}
"""These, and names that have a meaning in expressions: `i` is the index of loops."""

FREE_NAMES = ("seq", "length", "frames", "height", "width", "depth")
"""Names of dimensions after `batch`."""

MAX_NUMBER = 60
"""Names are numbered up to this number; a body with more values of one kind is an unrolled loop."""


class Names:
    """The names of one definition."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = {*taken}

    def take(self, wanted: Sequence[str]) -> str:
        """Return the first free name among those wanted, or the first one of several letters with a number."""
        names = [name for item in wanted if (name := identifier(item))]
        base = next((name for name in names if len(name) > 1), "hidden")
        for name in [*names, base, *[f"{base}{turn}" for turn in range(2, MAX_NUMBER)]]:
            if name not in self._taken:
                self._taken.add(name)
                return name
        raise UntranslatableError("it computes too many values to be named, as a loop over a length does")


def identifier(text: str) -> str:
    """Return a text as a name of the language; empty if it cannot be one."""
    name = re.sub(r"\W", "_", text).strip("_")
    if not name or name[0].isdigit() or name in RESERVED:
        return ""
    return name


def definition_names(kinds: Sequence[str], paths: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """Return a name for each definition: its class, or with a word of its address where several have one class.

    None of them is one of those that are `taken`.
    """
    prefix = _common_prefix([*dict.fromkeys(kinds)])
    found: list[str] = []
    for kind, path in zip(kinds, paths, strict=True):
        others = [other for same, other in zip(kinds, paths, strict=True) if same == kind and other != path]
        name = kind if kinds.count(kind) == 1 else _distinguished(kind, prefix, path, others)
        turn = 2
        while name in found or name in taken:
            name, turn = f"{kind}{turn}", turn + 1
        found.append(name)
    return found


def _distinguished(kind: str, prefix: str, path: str, others: Sequence[str]) -> str:
    """Return a class with the last word of an address that is in no other one."""
    seen = {word for other in others for word in other.split(".")}
    words = [word for word in path.split(".") if word not in seen and not word.isdigit()]
    if not words:
        return kind
    word = "".join([part[:1].upper() + part[1:] for part in words[-1].split("_")])
    rest = kind.removeprefix(prefix)
    return f"{prefix}{word}" if word.endswith(rest) else f"{prefix}{word}{rest}"


def _common_prefix(kinds: Sequence[str]) -> str:
    """Return the words that all classes begin with."""
    words = [re.findall(r"[A-Z]+[a-z0-9]*|[a-z0-9]+", kind) for kind in kinds]
    common = takewhile(lambda items: len({*items}) == 1, zip(*words, strict=False))
    return "".join([word for word, *_ in common]) if len(kinds) > 1 else ""
