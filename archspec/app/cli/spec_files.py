"""Finding spec files."""

from __future__ import annotations

import os
from collections.abc import Iterator


def spec_files(path: str) -> Iterator[tuple[str, str | None]]:
    """Yield a file, or those in a directory and below it; each with the directory from which it may import.

    Hidden directories, and those of Python environments, are skipped.
    """
    found: list[str] = []
    if os.path.isdir(path):
        for folder, folders, files in os.walk(path):
            if "pyvenv.cfg" in files:
                folders.clear()
            else:
                found += [os.path.join(folder, file) for file in files if file.endswith(".arch")]
                folders[:] = [name for name in folders if not name.startswith(".")]
    root = os.path.realpath(path)
    yield from ((file, root) for file in sorted(found))
    if not found:
        yield path, None
