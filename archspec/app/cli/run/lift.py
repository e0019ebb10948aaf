"""`archspec lift SOURCE`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from archspec.app.cli.files import write_text
from archspec.core.diagnostics import Diagnostic
from archspec.pytorch.lift.sources.lifting import lift_source


def run(options: Namespace) -> int:
    """Write the spec of a PyTorch module."""

    def spec() -> tuple[str, Sequence[Diagnostic]]:
        return lift_source(options.source, options.inputs), ()

    write_text(options, spec)
    return 0
