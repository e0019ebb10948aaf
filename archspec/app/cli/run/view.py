"""`archspec view SPEC`."""

from __future__ import annotations

from argparse import Namespace

from archspec.app.cli import write_diagnostics
from archspec.core.diagnostics import make_error
from archspec.drawing.page.view import view, watch
from archspec.pipeline.compile import as_model
from archspec.pipeline.overrides import parse_overrides


def run(options: Namespace) -> int:
    """Open the page of a model in a browser; with `--watch`, update it until interrupted."""
    overrides = parse_overrides(options.settings)
    if not options.watch:
        model = as_model(options.spec, overrides)
        print(view(model))
        write_diagnostics(model.warnings)
        return 0
    if options.spec.startswith("-"):
        raise make_error("usage", "--watch cannot be combined with a spec on standard input", help="name a file")
    try:
        for number, (url, diagnostics) in enumerate(watch(options.spec, overrides)):
            if number == 0:
                print(f"{url} (press Ctrl+C to stop)", flush=True)
            write_diagnostics(diagnostics)
    except KeyboardInterrupt:  # users stop `--watch` with Ctrl+C
        pass
    return 0
