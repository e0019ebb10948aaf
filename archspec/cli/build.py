"""`archspec build SPEC`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from archspec.cli.files import write_text
from archspec.cli.proofs import prover
from archspec.overrides import parse_overrides
from archspec.pipeline.compile import model_of
from archspec.pytorch.build import torch_source
from archspec.source import Diagnostic


def run(options: Namespace) -> int:
    """Write a Python file that builds the model."""

    def source() -> tuple[str, Sequence[Diagnostic]]:
        model = model_of(options.spec, parse_overrides(options.settings))
        text = torch_source(model)
        if options.prove:
            prover().prove_source(model, text)
        return text, model.warnings

    write_text(options, source)
    return 0
