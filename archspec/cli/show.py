"""`archspec show NAME`."""

from __future__ import annotations

import sys
from argparse import Namespace

from archspec.pipeline.files import text_of


def run(options: Namespace) -> int:
    """Writes the spec that holds a bundled model."""
    sys.stdout.write(text_of(options.name))
    return 0
