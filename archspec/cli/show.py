"""`archspec show NAME`."""

from __future__ import annotations

import sys
from argparse import Namespace

from archspec.pipeline.files import text_of


def run(options: Namespace) -> int:
    """Write the source of the spec that contains a bundled model."""
    sys.stdout.write(text_of(options.name))
    return 0
