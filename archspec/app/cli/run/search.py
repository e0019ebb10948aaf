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
    """Write the designs that satisfy the conditions."""
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
    found = search(
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
        _save_plots(options, found)
    if options.format == "parquet":
        write_new_file(options.output, to_parquet(found), options.force)
    elif options.output:
        write_new_file(options.output, format_result(found, options), options.force)
    else:
        write(format_result(found, options))
    return 130 if found.tally.is_interrupted else 0 if found.designs else 1


def _progress(examined: int, satisfying: int) -> None:
    PROGRESS.what = f"archspec search, {examined:,} designs examined, {satisfying:,} satisfy the conditions"


def _save_plots(options: Namespace, found: SearchResult) -> None:
    if found.plotted is None:
        sys.stderr.write("no design satisfies the conditions: no plot was written\n")
        return
    if options.svg is not None:
        write_new_file(options.svg, svg(found.plotted, "dark" if options.dark else "light"), options.force)
    if options.html is not None:
        page = webpage(page_of(found, "html"), svg(found.plotted, "light"), svg(found.plotted, "dark"))
        write_new_file(options.html, page, options.force)
