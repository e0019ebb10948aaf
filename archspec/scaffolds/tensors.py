"""Classification of the tensors of a checkpoint as parameters or buffers, with remarks on uncertain properties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from archspec.checkpoints.entries import Entry


class Tensor(NamedTuple):
    """A tensor: its kind ("param" or "buffer"), element type ("", "int", "bool") and number of axes.

    `remark` is a comment for the scaffold.
    """

    kind: str
    type: str
    axes: int
    remark: str = ""


STATISTICS = ("running_mean", "running_var")
"""The buffers of batch normalization in PyTorch."""


def tensors(entries: Sequence[Entry]) -> dict[str, Tensor]:
    """Classify tensors by name: integers, booleans and statistics are buffers, all others are parameters."""
    shapes = {entry.name: entry.shape for entry in entries}
    matrices = {name: shape for name, shape in shapes.items() if len(shape) == 2 and name.endswith(".weight")}
    biases = {name: shapes.get(f"{name.removesuffix('weight')}bias") for name in matrices}
    turned = {name for name, (rows, columns) in matrices.items() if rows != columns and biases[name] == (columns,)}
    square = {name for name, (rows, columns) in matrices.items() if rows == columns and biases[name] == (columns,)}
    found = {entry.name: _tensor(entry) for entry in entries}
    for name in turned:
        found[name] = found[name]._replace(remark="unknown: a linear map stored as [in, out]?")
    for name in square if turned else ():
        found[name] = found[name]._replace(remark="unknown: stored as [in, out] or [out, in]?")
    for name in shapes:
        head, _, last = name.rpartition(".")
        if last in STATISTICS and all(f"{head}.{other}" in shapes for other in STATISTICS):
            found[name] = found[name]._replace(kind="buffer", remark="unknown: a buffer according to its name")
    return found


def _tensor(entry: Entry) -> Tensor:
    kind = type_of(entry)
    usual = entry.dtype in ("bool", "int64", "int32") if kind else entry.dtype.startswith(("float", "bfloat"))
    return Tensor("buffer" if kind else "param", kind, len(entry.shape), "" if usual else entry.dtype)


def type_of(entry: Entry) -> str:
    """Return the element type in a spec: "int", "bool", or "" for reals."""
    if entry.dtype == "bool":
        return "bool"
    return "int" if entry.dtype.startswith(("int", "uint")) else ""
