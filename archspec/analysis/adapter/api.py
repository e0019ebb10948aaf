"""`archspec.adapter`: the parameters that an adapter trains, and those of the model with it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from archspec.analysis.adapter.adapter import Adapter, adapter_of
from archspec.analysis.adapter.base import base_table
from archspec.analysis.adapter.config import read_config
from archspec.core.diagnostics import make_error
from archspec.pipeline.spec import ADAPTER_FILE, Spec, adapter_path, read_spec

if TYPE_CHECKING:
    from archspec.ir.table import PlainValue
    from archspec.pipeline.model import ModelLike


def adapter(
    source: str | os.PathLike[str],
    /,
    base: ModelLike | None = None,
    *,
    ignore: Sequence[str] = (),
    **overrides: PlainValue,
) -> Adapter:
    """Count the parameters of a LoRA adapter, and of the model with it, as `peft` does.

    `source` is an `adapter_config.json`, a directory with one, or a name on the hub. `base` is its base model, or what
    `load` takes; by default, the model that the adapter names. `ignore` are patterns of unknown fields to ignore,
    because they have no effect. `overrides` set hyperparameters of the base model, and of the head of its task
    (`labels`).

    Raises ArchError if the adapter or its base model cannot be found, or if it has a field that is not understood.
    """
    return adapter_at(read_spec(source)._replace(ignore=tuple(ignore)), base, overrides)


def adapter_at(spec: Spec, base: ModelLike | None, overrides: Mapping[str, PlainValue]) -> Adapter:
    """Count the parameters of an adapter, as `adapter` does; `spec` has the patterns of fields to ignore."""
    found = adapter_path(spec)
    if found is None:
        help = f"expected an `{ADAPTER_FILE}`, or a directory with one"
        raise make_error("usage", f"`{spec}` is not an adapter", help=help)
    path, label = found
    lora, skipped = read_config(path, label, spec.ignore)
    notes = [f"ignored as specified: {name}" for name in skipped]
    return adapter_of(_name(path, label), lora, base_table(lora, base, overrides, spec), notes)


def _name(path: str, label: str) -> str:
    """Return the name of an adapter: that of its directory, or of the file if it has another than usual."""
    folder, file = os.path.split(os.path.abspath(path) if label == path else label)
    return os.path.basename(folder) if file == ADAPTER_FILE else file.removesuffix(".json")
