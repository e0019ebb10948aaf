"""`archspec formula SPEC --open NAME,...`."""

from __future__ import annotations

from argparse import Namespace

from archspec.cli import write_diagnostics
from archspec.cli.output import show, write
from archspec.formulas.api import formula
from archspec.overrides import parse_overrides
from archspec.pipeline.compile import model_of


def run(options: Namespace) -> int:
    """Write the parameter count of a model as a polynomial."""
    names = [name.strip() for part in options.open for name in part.split(",") if name.strip()]
    found = formula(model_of(options.spec, parse_overrides(options.settings)), *names)
    if options.format == "latex":
        write(found.latex())
    else:
        show(found, options)
    write_diagnostics(found.warnings)
    return 0
