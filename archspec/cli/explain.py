"""`archspec explain SPEC NUMBER`."""

from __future__ import annotations

from argparse import Namespace

from archspec.cli.output import show
from archspec.explanations.api import explain
from archspec.overrides import parse_overrides


def run(options: Namespace) -> int:
    """Write the conventions that give a number; the exit status is 1 if none does."""
    found = explain(options.spec, options.number, **parse_overrides(options.settings))
    show(found, options)
    return 0 if found.fits else 1
