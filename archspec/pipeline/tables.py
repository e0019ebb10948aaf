"""Tables of models, from the cache where they are current."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from archspec.core import resources
from archspec.core.diagnostics import Diagnostic, make_error
from archspec.ir.table import Table
from archspec.pipeline import cache
from archspec.pipeline.spec import Spec, file_key, is_checkpoint, is_spec, locate, read_spec
from archspec.pipeline.streams import is_stream

if TYPE_CHECKING:
    from archspec.ir.table import PlainValue
    from archspec.pipeline.model import Model, ModelLike


def load_table(
    model: ModelLike, overrides: Mapping[str, PlainValue] | None = None
) -> tuple[Table, tuple[Diagnostic, ...]]:
    """The table of a model and the warnings about it; from the cache if that is current. Raises as `model_of` does."""
    spec, overrides = locate(read_spec(model)) if is_spec(model) else None, dict(overrides or {})
    if spec is not None and spec.path is not None and is_checkpoint(spec.path):
        return _table_of_checkpoint(spec.path, overrides), ()
    key = _table_key(spec, overrides) if spec is not None else None
    stored = cache.read("table", key) if key is not None else None
    table = Table.from_data(stored) if stored is not None else None
    if table is not None:
        return table, ()
    from archspec.pipeline.compile import as_model, compile_spec  # the compiler, which a cached table does without

    if spec is None:
        return _table_of_model(as_model(model, overrides))
    compiled, loaded = compile_spec(spec, overrides)
    table, warnings = _table_of_model(compiled)
    if key is not None and loaded.is_stable and not warnings:
        cache.write("table", key, table.to_data(), loaded.library.raw)
    return table, warnings


def _table_of_checkpoint(path: str, overrides: Mapping[str, PlainValue]) -> Table:
    from archspec.formats.checkpoints.table import table_of_checkpoint  # which few commands need

    if overrides:
        raise make_error("usage", f"{path} is a checkpoint, which has no hyperparameters", help="remove the overrides")
    return table_of_checkpoint(path)


def _table_of_model(model: Model) -> tuple[Table, tuple[Diagnostic, ...]]:
    from archspec.pipeline.model import get_compilation

    return get_compilation(model).table, model.warnings


def _table_key(spec: Spec, overrides: dict[str, PlainValue]) -> str | None:
    """Return the cache key of a table, apart from file contents; None if the table cannot be cached."""
    from json import dumps

    if spec.text is not None or not spec.is_stable or (spec.path is not None and is_stream(spec.path)):
        return None
    specs = resources.specs_root()
    where = file_key(spec.path) if spec.path else sorted(os.listdir(specs))
    try:
        return dumps([specs, spec.path, where, spec.model, spec.type, spec.ignore, sorted(overrides.items())])
    except TypeError:
        return None
