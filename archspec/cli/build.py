"""`archspec build`: a model as code that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from archspec.source import Diagnostic


def run_build(options: Namespace) -> int:
    """`archspec build SPEC --to torch`: the text of a Python file."""
    from archspec.cli.commands import overrides_of
    from archspec.cli.files import write_text
    from archspec.pipeline import compile_spec
    from archspec.pytorch.build import torch_source

    def source() -> tuple[str, Sequence[Diagnostic]]:
        model = compile_spec(options.spec, overrides_of(options.settings))
        return torch_source(model), model.warnings

    write_text(options, source)
    return 0
