"""The compiler of the playground and of the home page: what the worker asks for, and the build for saved results.

Numbers come first, since they follow each edit; pictures are asked for in a second message.
"""

from __future__ import annotations

import json

import results

from archspec.app.lsp.workspace import Workspace
from archspec.codegen.build import torch_source
from archspec.core.diagnostics import ArchError, Diagnostic
from archspec.drawing.figure.api import figure
from archspec.drawing.page.page import page
from archspec.pipeline.compile import compile_text, import_config
from archspec.pipeline.locate import configuration_location
from archspec.pipeline.model import Model

FILE = "playground.arch"

_workspace = Workspace()  # keeps what was compiled of the bundled files
_models: dict[str, Model] = {}  # the model of the last numbers, by what was asked for


def numbers(text: str, name: str) -> str:
    """Return all diagnostics of a text, and if there is no error, the numbers of one of its models, as JSON."""
    _models.clear()
    _workspace.open(FILE, text)
    analysis = _workspace.analysis(FILE)
    diagnostics = analysis.report.diagnostics
    names = list(analysis.unit.models) if analysis.unit is not None else []
    chosen = name if name in names else next(iter(names), "")
    found: dict[str, object] = {"models": names, "model": None}
    if chosen and not analysis.report.failed:
        try:
            model = compile_text(text, FILE, chosen)
            found |= {"html": results.render(model), "total": model.params.total, "model": chosen}
            found["lines"] = results.line_roles(model, FILE)
            _models[chosen] = model
        except ArchError as error:
            diagnostics = error.diagnostics
    return json.dumps({**found, "diagnostics": [_data(each, text) for each in diagnostics]})


def picture(name: str, kind: str) -> str:
    """Return the figure, the page or the PyTorch code of the model of the last numbers; text if there is none."""
    makers = {"figure": lambda model: str(figure(model)), "page": page, "code": torch_source}
    try:
        return json.dumps({kind: makers[kind](_models[name])})
    except ArchError as error:
        return json.dumps({"problem": str(error)})


def opened(text: str) -> str:
    """Return the spec of a configuration (a `config.json`), as JSON."""
    try:
        return json.dumps({"spec": import_config(configuration_location(text)._replace(label="config.json"))})
    except ArchError as error:
        return json.dumps({"problem": str(error)})


def _data(diagnostic: Diagnostic, text: str) -> dict[str, object]:
    """Return a diagnostic as data; its location is in UTF-16 code units, as those of the editor."""
    span = diagnostic.span
    is_here = span is not None and span.source.label == FILE
    return {
        "severity": diagnostic.severity,
        "code": diagnostic.code,
        "message": diagnostic.message,
        "rest": _rest(diagnostic),
        "rendered": diagnostic.render(),
        "from": _units(text, span.start) if is_here else None,
        "to": _units(text, span.end) if is_here else None,
    }


def _rest(diagnostic: Diagnostic) -> str:
    """Return the notes and the help of a diagnostic, a line each."""
    lines = [f"note: {note.text}" for note in diagnostic.notes]
    return "\n".join([*lines, *([f"help: {diagnostic.help}"] if diagnostic.help else [])])


def _units(text: str, offset: int) -> int:
    return len(text[:offset].encode("utf-16-le", "surrogatepass")) // 2
