"""`archspec.audit`: verdicts on the lines of a published calculation."""

from __future__ import annotations

import os

from archspec.analysis.audit.judge import JudgedLine, judge
from archspec.analysis.audit.models import Models
from archspec.analysis.audit.read import read_audit
from archspec.core import resources
from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import Report, Source, decode, make_error, read_bytes, suggest
from archspec.core.reports.results import Result


class Audit(Result):
    """An audited calculation: its title, its place of publication, a note, and its lines with their verdicts."""

    title: str
    where: str
    note: str
    lines: tuple[JudgedLine, ...]

    def __repr__(self) -> str:
        return f"<Audit {self.title!r}: {len(self.lines)} lines, {'none' if self.clean else 'some'} wrong>"

    @property
    def clean(self) -> bool:
        return not any(line.is_wrong for line in self.lines)


@check_arguments
def audit(path: str | os.PathLike[str]) -> Audit:
    """Check every line of an audit file.

    `path` is a file (it contains `/` or ends in `.yaml` or `.yml`), or the name of a bundled audit.

    Raises ArchError if the file does not exist or has errors.
    """
    file_path, label = _resolve_path(os.fspath(path))
    if "\0" in file_path:
        raise make_error("missing-file", "a file name cannot contain a zero byte")
    report = Report()
    data = read_bytes(file_path, label, report)
    text = decode(data, label, report) if data is not None else None
    report.check()
    assert text is not None
    file = read_audit(Source(label, text))
    return Audit(file.title, file.where, file.note, judge(file.lines, Models(os.path.dirname(file_path))))


def bundled_audits() -> list[str]:
    """Return the names of the bundled audits."""
    folder = _bundled_directory()
    return sorted(name[:-5] for name in os.listdir(folder) if name.endswith(".yaml")) if os.path.isdir(folder) else []


def _bundled_directory() -> str:
    return os.path.join(resources.specs_root(), "audits")


def _resolve_path(path: str) -> tuple[str, str]:
    """Return the path of an audit, and its label in diagnostics. Raises ArchError for an unknown name."""
    if path.endswith((".yaml", ".yml")) or os.path.dirname(path):
        return path, path
    names = bundled_audits()
    if path not in names:
        help = suggest(path, names) or f"use {', '.join(names)}, or a path that has a `/` or ends in .yaml"
        raise make_error("missing-file", f"unknown bundled audit `{path}`", help=help)
    return os.path.join(_bundled_directory(), f"{path}.yaml"), f"specs/audits/{path}.yaml"
