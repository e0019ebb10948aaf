"""Helpers for tests of specs, with any test framework:

    from archspec import testing

    def test_layer():
        assert not testing.check("specs/layer.arch")
        assert testing.tensors("specs/layer.arch")["linear.weight"] == (768, 768)
        assert testing.run("count", "specs/layer.arch").status == 0

A text in place of a file is compiled by `archspec.loads`, and checked by `check_text`.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple
from unittest import mock

from archspec.app.cli import main as main
from archspec.pipeline import compile
from archspec.pipeline.locate import locate

if TYPE_CHECKING:
    from archspec.core.diagnostics import Diagnostic
    from archspec.pipeline.locate import SpecLike
    from archspec.pipeline.model import ModelLike


class CommandResult(NamedTuple):
    """The exit status of a command, and what it wrote to standard output and standard error."""

    status: int
    output: str
    errors: str


def run(*arguments: str, stdin: str = "") -> CommandResult:
    """Run a command in this process, as `archspec ARGUMENTS` does; `stdin` is its standard input.

    `main` does the same without capturing what the command writes.
    """
    output, errors = io.StringIO(), io.StringIO()
    text = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    with redirect_stdout(output), redirect_stderr(errors), mock.patch.object(sys, "stdin", text):
        status = main(arguments)
    return CommandResult(status, output.getvalue(), errors.getvalue())


def check(spec: SpecLike) -> list[Diagnostic]:
    """Return the errors and warnings of a file, or of one model of it (`"path.arch:name"`)."""
    return compile.check(spec).diagnostics


def check_text(text: str, files: Mapping[str, str] | None = None) -> list[Diagnostic]:
    """Return the errors and warnings of a spec, as if it were the file `spec.arch` beside `files`.

    `files` maps paths to the texts of files that it can import.
    """
    with TemporaryDirectory() as folder:
        for path, content in {**(files or {}), "spec.arch": text}.items():
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
        location = locate(str(Path(folder, "spec.arch")))
        return compile.check(location._replace(label="spec.arch"), root=folder).diagnostics


def tensors(model: ModelLike) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor that a checkpoint of the model stores, by name.

    Raises ArchError as `archspec.load` does.
    """
    return {tensor.name: tuple(tensor.shape) for tensor in compile.as_model(model).tensors}
