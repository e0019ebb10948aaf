"""`archspec figure SPEC -o FILE`."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Sequence

from archspec.app.cli.files import extension_error, write_text
from archspec.core.diagnostics import Diagnostic
from archspec.drawing.figure.api import Figure, figure
from archspec.drawing.svg.svg import convert
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model
from archspec.pipeline.overrides import overrides_for

FORMATS = ("svg", "pdf", "png", "tex")


def run(options: Namespace) -> int:
    """Write a figure of a model."""
    name = options.output or "-"
    format = "svg" if name == "-" else os.path.splitext(name)[1][1:].lower()
    if format not in FORMATS:
        raise extension_error(name, format, FORMATS, f"use one of {', '.join(FORMATS)}")

    def make() -> tuple[str | bytes, Sequence[Diagnostic]]:
        specs = [options.spec, options.other] if options.other else [options.spec]
        overrides = overrides_for(len(specs), options.settings)
        models = [as_model(spec, values) for spec, values in zip(specs, overrides, strict=True)]
        drawn = figure(
            models[0],
            options.width,
            beside=models[1] if options.other else None,
            height=options.height,
            detail=options.detail,
            title=models[0].name if options.title else "",
            legend=options.legend,
            grey=options.grey,
        )
        content = drawn.to_tikz() if format == "tex" else drawn.to_svg()
        notes = list(dict.fromkeys(warning for model in models for warning in model.warnings))
        notes += [*_omitted(drawn, models), *_hidden(drawn)]
        return (content if format in ("svg", "tex") else convert(content, format)), notes

    write_text(options, make)
    return 0


def _omitted(drawn: Figure, models: Sequence[Model]) -> Iterator[Diagnostic]:
    if drawn.omitted:
        total = sum(model.params.total for model in models)
        message = f"the figure leaves out {drawn.omitted_params:,} of {total:,} parameters: {_some(drawn.omitted)}"
        yield Diagnostic("not-drawn", message, severity="warning")


def _hidden(drawn: Figure) -> Iterator[Diagnostic]:
    if drawn.hidden:
        message = f"the figure does not show all that differs: {_some(drawn.hidden)}"
        help = "`archspec compare` lists the hyperparameters that differ"
        yield Diagnostic("not-drawn", message, severity="warning", help=help)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
