"""`archspec.diff`: the changes that turn one model into another."""

from __future__ import annotations

from typing import NamedTuple

from archspec.diffs.op_changes import OperationChanges
from archspec.diffs.operations import Side, compare
from archspec.diffs.structure import (
    Contents,
    NamePrefix,
    Repetition,
    TensorChange,
    TensorChanges,
    changed,
    changes,
    common_prefix,
    contents,
    folded,
    renamed,
    repetitions,
)
from archspec.model import Model, ModelLike, internals
from archspec.pipeline import model_of
from archspec.table import Table


class Difference(NamedTuple):
    """What makes the model B of the model A.

    `tensors` are all changes of parameters and buffers, one a tensor, under B's names; `prefix` says how A's names are
    made B's before. `operations` say what is computed otherwise, folded over numbers. `before` and `after` are the
    models' tables.
    """

    before: Table
    after: Table
    prefix: NamePrefix
    tensors: tuple[TensorChange, ...]
    operations: tuple[OperationChanges, ...]

    def __bool__(self) -> bool:
        """Whether anything differs, a prefix of names included."""
        return bool(self.tensors or self.operations or any(self.prefix))

    @property
    def folded(self) -> list[TensorChanges]:
        """The changes of tensors, folded over numbers."""
        return folded(self.tensors)

    @property
    def repetitions(self) -> list[Repetition]:
        """Those of the changes that are numbered parts which are there more or less often, and otherwise alike."""
        before, after = renamed(contents(self.before), self.prefix), contents(self.after)
        return repetitions(before, after, self.tensors)

    def apply(self, model: Model | Table) -> Contents:
        """What the changes make of A, a model or its table: B's tensors by name, with shape, tie and trainability.

        Raises ValueError for a model that does not have the tensors that the changes start from.
        """
        table = internals(model).table if isinstance(model, Model) else model
        return changed(contents(table), self.prefix, self.tensors)


def diff(a: ModelLike, b: ModelLike, /) -> Difference:
    """The differences between two models: of every tensor, exactly, and of the operations between layers.

    `a` and `b` are Models, or what `archspec.load` takes. Different names of blocks, functions and hyperparameters are
    not a difference, nor are different roles or initial values.

    Raises ArchError as `archspec.load` does, and for models with more operations than can be compared.
    """
    ours, theirs = internals(model_of(a)), internals(model_of(b))
    before, after = contents(ours.table), contents(theirs.table)
    prefix = common_prefix(before, after)
    return Difference(
        ours.table,
        theirs.table,
        prefix,
        changes(renamed(before, prefix), after),
        tuple(
            compare(
                Side(ours.body, ours.bare(), prefix.removed.rstrip(".")),
                Side(theirs.body, theirs.bare(), prefix.added.rstrip(".")),
            )
        ),
    )
