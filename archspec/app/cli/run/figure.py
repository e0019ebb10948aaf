"""`archspec figure SPEC -o FILE`."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence

from archspec.app.cli.files import extension_error, write_text
from archspec.core.diagnostics import Diagnostic
from archspec.drawing.figure.api import figure
from archspec.drawing.svg.svg import convert
from archspec.pipeline.compile import as_model
from archspec.pipeline.overrides import parse_overrides

FORMATS = ("svg", "pdf", "png", "tex")


def run(options: Namespace) -> int:
    """Write a figure of a model."""
    name = options.output or "-"
    format = "svg" if name == "-" else os.path.splitext(name)[1][1:].lower()
    if format not in FORMATS:
        raise extension_error(name, format, FORMATS, f"use one of {', '.join(FORMATS)}")

    def make() -> tuple[str | bytes, Sequence[Diagnostic]]:
        model = as_model(options.spec, parse_overrides(options.settings))
        drawn = figure(
            model,
            options.width,
            height=options.height,
            detail=options.detail,
            title=model.name if options.title else "",
            grey=options.grey,
        )
        content = drawn.to_tikz() if format == "tex" else drawn.to_svg()
        notes = [*model.warnings]
        if drawn.omitted:
            params = sum(tensor.params for tensor in model.tensors if tensor.name in set(drawn.omitted))
            names = ", ".join(drawn.omitted[:3]) + (", ..." if len(drawn.omitted) > 3 else "")
            message = f"the figure leaves out {params:,} of {model.params.total:,} parameters: {names}"
            notes.append(Diagnostic("not-drawn", message, severity="warning"))
        return (content if format in ("svg", "tex") else convert(content, format)), notes

    write_text(options, make)
    return 0
