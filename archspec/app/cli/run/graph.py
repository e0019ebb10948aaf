"""`archspec graph SPEC`."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence

from archspec.analysis.cost.dimension_sizes import given_sizes, parse_sizes
from archspec.app.cli.files import write_text
from archspec.core.algebra import symbols
from archspec.core.diagnostics import Diagnostic, make_error, suggest
from archspec.drawing.api import picture
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model
from archspec.pipeline.overrides import parse_overrides

PICTURE_FORMATS = ("svg", "png", "pdf")
FORMATS = (*PICTURE_FORMATS, "html", "dot", "mermaid", "json", "graphml", "gexf", "netron", "model-explorer")
PICTURE_SOURCE_FORMATS = ("dot", "mermaid")
"""Formats that other programs draw."""
EXTENSIONS = {"mmd": "mermaid", "gv": "dot"}
"""Extensions of files that are not the name of the format."""


def run(options: Namespace) -> int:
    """Write the graph of a model as a picture or as data."""
    level = options.level or ("layer" if options.depth is None else "block")
    if options.depth is not None and level != "block":
        raise make_error("usage", f"--depth cannot be combined with --level {level}", help="use `--level block`")
    format = EXTENSIONS.get(options.to, options.to) or _format_of(options.output)
    if format not in PICTURE_FORMATS and (options.color != "role" or options.dark):
        option = "--dark" if options.dark else "--color"
        raise make_error("usage", f"{option} requires a picture", help=f"use `--to {', '.join(PICTURE_FORMATS)}`")
    if format == "html" and (options.level or options.depth is not None or options.fold is not None):
        raise make_error("usage", "--level, --depth and --fold do not apply to html", help="open blocks on the page")
    if format in ("png", "pdf") and options.output in (None, "-"):
        raise make_error("usage", f"{format.upper()} requires a file", help=f"use `-o FILE.{format}`")

    def make() -> tuple[str | bytes, Sequence[Diagnostic]]:
        model = as_model(options.spec, parse_overrides(options.settings))
        found = (
            _render_picture(options, model, format, level)
            if format in PICTURE_FORMATS
            else _render_data(options, model, format, level)
        )
        return found, model.warnings

    write_text(options, make)
    options.force |= options.watch  # the next time, the file of `-o` is the one that this has written
    return 0


def _format_of(output: str | None) -> str:
    """Return the format that the extension of a file stands for; DOT without a file."""
    if output is None or output == "-":
        return "dot"
    extension = os.path.splitext(output)[1][1:].lower()
    format = EXTENSIONS.get(extension, extension)
    if format not in FORMATS:
        known = [*FORMATS, *EXTENSIONS]
        problem = f"unknown extension `.{extension}`" if extension else f"`{output}` has no extension"
        raise make_error(
            "usage", problem, help=suggest(extension, known) or f"use `--to`, or one of {', '.join(known)}"
        )
    return format


def _render_picture(options: Namespace, model: Model, format: str, level: str) -> str | bytes:
    drawn = picture(
        model,
        level,
        options.depth,
        fold=options.fold is not False,
        coloring=options.color,
        sizes=_sizes(options, model),
        theme="dark" if options.dark else "light",
    )
    if format == "svg":
        return drawn
    from archspec.drawing.svg.svg import convert  # which starts processes

    return convert(drawn, format)


def _sizes(options: Namespace, model: Model) -> Mapping[str, int]:
    """Return the sizes of all dimensions. Raises ArchError if one is missing that the colors depend on."""
    if options.color not in ("flops", "bytes"):
        if options.dims or options.batch is not None or options.seq is not None:
            raise make_error("usage", f"--color {options.color} does not depend on sizes", help="use `--color flops`")
        return {}
    from archspec.analysis.cost.api import valid_sizes  # which takes long to import, and few pictures need

    sizes = valid_sizes(model, given_sizes(parse_sizes(options.dims), options.batch, options.seq))
    dimensions = dict.fromkeys(name for type in model.inputs.values() for size in type.shape for name in symbols(size))
    missing = sorted(dimensions.keys() - sizes.keys())
    if missing:
        used = [f"--{name} N" if name in ("batch", "seq") else f"--dim {name}=N" for name in missing]
        message = f"--color {options.color} requires sizes of {', '.join(f'`{name}`' for name in missing)}"
        raise make_error("usage", message, help=f"use `{' '.join(used)}`")
    return sizes


def _render_data(options: Namespace, model: Model, format: str, level: str) -> str:
    if format == "html":
        from archspec.drawing.page.page import page  # which imports more than a static picture needs

        return page(model)
    from archspec.drawing.graph.formats import format_graph

    fold = format in PICTURE_SOURCE_FORMATS if options.fold is None else options.fold
    shapes = {tensor.name: tensor.shape for tensor in (*model.tensors, *model.buffers)}
    return format_graph(model.graph(level, options.depth, fold=fold), format, model.name, shapes)
