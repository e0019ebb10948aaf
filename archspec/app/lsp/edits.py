"""Changes to a text: quick fixes of diagnostics, and renaming. Each is compiled before it is offered."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from archspec.app.lsp.occurrences import Occurrence, Symbol
from archspec.app.lsp.workspace import Analysis, Workspace
from archspec.core.diagnostics import Diagnostic
from archspec.core.record import Record
from archspec.language.syntax import tree
from archspec.language.syntax.parse import CONTEXTUAL, parser
from archspec.language.syntax.tree import iter_statements


class Edit(Record):
    """Characters `start` to `end` are replaced by `text`."""

    start: int
    end: int
    text: str


class Fix(Record):
    """Edits that remove a diagnostic."""

    title: str
    diagnostic: Diagnostic
    edits: tuple[Edit, ...]


class UnsafeRenameError(Exception):
    """A name cannot be changed; the message says why."""


def applied(text: str, edits: Sequence[Edit]) -> str:
    """The text with edits that do not overlap."""
    for edit in sorted(edits, key=lambda edit: -edit.start):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def import_edit(file: tree.File, text: str, name: str, source: str = "std") -> Edit:
    """The edit that imports a name from a bundled file."""
    for item in file.items:
        if isinstance(item, tree.Import) and not item.export and not item.path and item.source == source and item.names:
            end = item.names[-1].end
            return Edit(end, end, f", {name}")
    first = next((item for item in file.items if not isinstance(item, tree.Import)), None)
    imports = [item for item in file.items if isinstance(item, tree.Import)]
    if imports:
        return Edit(imports[-1].end, imports[-1].end, f"\nimport {source} {{ {name} }}")
    at = _line_start(text, first.start) if first is not None else len(text)
    while at > 0 and text[:at].rstrip("\n").rpartition("\n")[2].startswith("##"):
        at = _line_start(text, at - 1)
    return Edit(at, at, f"import {source} {{ {name} }}\n\n")


def _line_start(text: str, offset: int) -> int:
    return text[:offset].rfind("\n") + 1


# Quick fixes ---------------------------------------------------------------------------------------------------------


def fixes(workspace: Workspace, analysis: Analysis, start: int, end: int) -> Iterator[Fix]:
    """The fixes of the diagnostics between two offsets: each, when compiled, removes its diagnostic and adds none."""
    for diagnostic in analysis.report.diagnostics:
        span = diagnostic.span
        if span is None or span.source is not analysis.source or span.start > end or span.end < start:
            continue
        for title, edits in _candidates(analysis, diagnostic):
            if _mends(workspace, analysis, diagnostic, edits):
                yield Fix(title, diagnostic, tuple(edits))


def _candidates(analysis: Analysis, diagnostic: Diagnostic) -> Iterator[tuple[str, list[Edit]]]:
    """What the help of a diagnostic suggests."""
    span, help = diagnostic.span, diagnostic.help or ""
    assert span is not None and analysis.unit is not None
    text, file = span.source.text, analysis.unit.tree
    written = text[span.start : span.end]
    imported = re.search(r"`import (\w+) \{ (\w+) \}`", help)
    meant = re.match(r"did you mean `([^`]+)`", help)
    if meant is not None:
        for unknown in re.findall(r"`([^`]+)`", diagnostic.message):
            found = re.search(rf"(?<![\w.]){re.escape(unknown)}(?!\w)", written)
            if found is not None:
                edits = [Edit(span.start + found.start(), span.start + found.end(), meant[1])]
                if imported is not None:
                    edits.append(import_edit(file, text, imported[2], imported[1]))
                yield f"Change to `{meant[1]}`", edits
    elif imported is not None:
        add = import_edit(file, text, imported[2], imported[1])
        yield f"Import `{imported[2]}` from {imported[1]}", [add]
        yield f"Import `{imported[2]}` from {imported[1]} instead", [_removal(text, span.start, span.end), add]
    if re.match(r"remove (it|`)", help) or diagnostic.code.startswith("unused-"):
        yield "Remove it", [_removal(text, *_whole(file, span.start, span.end))]
    if "mark it `unused`" in help:
        colon = text.find(":", span.end)
        if colon >= 0:
            yield "Mark it `unused`", [Edit(colon + 1, colon + 1, " unused")]
    instead = re.match(r"(?:write|quote it in an address:|convert it:) ?`([^`]+)`", help)
    if instead is not None and "..." not in instead[1]:
        yield f"Change to `{instead[1]}`", [Edit(span.start, span.end, instead[1])]
    found = re.search(r"expected .* == ([\d,]+), found ([\d,]+)", diagnostic.message)
    if diagnostic.code == "expect" and found is not None:
        number = re.search(r"[\d_]+(?=\s*$)", written)
        if number is not None:
            new = found[2].replace(",", "_")
            edit = Edit(span.start + number.start(), span.start + number.end(), new)
            yield f"Expect {found[2]}", [edit]


def _whole(file: tree.File, start: int, end: int) -> tuple[int, int]:
    """The statement that begins with a part, or the import or dimensions that are nothing else; or else the part."""
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


def _removal(text: str, start: int, end: int) -> Edit:
    """The edit that removes a part, with the comma after or before it, or with its line if it is alone there."""
    after = re.compile(r"\s*,[ \t]*\n?[ \t]*").match(text, end)
    before = re.compile(r",\s*$").search(text, 0, start)
    if after is not None:
        return Edit(start, after.end(), "")
    if before is not None:
        return Edit(before.start(), end, "")
    line = _line_start(text, start)
    rest, line_end, _ = text[end:].partition("\n")
    if not text[line:start].strip() and not rest.strip():
        return Edit(line, end + len(rest + line_end), "")
    return Edit(start, end, "")


def _mends(workspace: Workspace, analysis: Analysis, diagnostic: Diagnostic, edits: list[Edit]) -> bool:
    """Whether the edits remove a diagnostic and add none; the messages of others may change, as that of `expect`."""
    text = applied(analysis.source.text, edits)
    changed = workspace.analyse(analysis.path, {**workspace.texts, analysis.path: text.encode()})
    before, after = analysis.report.diagnostics, changed.report.diagnostics
    codes, others = [Counter(each.code for each in found) for found in (before, after)]
    times, left = [sum(_is_like(each, diagnostic) for each in found) for found in (before, after)]
    return others < codes and left < times


def _is_like(one: Diagnostic, other: Diagnostic) -> bool:
    return (one.code, one.message) == (other.code, other.message)


# Renaming ------------------------------------------------------------------------------------------------------------


def references(workspace: Workspace, symbols: frozenset[Symbol]) -> Iterator[tuple[Analysis, Occurrence]]:
    """All occurrences of symbols in the files of the workspace."""
    for path in workspace.files():
        analysis = workspace.analysis(path)
        for found in analysis.occurrences:
            if found.symbol in symbols:
                yield analysis, found


def rename(workspace: Workspace, analysis: Analysis, found: Occurrence, name: str) -> dict[str, list[Edit]]:
    """The edits by file that give a symbol another name.

    Raises UnsafeRenameError if the name is not allowed or taken, or if the files would mean something else after it.
    """
    _check_name(found, name)
    symbols = _same(workspace, found.symbol)
    specs = analysis.library.specs
    edits: dict[str, list[Edit]] = {}
    for other, occurrence in references(workspace, symbols):
        edits.setdefault(other.path, []).append(Edit(occurrence.start, occurrence.end, name))
    outside = [s for s in symbols if s.path not in edits and s.kind not in ("alias",)]
    if outside or not edits:
        where = outside[0].path if outside else found.symbol.path
        raise UnsafeRenameError(
            f"`{found.symbol.name}` is also defined in {where or 'the language'}, which is not open"
        )
    bundled = [path for path in edits if path.startswith(specs + "/") and path not in workspace.texts]
    if bundled:
        raise UnsafeRenameError(f"`{found.symbol.name}` is also used in the bundled file {bundled[0]}")
    _check_meaning(workspace, edits)
    return edits


def _check_name(found: Occurrence, name: str) -> None:
    kind = found.symbol.kind
    if kind == "operation":
        raise UnsafeRenameError(f"`{found.symbol.name}` is an operation of the language")
    if kind == "model":
        valid = not set(name) & set('"\\\n')
    elif kind == "address":
        valid = re.fullmatch(r"[A-Za-z0-9_]+", name) is not None
    else:
        valid = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) is not None and name != "_"
    if not valid or not name:
        raise UnsafeRenameError(f"`{name}` is not a name")
    if name in parser().keywords - CONTEXTUAL and kind not in ("model", "address"):
        raise UnsafeRenameError(f"`{name}` is a keyword")


def _same(workspace: Workspace, symbol: Symbol) -> frozenset[Symbol]:
    """The symbols that must keep the same name: hyperparameters and inputs that `..` connects."""
    if symbol.kind not in ("hyperparameter", "input"):
        return frozenset({symbol})
    connected = frozenset({symbol})
    links = [link for path in workspace.files() for link in workspace.analysis(path).forwarded()]
    while True:
        more = connected.union(*[link for link in links if link & connected])
        if more == connected:
            return connected
        connected = more


def _check_meaning(workspace: Workspace, edits: dict[str, list[Edit]]) -> None:
    """Raise UnsafeRenameError unless the files compile to the same after the edits, but for names."""
    texts = dict(workspace.texts)
    for path, changes in edits.items():
        texts[path] = applied(workspace.analysis(path).source.text, changes).encode()
    for path in edits:
        before, after = workspace.analysis(path), workspace.analyse(path, texts)
        codes = sorted(d.code for d in before.report.diagnostics)
        if sorted(d.code for d in after.report.diagnostics) != codes:
            new = next((d for d in after.report.diagnostics if d.code not in codes), None)
            raise UnsafeRenameError(
                f"the name has another meaning there: {new.message if new else 'the errors would change'}"
            )
        if len(before.occurrences) != len(after.occurrences) or before.meaning() != after.meaning():
            raise UnsafeRenameError("the name has another meaning there")
