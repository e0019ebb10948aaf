"""`archspec lift SOURCE`."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence

from archspec.app.cli.files import write_text
from archspec.app.cli.progress import PROGRESS
from archspec.core.diagnostics import Diagnostic
from archspec.core.optional import print_to_stderr
from archspec.formats.configs.companions import find_omissions
from archspec.formats.configs.configuration import CONFIG_FILE
from archspec.pytorch.lift.sources.lifting import lift_with_notes


def run(options: Namespace) -> int:
    """Write the spec of a PyTorch module."""

    def spec() -> tuple[str, Sequence[Diagnostic]]:
        source = options.source
        with print_to_stderr():
            text, notes = lift_with_notes(source, options.inputs, fixed=options.fixed, progress=_progress)
        return text, [*notes, *find_omissions(os.path.join(source, CONFIG_FILE) if os.path.isdir(source) else source)]

    write_text(options, spec)
    return 0


def _progress(step: str) -> None:
    PROGRESS.step = f"archspec lift, {step}"
