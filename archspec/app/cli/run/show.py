"""`archspec show NAME`."""

from __future__ import annotations

import sys
from argparse import Namespace

from archspec.pipeline.sources import bundled_source


def run(options: Namespace) -> int:
    """Write the source of a bundled model, file or definition."""
    sys.stdout.write(bundled_source(options.name))
    return 0
