"""From a model and a path to a verification: what `archspec verify` does."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from archspec.checkpoints.checkpoint import read
from archspec.pipeline import bundled_models, table_of, written
from archspec.source import ArchError
from archspec.verification.spelling import Rename, parse_rename
from archspec.verification.verify import Verification, compare

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from archspec.checkpoints.entries import Checkpoint
    from archspec.model import Model
    from archspec.table import Table


def verify(
    model: Model | str | os.PathLike[str],
    path: str | os.PathLike[str],
    rename: Mapping[str, str] | None = None,
) -> Verification:
    """Compares the tensors of a checkpoint with those of a model: names, shapes, ties. Reads headers only.

    `model` is a Model, or what `archspec.load` takes; `path` a file of safetensors or of `torch.save`, an index of
    shards, or a folder with one of these; `rename` patterns of whole names (`{"model.*": "*"}`), applied in order.

    Raises ArchError if the spec is wrong, or the checkpoint cannot be read or contradicts itself.
    """
    table = table_of(written(model), {})[0] if isinstance(model, str | os.PathLike) else model.table
    renames = [parse_rename(old, new) for old, new in (rename or {}).items()]
    return verify_table(table, os.fspath(path), renames)


def verify_table(table: Table, path: str, renames: Sequence[Rename] = ()) -> Verification:
    """As `verify`, of a model's table."""
    checkpoint = read(path)
    found = compare(table, checkpoint, renames)
    return found if found.is_exact else found._replace(fits=_fitting(table, checkpoint, renames))


def _fitting(table: Table, checkpoint: Checkpoint, renames: Sequence[Rename]) -> tuple[str, ...]:
    """The other models of a bundled file, with the same hyperparameters set, that are exactly the checkpoint."""
    names = len(checkpoint.entries)
    bundled = bundled_models()
    files = {file for file, name in bundled if name == table.model}
    found: list[str] = []
    for file, name in bundled:
        with suppress(ArchError):  # not every model has these hyperparameters
            if file in files and name != table.model:
                other = table_of(name, table.overrides)[0]
                fits = names <= len(other.tensors) + len(other.buffers)
                found += [name] if fits and compare(other, checkpoint, renames).is_exact else []
    return tuple(found)
