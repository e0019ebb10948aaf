"""`archspec.diff`: the changes that turn one model into another."""

from __future__ import annotations

from archspec.analysis.diff.operations import OperationChanges, Side, compare
from archspec.analysis.diff.structure import (
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
from archspec.core.reports.results import Result
from archspec.ir.table import Table
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model, ModelLike, get_compilation


class Difference(Result):
    """The changes that convert a model A to a model B.

    `tensors` has one change for each parameter or buffer that differs, by B's names; `prefix` converts A's names to
    B's. `operations` are the changes of the computation, collapsed over indices. `unified` is whether operations that
    are written differently were found equal by their normal forms, up to rounding; `stopped` is whether some could not
    be compared so, and may be equal although they are listed. `before` and `after` are the tables of A and
    B. A Difference is false if there is no change.
    """

    before: Table
    after: Table
    prefix: NamePrefix
    tensors: tuple[TensorChange, ...]
    operations: tuple[OperationChanges, ...]
    unified: bool = False
    stopped: bool = False

    def __repr__(self) -> str:
        changes = f"{len(self.tensors)} tensors, {len(self.operations)} changes of operations" if self else "none"
        return f"<Difference of {self.before.model!r} and {self.after.model!r}: {changes}>"

    def __bool__(self) -> bool:
        """Whether anything differs, including a prefix of names."""
        return bool(self.tensors or self.operations or any(self.prefix))

    @property
    def folded(self) -> list[TensorChanges]:
        """Return the changes of tensors, collapsed over indices."""
        return folded(self.tensors)

    @property
    def repetitions(self) -> list[Repetition]:
        """Return the numbered components of which one model has more, if the additional ones are copies of others."""
        return repetitions(renamed(contents(self.before), self.prefix), contents(self.after))

    def apply(self, model: Model | Table) -> Contents:
        """Apply the changes to A, a model or its table: B's tensors by name, with shape, tie and trainability.

        Raises ValueError for a model whose tensors differ from those of A.
        """
        table = get_compilation(model).table if isinstance(model, Model) else model
        return changed(contents(table), self.prefix, self.tensors)


def diff(a: ModelLike, b: ModelLike, /) -> Difference:
    """Compare two models: every tensor exactly, and the operations between layers.

    `a` and `b` are Models, or what `archspec.load` takes. Different names of blocks, functions and hyperparameters are
    not a difference, nor are different roles or initial values.

    Raises ArchError as `archspec.load` does, and for models with more operations than can be compared.
    """
    ours, theirs = get_compilation(as_model(a)), get_compilation(as_model(b))
    before, after = contents(ours.table), contents(theirs.table)
    prefix = common_prefix(before, after)
    operations = compare(
        Side(ours.body, ours.body_without_optional_inputs(), prefix.removed.rstrip(".")),
        Side(theirs.body, theirs.body_without_optional_inputs(), prefix.added.rstrip(".")),
    )
    return Difference(
        ours.table,
        theirs.table,
        prefix,
        changes(renamed(before, prefix), after),
        tuple(operations.changes),
        operations.unified,
        operations.stopped,
    )
