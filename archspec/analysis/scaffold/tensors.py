"""The tensors of a checkpoint: classification as parameters or buffers, and checks that a spec can declare them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from archspec.compiler.evaluate.limits import MAX_TENSORS
from archspec.compiler.resolve.expressions import MAX_ADDRESS_LENGTH, MAX_SEGMENTS
from archspec.core.addresses import prefixes, segments
from archspec.core.diagnostics import ArchError, Diagnostic, make_error
from archspec.formats.checkpoints.computed import find_computed
from archspec.formats.checkpoints.entries import Checkpoint, Entry
from archspec.formats.checkpoints.table import buffer_names
from archspec.language.syntax.expressions import INVALID_SEGMENT, MAX_INTEGER_LENGTH


class TensorSketch(NamedTuple):
    """A tensor: its kind ("param" or "buffer"), element type ("", "int", "bool") and number of axes.

    `remark` is a comment for the scaffold.
    """

    kind: str
    type: str
    axes: int
    remark: str = ""


def classify_tensors(entries: Sequence[Entry]) -> dict[str, TensorSketch]:
    """Classify tensors, by name, as parameters or buffers."""
    shapes = {entry.name: entry.shape for entry in entries}
    linear = {
        name: shape
        for name, shape in shapes.items()
        if len(shape) == 2 and name.endswith(".weight") and shapes.get(f"{name[:-6]}bias") == shape[1:]
    }
    any_turned = any(rows != columns for rows, columns in linear.values())
    sketches = {entry.name: _sketch_tensor(entry) for entry in entries}
    for name, (rows, columns) in linear.items():
        if rows != columns:
            sketches[name] = sketches[name]._replace(remark="unknown: a linear map stored as [in, out]?")
        elif any_turned:
            sketches[name] = sketches[name]._replace(remark="unknown: stored as [in, out] or [out, in]?")
    for name in buffer_names(entries, find_computed(entries)):
        if sketches[name].kind == "param":
            sketches[name] = sketches[name]._replace(kind="buffer", remark="unknown: a buffer according to its name")
    return sketches


def _sketch_tensor(entry: Entry) -> TensorSketch:
    dtype = entry.dtype
    type = "bool" if dtype == "bool" else "int" if dtype.startswith(("int", "uint")) else ""
    is_default = (
        dtype in ("bool", "int64", "int32") if type else dtype.startswith(("float", "bfloat")) or dtype.isupper()
    )
    return TensorSketch("buffer" if type else "param", type, len(entry.shape), "" if is_default else dtype)


# Tensors that a spec cannot declare.

MAX_LISTED_TENSORS = 5
"""Maximum number of tensors listed for each reason."""


def check_entries(checkpoint: Checkpoint) -> None:
    """Raise ArchError if a spec cannot declare all tensors, with one diagnostic per reason."""
    if not checkpoint.entries:
        raise make_error("no-scaffold", f"no tensors in {checkpoint.label}")
    if len(checkpoint.entries) > MAX_TENSORS:
        raise make_error("budget", f"too many tensors in {checkpoint.label}: the limit is {MAX_TENSORS:,}")
    reasons: dict[str, list[str]] = {}
    for name, reason in _iter_unfit(checkpoint.entries):
        reasons.setdefault(reason, []).append(name)
    if reasons:
        raise ArchError([_refusal(checkpoint.label, reason, names) for reason, names in reasons.items()])
    if sum(entry.elements for entry in checkpoint.entries) >= 10**MAX_INTEGER_LENGTH:
        raise make_error("budget", f"too many elements in {checkpoint.label}: the limit is {MAX_INTEGER_LENGTH} digits")


def _refusal(label: str, reason: str, names: list[str]) -> Diagnostic:
    listed = ", ".join(f"`{name}`" for name in names[:MAX_LISTED_TENSORS])
    more = f" (and {len(names) - MAX_LISTED_TENSORS:,} more)" if len(names) > MAX_LISTED_TENSORS else ""
    return Diagnostic("no-scaffold", f"{label}: {reason}: {listed}{more}")


def _iter_unfit(entries: tuple[Entry, ...]) -> Iterator[tuple[str, str]]:
    """Yield the name of each tensor that cannot be declared, with the reason."""
    names = {entry.name for entry in entries}
    for entry in entries:
        name, shape = entry.name, entry.shape
        words = segments(name)
        if len(words) > MAX_SEGMENTS or len(name) > MAX_ADDRESS_LENGTH:
            yield name, f"address too long: the limit is {MAX_SEGMENTS} segments and {MAX_ADDRESS_LENGTH} characters"
            continue
        if not name or not all(words):
            yield name, "empty address segment"
        if INVALID_SEGMENT.search(name.replace(".", "")):
            yield name, "invalid character in an address"
        if any(outer != name and outer in names for outer in prefixes(name)):
            yield name, "address inside the address of another tensor"
        if 0 in shape:
            yield name, "tensor without elements; sizes in a spec must be positive"
        if entry.elements >= 10**MAX_INTEGER_LENGTH:
            yield name, f"too many elements: the limit is {MAX_INTEGER_LENGTH} digits"
