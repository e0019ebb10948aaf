"""Detection of changes in the files of a spec."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from time import sleep
from typing import TypeAlias

from archspec.core.diagnostics import MAX_FILE_BYTES, Report, Source, decode
from archspec.language.syntax import tree
from archspec.language.syntax.parse import parse

POLL_INTERVAL = 0.2
"""Seconds between two looks at the files of a spec."""

MAX_FILES = 64

Files: TypeAlias = Mapping[str, bytes | None]
"""Contents of files by path; None for a file that cannot be read."""


def wait_for_change(before: Files, look: Callable[[], Files]) -> Files:
    """Wait until a file has changed, and then until it no longer does: some editors write a file in several steps."""
    last, now = before, before
    while now == before or now != last:
        sleep(POLL_INTERVAL)
        last, now = now, look()
    return now


def read_contents(paths: Iterable[str]) -> Files:
    """Return the contents of files."""
    return {path: _read(path) for path in paths}


def files_with_imports(path: str) -> list[str]:
    """Return the path of a file and of all files that it imports, directly or not. They may be missing or invalid."""
    paths: dict[str, None] = {}
    pending = [path]
    while pending and len(paths) < MAX_FILES:
        path = pending.pop()
        if path in paths:
            continue
        paths[path] = None
        text = decode(_read(path) or b"", path, Report()) if path.endswith(".arch") else None
        for item in parse(Source(path, text), Report()).items if text else ():
            if isinstance(item, tree.Import) and item.path:
                pending.append(os.path.normpath(os.path.join(os.path.dirname(path), item.source)))
    return [*paths]


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError):
        return None
