"""`archspec lift SOURCE`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from archspec.app.cli.files import write_text
from archspec.core.diagnostics import Diagnostic
from archspec.core.optional import print_to_stderr
from archspec.pytorch.lift.sources.lifting import lift_with_notes


def run(options: Namespace) -> int:
    """Write the spec of a PyTorch module."""

    def spec() -> tuple[str, Sequence[Diagnostic]]:
        with print_to_stderr():
            return lift_with_notes(options.source, options.inputs)

    write_text(options, spec)
    return 0
