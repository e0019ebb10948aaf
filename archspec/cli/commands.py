"""The commands: each takes the parsed arguments, writes to standard output, and returns the exit status."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from archspec.cli import USAGE, write_findings
from archspec.source import Diagnostic, fail, printable, suggest

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence


def run_list(options: Namespace) -> int:
    """`archspec list`: the bundled models, file by file."""
    from archspec.pipeline import models, table_of
    from archspec.reporting.tables import Column, View, write

    rows = [{"model": name, **table_of(name, {})[0].params._asdict()} for name in models()]
    if options.format in DOCUMENTS:
        write_document({"format": 1, "models": rows}, options.format)
    else:
        columns = tuple(Column(key, key) for key in ("model", "total", "trainable", "frozen"))
        sys.stdout.write(write(View(columns, rows), options.format))
    return 0


def run_show(options: Namespace) -> int:
    """`archspec show NAME`."""
    from archspec.pipeline import text_of

    sys.stdout.write(text_of(options.name))
    return 0


def run_check(options: Namespace) -> int:
    """`archspec check PATH...`: every finding on standard error, one line with their numbers on standard output."""
    from archspec.pipeline import check as findings_in

    found = [finding for path in options.paths for finding in findings_in(path).diagnostics]
    write_findings(found)
    errors = sum(finding.severity == "error" for finding in found)
    warnings = len(found) - errors
    counted = [_number(n, word) for n, word in ((errors, "error"), (warnings, "warning")) if n]
    print(f"{_number(len(options.paths), 'file')}, {', '.join(counted) or 'no findings'}")
    return 2 if any(finding.code in USAGE for finding in found) else int(bool(found))


def run_count(options: Namespace) -> int:
    """`archspec count SPEC`."""
    from archspec.counts import document as counting
    from archspec.pipeline import table_of

    if options.depth is not None and options.by in ("tensor", "role"):
        raise fail("usage", f"--depth has no meaning with --by {options.by}", help="leave it out, or use --by layer")
    table, warnings = table_of(options.spec, overrides_of(options.settings))
    counted = counting.count(table, options.rules, options.by, options.depth)
    if options.format in DOCUMENTS:
        write_document(counting.contents(counted), options.format)
    else:
        from archspec.counts.report import page

        sys.stdout.write(page(counted, options.format))
    write_findings([*warnings, *(_idle(rule.include, rule.pattern) for rule in counted.selection.idle)])
    return 0


def run_graph(options: Namespace) -> int:
    """`archspec graph SPEC`."""
    from archspec.cli.files import write_text
    from archspec.pipeline import compile_spec

    if options.depth is not None and options.level != "block":
        raise fail("usage", f"--depth has no meaning with --level {options.level}", help="add `--level block`")

    def picture() -> tuple[str, Sequence[Diagnostic]]:
        model = compile_spec(options.spec, overrides_of(options.settings))
        fold = options.to != "json" if options.fold is None else options.fold
        return _draw(model.graph(options.level, options.depth, fold=fold), model.name, options.to), model.warnings

    write_text(options, picture)
    return 0


def run_error(options: Namespace) -> int:
    """`archspec error [CODE]`."""
    from archspec.cli.entries import entries

    known = entries()
    if options.code is None:
        print("\n".join(known))
        return 0
    code = options.code.strip().removeprefix("error").removeprefix("warning").strip("[]")
    if code not in known:
        help = suggest(code, [*known]) or "`archspec error` lists all the codes"
        raise fail("usage", f"there is no code `{printable(code)}`", help=help)
    sys.stdout.write(known[code])
    return 0


DOCUMENTS = ("json", "yaml")
"""Formats for programs, whose content does not depend on how it is shown."""


def write_document(contents: dict[str, Any], format: str) -> None:
    """Writes a document as JSON or YAML."""
    from archspec.reporting import documents

    sys.stdout.write(documents.json(contents) if format == "json" else documents.yaml(contents))


def overrides_of(settings: list[str]) -> dict[str, Any]:
    """What the `--set` options of a command override."""
    if not settings:
        return {}
    from archspec.overrides import parse_override

    return dict(map(parse_override, settings))


def _draw(graph: Any, title: str, language: str) -> str:
    if language == "dot":
        from archspec.graph.dot import dot

        return dot(graph, title)
    if language == "mermaid":
        from archspec.graph.mermaid import mermaid

        return mermaid(graph, title)
    from archspec.graph.nodelink import nodelink
    from archspec.reporting.documents import json

    return json(nodelink(graph))


def _idle(include: bool, pattern: str) -> Diagnostic:
    option = "--select" if include else "--exclude"
    return Diagnostic(
        "no-match",
        f"`{option} {pattern}` matches no tensor",
        help="patterns are compared with whole names; `--by tensor` shows them",
        severity="warning",
    )


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
