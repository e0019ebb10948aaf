"""What is wrong with a checkpoint: of each kind of fault the first, and how many more there are like it."""

from __future__ import annotations

from archspec.checkpoints.entries import LONGEST_NAME
from archspec.source import ArchError, Diagnostic, fail


def bytes_of(count: int) -> str:
    """`1 byte`, `2,048 bytes`."""
    return f"{count:,} byte{'' if count == 1 else 's'}"


class Faults:
    """Collects the faults of one file."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._first: dict[str, str] = {}
        self._more: dict[str, int] = {}

    def add(self, kind: str, message: str) -> None:
        """Notes a fault; `kind` is what others like it are counted by."""
        if kind in self._first:
            self._more[kind] = self._more.get(kind, 0) + 1
        else:
            self._first[kind] = message

    def has_name(self, name: str) -> bool:
        """Whether a tensor may have this name; if it may not, that is noted as a fault."""
        if len(name) > LONGEST_NAME:
            self.add("long name", f"has a name of {len(name):,} characters, where {LONGEST_NAME:,} are allowed")
            return False
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:  # half a surrogate pair
            self.add("name", f"the name {name!a} is no text")
            return False
        return True

    def check(self) -> None:
        """Raises ArchError if there are faults."""
        if self._first:
            raise ArchError([self._diagnostic(kind, message) for kind, message in self._first.items()])

    def _diagnostic(self, kind: str, message: str) -> Diagnostic:
        more = self._more.get(kind)
        also = f" (and {more:,} more like it)" if more else ""
        return Diagnostic("bad-checkpoint", f"{self.label}: {message}{also}")


def damaged(label: str, message: str, help: str | None = None) -> ArchError:
    """The error for a file that cannot be read further, to be raised."""
    return fail("bad-checkpoint", f"{label}: {message}", help=help)
