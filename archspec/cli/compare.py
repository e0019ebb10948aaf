"""`archspec compare A B [C ...]`."""

from __future__ import annotations

from argparse import Namespace

from archspec.cli import write_diagnostics
from archspec.cli.files import refuse_existing, save
from archspec.cli.output import show
from archspec.comparisons.api import compare_models
from archspec.comparisons.report import picture
from archspec.costs.dimension_sizes import given_sizes, parse_sizes
from archspec.overrides import overrides_for
from archspec.source import fail


def run(options: Namespace) -> int:
    """Write the comparison of the models."""
    specs = [options.a, *options.others]
    if options.svg is not None:
        if len(specs) != 2:
            raise fail("usage", "--svg requires exactly two models", help="name two models, or remove --svg")
        refuse_existing(options.svg, options.force)
    models = list(zip(specs, overrides_for(len(specs), options.settings), strict=True))
    sizes = given_sizes(parse_sizes(options.dims), options.batch, options.seq)
    found, warnings = compare_models(models, options.depth, sizes)
    if options.svg is not None:
        save(options.svg, picture(found), options.force)
    show(found, options)
    write_diagnostics(list(dict.fromkeys(warnings)))
    return 0
