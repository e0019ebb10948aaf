"""Defects of a checkpoint: the first of each kind, and the number of further ones."""

from __future__ import annotations

from collections import Counter

from archspec.core.diagnostics import ArchError, Diagnostic, make_error
from archspec.formats.checkpoints.entries import MAX_NAME_LENGTH


class DefectCollector:
    """Collector of the defects of one file."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._first: dict[str, str] = {}
        self._counts = Counter[str]()

    def add(self, kind: str, message: str) -> None:
        """Record a defect. Only the first of each `kind` is shown; the others are counted."""
        self._first.setdefault(kind, message)
        self._counts[kind] += 1

    def has_name(self, name: str) -> bool:
        """Whether a tensor name is valid; records a defect if it is not."""
        if len(name) > MAX_NAME_LENGTH:
            self.add("long name", f"tensor name of {len(name):,} characters exceeds the limit of {MAX_NAME_LENGTH:,}")
            return False
        if name.isascii():
            return True
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:  # an unpaired surrogate
            self.add("name", f"tensor name {name!a} is not valid Unicode")
            return False
        return True

    def check(self) -> None:
        """Raise ArchError if defects were recorded."""
        if self._first:
            raise ArchError([self._diagnostic(kind, message) for kind, message in self._first.items()])

    def _diagnostic(self, kind: str, message: str) -> Diagnostic:
        more = self._counts[kind] - 1
        also = f" (and {more:,} more like it)" if more else ""
        return Diagnostic("bad-checkpoint", f"{self.label}: {message}{also}")


def damaged(label: str, message: str, help: str | None = None) -> ArchError:
    """Return the error to raise for a file that cannot be read further."""
    return make_error("bad-checkpoint", f"{label}: {message}", help=help)
