"""`archspec error [CODE]`."""

from __future__ import annotations

import sys
from argparse import Namespace

from archspec.cli.error_docs import entries
from archspec.source import fail, printable, suggest


def run(options: Namespace) -> int:
    """Writes what `docs/errors.md` has on a diagnostic code, or all codes."""
    known = entries()
    if options.code is None:
        print("\n".join(known))
        return 0
    code = options.code.strip().removeprefix("error").removeprefix("warning").strip("[]")
    if code not in known:
        help = suggest(code, [*known]) or "`archspec error` lists all the codes"
        raise fail("usage", f"there is no code `{printable(code)}`", help=help)
    sys.stdout.write(known[code])
    return 0
