"""Checks for tensors of a checkpoint that a spec cannot declare."""

from __future__ import annotations

from collections.abc import Iterator

from archspec.compiler.evaluate.limits import MAX_TENSORS
from archspec.compiler.resolve.expressions import MAX_ADDRESS_LENGTH, MAX_SEGMENTS
from archspec.core.addresses import prefixes, segments
from archspec.core.diagnostics import ArchError, Diagnostic, make_error
from archspec.formats.checkpoints.entries import Checkpoint, Entry
from archspec.language.syntax.expressions import INVALID_SEGMENT, MAX_INTEGER_LENGTH

MAX_SHOWN = 5
"""The number of tensors listed for each reason."""


def check(checkpoint: Checkpoint) -> None:
    """Raise ArchError if a spec cannot declare all tensors, with one diagnostic per reason."""
    if not checkpoint.entries:
        raise make_error("no-scaffold", f"no tensors in {checkpoint.label}")
    if len(checkpoint.entries) > MAX_TENSORS:
        raise make_error("budget", f"too many tensors in {checkpoint.label}: the limit is {MAX_TENSORS:,}")
    reasons: dict[str, list[str]] = {}
    for name, reason in _unfit(checkpoint.entries):
        reasons.setdefault(reason, []).append(name)
    if reasons:
        raise ArchError([_diagnostic(checkpoint.label, reason, names) for reason, names in reasons.items()])
    if sum(entry.elements for entry in checkpoint.entries) >= 10**MAX_INTEGER_LENGTH:
        raise make_error("budget", f"too many elements in {checkpoint.label}: the limit is {MAX_INTEGER_LENGTH} digits")


def _diagnostic(label: str, reason: str, names: list[str]) -> Diagnostic:
    shown = ", ".join(f"`{name}`" for name in names[:MAX_SHOWN])
    more = f" (and {len(names) - MAX_SHOWN:,} more)" if len(names) > MAX_SHOWN else ""
    return Diagnostic("no-scaffold", f"{label}: {reason}: {shown}{more}")


def _unfit(entries: tuple[Entry, ...]) -> Iterator[tuple[str, str]]:
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
