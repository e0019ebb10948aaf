"""Checks of ONNX files before they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archspec.core.diagnostics import make_error
from archspec.pipeline.model import Model, get_compilation

if TYPE_CHECKING:
    import onnx_ir as ir


def check_tensors(model: Model, program: ir.Model) -> None:
    """Raise ArchError (`internal`) unless the initializers of a program are the stored tensors of a model, each once,
    with their names and shapes; it may have constants in addition.
    """
    table = get_compilation(model).table
    tied = {tensor.name for tensor in table.tensors if tensor.tied_to is not None} | {*table.buffer_ties}
    initializers = program.graph.initializers
    for tensor in (*table.tensors, *table.buffers):
        if tensor.name in tied:
            if tensor.name in initializers:
                raise _bug(model, f"`{tensor.name}` is stored twice")
        elif tensor.name not in initializers:
            raise _bug(model, f"`{tensor.name}` is missing")
        elif (shape := initializers[tensor.name].shape) is None or tuple(shape) != tensor.shape:
            raise _bug(model, f"`{tensor.name}` has shape {list(shape or ())}")


def _bug(model: Model, problem: str) -> Exception:
    return make_error("internal", f"the ONNX file of {model.name} differs from the spec: {problem}; please report it")
