"""What of a checkpoint no spec can say: found before anything else, and named."""

from __future__ import annotations

from collections.abc import Iterator

from archspec.addresses import prefixes, segments
from archspec.checkpoints.entries import Checkpoint, Entry
from archspec.lower.address import LONGEST, MOST_SEGMENTS
from archspec.lower.program import MOST_TENSORS
from archspec.source import ArchError, Diagnostic, fail
from archspec.syntax.expressions import LONGEST_INTEGER, UNFIT

MOST_SHOWN = 5
"""Tensors that are named for each thing that is wrong."""


def check(checkpoint: Checkpoint) -> None:
    """Raises ArchError if there are tensors that no spec can own, for every reason with the first of them."""
    if not checkpoint.entries:
        raise fail("no-scaffold", f"{checkpoint.label} holds no tensors")
    if len(checkpoint.entries) > MOST_TENSORS:
        message = f"{checkpoint.label} holds {len(checkpoint.entries):,} tensors, and a spec at most {MOST_TENSORS:,}"
        raise fail("budget", message)
    reasons: dict[str, list[str]] = {}
    for name, reason in _unfit(checkpoint.entries):
        reasons.setdefault(reason, []).append(name)
    if reasons:
        raise ArchError([_diagnostic(checkpoint.label, reason, names) for reason, names in reasons.items()])
    if sum(entry.elements for entry in checkpoint.entries) >= 10**LONGEST_INTEGER:
        raise fail("budget", f"{checkpoint.label} claims more than 10^{LONGEST_INTEGER} elements")


def _diagnostic(label: str, reason: str, names: list[str]) -> Diagnostic:
    shown = ", ".join(f"`{name}`" for name in names[:MOST_SHOWN])
    more = f" (and {len(names) - MOST_SHOWN:,} more)" if len(names) > MOST_SHOWN else ""
    return Diagnostic("no-scaffold", f"{label}: {reason}: {shown}{more}")


def _unfit(entries: tuple[Entry, ...]) -> Iterator[tuple[str, str]]:
    """Each tensor that cannot be owned, with the reason."""
    names = {entry.name for entry in entries}
    for entry in entries:
        name, shape = entry.name, entry.shape
        words = segments(name)
        if len(words) > MOST_SEGMENTS or len(name) > LONGEST:
            yield name, f"address too long: the limit is {MOST_SEGMENTS} segments and {LONGEST} characters"
            continue
        if not name or not all(words):
            yield name, "empty address segment"
        if UNFIT.search(name.replace(".", "")):
            yield name, "these characters cannot stand in an address"
        if any(outer != name and outer in names for outer in prefixes(name)):
            yield name, "a tensor lies inside the address of another"
        if 0 in shape:
            yield name, "a tensor without elements has no place in a spec, where sizes are from 1"
        if entry.elements >= 10**LONGEST_INTEGER:
            yield name, f"a number in a spec has at most {LONGEST_INTEGER} digits"
