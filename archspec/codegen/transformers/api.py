"""`archspec.to_transformers`: a folder with which `transformers` loads a model."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from archspec.codegen.transformers.files import folder_files
from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import make_error
from archspec.ir.table import PlainValue
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import ModelLike


@check_arguments
def to_transformers(
    model: ModelLike, /, folder: str | os.PathLike[str], *, force: bool = False, **overrides: PlainValue
) -> None:
    """Write a folder with which `transformers` loads a model: `config.json`, Python files, and no weights.

    `model` is a Model, or what `archspec.load` takes, with its `overrides`. With `force`, the files are replaced in a
    folder that exists; its other files are kept. Neither PyTorch nor `transformers` is required.

    Raises ArchError: `usage` if the folder exists or cannot be written, `untranslatable` for anything that PyTorch or
    `transformers` cannot express, and as `archspec.load` does. Nothing is written then.
    """
    refuse_existing_folder(folder, force)
    write_folder(folder, folder_files(as_model(model, overrides)), force)


def refuse_existing_folder(folder: str | os.PathLike[str], force: bool) -> None:
    """Raise ArchError (`usage`) if the folder exists and `force` is not set, or if it is a file."""
    if not os.path.lexists(folder):
        return
    if not force:
        help = "use --force to replace the files that are written; its other files are kept"
        raise make_error("usage", f"`{os.fspath(folder)}` already exists", help=help)
    if not os.path.isdir(folder):
        raise make_error("usage", f"`{os.fspath(folder)}` is not a folder")


def write_folder(folder: str | os.PathLike[str], files: dict[str, str], force: bool) -> None:
    """Write all files, or none: into a folder next to it, which then gets its name.

    Raises ArchError (`usage`) as `refuse_existing_folder` does, and if the folder cannot be written.
    """
    target = Path(os.path.realpath(folder))
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        part.mkdir()
        try:
            for name, text in files.items():
                (part / name).write_text(text, encoding="utf-8", newline="\n")
            if force and target.exists():
                for name in files:
                    os.replace(part / name, target / name)
            else:
                refuse_existing_folder(target, False)
                part.rename(target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise make_error("usage", f"cannot write {os.fspath(folder)}: {error.strerror or error}") from None
