"""`python -m archspec`, and the command `archspec`."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from typing import NoReturn

from archspec.app.cli import main


def run() -> NoReturn:
    """Run the command line and end the process, without freeing its memory: that takes longer than many a command."""
    gc.set_threshold(100_000, 20, 20)  # most objects live until the end, and searching them would take longest
    status = main()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # closed, or without a reader
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    run()
