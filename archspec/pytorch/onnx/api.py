"""`archspec.to_onnx`: ONNX files, with the names of the spec."""

from __future__ import annotations

import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import make_error
from archspec.ir.table import PlainValue
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model, ModelLike
from archspec.pytorch.onnx.naming import named
from archspec.pytorch.onnx.program import check_tensors, export, libraries, refusal

MAX_FILE_BYTES = 2**31 - 2**24
"""The size in bytes of weights in one file, which must be below 2 GiB; weights of more are in a file of their own."""


@check_arguments
def to_onnx(model: ModelLike, /, file: str | os.PathLike[str], *, force: bool = False, **overrides: PlainValue) -> None:
    """Write an ONNX file of a model in evaluation, with weights initialized as specified in the spec.

    `model` is a Model, or what `archspec.load` takes, with its `overrides`. Weights of more than 2 GiB are written to
    another file, whose name is that of `file` and `.data`. With `force`, existing files are replaced.

    Raises ArchError: `usage` if a file exists or cannot be written, `missing-package` without PyTorch, onnx and
    onnxscript, `untranslatable` for anything that PyTorch or its exporter cannot express, or if the weights are larger
    than the memory of the machine, and as `archspec.load` does. Nothing is written then.
    """
    refuse_existing(file, force)
    write_onnx(as_model(model, overrides), file, force)


def refuse_existing(file: str | os.PathLike[str], force: bool) -> None:
    """Raise ArchError (`usage`) if a file exists and `force` is not set, or if it is a directory or device."""
    for path in (Path(file), _data_of(Path(file))):
        if os.path.lexists(path) and not force:
            raise make_error("usage", f"`{path}` already exists", help="use --force to overwrite it")
        if path.exists() and not path.is_file():
            raise make_error("usage", f"`{path}` is not a file")


def write_onnx(model: Model, file: str | os.PathLike[str], force: bool) -> None:
    """Write the file, as `to_onnx` describes, after it has been checked."""
    ir, checker = libraries(), import_module("onnx.checker")
    weights = 4 * model.params.total
    if weights > _memory():
        reason = f"its weights take {weights:,} bytes, and this machine has {_memory():,} bytes of memory"
        raise refusal(model, reason)
    program = named(model, export(model))
    check_tensors(model, program)
    target = Path(os.path.realpath(file))
    data = _data_of(target)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f"{target.name}.") as folder:
            part = Path(folder) / target.name
            ir.save(program, part, external_data=data.name if weights > MAX_FILE_BYTES else None)
            checker.check_model(os.fspath(part), full_check=True)
            refuse_existing(target, force)
            for path in (_data_of(part), part):
                if path.exists():
                    os.replace(path, target.with_name(path.name))
    except OSError as error:
        raise make_error("usage", f"cannot write {os.fspath(file)}: {error.strerror or error}") from None


def _data_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.data")


def _memory() -> int:
    """The memory of the machine in bytes, if it is known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return sys.maxsize
