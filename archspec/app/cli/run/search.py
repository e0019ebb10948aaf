"""`archspec search SPEC --vary NAME=VALUES`."""

from __future__ import annotations

import sys
from argparse import Namespace
from functools import partial

from archspec.analysis.search.api import search
from archspec.analysis.search.plot import svg
from archspec.analysis.search.result import to_parquet
from archspec.analysis.search.space import parse_vary
from archspec.app.cli.files import refuse_existing, save_pictures, wants_picture, write_new_file
from archspec.app.cli.output import format_result, write
from archspec.app.cli.progress import PROGRESS
from archspec.core.diagnostics import make_error
from archspec.pipeline.overrides import parse_overrides


def run(options: Namespace) -> int:
    """Write the designs that satisfy the conditions. Returns 1 if there are none, and 130 if interrupted."""
    is_drawn = wants_picture(options)
    if options.output:
        refuse_existing(options.output, options.force)
    if options.format == "parquet" and not options.output:
        raise make_error("usage", "--format parquet requires a file", help="use `-o FILE`")
    vary: dict[str, object] = {}
    for text in options.vary:
        name, values = parse_vary(text)
        if name in vary:
            raise make_error("usage", f"`--vary {name}` is specified more than once")
        vary[name] = values
    result = search(
        options.spec,
        vary,
        where=options.where,
        best=options.best,
        near=options.near,
        all=options.all,
        jobs=options.jobs,
        overrides=parse_overrides(options.settings),
        progress=_progress,
    )
    plot = result.plotted if is_drawn else None
    if plot is not None:
        save_pictures(options, result, partial(svg, plot))
    elif is_drawn:
        sys.stderr.write("no design satisfies the conditions: no plot was written\n")
    if options.format == "parquet":
        write_new_file(options.output, to_parquet(result), options.force)
    elif options.output:
        write_new_file(options.output, format_result(result, options), options.force)
    else:
        write(format_result(result, options))
    return 130 if result.tally.is_interrupted else 0 if result.designs else 1


def _progress(examined: int, satisfying: int) -> None:
    PROGRESS.step = f"archspec search, {examined:,} designs examined, {satisfying:,} satisfy the conditions"
