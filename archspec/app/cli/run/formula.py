"""`archspec formula SPEC --open NAME,...`."""

from __future__ import annotations

from argparse import Namespace

from archspec.analysis.formula.api import formula
from archspec.app.cli import write_diagnostics
from archspec.app.cli.output import print_result, write
from archspec.pipeline.compile import as_model
from archspec.pipeline.overrides import parse_overrides


def run(options: Namespace) -> int:
    """Write the parameter count of a model as a polynomial."""
    names = [name.strip() for part in options.open for name in part.split(",") if name.strip()]
    result = formula(as_model(options.spec, parse_overrides(options.settings)), *names)
    if options.format == "latex":
        write(result.latex())
    else:
        print_result(result, options)
    write_diagnostics(result.warnings)
    return 0
