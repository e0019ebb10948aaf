"""`archspec scaffold CHECKPOINT`."""

from __future__ import annotations

from argparse import Namespace

from archspec.analysis.scaffold.api import scaffold
from archspec.app.cli.files import write_text


def run(options: Namespace) -> int:
    """Write a draft of a spec for a checkpoint."""
    write_text(options, lambda: (scaffold(options.checkpoint), ()))
    return 0
