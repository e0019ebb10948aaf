"""`archspec compare A B [C ...]`."""

from __future__ import annotations

from argparse import Namespace

from archspec.analysis.compare.api import compare_models
from archspec.analysis.cost.dimension_sizes import merge_sizes, parse_sizes
from archspec.app.cli import write_diagnostics
from archspec.app.cli.files import save_pictures, wants_picture
from archspec.app.cli.output import print_result
from archspec.pipeline.overrides import overrides_for


def run(options: Namespace) -> int:
    """Write the comparison of the models."""
    specs = [options.a, *options.others]
    is_drawn = wants_picture(options)
    models = list(zip(specs, overrides_for(len(specs), options.settings), strict=True))
    sizes = merge_sizes(parse_sizes(options.dims), options.batch, options.seq)
    comparison, warnings = compare_models(models, options.depth, sizes)
    if is_drawn:
        from archspec.analysis.compare.pictures import compile_models, picture  # imported late: it needs the compiler

        compiled = compile_models(models)
        save_pictures(options, comparison, lambda theme: picture(compiled, theme=theme))
    print_result(comparison, options)
    write_diagnostics(list(dict.fromkeys(warnings)))
    return 0
