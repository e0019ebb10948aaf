"""`archspec cost SPEC`."""

from __future__ import annotations

from argparse import Namespace

from archspec.analysis.cost.api import cost
from archspec.analysis.cost.dimension_sizes import parse_sizes
from archspec.app.cli import write_diagnostics
from archspec.app.cli.output import print_result
from archspec.core.diagnostics import make_error
from archspec.pipeline.compile import as_model
from archspec.pipeline.overrides import parse_overrides


def run(options: Namespace) -> int:
    """Write the cost of a model."""
    if options.cache_dtype is not None and options.past is None:
        raise make_error("usage", "--cache-dtype has no effect without --past", help="use --past N for a decoding step")
    sizes = parse_sizes(options.dims)
    model = as_model(options.spec, parse_overrides(options.settings))
    result = cost(
        model,
        options.batch,
        options.seq,
        dims=sizes,
        dtype=options.dtype,
        past=options.past,
        cache_dtype=options.cache_dtype,
        attention=options.attention,
        causal_half=options.causal_half,
        depth=options.depth,
    )
    print_result(result, options)
    write_diagnostics(model.warnings)
    return 0
