"""Adapters as SPEC."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from archspec.pipeline.locate import locate
from archspec.pipeline.overrides import parse_overrides

if TYPE_CHECKING:
    from archspec.analysis.adapter.adapter import Adapter


def adapter_for(options: Namespace) -> Adapter:
    """Return the adapter of a command, on the base model of --base. Raises ArchError."""
    from archspec.analysis.adapter.adapter import adapter_at  # which imports the compiler

    return adapter_at(locate(options.spec), options.base, parse_overrides(options.settings))
