"""The examples that run in the browser; the build of the site asks in the browser's Python.

They print what the page shows, and need no packages or files but those of the page.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

from examples import NEEDED, TERMINAL, Block, Session, blocks, commands

os.environ |= TERMINAL


class Example(NamedTuple):
    """A block, its place on the page, and whether later ones may need it: it writes files or defines names."""

    place: int
    block: Block
    is_needed: bool


def examples(page: str) -> str:
    """Return the files and the runnable blocks of a page in order, as JSON."""
    found = blocks(page)
    if any("=" in block.mark for block in found):  # docs/errors.md, whose files are read in another way
        return "[]"
    with tempfile.TemporaryDirectory() as folder:
        kept = _tried(found, Path(folder))
    return json.dumps(
        [
            {"place": place, "kind": block.kind, "mark": block.mark, "text": block.text, "needed": is_needed}
            for place, block, is_needed in kept
        ]
    )


def _tried(page: list[Block], folder: Path) -> list[Example]:
    """Run all blocks; when one fails, what it has done is undone by running the others again."""
    kept: list[Example] = []
    session = _replayed([], folder / "start")
    for place, block in enumerate(page):
        if not _may_run(block):
            continue
        before = _state(session.folder)
        if _succeeds(session, block):
            kept.append(Example(place, block, block.kind == "pycon" or _state(session.folder) != before))
        else:
            session = _replayed(kept, folder / f"{place}")
    return kept


def _may_run(block: Block) -> bool:
    if block.kind == "console" and not all(command.startswith("archspec ") for command, _ in commands(block)):
        return False
    return block.kind in ("arch", "yaml", "json", "console", "pycon") and block.mark not in NEEDED


def _succeeds(session: Session, block: Block) -> bool:
    try:
        return not any(step.fault for step in session.play(block))
    except Exception:  # of whatever the browser's Python does not have: threads, links between files
        return False


def _replayed(kept: list[Example], folder: Path) -> Session:
    folder.mkdir()
    session = Session(folder)
    for example in kept:
        if example.is_needed:
            session.play(example.block)
    return session


def _state(folder: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}
