"""`archspec new FILE --from SPEC`."""

from __future__ import annotations

from argparse import Namespace

from archspec.analysis.variant.new import new_spec
from archspec.app.cli import write_diagnostics
from archspec.app.cli.files import refuse_existing, write_new_file
from archspec.app.cli.output import write
from archspec.core.diagnostics import make_error
from archspec.pipeline.compile import as_model
from archspec.pipeline.overrides import parse_overrides


def run(options: Namespace) -> int:
    """Write the first file of a variant."""
    if not options.file.endswith(".arch"):
        raise make_error("usage", f"`{options.file}` is not the name of a spec", help="use a name that ends in .arch")
    refuse_existing(options.file, options.force)
    overrides = parse_overrides(options.settings)
    model = as_model(options.spec, overrides)
    write_new_file(options.file, new_spec(options.file, model, overrides, options.blocks), options.force)
    origin = f"the same model as {model.name}{_format_overrides(options)}"
    write(f"{options.file}: {model.params.total:,} parameters, {origin}\n")
    write_diagnostics(model.warnings)
    return 0


def _format_overrides(options: Namespace) -> str:
    return f" with {', '.join(options.settings)}" if options.settings else ""
