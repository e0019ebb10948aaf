"""Tables of models, from the cache where they are current."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from archspec.core import resources
from archspec.core.diagnostics import Diagnostic, make_error
from archspec.ir.table import Table
from archspec.pipeline import cache
from archspec.pipeline.locate import Location, is_spec, locate

if TYPE_CHECKING:
    from archspec.ir.table import PlainValue
    from archspec.pipeline.model import ModelLike


def load_table(
    model: ModelLike | Location, overrides: Mapping[str, PlainValue] | None = None
) -> tuple[Table, tuple[Diagnostic, ...]]:
    """The table of a model and the warnings about it; from the cache if that is current. Raises as `model_of` does."""
    location = locate(model) if isinstance(model, Location) or is_spec(model) else None
    overrides = dict(overrides or {})
    if location is not None and location.kind == "checkpoint":
        return _table_of_checkpoint(location.path, overrides), ()
    key = _table_key(location, overrides) if location is not None else None
    stored = cache.read("table", key) if key is not None else None
    omissions = location.omissions if location is not None else ()
    if stored is not None:
        return Table.from_data(stored), omissions
    from archspec.pipeline import compile  # the compiler, which a cached table does without

    if location is None:
        assert not isinstance(model, Location)
        compiled = compile.as_model(model, overrides)
        return compile.get_compilation(compiled).table, compiled.warnings
    compiled, loaded = compile.compile_location(location, overrides)
    table = compile.get_compilation(compiled).table
    if key is not None and loaded.is_stable and compiled.warnings == omissions:
        cache.write("table", key, table.to_data(), loaded.library.raw)
    return table, compiled.warnings


def _table_of_checkpoint(path: str, overrides: Mapping[str, PlainValue]) -> Table:
    from archspec.formats.checkpoints.table import load_checkpoint_table

    if overrides:
        raise make_error("usage", f"{path} is a checkpoint, which has no hyperparameters", help="remove the overrides")
    return load_checkpoint_table(path)


def _table_key(location: Location, overrides: dict[str, PlainValue]) -> str | None:
    """Return the cache key of a table, apart from file contents; None if the table cannot be cached."""
    from json import dumps

    if location.text is not None or not location.is_stable or location.kind == "stream":
        return None
    kind, _, _, path, _, model, type, ignore, strict, *_ = location
    try:
        named = [resources.specs_root(), kind, path, location.key, model, type, ignore, strict]
        return dumps([*named, sorted(overrides.items())])
    except TypeError:
        return None
