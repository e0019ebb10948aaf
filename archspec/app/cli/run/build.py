"""`archspec build SPEC`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from archspec.app.cli import write_diagnostics
from archspec.app.cli.files import write_text
from archspec.app.cli.run.verify import import_prover
from archspec.codegen.build import torch_source
from archspec.codegen.transformers.api import refuse_existing_folder, write_folder
from archspec.codegen.transformers.files import folder_files
from archspec.core.diagnostics import Diagnostic, make_error
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model
from archspec.pipeline.overrides import parse_overrides
from archspec.pytorch.onnx.api import refuse_existing, write_onnx


def run(options: Namespace) -> int:
    """Write a Python file that builds the model, a folder with which `transformers` loads it, or an ONNX file."""
    if options.to == "transformers":
        _write_folder(options)
        return 0
    if options.to == "onnx":
        _write_onnx(options)
        return 0

    def source() -> tuple[str, Sequence[Diagnostic]]:
        model, code = _proven_model(options)
        return code or torch_source(model), model.warnings

    write_text(options, source)
    return 0


def _write_folder(options: Namespace) -> None:
    if not options.output or options.output == "-":
        raise make_error("usage", "`--to transformers` writes a folder", help="name it with `-o FOLDER`")
    refuse_existing_folder(options.output, options.force)
    model, _ = _proven_model(options)
    write_folder(options.output, folder_files(model), options.force)
    write_diagnostics(model.warnings)


def _write_onnx(options: Namespace) -> None:
    if not options.output or options.output == "-":
        raise make_error("usage", "`--to onnx` writes a file", help="name it with `-o FILE.onnx`")
    refuse_existing(options.output, options.force)
    model, _ = _proven_model(options)
    write_onnx(model, options.output, options.force)
    write_diagnostics(model.warnings)


def _proven_model(options: Namespace) -> tuple[Model, str]:
    """Return the model; with --prove, also its PyTorch code. Raises ArchError unless that is equivalent to it."""
    model = as_model(options.spec, parse_overrides(options.settings))
    if not options.prove:
        return model, ""
    code = torch_source(model)
    import_prover().prove_source(model, code)
    return model, code
