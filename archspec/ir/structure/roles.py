"""Roles of tensors for which a spec declares none, from the parts that they belong to."""

from __future__ import annotations

from archspec.ir.module import Body
from archspec.ir.structure.parts import (
    AttentionFacts,
    EmbeddingFacts,
    ExpertsFacts,
    Facts,
    FeedForwardFacts,
    HeadFacts,
    NormFacts,
    StateSpaceFacts,
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

    A head has one if it is as wide as a table of the model: it scores a vocabulary.

    What several parts read, such as a table that is the matrix of a head too, has the role of the first.
    """
    parts = read_parts(body)
    vocabularies = {part.facts.rows for part in parts if isinstance(part.facts, EmbeddingFacts)}
    roles: dict[str, str] = {}
    for part in parts:
        if isinstance(part.facts, HeadFacts) and part.facts.classes not in vocabularies:
            continue
        for name in part.tensors:
            roles.setdefault(name, _ROLES[type(part.facts)])
    return roles
