"""From two models to what differs between them: what `archspec diff` does."""

from __future__ import annotations

import os
from typing import NamedTuple

from archspec.diffs.op_changes import FoldedChange
from archspec.diffs.operations import Side, compare
from archspec.diffs.structure import (
    Contents,
    Folded,
    Prefix,
    Repetition,
    TensorChange,
    changed,
    changes,
    common_prefix,
    contents,
    folded,
    renamed,
    repetitions,
)
from archspec.model import Model
from archspec.pipeline import load
from archspec.table import Table


class Difference(NamedTuple):
    """What makes the model B of the model A.

    `tensors` are all changes of parameters and buffers, one a tensor, under B's names; `prefix` says how A's names are
    made B's before. `operations` say what is computed otherwise, folded over numbers. `before` and `after` are the
    models' tables.
    """

    before: Table
    after: Table
    prefix: Prefix
    tensors: tuple[TensorChange, ...]
    operations: tuple[FoldedChange, ...]

    def __bool__(self) -> bool:
        """Whether anything differs, a prefix of names included."""
        return bool(self.tensors or self.operations or any(self.prefix))

    @property
    def folded(self) -> list[Folded]:
        """The changes of tensors, folded over numbers."""
        return folded(self.tensors)

    @property
    def repetitions(self) -> list[Repetition]:
        """Those of the changes that are numbered parts which are there more or less often, and otherwise alike."""
        before, after = renamed(contents(self.before), self.prefix), contents(self.after)
        return repetitions(before, after, self.tensors)

    def apply(self, table: Table) -> Contents:
        """What the changes make of A's table: B's tensors by name, with their shapes, ties, and whether they train.

        Raises ValueError for a table that does not have what the changes start from.
        """
        return changed(contents(table), self.prefix, self.tensors)


def diff(a: Model | str | os.PathLike[str], b: Model | str | os.PathLike[str], /) -> Difference:
    """What differs between two models: every tensor, exactly, and the operations between layers.

    `a` and `b` are compiled models, or what `archspec.load` takes. Names of blocks, functions and hyperparameters are
    no difference, nor are roles, nor how parameters start out.

    Raises ArchError for all that `archspec.load` does, and for models whose operations are too many to be followed.
    """
    ours, theirs = (load(model) if isinstance(model, str | os.PathLike) else model for model in (a, b))
    before, after = contents(ours.table), contents(theirs.table)
    prefix = common_prefix(before, after)
    return Difference(
        ours.table,
        theirs.table,
        prefix,
        changes(renamed(before, prefix), after),
        tuple(
            compare(
                Side(ours.body, ours.bare, prefix.removed.rstrip(".")),
                Side(theirs.body, theirs.bare, prefix.added.rstrip(".")),
            )
        ),
    )
