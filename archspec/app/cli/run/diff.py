"""`archspec diff A B`."""

from __future__ import annotations

from argparse import Namespace

from archspec.analysis.diff.api import diff
from archspec.analysis.diff.pictures import picture
from archspec.app.cli import write_diagnostics
from archspec.app.cli.files import save_pictures, wants_picture
from archspec.app.cli.output import print_result
from archspec.pipeline.compile import as_model
from archspec.pipeline.overrides import overrides_for


def run(options: Namespace) -> int:
    """Write the differences between two models; the exit status is 1 if there are any."""
    is_drawn = wants_picture(options)
    ours, theirs = overrides_for(2, options.settings)
    a, b = as_model(options.a, ours), as_model(options.b, theirs)
    found = diff(a, b)
    if is_drawn:
        save_pictures(options, found, lambda theme: picture(found, a, b, theme=theme))
    print_result(found, options)
    write_diagnostics([*a.warnings, *(warning for warning in b.warnings if warning not in a.warnings)])
    return int(bool(found))
