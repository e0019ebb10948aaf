"""The data of `archspec count`: a model's tensors, all or selected, and the view to show."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.analysis.count.select import Selection, SelectionRule, select
from archspec.core.reports.results import Result
from archspec.ir.table import Table


class Count(Result):
    """A model's table, the tensors that the `rules` select, and the view to show.

    `by` is "tensor", "layer", "block" or "role" for a flat table, None for the tree of layers. `depth` limits the
    nesting.
    """

    table: Table
    rules: Sequence[SelectionRule]
    selection: Selection
    by: str | None
    depth: int | None

    _contents_in = "document"

    def __repr__(self) -> str:
        return f"<Count of {self.table.model!r}: {self.selection.total:,} parameters>"


def count(table: Table, rules: Sequence[SelectionRule] = (), by: str | None = None, depth: int | None = None) -> Count:
    """Select tensors of a model by the rules. Raises ValueError for another `by`, or a negative depth."""
    if by not in (None, "tensor", "layer", "block", "role"):
        raise ValueError(f"by is 'tensor', 'layer', 'block' or 'role', not {by!r}")
    if depth is not None and depth < 0:
        raise ValueError(f"depth is 0 or more, not {depth}")
    return Count(table, rules, select(table, rules), by, depth)
