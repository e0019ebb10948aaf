"""Runs the examples of a page in the browser."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from examples import TERMINAL, Block, Session

os.environ |= TERMINAL


def new_session() -> Session:
    return Session(Path(tempfile.mkdtemp()))


def played(session: Session, kind: str, mark: str, text: str) -> str:
    """Run a block, and return what it prints behind what is entered."""
    steps = session.play(Block(kind, mark, text))
    between = "\n" if kind == "console" else ""
    return between.join(f"{step.entered}{step.printed}".rstrip() + "\n" for step in steps)
