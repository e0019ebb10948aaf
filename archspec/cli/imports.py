"""`archspec import`: a spec from a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace


def run_import(options: Namespace) -> int:
    """`archspec import CONFIG`: the text of a spec."""
    from archspec.cli.files import write_text
    from archspec.pipeline import import_config

    write_text(options, lambda: (import_config(options.config), ()))
    return 0
