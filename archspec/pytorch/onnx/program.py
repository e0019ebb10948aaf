"""The result of PyTorch's exporter for a generated module, as a model of `onnx_ir`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from keyword import iskeyword
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from archspec.codegen.build import torch_source
from archspec.codegen.interface import interface_of
from archspec.core.diagnostics import ArchError, internal_error, make_error, missing_package_error
from archspec.core.optional import import_torch, silence_loggers
from archspec.ir.normal.arrays import Arrays
from archspec.pipeline.model import Model, get_compilation
from archspec.pytorch.export.capture import Capture
from archspec.pytorch.export.exporting import examples, export_module
from archspec.pytorch.onnx import translations
from archspec.pytorch.onnx.loops import functions, has_loops, require_same_outputs, with_loops
from archspec.pytorch.prove.sides import example_sizes, require_all_sizes
from archspec.pytorch.run.to_torch import module_of
from archspec.pytorch.values.arguments import UntranslatableError

if TYPE_CHECKING:
    import onnx_ir as ir
    import torch
    from torch import nn
    from torch.export import ExportedProgram
    from torch.onnx import ONNXProgram


# Checks of ONNX files before they are written.


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
    return internal_error(f"the ONNX file of {model.name} differs from the spec: {problem}")


_OPERATION = re.compile(r"OpOverload\(op='([\w.]+)', overload='(\w+)'\)")
_LOGGERS = ("torch", "torch.onnx", "onnxscript", "onnx_ir")


class Exported(NamedTuple):
    """A module, its program in ONNX, and the names of sizes: of the program's symbols, as in the spec.

    `inputs` are the names of the inputs, as in the spec, by those in the program.
    """

    module: nn.Module
    program: ONNXProgram
    sizes: dict[str, str]
    inputs: dict[str, str]


def libraries() -> ModuleType:
    """Return the package `onnx_ir`. Raises ArchError (`missing-package`) unless everything for exports is installed."""
    import_torch()
    try:
        import_module("onnx")
        import_module("onnxscript")
        return import_module("onnx_ir")
    except ImportError:
        message = "writing ONNX files requires the packages onnx and onnxscript"
        raise missing_package_error(message, "onnx") from None


def export(model: Model) -> Exported:
    """Return the program of a model in evaluation, with all inputs given, for all sizes of its dimensions.

    Raises ArchError (`untranslatable`) for anything that the exporter cannot express.
    """
    code = torch_source(model)
    changed = with_loops(code)
    module = module_of(model, changed, functions()).eval().requires_grad_(False)
    names = dict(zip(model.inputs, (slot.name for slot in interface_of(model).inputs), strict=True))
    types = {names[name]: type for name, type in model.inputs.items()}
    body = get_compilation(model).body
    sizes = example_sizes(body)
    try:
        if has_loops(changed):
            require_same_outputs(module, module_of(model, code, {}).eval(), examples(module, types, sizes))
        recorded = export_module(module, types, sizes, decomposed=False)
        if {*recorded.graph_signature.user_inputs} != {*types}:
            raise UntranslatableError("torch.export renames its inputs")
        capture = Capture(Arrays(), recorded, types)
        require_all_sizes(capture, module, types, body, sizes)
        symbols = {symbol: str(capture.size(size)) for symbol, size in _symbols(recorded)}
        return Exported(module, _converted(recorded), symbols, {names[name]: name for name in names})
    except UntranslatableError as problem:
        raise refusal(model, str(problem)) from problem


def refusal(model: Model, reason: str) -> ArchError:
    """Return the error for a model that cannot be exported."""
    found = get_compilation(model)
    return make_error(
        "untranslatable", f"cannot export {model.name} to ONNX: {reason}", found.unit.span(found.node.name)
    )


def _symbols(program: ExportedProgram) -> Iterator[tuple[str, torch.SymInt]]:
    """Yield the symbols in the sizes of a program's inputs, each with the size that it is."""
    for node in program.graph.nodes:
        value = node.meta.get("val") if node.op == "placeholder" else None
        for size in getattr(value, "shape", ()):
            if not isinstance(size, int) and size.node.expr.is_Symbol:
                yield str(size.node.expr), size


def _converted(recorded: ExportedProgram) -> ONNXProgram:
    torch, table = import_module("torch"), translations.translations()
    try:
        with (
            _keyword_attributes(),
            silence_loggers(*_LOGGERS),
            warnings.catch_warnings(action="ignore"),
            torch.no_grad(),
        ):
            return torch.onnx.export(recorded, verbose=False, optimize=False, custom_translation_table=table)
    except torch.onnx.OnnxExporterError as error:
        raise UntranslatableError(_reason(error)) from error


@contextmanager
def _keyword_attributes() -> Generator[None]:
    """Let PyTorch write graphs with modules named by keywords of Python: `getattr(self, "for")`, not `self.for`."""
    graph: Any = import_module("torch.fx.graph")
    format_target = graph._format_target

    def format_words(base: str, target: str) -> str:
        for word in target.split("."):
            base = f'getattr({base}, "{word}")' if iskeyword(word) else format_target(base, word)
        return base

    graph._format_target = format_words
    try:
        yield
    finally:
        graph._format_target = format_target


def _reason(error: BaseException) -> str:
    """Return the reason of an exporter's error: the operation that ONNX lacks, or the first line of its cause."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    operation = _OPERATION.search(str(cause))
    if operation:
        return f"the exporter of PyTorch has no form of `{operation[1]}.{operation[2]}`"
    lines = str(cause).strip().splitlines()
    return f"the exporter of PyTorch fails: {lines[0] if lines else type(cause).__name__}"
