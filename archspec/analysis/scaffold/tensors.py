"""Classification of the tensors of a checkpoint as parameters or buffers, with remarks on uncertain properties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from archspec.formats.checkpoints.entries import Entry
from archspec.formats.checkpoints.table import buffer_names


class Tensor(NamedTuple):
    """A tensor: its kind ("param" or "buffer"), element type ("", "int", "bool") and number of axes.

    `remark` is a comment for the scaffold.
    """

    kind: str
    type: str
    axes: int
    remark: str = ""


def tensors(entries: Sequence[Entry]) -> dict[str, Tensor]:
    """Classify tensors by name: those that are taken for buffers, and parameters."""
    shapes = {entry.name: entry.shape for entry in entries}
    linear = {
        name: shape
        for name, shape in shapes.items()
        if len(shape) == 2 and name.endswith(".weight") and shapes.get(f"{name[:-6]}bias") == shape[1:]
    }
    any_turned = any(rows != columns for rows, columns in linear.values())
    found = {entry.name: _tensor(entry) for entry in entries}
    for name, (rows, columns) in linear.items():
        if rows != columns:
            found[name] = found[name]._replace(remark="unknown: a linear map stored as [in, out]?")
        elif any_turned:
            found[name] = found[name]._replace(remark="unknown: stored as [in, out] or [out, in]?")
    for name in buffer_names(entries):
        if found[name].kind == "param":
            found[name] = found[name]._replace(kind="buffer", remark="unknown: a buffer according to its name")
    return found


def _tensor(entry: Entry) -> Tensor:
    dtype = entry.dtype
    type = "bool" if dtype == "bool" else "int" if dtype.startswith(("int", "uint")) else ""
    usual = dtype in ("bool", "int64", "int32") if type else dtype.startswith(("float", "bfloat")) or dtype.isupper()
    return Tensor("buffer" if type else "param", type, len(entry.shape), "" if usual else dtype)
