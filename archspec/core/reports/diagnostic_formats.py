"""Machine-readable diagnostics: JSON, SARIF 2.1.0, and workflow commands of GitHub."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from json import dumps
from urllib.parse import quote

from archspec.core.diagnostics import Diagnostic, Note, Span
from archspec.core.reports.documents import Document

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def json_text(diagnostics: Sequence[Diagnostic], files: Sequence[str]) -> str:
    """Format diagnostics, and the files that were checked, as JSON."""
    errors = sum(diagnostic.severity == "error" for diagnostic in diagnostics)
    contents = {
        "format": 1,
        "files": [*files],
        "errors": errors,
        "warnings": len(diagnostics) - errors,
        "diagnostics": [
            {
                "code": diagnostic.code,
                "severity": diagnostic.severity,
                "message": diagnostic.message,
                "help": diagnostic.help,
                "location": _location(diagnostic.span),
                "notes": [{"message": note.text, "location": _location(note.span)} for note in diagnostic.notes],
            }
            for diagnostic in diagnostics
        ],
    }
    return dumps(contents, indent=1) + "\n"


def _location(span: Span | None) -> Document | None:
    """Return the location of a span; lines and columns count from 1, and the end is exclusive."""
    if span is None:
        return None
    line, column, end_line, end_column = _region(span)
    return {
        "file": span.source.label,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
    }


def _region(span: Span) -> tuple[int, int, int, int]:
    return *span.source.position(span.start), *span.source.position(span.end)


# SARIF ----------------------------------------------------------------------------------------------------------------


def sarif_text(diagnostics: Sequence[Diagnostic], entries: Mapping[str, str], version: str) -> str:
    """Format diagnostics as SARIF. `entries` are the descriptions of codes, in Markdown: each code is a rule."""
    codes = sorted({diagnostic.code for diagnostic in diagnostics})
    driver = {
        "name": "archspec",
        "version": version,
        "rules": [_rule(code, entries.get(code, "")) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(diagnostic, codes.index(diagnostic.code)) for diagnostic in diagnostics],
    }
    return dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(code: str, entry: str) -> Document:
    heading, _, text = entry.partition("\n\n")
    description = " ".join(text.split("\n\n")[0].split()) if heading.startswith("#") else ""
    if not description:
        return {"id": code}
    return {"id": code, "shortDescription": {"text": description}, "help": {"text": text, "markdown": text}}


def _result(diagnostic: Diagnostic, rule: int) -> Document:
    help = f"\n{diagnostic.help}" if diagnostic.help else ""
    result: Document = {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": diagnostic.severity,
        "message": {"text": f"{diagnostic.message}{help}"},
    }
    if diagnostic.span is not None:
        result["locations"] = [{"physicalLocation": _physical(diagnostic.span)}]
    related = [_related(number, note) for number, note in enumerate(diagnostic.notes, 1)]
    return {**result, "relatedLocations": related} if related else result


def _related(number: int, note: Note) -> Document:
    related: Document = {"id": number, "message": {"text": note.text}}
    return related if note.span is None else {**related, "physicalLocation": _physical(note.span)}


def _physical(span: Span) -> Document:
    label = span.source.label.replace(os.sep, "/")
    line, column, end_line, end_column = _region(span)
    region = {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}
    uri = f"file://{quote(label)}" if os.path.isabs(label) else quote(label)
    return {"artifactLocation": {"uri": uri}, "region": region}


# GitHub ---------------------------------------------------------------------------------------------------------------


def github_text(diagnostics: Sequence[Diagnostic]) -> str:
    """Format diagnostics as the workflow commands that annotate lines on GitHub."""
    return "".join(_command(diagnostic) + "\n" for diagnostic in diagnostics)


def _command(diagnostic: Diagnostic) -> str:
    properties: dict[str, object] = {}
    if diagnostic.span is not None:
        line, column, end_line, end_column = _region(diagnostic.span)
        properties = {"file": diagnostic.span.source.label, "line": line, "endLine": end_line}
        if line == end_line:  # GitHub shows columns only in this case
            properties |= {"col": column, "endColumn": max(column, end_column - 1)}
    properties["title"] = f"archspec {diagnostic.code}"
    notes = [f"note: {note.text}{f' ({note.span})' if note.span else ''}" for note in diagnostic.notes]
    help = [f"help: {diagnostic.help}"] if diagnostic.help else []
    text = _escape("\n".join([diagnostic.message, *notes, *help]))
    property_list = ",".join(
        f"{name}={_escape(str(value)).replace(':', '%3A').replace(',', '%2C')}" for name, value in properties.items()
    )
    return f"::{diagnostic.severity} {property_list}::{text}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
