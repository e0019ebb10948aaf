"""`archspec graph SPEC`."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence

from archspec.analysis.cost.dimension_sizes import merge_sizes, options_for_sizes, parse_sizes
from archspec.app.cli.files import extension_error, write_text
from archspec.core.diagnostics import Diagnostic, make_error
from archspec.drawing.api import picture
from archspec.ir.index_ranges import dimensions
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model
from archspec.pipeline.overrides import parse_overrides

PICTURE_FORMATS = ("svg", "png", "pdf")
FORMATS = (*PICTURE_FORMATS, "html", "dot", "mermaid", "json", "graphml", "gexf", "netron", "model-explorer")
PICTURE_SOURCE_FORMATS = ("dot", "mermaid")
"""Formats that other programs draw."""

EXTENSIONS = {"mmd": "mermaid", "gv": "dot"}
"""File extensions that differ from the name of the format."""


def run(options: Namespace) -> int:
    """Write the graph of a model as a picture or as data."""
    level = options.level or ("layer" if options.depth is None else "block")
    if options.depth is not None and level != "block":
        raise make_error("usage", f"--depth cannot be combined with --level {level}", help="use `--level block`")
    if options.open and (options.level or options.depth is not None):
        option = "--level" if options.level else "--depth"
        raise make_error("usage", f"--open cannot be combined with {option}", help="use one of them")
    format = EXTENSIONS.get(options.to, options.to) or _output_format(options.output)
    if format not in PICTURE_FORMATS and options.open:
        raise make_error("usage", "--open requires a picture", help=f"use `--to {', '.join(PICTURE_FORMATS)}`")
    if format not in PICTURE_FORMATS and (options.color != "role" or options.dark):
        option = "--dark" if options.dark else "--color"
        raise make_error("usage", f"{option} requires a picture", help=f"use `--to {', '.join(PICTURE_FORMATS)}`")
    if format == "html" and (options.level or options.depth is not None or options.fold is not None):
        raise make_error("usage", "--level, --depth and --fold do not apply to html", help="open blocks on the page")
    if format in ("png", "pdf") and options.output in (None, "-"):
        raise make_error("usage", f"{format.upper()} requires a file", help=f"use `-o FILE.{format}`")

    def make() -> tuple[str | bytes, Sequence[Diagnostic]]:
        model = as_model(options.spec, parse_overrides(options.settings))
        content = (
            _render_picture(options, model, format, level if options.level or options.depth is not None else None)
            if format in PICTURE_FORMATS
            else _render_data(options, model, format, level)
        )
        return content, model.warnings

    write_text(options, make)
    options.force |= options.watch  # the next run overwrites the file of this one
    return 0


def _output_format(output: str | None) -> str:
    """Return the format for the extension of a file; DOT without a file."""
    if output is None or output == "-":
        return "dot"
    extension = os.path.splitext(output)[1][1:].lower()
    format = EXTENSIONS.get(extension, extension)
    if format not in FORMATS:
        supported = [*FORMATS, *EXTENSIONS]
        raise extension_error(output, extension, supported, f"use `--to`, or one of {', '.join(supported)}")
    return format


def _render_picture(options: Namespace, model: Model, format: str, level: str | None) -> str | bytes:
    svg = picture(
        model,
        "layer" if options.open else level,
        options.depth,
        fold=options.fold is not False,
        coloring=options.color,
        sizes=_check_sizes(options, model),
        theme="dark" if options.dark else "light",
    )
    if format == "svg":
        return svg
    from archspec.drawing.svg.svg import convert  # imported late: SVG and data do not need it

    return convert(svg, format)


def _check_sizes(options: Namespace, model: Model) -> Mapping[str, int]:
    """Return the sizes of all dimensions, or {} for colors that do not depend on sizes. Raises ArchError."""
    if options.color not in ("flops", "bytes"):
        if options.dims or options.batch is not None or options.seq is not None:
            raise make_error("usage", f"--color {options.color} does not depend on sizes", help="use `--color flops`")
        return {}
    from archspec.analysis.cost.api import valid_sizes  # imported late: it is slow, and few pictures need it

    sizes = valid_sizes(model, merge_sizes(parse_sizes(options.dims), options.batch, options.seq))
    missing = sorted({*dimensions(model.inputs.items())} - sizes.keys())
    if missing:
        message = f"--color {options.color} requires sizes of {', '.join(f'`{name}`' for name in missing)}"
        raise make_error("usage", message, help=f"use `{options_for_sizes(missing)}`")
    return sizes


def _render_data(options: Namespace, model: Model, format: str, level: str) -> str:
    if format == "html":
        from archspec.drawing.page.page import page  # imported late: only html needs it

        return page(model)
    from archspec.drawing.graph.formats import format_model

    fold = format in PICTURE_SOURCE_FORMATS if options.fold is None else options.fold
    return format_model(model, format, level, options.depth, fold)
