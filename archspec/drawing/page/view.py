"""`archspec.view`: the page of a model in a browser, written once or renewed while its spec is edited."""

from __future__ import annotations

import re
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

from archspec.core.diagnostics import ArchError, Diagnostic
from archspec.drawing.page.page import page
from archspec.drawing.page.server import PageServer
from archspec.ir.table import PlainValue
from archspec.pipeline.compile import as_model, compile_spec
from archspec.pipeline.model import Model, ModelLike
from archspec.pipeline.spec import read_spec
from archspec.pipeline.watching import Files, read_contents, wait_for_change


def view(model: ModelLike, /, **overrides: PlainValue) -> str:
    """Write the page of a model to a temporary file, open it in a browser, and return the path of the file.

    `model` is a Model, or what `archspec.load` takes with its overrides. The page is a single file that needs no
    network, so it can be kept or sent. If there is no browser, the file is written all the same.

    Raises ArchError as `archspec.load` does.
    """
    compiled = as_model(model, overrides)
    name = re.sub(r"[^\w.-]+", "-", compiled.name, flags=re.ASCII).strip("-.")[:80] or "model"
    with NamedTemporaryFile("wb", prefix=f"{name}-", suffix=".html", delete=False) as file:
        file.write(page(compiled).encode())
    webbrowser.open(Path(file.name).as_uri())
    return file.name


def watch(spec: str, overrides: Mapping[str, PlainValue]) -> Iterator[tuple[str, Sequence[Diagnostic]]]:
    """Open the page of a spec in a browser, and renew it whenever one of the spec's files changes.

    Yields the address of the page and the diagnostics of the files: at once, and after each change. If the files do not
    compile, the page shows the errors above the last picture.

    Raises ArchError if the spec does not compile at first.
    """
    model, files = _compile(spec, overrides)
    server = PageServer(lambda version: page(model, version))
    webbrowser.open(server.url)
    try:
        yield server.url, model.warnings
        while True:
            files = wait_for_change(files, lambda paths=files: read_contents(paths))
            try:
                model, files = _compile(spec, overrides)
            except ArchError as error:
                server.report(str(error))
                yield server.url, error.diagnostics
            else:
                server.renew(lambda version, model=model: page(model, version))
                yield server.url, model.warnings
    finally:
        server.close()


def _compile(spec: str, overrides: Mapping[str, PlainValue]) -> tuple[Model, Files]:
    """Compile a spec; return its model, and the files that were read with their contents."""
    model, loaded = compile_spec(read_spec(spec), dict(overrides))
    return model, dict(loaded.library.raw)
