"""Changes to a text: quick fixes of diagnostics, and renaming. Each is compiled before it is offered."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator

from archspec.app.lsp.occurrences import Occurrence, Symbol
from archspec.app.lsp.workspace import Analysis, Workspace
from archspec.core.diagnostics import Diagnostic
from archspec.core.record import Record
from archspec.language.syntax import tree
from archspec.language.syntax.edits import Edit, apply_edits, import_edit, line_start
from archspec.language.syntax.parse import CONTEXTUAL, parser
from archspec.language.syntax.tree import iter_statements


class Fix(Record):
    """Edits that remove a diagnostic."""

    title: str
    diagnostic: Diagnostic
    edits: tuple[Edit, ...]


class UnsafeRenameError(Exception):
    """A name cannot be changed; the message states the reason."""


# Quick fixes ---------------------------------------------------------------------------------------------------------


def iter_fixes(workspace: Workspace, analysis: Analysis, start: int, end: int) -> Iterator[Fix]:
    """Yield fixes of the diagnostics between two offsets.

    The fixed text is compiled first: a fix removes its diagnostic and adds none.
    """
    for diagnostic in analysis.report.diagnostics:
        span = diagnostic.span
        if span is None or span.source is not analysis.source or span.start > end or span.end < start:
            continue
        for title, edits in _candidates(analysis, diagnostic):
            if _removes_diagnostic(workspace, analysis, diagnostic, edits):
                yield Fix(title, diagnostic, tuple(edits))


def _candidates(analysis: Analysis, diagnostic: Diagnostic) -> Iterator[tuple[str, list[Edit]]]:
    """Yield the edits that the help of a diagnostic suggests, each with its title."""
    span, help = diagnostic.span, diagnostic.help or ""
    assert span is not None and analysis.unit is not None
    text, file = span.source.text, analysis.unit.tree
    marked_text = text[span.start : span.end]
    suggested_import = re.search(r"`import (\w+) \{ (\w+) \}`", help)
    suggestion = re.match(r"did you mean `([^`]+)`", help)
    if suggestion is not None:
        for unknown in re.findall(r"`([^`]+)`", diagnostic.message):
            name = re.search(rf"(?<![\w.]){re.escape(unknown)}(?!\w)", marked_text)
            if name is not None:
                edits = [Edit(span.start + name.start(), span.start + name.end(), suggestion[1])]
                if suggested_import is not None:
                    edits.append(import_edit(file, text, suggested_import[2], suggested_import[1]))
                yield f"Change to `{suggestion[1]}`", edits
    elif suggested_import is not None:
        add = import_edit(file, text, suggested_import[2], suggested_import[1])
        yield f"Import `{suggested_import[2]}` from {suggested_import[1]}", [add]
        yield (
            f"Import `{suggested_import[2]}` from {suggested_import[1]} instead",
            [_removal_edit(text, span.start, span.end), add],
        )
    if re.match(r"remove (it|`)", help) or diagnostic.code.startswith("unused-"):
        yield "Remove it", [_removal_edit(text, *_enclosing_statement(file, span.start, span.end))]
    if "mark it `unused`" in help:
        colon = text.find(":", span.end)
        if colon >= 0:
            yield "Mark it `unused`", [Edit(colon + 1, colon + 1, " unused")]
    replacement = re.match(r"(?:write|quote it in an address:|convert it:) ?`([^`]+)`", help)
    if replacement is not None and "..." not in replacement[1]:
        yield f"Change to `{replacement[1]}`", [Edit(span.start, span.end, replacement[1])]
    counts = re.search(r"expected .* == ([\d,]+), found ([\d,]+)", diagnostic.message)
    if diagnostic.code == "expect" and counts is not None:
        number = re.search(r"[\d_]+(?=\s*$)", marked_text)
        if number is not None:
            edit = Edit(span.start + number.start(), span.start + number.end(), counts[2].replace(",", "_"))
            yield f"Expect {counts[2]}", [edit]


def _enclosing_statement(file: tree.File, start: int, end: int) -> tuple[int, int]:
    """Return the range of the statement that begins at `start`, or of an import or `dim` with that name only.

    If there is none, return the given range.
    """
    for item in file.items:
        if (
            isinstance(item, tree.Import | tree.DimensionDeclaration)
            and len(item.names) == 1
            and item.names[0].start == start
        ):
            return item.start, item.end
        for statement in iter_statements(item.body) if isinstance(item, tree.Definition) else ():
            if statement.start == start:
                return statement.start, statement.end
    return start, end


def _removal_edit(text: str, start: int, end: int) -> Edit:
    """Return the edit that removes a range, with a comma next to it, or with its line if the line has nothing else."""
    after = re.compile(r"\s*,[ \t]*\n?[ \t]*").match(text, end)
    before = re.compile(r",\s*$").search(text, 0, start)
    if after is not None:
        return Edit(start, after.end(), "")
    if before is not None:
        return Edit(before.start(), end, "")
    line = line_start(text, start)
    remainder, line_end, _ = text[end:].partition("\n")
    if not text[line:start].strip() and not remainder.strip():
        return Edit(line, end + len(remainder + line_end), "")
    return Edit(start, end, "")


def _removes_diagnostic(workspace: Workspace, analysis: Analysis, diagnostic: Diagnostic, edits: list[Edit]) -> bool:
    """Return whether the edits remove a diagnostic and add none.

    Other diagnostics are compared by their codes, because messages change with numbers, as in `expect`.
    """
    text = apply_edits(analysis.source.text, edits)
    changed = workspace.analyse(analysis.path, {**workspace.texts, analysis.path: text.encode()})
    reports = analysis.report.diagnostics, changed.report.diagnostics
    codes, new_codes = [Counter(item.code for item in diagnostics) for diagnostics in reports]
    count, new_count = [sum(_is_equal(item, diagnostic) for item in diagnostics) for diagnostics in reports]
    return new_codes < codes and new_count < count


def _is_equal(a: Diagnostic, b: Diagnostic) -> bool:
    return (a.code, a.message) == (b.code, b.message)


# Renaming ------------------------------------------------------------------------------------------------------------


_LOCAL = ("value", "dimension", "alias")
"""Kinds of symbols that only their own file refers to."""


def iter_references(workspace: Workspace, symbols: frozenset[Symbol]) -> Iterator[tuple[Analysis, Occurrence]]:
    """Yield all occurrences of symbols in the files of the workspace, each with the analysis of its file."""
    for path in _paths_of_users(workspace, symbols):
        analysis = workspace.analysis(path)
        for occurrence in analysis.occurrences:
            if occurrence.symbol in symbols:
                yield analysis, occurrence


def rename(workspace: Workspace, analysis: Analysis, symbol: Symbol, name: str) -> dict[str, list[Edit]]:
    """Return the edits, by file, that rename a symbol.

    Raises UnsafeRenameError if the name is invalid or reserved, or if the rename would change the meaning of a file.
    """
    _check_name(symbol, name)
    _check_duplicates(workspace, symbol, name)
    specs = analysis.library.specs
    if symbol.kind == "definition":  # before all files are read
        _check_bundled(workspace, symbol, symbol.path, specs)
    symbols = _connected_symbols(workspace, symbol)
    edits: dict[str, list[Edit]] = {}
    for file, occurrence in iter_references(workspace, symbols):
        _check_bundled(workspace, symbol, file.path, specs)
        edits.setdefault(file.path, []).append(Edit(occurrence.start, occurrence.end, name))
    outside = [s for s in symbols if s.path not in edits and s.kind not in ("alias",)]
    if outside or not edits:
        path = outside[0].path if outside else symbol.path
        raise UnsafeRenameError(f"`{symbol.name}` is also defined in {path or 'the language'}, which is not open")
    _check_meaning(workspace, edits)
    return edits


def _check_bundled(workspace: Workspace, symbol: Symbol, path: str, specs: str) -> None:
    """Raise UnsafeRenameError for a use in a bundled file that is not open."""
    if path.startswith(specs + "/") and path not in workspace.texts and path in {*workspace.files()}:
        raise UnsafeRenameError(f"`{symbol.name}` is also used in the bundled file {path}")


def _check_duplicates(workspace: Workspace, symbol: Symbol, name: str) -> None:
    """Raise UnsafeRenameError if a file with a symbol has another one of the new name, before other files are read."""
    if symbol.path not in workspace.texts:
        return
    before = workspace.analysis(symbol.path)
    places = [o for o in before.occurrences if o.symbol == symbol]
    text = apply_edits(before.source.text, [Edit(o.start, o.end, name) for o in places])
    after = workspace.analyse(symbol.path, {**workspace.texts, symbol.path: text.encode()})
    counts = [Counter(d.code for d in report.diagnostics) for report in (before.report, after.report)]
    for diagnostic in after.report.diagnostics:
        if diagnostic.code.startswith("duplicate-") and counts[1][diagnostic.code] > counts[0][diagnostic.code]:
            raise UnsafeRenameError(f"the name has a different meaning there: {diagnostic.message}")


def _check_name(symbol: Symbol, name: str) -> None:
    kind = symbol.kind
    if kind == "operation":
        raise UnsafeRenameError(f"`{symbol.name}` is an operation of the language")
    if kind == "model":
        valid = not set(name) & set('"\\\n')
    elif kind == "address":
        valid = re.fullmatch(r"[A-Za-z0-9_]+", name) is not None
    else:
        valid = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) is not None and name != "_"
    if not valid or not name:
        raise UnsafeRenameError(f"`{name}` is not a valid name")
    if name in parser().keywords - CONTEXTUAL and kind not in ("model", "address"):
        raise UnsafeRenameError(f"`{name}` is a keyword")


def _connected_symbols(workspace: Workspace, symbol: Symbol) -> frozenset[Symbol]:
    """Return the symbols that must have the same name: hyperparameters and inputs that `..` connects."""
    if symbol.kind not in ("hyperparameter", "input"):
        return frozenset({symbol})
    connected, links = frozenset({symbol}), dict[str, list[frozenset[Symbol]]]()
    while True:
        for path in _paths_of_users(workspace, connected):
            if path not in links:
                links[path] = list(workspace.analysis(path).forwarded())
        extended = connected.union(*[link for pairs in links.values() for link in pairs if link & connected])
        if extended == connected:
            return connected
        connected = extended


def _paths_of_users(workspace: Workspace, symbols: frozenset[Symbol]) -> Iterator[str]:
    """Yield the files that can refer to symbols, each once."""
    paths = dict.fromkeys(symbol.path for symbol in symbols)
    if all(symbol.kind in _LOCAL for symbol in symbols):
        yield from [path for path in paths if path in {*workspace.files()}]
    elif "" in paths:  # an operation of the language
        yield from workspace.files()
    else:
        yield from dict.fromkeys(itertools.chain(*map(workspace.users, paths)))


def _check_meaning(workspace: Workspace, edits: dict[str, list[Edit]]) -> None:
    """Raise UnsafeRenameError unless the files compile to the same result after the edits, except for names."""
    texts = dict(workspace.texts)
    for path, changes in edits.items():
        texts[path] = apply_edits(workspace.analysis(path).source.text, changes).encode()
    for path in edits:
        before, after = workspace.analysis(path), workspace.analyse(path, texts)
        codes = sorted(d.code for d in before.report.diagnostics)
        if sorted(d.code for d in after.report.diagnostics) != codes:
            new = next((d for d in after.report.diagnostics if d.code not in codes), None)
            raise UnsafeRenameError(
                f"the name has a different meaning there: {new.message if new else 'the errors would change'}"
            )
        if len(before.occurrences) != len(after.occurrences) or before.meaning() != after.meaning():
            raise UnsafeRenameError("the name has a different meaning there")
