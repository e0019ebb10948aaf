"""`archspec import`: a spec from a configuration."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace


def run_import(options: Namespace) -> int:
    """`archspec import CONFIG`: the text of a spec."""
    from archspec.cli.files import refuse_existing, save
    from archspec.pipeline import import_config

    to_file = options.output and options.output != "-"
    if to_file:
        refuse_existing(options.output, options.force)
    text = import_config(options.config)
    if to_file:
        save(options.output, text, options.force)
    else:
        sys.stdout.write(text)
    return 0
