"""The parts of a model, each with its facts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from archspec.core.algebra import Dim
from archspec.core.record import Record


class AttentionFacts(Record):
    """Attention (Vaswani et al., 2017): `heads` queries of a token, which share keys and values in `groups`.

    `key_size` and `value_size` are the sizes of a head. `causal` hides later keys, and `window` is the number of
    earlier positions that a query sees, None for all. `queries` and `keys` are the sizes of their axes. `is_cross` is
    whether keys come from another sequence than queries. `rotary` is the number of elements of a query that rotary
    positions turn (0 for none), `latent` the width of a narrower vector from which keys are computed (None for none),
    and `has_bias` is whether numbers other than masks are added to scores.
    """

    heads: Dim
    groups: Dim
    key_size: Dim
    value_size: Dim
    queries: Dim
    keys: Dim
    causal: bool = False
    window: int | None = None
    is_cross: bool = False
    rotary: Dim = 0
    latent: Dim | None = None
    has_bias: bool = False


class FeedForwardFacts(Record):
    """Two linear maps with a function between them, from `width` to `inner` and back.

    `activation` is the name of the function, None if it is none of the usual ones. `is_gated` is whether its result is
    multiplied by a third map (Shazeer, 2020).
    """

    width: Dim
    inner: Dim
    activation: str | None
    is_gated: bool


class ExpertsFacts(Record):
    """Feed-forward networks, `total` in number, of which each token uses `chosen` (Shazeer et al., 2017).

    `shared` is the inner width of those that each token uses besides, 0 for none.
    """

    total: Dim
    chosen: Dim
    width: Dim
    inner: Dim
    activation: str | None
    is_gated: bool
    shared: Dim = 0


class StateSpaceFacts(Record):
    """A state of `states` numbers for each of `width` channels, which decays and takes in each token (Mamba, 2023)."""

    width: Dim
    states: Dim


class NormFacts(Record):
    """A normalization over `width` channels: "LayerNorm", "RMSNorm", "GroupNorm" or "BatchNorm"."""

    name: str
    width: Dim


class EmbeddingFacts(Record):
    """A table of `rows` vectors of `width`.

    `indexed_by` is what chooses rows: "input" for ids, "position", also one that is counted from ids, or "constant".
    """

    rows: Dim
    width: Dim
    indexed_by: str


class ConvolutionFacts(Record):
    """A convolution from `width` channels to `channels`, with the sizes of its `kernel` and `stride` in each axis.

    Its channels are in `groups`; a transposed one enlarges what it takes.
    """

    width: Dim
    channels: Dim
    kernel: tuple[Dim, ...]
    stride: tuple[Dim, ...]
    groups: Dim = 1
    is_transposed: bool = False


class HeadFacts(Record):
    """A linear map from `width` to an output of the model, `classes` wide."""

    width: Dim
    classes: Dim


Facts: TypeAlias = (
    AttentionFacts
    | FeedForwardFacts
    | ExpertsFacts
    | StateSpaceFacts
    | NormFacts
    | EmbeddingFacts
    | ConvolutionFacts
    | HeadFacts
)


class Part(Record):
    """A part of a model: its facts, and the names of the parameters that it reads, in program order.

    `address` is that of the innermost module with the whole part.
    """

    address: str
    tensors: tuple[str, ...]
    facts: Facts


def vocabulary_of(parts: Iterable[Part]) -> int | None:
    """Return the number of tokens that a model knows: the rows of its largest table that an input indexes."""
    tables = [part.facts for part in parts if isinstance(part.facts, EmbeddingFacts)]
    return max([t.rows for t in tables if t.indexed_by == "input" and isinstance(t.rows, int)], default=None)
