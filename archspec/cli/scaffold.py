"""`archspec scaffold`: a first spec of a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace


def run_scaffold(options: Namespace) -> int:
    """`archspec scaffold CHECKPOINT`: the text of an `.arch` file."""
    from archspec.cli.files import write_text
    from archspec.scaffolds import scaffold

    write_text(options, lambda: (scaffold(options.checkpoint), ()))
    return 0
