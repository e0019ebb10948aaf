"""`archspec audit FILE`."""

from __future__ import annotations

from argparse import Namespace

from archspec.analysis.audit.api import audit
from archspec.app.cli.output import print_result


def run(options: Namespace) -> int:
    """Write the lines with their verdicts. Returns 1 if a line is wrong."""
    result = audit(options.file)
    print_result(result, options)
    return 0 if result.clean else 1
