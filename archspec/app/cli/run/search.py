"""`archspec search SPEC --vary NAME=VALUES`."""

from __future__ import annotations

import sys
from argparse import Namespace

from archspec.analysis.search.api import search
from archspec.analysis.search.plot import svg
from archspec.analysis.search.result import SearchResult, to_parquet
from archspec.analysis.search.space import parse_vary
from archspec.app.cli.files import refuse_existing, wants_picture, write_new_file
from archspec.app.cli.output import format_result, write
from archspec.app.cli.progress import PROGRESS
from archspec.core.diagnostics import make_error
from archspec.core.reports.results import page_of
from archspec.core.reports.webpage import webpage
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
    if is_drawn:
        _save_plots(options, result)
    if options.format == "parquet":
        write_new_file(options.output, to_parquet(result), options.force)
    elif options.output:
        write_new_file(options.output, format_result(result, options), options.force)
    else:
        write(format_result(result, options))
    return 130 if result.tally.is_interrupted else 0 if result.designs else 1


def _progress(examined: int, satisfying: int) -> None:
    PROGRESS.step = f"archspec search, {examined:,} designs examined, {satisfying:,} satisfy the conditions"


def _save_plots(options: Namespace, result: SearchResult) -> None:
    if result.plotted is None:
        sys.stderr.write("no design satisfies the conditions: no plot was written\n")
        return
    if options.svg is not None:
        write_new_file(options.svg, svg(result.plotted, "dark" if options.dark else "light"), options.force)
    if options.html is not None:
        page = webpage(page_of(result, "html"), svg(result.plotted, "light"), svg(result.plotted, "dark"))
        write_new_file(options.html, page, options.force)
