"""`archspec.diff`: the changes that turn one model into another."""

from __future__ import annotations

from archspec.analysis.diff.operations import OperationChanges, Side, compare_operations
from archspec.analysis.diff.structure import (
    NamePrefix,
    Repetition,
    StoredTensors,
    TensorChange,
    TensorChanges,
    apply_changes,
    collapse_changes,
    detect_prefix,
    find_changes,
    find_repetitions,
    rename_tensors,
    stored_tensors,
)
from archspec.core.arguments import check_arguments
from archspec.core.reports.results import Result
from archspec.ir.table import Table
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model, ModelLike, get_compilation


class Difference(Result):
    """The changes that convert a model A to a model B.

    `tensors` has one change for each parameter or buffer that differs, by B's names; `prefix` converts A's names to
    B's names. `operations` are the changes of the computation, collapsed over indices. `unified` is whether differently
    written operations have equal normal forms, up to rounding. `stopped` is whether a limit prevented the comparison of
    normal forms; then listed operations may be equal. `before` and `after` are the tables of A and B. A Difference is
    false if there is no change.
    """

    before: Table
    after: Table
    prefix: NamePrefix
    tensors: tuple[TensorChange, ...]
    operations: tuple[OperationChanges, ...]
    unified: bool = False
    stopped: bool = False

    def __repr__(self) -> str:
        summary = f"{len(self.tensors)} tensors, {len(self.operations)} changes of operations" if self else "none"
        return f"<Difference of {self.before.model!r} and {self.after.model!r}: {summary}>"

    def __bool__(self) -> bool:
        """Whether anything differs, including a prefix of names."""
        return bool(self.tensors or self.operations or any(self.prefix))

    @property
    def folded(self) -> list[TensorChanges]:
        """Return the changes of tensors, collapsed over indices."""
        return collapse_changes(self.tensors)

    @property
    def repetitions(self) -> list[Repetition]:
        """Return the numbered components of which one model has additional copies."""
        return find_repetitions(rename_tensors(stored_tensors(self.before), self.prefix), stored_tensors(self.after))

    @check_arguments
    def apply(self, model: Model | Table) -> StoredTensors:
        """Apply the changes to A, a model or its table. Returns B's tensors by name.

        Raises ValueError for a model whose tensors differ from A's tensors.
        """
        table = get_compilation(model).table if isinstance(model, Model) else model
        return apply_changes(stored_tensors(table), self.prefix, self.tensors)


def diff(a: ModelLike, b: ModelLike, /) -> Difference:
    """Compare two models: every tensor exactly, and the operations between layers.

    `a` and `b` are Models or arguments of `archspec.load`. Names of blocks, functions and hyperparameters are ignored,
    and so are roles and initial values.

    Raises ArchError as `archspec.load` does, and for models with more operations than can be compared.
    """
    ours, theirs = get_compilation(as_model(a)), get_compilation(as_model(b))
    before, after = stored_tensors(ours.table), stored_tensors(theirs.table)
    prefix = detect_prefix(before, after)
    operations = compare_operations(
        Side(ours.body, ours.body_without_optional_inputs(), prefix.removed.rstrip(".")),
        Side(theirs.body, theirs.body_without_optional_inputs(), prefix.added.rstrip(".")),
    )
    return Difference(
        ours.table,
        theirs.table,
        prefix,
        find_changes(rename_tensors(before, prefix), after),
        tuple(operations.changes),
        operations.unified,
        operations.stopped,
    )
