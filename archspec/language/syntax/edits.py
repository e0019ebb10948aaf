"""Changes to the text of a file."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.core.record import Record
from archspec.language.syntax import tree


class Edit(Record):
    """The replacement of the characters `start` to `end` by `text`."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Return the text after edits, which do not overlap; insertions at one place are in their order."""
    for edit in sorted(edits, key=lambda edit: edit.start)[::-1]:
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def import_edit(file: tree.File, text: str, name: str, source: str = "std") -> Edit:
    """Return the edit that imports a name from a bundled file."""
    for item in file.items:
        if isinstance(item, tree.Import) and not item.export and not item.path and item.source == source and item.names:
            end = item.names[-1].end
            return Edit(end, end, f", {name}")
    first = next((item for item in file.items if not isinstance(item, tree.Import)), None)
    imports = [item for item in file.items if isinstance(item, tree.Import)]
    if imports:
        return Edit(imports[-1].end, imports[-1].end, f"\nimport {source} {{ {name} }}")
    offset = line_start(text, first.start) if first is not None else len(text)
    while offset > 0 and text[:offset].rstrip("\n").rpartition("\n")[2].startswith("##"):
        offset = line_start(text, offset - 1)
    return Edit(offset, offset, f"import {source} {{ {name} }}\n\n")


def line_start(text: str, offset: int) -> int:
    """Return the offset at which a line begins."""
    return text[:offset].rfind("\n") + 1
