"""`archspec fit SPEC --device NAME`."""

from __future__ import annotations

from argparse import Namespace

from archspec.analysis.cost.dimension_sizes import parse_sizes
from archspec.analysis.fit.api import fit
from archspec.app.cli import write_diagnostics
from archspec.app.cli.output import print_result
from archspec.pipeline.compile import as_model
from archspec.pipeline.overrides import parse_overrides


def run(options: Namespace) -> int:
    """Write whether a model fits a device; return 1 if it does not."""
    model = as_model(options.spec, parse_overrides(options.settings))
    result = fit(
        model,
        options.device,
        count=options.count,
        tensor=options.tensor,
        batch=options.batch,
        context=options.context,
        dtype=options.dtype,
        cache_dtype=options.cache_dtype,
        fraction=options.fraction,
        chunk=options.chunk,
        dims=parse_sizes(options.dims),
        lora=options.lora,
    )
    print_result(result, options)
    write_diagnostics(model.warnings)
    return int(not result.fits)
