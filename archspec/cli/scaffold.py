"""`archspec scaffold`: a first spec of a checkpoint."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace


def run_scaffold(options: Namespace) -> int:
    """`archspec scaffold CHECKPOINT`: the text of an `.arch` file."""
    from archspec.cli.files import refuse_existing, save
    from archspec.scaffolds import scaffold

    to_file = options.output and options.output != "-"
    if to_file:
        refuse_existing(options.output, options.force)
    text = scaffold(options.checkpoint)
    if to_file:
        save(options.output, text, options.force)
    else:
        sys.stdout.write(text)
    return 0
