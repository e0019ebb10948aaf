"""The compiler in the playground."""

from __future__ import annotations

import json

from archspec.app.lsp.workspace import Workspace
from archspec.core.diagnostics import ArchError, Diagnostic
from archspec.core.reports.html import render_html
from archspec.core.reports.results import page_of
from archspec.drawing.api import picture
from archspec.pipeline.compile import compile_text

FILE = "playground.arch"
WORKSPACE = Workspace()  # keeps what was compiled of the bundled files


def analyzed(text: str, model: str, theme: str) -> str:
    """Return what the page shows of a text, as JSON: all diagnostics, and if there is no error, one of its models."""
    WORKSPACE.open(FILE, text)
    analysis = WORKSPACE.analysis(FILE)
    report = analysis.report
    models = list(analysis.unit.models) if analysis.unit is not None else []
    chosen = model if model in models else next(iter(models), "")
    results: dict[str, object] = {"models": models, "model": None, "status": ""}
    diagnostics = report.diagnostics
    if report.failed:
        results["status"] = "The spec has errors."
    elif not chosen:
        results["status"] = 'No model to count: add `model "name" = Definition(...)`.'
    else:
        try:
            compiled = compile_text(text, FILE, chosen)
            results["counts"] = render_html(page_of(compiled.count(), "html"))
            results["picture"] = picture(compiled, theme=theme)
            results["status"] = f"{compiled.params.total:,} parameters"
            results["model"] = chosen
        except ArchError as error:
            diagnostics = error.diagnostics
            results["status"] = "The spec has errors."
    return json.dumps({**results, "diagnostics": [_data(each, text) for each in diagnostics]})


def _data(diagnostic: Diagnostic, text: str) -> dict[str, object]:
    """Return a diagnostic as data; its location is in UTF-16 code units, as those of the editor."""
    span = diagnostic.span
    is_here = span is not None and span.source.label == FILE
    return {
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "rendered": diagnostic.render(),
        "from": _units(text, span.start) if is_here else None,
        "to": _units(text, span.end) if is_here else None,
    }


def _units(text: str, offset: int) -> int:
    return len(text[:offset].encode("utf-16-le", "surrogatepass")) // 2
