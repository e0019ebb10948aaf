"""`archspec verify SPEC CHECKPOINT`."""

from __future__ import annotations

from argparse import Namespace
from types import ModuleType
from typing import TYPE_CHECKING

from archspec.analysis.verify.api import verify_table
from archspec.analysis.verify.naming import Rename, parse_rename
from archspec.app.cli import write_diagnostics
from archspec.app.cli.output import print_result
from archspec.app.cli.run.count import read_adapter
from archspec.core.diagnostics import Diagnostic, make_error
from archspec.core.optional import print_to_stderr
from archspec.pipeline.compile import as_model
from archspec.pipeline.locate import locate
from archspec.pipeline.overrides import parse_overrides
from archspec.pipeline.tables import load_table

if TYPE_CHECKING:
    from archspec.pytorch.prove.api import Equivalence


def import_prover() -> ModuleType:
    """Return the module that proves PyTorch code. It needs PyTorch, and is slow to import."""
    from archspec.pytorch.prove import prove

    return prove


def run(options: Namespace) -> int:
    """Write the differences between a checkpoint and a model. Returns 1 if there are any."""
    if (options.module is None) == (options.checkpoint is None):
        raise make_error("usage", "expected either a checkpoint or --module")
    if options.module is not None:
        return _prove(options)
    renames = [_rename(text) for text in options.renames]
    location = locate(options.spec)
    if location.kind == "adapter":
        model, warnings = read_adapter(location, options).stored, ()
    else:
        model, warnings = load_table(location, parse_overrides(options.settings))
    result = verify_table(model, options.checkpoint, renames)
    print_result(result, options)
    write_diagnostics([*warnings, *map(_unmatched, result.unmatched)])
    return 0 if result.is_exact else 1


def _prove(options: Namespace) -> int:
    """Write whether a PyTorch module is equal to the model. Returns 1 unless equality is proven."""
    model = as_model(options.spec, parse_overrides(options.settings))
    with print_to_stderr():
        result: Equivalence = import_prover().compare_file(model, options.module)
    print_result(result, options)
    write_diagnostics(model.warnings)
    return 0 if result else 1


def _rename(text: str) -> Rename:
    old, separator, new = text.partition("=")
    if not separator:
        raise make_error(
            "usage", f"invalid --rename `{text}`: expected OLD=NEW", help="write it as `--rename 'model.*=*'`"
        )
    return parse_rename(old, new)


def _unmatched(rename: Rename) -> Diagnostic:
    return Diagnostic(
        "no-match",
        f"`--rename {rename.old}={rename.new}` matches no tensor of the checkpoint",
        help="a pattern must match the full name, after all earlier renamings",
        severity="warning",
    )
