"""`archspec import CONFIG`."""

from __future__ import annotations

from argparse import Namespace

from archspec.app.cli.files import write_text
from archspec.pipeline.compile import import_config
from archspec.pipeline.locate import locate


def run(options: Namespace) -> int:
    """Write the spec of a configuration."""
    write_text(options, lambda: (import_config(options.config), locate(options.config).omissions))
    return 0
