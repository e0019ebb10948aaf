"""`archspec error [CODE]`."""

from __future__ import annotations

import sys
from argparse import Namespace

from archspec.cli.error_docs import entries
from archspec.source import fail, printable, suggest


def run(options: Namespace) -> int:
    """Write the entry of a diagnostic code in `docs/errors.md`, or all codes."""
    known = entries()
    if options.code is None:
        print("\n".join(known))
        return 0
    code = options.code.strip().removeprefix("error").removeprefix("warning").strip("[]")
    if code not in known:
        help = suggest(code, [*known]) or "run `archspec error` to list all codes"
        raise fail("usage", f"unknown diagnostic code `{printable(code)}`", help=help)
    sys.stdout.write(known[code])
    return 0
