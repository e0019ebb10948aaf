"""`archspec audit FILE`."""

from __future__ import annotations

from argparse import Namespace

from archspec.analysis.audit.api import audit
from archspec.app.cli.output import print_result


def run(options: Namespace) -> int:
    """Write the lines with their verdicts; the exit status is 1 if a line is wrong."""
    found = audit(options.file)
    print_result(found, options)
    return 0 if found.clean else 1
