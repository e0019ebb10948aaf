"""`archspec.verify`: the tensors of a checkpoint compared with those of a model."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from archspec.analysis.verify.naming import Rename, parse_rename
from archspec.analysis.verify.surplus import find_surplus
from archspec.analysis.verify.verify import Verification, compare
from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import ArchError
from archspec.formats.checkpoints.checkpoint import read
from archspec.ir.module import gc_paused
from archspec.pipeline.index import bundled_models
from archspec.pipeline.tables import load_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from archspec.formats.checkpoints.entries import Checkpoint
    from archspec.ir.table import Table
    from archspec.pipeline.model import ModelLike


@check_arguments
def verify(
    model: ModelLike,
    path: str | os.PathLike[str],
    rename: Mapping[str, str] | None = None,
) -> Verification:
    """Compare the tensors of a checkpoint with those of a model: names, shapes, ties. Only headers are read.

    `model` is a Model or an argument of `archspec.load`. `path` is a safetensors, `torch.save` or GGUF file, an index
    of shards, or a directory with one of these. `rename` maps patterns of full names in the checkpoint to replacements
    (`{"model.*": "*"}`), which are applied in order.

    Raises ArchError if the spec has an error, or if the checkpoint cannot be read or is inconsistent.
    """
    renames = [parse_rename(old, new) for old, new in (rename or {}).items()]
    return verify_table(load_table(model)[0], os.fspath(path), renames)


def verify_table(table: Table, path: str, renames: Sequence[Rename] = ()) -> Verification:
    """Compare a checkpoint with the table of a model, as `verify` does."""
    with gc_paused():
        checkpoint = read(path)
        result = compare(table, checkpoint, renames)
    return result if result.is_exact else result.replace(fits=_find_matching_models(table, checkpoint, renames))


def _find_matching_models(table: Table, checkpoint: Checkpoint, renames: Sequence[Rename]) -> tuple[str, ...]:
    """Return the other models of a bundled file, with the same overrides, that match the checkpoint exactly."""

    bundled = bundled_models()
    files = {file for file, name in bundled if name == table.model}
    stored = len(checkpoint.entries) - len(find_surplus(checkpoint, checkpoint.entries))
    names: list[str] = []
    for name in (name for file, name in bundled if file in files and name != table.model):
        with suppress(ArchError):  # not every model has these hyperparameters
            other_table = load_table(name, table.overrides)[0]
            may_fit = stored <= len(other_table.tensors) + len(other_table.buffers)
            if may_fit and compare(other_table, checkpoint, renames).is_exact:
                names.append(name)
    return tuple(names)
