"""`archspec build`: a model as code that runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace


def run_build(options: Namespace) -> int:
    """`archspec build SPEC --to torch`: the text of a Python file."""
    from archspec.cli import write_findings
    from archspec.cli.commands import overrides_of
    from archspec.cli.files import refuse_existing, save
    from archspec.pipeline import compile_spec
    from archspec.pytorch.build import torch_source

    to_file = options.output and options.output != "-"
    if to_file:
        refuse_existing(options.output, options.force)
    model = compile_spec(options.spec, overrides_of(options.settings))
    text = torch_source(model)
    if to_file:
        save(options.output, text, options.force)
    else:
        sys.stdout.write(text)
    write_findings(model.warnings)
    return 0
