"""The model of a plan: a cached table where that is enough, and otherwise a compiled model or an adapter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from archspec.core.diagnostics import Diagnostic, make_error
from archspec.core.record import Record
from archspec.ir.table import Table
from archspec.pipeline.locate import is_spec, locate
from archspec.pipeline.tables import load_table

if TYPE_CHECKING:
    from archspec.analysis.plan.compiled import PlannedModel
    from archspec.ir.table import PlainValue
    from archspec.pipeline.model import ModelLike


class Source(Record):
    """The table of a model, warnings, and what is compiled: None where the table has all that states depend on."""

    table: Table
    warnings: tuple[Diagnostic, ...]
    compiled: PlannedModel | None = None


def read_source(
    model: ModelLike, base: ModelLike | None, overrides: Mapping[str, PlainValue], tensor: int, *, compiles: bool
) -> Source:
    """Return the source of a plan: of `tensor` ranks the first. Raises ArchError as `plan` does."""
    location = locate(model) if is_spec(model) else None
    if base is not None and (location is None or location.kind != "adapter"):
        raise make_error("usage", "`base` has no effect: the model is not an adapter", help="remove it")
    if location is not None and location.kind == "checkpoint":
        message = f"{location.name} is a checkpoint, which does not say what is trained"
        raise make_error("unsupported", message, help="plan its model")
    if location is not None and location.kind in ("bundled", "spec") and tensor == 1 and not compiles:
        table, warnings = load_table(location, overrides)
        if not table.buffers:  # tables do not have their types
            return Source(table, warnings)
    from archspec.analysis.plan import compiled  # imported late: it imports the compiler

    if location is not None and location.kind == "adapter":
        if tensor > 1:
            message = "tensor parallelism of an adapter is not planned"
            raise make_error("unsupported", message, help="plan its base model with `--lora`")
        return Source(*compiled.load_adapter_table(location, base, overrides))
    return Source(*compiled.compile_source(model, overrides, tensor))
