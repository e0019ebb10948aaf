"""`archspec verify SPEC CHECKPOINT`."""

from __future__ import annotations

from argparse import Namespace

from archspec.cli import write_findings
from archspec.cli.output import show
from archspec.overrides import parse_overrides
from archspec.pipeline.tables import table_of
from archspec.source import Diagnostic, fail
from archspec.verification.api import verify_table
from archspec.verification.naming import Rename, parse_rename
from archspec.verification.report import contents, page


def run(options: Namespace) -> int:
    """Writes how a checkpoint differs from a model; the status is 1 if it does."""
    renames = [_rename(text) for text in options.renames]
    model, warnings = table_of(options.spec, parse_overrides(options.settings))
    found = verify_table(model, options.checkpoint, renames)
    show(found, options.format, contents, page)
    write_findings([*warnings, *map(_unmatched, found.unmatched)])
    return 0 if found.is_exact else 1


def _rename(text: str) -> Rename:
    old, separator, new = text.partition("=")
    if not separator:
        raise fail("usage", f"`--rename {text}` is not of the form OLD=NEW", help="as in `--rename 'model.*=*'`")
    return parse_rename(old, new)


def _unmatched(rename: Rename) -> Diagnostic:
    return Diagnostic(
        "no-match",
        f"`--rename {rename.old}={rename.new}` matches no tensor of the checkpoint",
        help="patterns are compared with whole names, as they are after the renamings before",
        severity="warning",
    )
