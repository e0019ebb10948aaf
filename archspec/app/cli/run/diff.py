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
    """Write the differences between two models. Returns 1 if there are any."""
    is_drawn = wants_picture(options)
    overrides_a, overrides_b = overrides_for(2, options.settings)
    a, b = as_model(options.a, overrides_a), as_model(options.b, overrides_b)
    difference = diff(a, b)
    if is_drawn:
        save_pictures(options, difference, lambda theme: picture(difference, a, b, theme=theme))
    print_result(difference, options)
    write_diagnostics([*a.warnings, *(warning for warning in b.warnings if warning not in a.warnings)])
    return int(bool(difference))
