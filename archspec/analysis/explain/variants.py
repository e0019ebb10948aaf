"""Models that are easily mistaken for a model: those of its file, and itself with another published vocabulary."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import NamedTuple

from archspec.analysis.explain.tensor_groups import Base, TensorGroups
from archspec.core import resources
from archspec.ir.table import Table
from archspec.pipeline.index import read_index


class Variant(NamedTuple):
    """A variant of a base: its description, and the parameters that it adds to the count of the base.

    `is_close`: it can also explain a rounded number, which others would often match by chance.
    """

    base: Base
    text: str
    params: int
    is_close: bool


def variants(table: Table, universe: TensorGroups) -> list[Variant]:
    """Return the variants of a model, without those that have as many parameters."""
    siblings = list(_siblings(table, universe))
    known = {(variant.base, variant.params) for variant in siblings}
    return siblings + [v for v in _vocabularies(universe) if v.params and (v.base, v.params) not in known]


def _siblings(table: Table, universe: TensorGroups) -> Iterator[Variant]:
    """Yield the other bundled models of the model's file."""
    bundled = read_index() or []
    files = {model.file for model in bundled if model.name == table.model and not table.overrides}
    known = {universe.total(base.counted) for base in universe.bases}
    for model in bundled:
        if model.file in files and model.params.total not in known:
            more = model.params.total - table.params.total
            yield Variant(universe.bases[0], f"instead the model `{model.name}`", more, True)


def _vocabularies(universe: TensorGroups) -> Iterator[Variant]:
    """Yield the model and its relatives with the vocabularies of published models."""
    size = _vocabulary(universe)
    if size is None:
        return
    published = _published()
    for other, name in published.items():
        is_close = name.partition(",")[0] == published[size].partition(",")[0]  # made for the same family
        for base in (base for base in universe.bases if base.rank == 0):
            rows = [
                group.times * group.each // size for _, group in universe.members(base.counted) if size in group.shape
            ]
            text = f"with the vocabulary of {name}, {other:,} instead of {size:,}"
            is_model = base.models != () or not base.parts
            yield Variant(base, text, (other - size) * sum(rows), is_close and is_model)


def _vocabulary(universe: TensorGroups) -> int | None:
    """Return the size of the vocabulary: the rows of the largest embedding table, if it is one of published sizes."""
    tables = [group.shape[0] for _, group in universe.members(universe.bases[0].counted) if group.is_table]
    largest = max(tables, default=0)
    return largest if largest in _published() else None


def _published() -> dict[int, str]:
    path = os.path.join(resources.specs_root(), "vocabularies.json")
    try:
        with open(path, encoding="utf-8") as file:
            return {int(size): name for size, name in json.load(file).items()}
    except (OSError, ValueError):
        return {}
