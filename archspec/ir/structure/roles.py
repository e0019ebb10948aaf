"""Roles of tensors for which a spec declares none, from the parts that they belong to."""

from __future__ import annotations

from archspec.ir.module import Body
from archspec.ir.structure.parts import (
    AttentionFacts,
    ConvolutionFacts,
    EmbeddingFacts,
    ExpertsFacts,
    Facts,
    FeedForwardFacts,
    HeadFacts,
    NormFacts,
    StateSpaceFacts,
    vocabulary_of,
)
from archspec.ir.structure.read import read_parts

_ROLES: dict[type[Facts], str] = {
    AttentionFacts: "attention",
    EmbeddingFacts: "embedding",
    ExpertsFacts: "feed_forward",
    FeedForwardFacts: "feed_forward",
    HeadFacts: "head",
    NormFacts: "norm",
    StateSpaceFacts: "state_space",
}


def default_roles(body: Body) -> dict[str, str]:
    """Return the role of each tensor that belongs to a part of a model, by name.

    A head has one if it scores the vocabulary, a convolution none.

    What several parts read, such as a table that is the matrix of a head too, has the role of the first.
    """
    parts = read_parts(body)
    vocabulary = vocabulary_of(parts)
    roles: dict[str, str] = {}
    for part in parts:
        if isinstance(part.facts, ConvolutionFacts):
            continue
        if isinstance(part.facts, HeadFacts) and part.facts.classes != vocabulary:
            continue
        for name in part.tensors:
            roles.setdefault(name, _ROLES[type(part.facts)])
    return roles
