"""`archspec show NAME`."""

from __future__ import annotations

import sys
from argparse import Namespace

from archspec.pipeline.sources import text_of


def run(options: Namespace) -> int:
    """Write the source of a bundled file or definition."""
    sys.stdout.write(text_of(options.name))
    return 0
