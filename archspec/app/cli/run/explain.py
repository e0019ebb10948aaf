"""`archspec explain SPEC NUMBER`."""

from __future__ import annotations

from argparse import Namespace

from archspec.analysis.cost.dimension_sizes import parse_sizes
from archspec.analysis.explain.explain import explain
from archspec.analysis.explain.flops.api import explain_flops
from archspec.app.cli.output import print_result
from archspec.core.diagnostics import make_error
from archspec.pipeline.compile import as_model
from archspec.pipeline.overrides import parse_overrides


def run(options: Namespace) -> int:
    """Write the conventions that give a number. Returns 1 if there are none."""
    if options.flops:
        model = as_model(options.spec, parse_overrides(options.settings))
        sizes = parse_sizes(options.dims)
        explanation = explain_flops(model, options.number, options.batch, options.seq, dims=sizes)
        print_result(explanation, options)
        return 0 if explanation.fits else 1
    if options.dims or options.batch or options.seq:
        raise make_error(
            "usage", "sizes of dimensions have no effect without --flops", help="add --flops, or remove them"
        )
    explanation = explain(options.spec, options.number, **parse_overrides(options.settings))
    print_result(explanation, options)
    return 0 if explanation.fits else 1
