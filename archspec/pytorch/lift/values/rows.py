"""Rows of vectors: what is computed of each row of a flattened tensor is computed of that tensor.

A module flattens the tokens of all texts, applies operations to rows, and gives the result the axes of texts and tokens
again. Without the flattening, both views vanish, as they are the inverse of each other. The same holds for a batch of
all texts and heads, in which attention multiplies matrices (`torch.bmm`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias, cast

from archspec.core.algebra import Dim, product
from archspec.ir.normal.arrays import Array
from archspec.ir.ops import OPS
from archspec.pytorch.lift.values.views import Layout
from archspec.pytorch.values.arguments import UntranslatableError
from archspec.pytorch.values.values import Argument, Operand, Setting, Value, flat_arguments, number_in, values_in

AXIS_SETTINGS = ("a", "b", "order", "shape", "")
"""Settings of operations that rearrange the axes."""

MATRIX_OPERATIONS = ("matmul", "softmax")
"""Operations on batches of matrices, which attention consists of."""

Lead: TypeAlias = tuple[Dim, ...]


class RowFactory(Protocol):
    """What values are made with."""

    def ops(self, name: str, *args: Argument, **settings: Setting) -> list[Value]: ...
    def results(self, name: str, args: Sequence[Operand | None], settings: dict[str, object]) -> list[Array]: ...
    def reshape(self, x: Value, shape: Sequence[Dim]) -> Value: ...
    def layout(self, value: Value) -> tuple[Value, Layout]: ...
    def unwritten(self, value: Value) -> Value: ...


class Rows:
    """Operations on rows as views of those on what the rows are of."""

    def __init__(self, builder: RowFactory) -> None:
        self.builder = builder
        self._of_rows: set[Value] = set()
        """Tensors that were made in the place of their rows."""

    def results(self, name: str, args: Sequence[Argument], settings: Mapping[str, Setting]) -> list[Value] | None:
        """Return the results of an operation on rows as views; None if it has no rows, or the results are not these."""
        b = self.builder
        operands = [b.unwritten(value) for value in values_in(args)]
        tensors = [value for value in operands if number_in(value) is None]
        lead = _common_lead([(value, self._lead(value)) for value in tensors])
        if lead is None and (name in MATRIX_OPERATIONS or any(map(self._is_of_matrices, tensors))):
            lead = _common_lead([(value, self._any_lead(value)) for value in tensors])
        if lead is None:
            return None
        rank = max([len(value.shape) for value in operands])
        full = OPS[name].settings(settings)
        inner = _settings_of_rows(settings, full, rank, len(lead) - 1)
        if inner is None:
            return None
        try:
            flat = b.results(name, flat_arguments(args), full)
            found = b.ops(name, *[self._in_rows(arg, lead) for arg in args], **inner)
        except UntranslatableError:
            return None
        if [product(value.shape) for value in found] != [product(array.shape) for array in flat]:
            return None
        views = [b.reshape(value, array.shape) for value, array in zip(found, flat, strict=True)]
        return [self.noted(view) for view in views] if [view.array for view in views] == flat else None

    def flattened(self, value: Value) -> Value | None:
        """Return the tensor that a value has the rows of; None if it has none."""
        view = self.builder.unwritten(value)
        lead = self._lead(view)
        return None if lead is None else self.builder.reshape(view, (*lead, *view.shape[1:]))

    def noted(self, view: Value) -> Value:
        """Return a view of the rows of a tensor, which is called what the source calls the view."""
        root, _ = self.builder.layout(view)
        self._of_rows.add(root)
        view.names = root.names
        return view

    def _lead(self, value: Value) -> Lead | None:
        root, layout = self.builder.layout(value)
        return _lead_of(layout, root in self._of_rows)

    def _any_lead(self, value: Value) -> Lead | None:
        """Return the sizes of the axes that the first one of a batch of matrices is flattened from, wherever they are:
        heads are, where a product has one batch of all texts and heads.
        """
        _, layout = self.builder.layout(value)
        if len(value.shape) != 3:
            return None
        _, (first, *_) = layout.settled()
        return tuple([axis.size for axis in first]) if len(first) > 1 else None

    def _is_of_matrices(self, value: Value) -> bool:
        """Whether a value has the rows of a tensor that was made in their place, or is repeated for each head."""
        root, layout = self.builder.layout(value)
        _, after = layout.settled()
        return root in self._of_rows or (len(after) == 3 and len({axis.new for axis in after[0]}) > 1)

    def _in_rows(self, arg: Argument, lead: Lead) -> Argument:
        """Return an argument with the axes that its first one is flattened from."""
        view = self.builder.unwritten(arg) if isinstance(arg, Value) else None
        if view is None:
            return arg
        has_lead = lead in (self._lead(view), self._any_lead(view))
        if not has_lead and (number_in(view) is None or not view.shape):
            return arg
        return self.builder.reshape(view, (*lead, *view.shape[1:])) if view.shape[0] == product(lead) else arg


def _lead_of(layout: Layout, any_rank: bool) -> Lead | None:
    """Return the sizes of the axes that the first one is flattened from, if these are the first ones of a tensor of
    vectors, or of a tensor of any rank; None if they are not.
    """
    before, after = layout.settled()
    first = after[0] if after else []
    is_flat = len(first) > 1 and before[: len(first)] == [[axis] for axis in first]
    if not is_flat or not (any_rank or len(before) <= len(first) + 1):
        return None
    return tuple([axis.size for axis in first])


def _common_lead(args: Sequence[tuple[Value, Lead | None]]) -> Lead | None:
    """Return the axes that the first one of all operands is flattened from that have as many rows; None if there are
    others.
    """
    leads = [(value.shape[0], lead) for value, lead in args if lead is not None]
    if not leads:
        return None
    rows, lead = leads[0]
    whole = [other for value, other in args if value.shape and value.shape[0] == rows]
    return lead if all(other == lead for other in whole) else None


def _settings_of_rows(
    settings: Mapping[str, Setting], full: Mapping[str, object], rank: int, more: int
) -> dict[str, Setting] | None:
    """Return the settings of an operation on a tensor with so many more axes in front; None if it is along the first
    axis, or rearranges axes. `full` has all settings.
    """
    if any(name in full for name in AXIS_SETTINGS):
        return None
    if "axis" not in full:
        return dict(settings)
    axis = full["axis"]
    axes = cast("Sequence[object]", axis) if isinstance(axis, list | tuple) else [axis]
    moved = [_moved(item, rank, more) for item in axes]
    found = [item for item in moved if item is not None]
    if len(found) < len(moved):
        return None
    if "axis" not in settings:
        return dict(settings)
    single = -1 if found[0] == rank + more - 1 else found[0]
    return {**settings, "axis": single if len(found) == 1 else found}


def _moved(axis: object, rank: int, more: int) -> int | None:
    """Return an axis after the first one, with more axes in front."""
    return axis % rank + more if isinstance(axis, int) and axis % rank else None
