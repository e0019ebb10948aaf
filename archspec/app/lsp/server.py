"""The language server: the protocol's requests, answered from the analysis of a file."""

from __future__ import annotations

import asyncio
import gc
from difflib import SequenceMatcher
from io import StringIO

from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer

from archspec import __version__
from archspec.app.lsp import completion, descriptions, edits, hints, outline
from archspec.app.lsp.outline import Positions
from archspec.app.lsp.workspace import Analysis, Workspace
from archspec.core.diagnostics import Diagnostic, Span
from archspec.language.format.api import format

# Collection of garbage between checks, since a collection can take longer than a check.

IDLE = 0.3
"""Seconds without a check after which garbage is collected."""

MAX_CHECKS = 50
"""The limit on checks between two collections."""


class Collector:
    """Decides when garbage is collected."""

    def __init__(self) -> None:
        self._checks = 0  # since the last collection
        self._planned: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Collect no garbage automatically, and never search the objects that there are now."""
        gc.disable()
        gc.freeze()

    def after_check(self) -> None:
        """Collect garbage soon, unless another check comes first."""
        self._checks += 1
        if self._planned is not None:
            self._planned.cancel()
        wait = IDLE if self._checks < MAX_CHECKS else 0
        self._planned = asyncio.get_running_loop().call_later(wait, self._collect)

    def _collect(self) -> None:
        gc.collect()
        self._checks = 0


KINDS = {
    "fn": types.SymbolKind.Function,
    "layer": types.SymbolKind.Class,
    "block": types.SymbolKind.Class,
    "model": types.SymbolKind.Object,
    "address": types.SymbolKind.Field,
}
COMPLETIONS = {
    "definition": types.CompletionItemKind.Class,
    "operation": types.CompletionItemKind.Function,
    "hyperparameter": types.CompletionItemKind.Variable,
    "input": types.CompletionItemKind.Variable,
    "value": types.CompletionItemKind.Variable,
    "dimension": types.CompletionItemKind.TypeParameter,
    "address": types.CompletionItemKind.Field,
    "argument": types.CompletionItemKind.Property,
    "module": types.CompletionItemKind.Module,
    "keyword": types.CompletionItemKind.Keyword,
}
SEVERITIES = {"error": types.DiagnosticSeverity.Error, "warning": types.DiagnosticSeverity.Warning}
DELAY = 0.001
"""Seconds to wait for further changes before a changed text is checked."""


class Server(LanguageServer):
    """A server with the files that the editor has open; `pending` are the checks of changed ones, by URI."""

    def __init__(self) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            "archspec", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Incremental
        )
        self.files = Workspace()
        self.pending: dict[str, asyncio.TimerHandle] = {}
        self.garbage = Collector()

    def analysis(self, uri: str) -> Analysis:
        """The analysis of the text that the editor has."""
        path = path_of(uri)
        document = self.workspace.get_text_document(uri)
        self.files.open(path, document.source)
        return self.files.analysis(path)

    def positions(self, analysis: Analysis) -> Positions:
        """The positions in the file of an analysis."""
        return Positions(analysis.source, self.workspace.position_codec)

    def publish(self, uri: str) -> None:
        """Send the findings in a file."""
        pending = self.pending.pop(uri, None)
        if pending is not None:
            pending.cancel()
        document = self.workspace.get_text_document(uri)
        analysis = self.analysis(uri)
        found = [self.diagnostic(analysis, d) for d in analysis.report.diagnostics]
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, diagnostics=found, version=document.version)
        )
        self.garbage.after_check()

    def publish_soon(self, uri: str) -> None:
        """Send the findings once no more changes follow."""
        pending = self.pending.pop(uri, None)
        if pending is not None:
            pending.cancel()
        self.pending[uri] = asyncio.get_running_loop().call_later(DELAY, self.publish, uri)

    def diagnostic(self, analysis: Analysis, found: Diagnostic) -> types.Diagnostic:
        """A finding in the protocol's form."""
        positions = self.positions(analysis)
        place, message = positions.range(0, 0), found.message
        if found.span is not None and found.span.source is analysis.source:
            place = positions.of(found.span)
        elif found.span is not None:
            message = f"{found.span}: {found.message}"
        notes = [note.text for note in found.notes if note.span is None]
        more = [*[f"note: {note}" for note in notes], *([f"help: {found.help}"] if found.help else [])]
        related = [self._related(analysis, note.text, note.span) for note in found.notes if note.span is not None]
        return types.Diagnostic(
            range=place,
            message="\n".join([message, *more]),
            severity=SEVERITIES[found.severity],
            code=found.code,
            source="archspec",
            related_information=related or None,
            tags=[types.DiagnosticTag.Unnecessary] if found.code.startswith("unused-") else None,
        )

    def _related(self, analysis: Analysis, text: str, span: Span) -> types.DiagnosticRelatedInformation:
        return types.DiagnosticRelatedInformation(location=self.location(analysis, span), message=text)

    def location(self, analysis: Analysis, span: Span) -> types.Location:
        """Where a span of the file, or of one that it imports, is."""
        paths = {unit.source: path for unit, path in analysis.paths.items()}
        path = paths.get(span.source, analysis.path)
        positions = Positions(span.source, self.workspace.position_codec)
        return types.Location(uri=uri_of(path), range=positions.of(span))


def path_of(uri: str) -> str:
    """The path of a document; for one that is not a file, such as a new one, its URI."""
    return uris.to_fs_path(uri) or uri


def uri_of(path: str) -> str:
    """The URI of a path."""
    return uris.from_fs_path(path) or path


server = Server()


@server.feature(types.INITIALIZED)
def initialized(ls: Server, params: types.InitializedParams) -> None:
    ls.files.folders = [path_of(folder.uri) for folder in ls.workspace.folders.values()]


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
def did_open(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    ls.publish(params.text_document.uri)


@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
async def did_change(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    ls.publish_soon(params.text_document.uri)


@server.feature(types.TEXT_DOCUMENT_DID_SAVE)
def did_save(ls: Server, params: types.DidSaveTextDocumentParams) -> None:
    for uri in list(ls.workspace.text_documents):  # other files may import this one
        ls.publish(uri)


@server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
def did_close(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    uri = params.text_document.uri
    ls.files.close(path_of(uri))
    ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=[]))


@server.feature(types.TEXT_DOCUMENT_HOVER)
def hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
    analysis = ls.analysis(params.text_document.uri)
    positions = ls.positions(analysis)
    found = descriptions.hover(analysis, positions.offset(params.position))
    if found is None:
        return None
    text, start, end = found
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), positions.range(start, end))


@server.feature(types.TEXT_DOCUMENT_DEFINITION)
def definition(ls: Server, params: types.DefinitionParams) -> types.Location | None:
    analysis = ls.analysis(params.text_document.uri)
    found = analysis.occurrence_at(ls.positions(analysis).offset(params.position))
    if found is None or not found.symbol.path:
        return None
    there = analysis if found.symbol.path == analysis.path else ls.files.analysis(found.symbol.path)
    for other in there.occurrences:
        if other.symbol == found.symbol and other.defines:
            return types.Location(uri_of(there.path), ls.positions(there).range(other.start, other.end))
    return None


@server.feature(types.TEXT_DOCUMENT_REFERENCES)
def references(ls: Server, params: types.ReferenceParams) -> list[types.Location]:
    analysis = ls.analysis(params.text_document.uri)
    found = analysis.occurrence_at(ls.positions(analysis).offset(params.position))
    if found is None:
        return []
    return [
        types.Location(uri_of(other.path), ls.positions(other).range(each.start, each.end))
        for other, each in edits.references(ls.files, frozenset({found.symbol}))
        if params.context.include_declaration or not each.defines
    ]


@server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
def highlight(ls: Server, params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
    analysis = ls.analysis(params.text_document.uri)
    positions = ls.positions(analysis)
    found = analysis.occurrence_at(positions.offset(params.position))
    kinds = types.DocumentHighlightKind
    return [
        types.DocumentHighlight(positions.range(o.start, o.end), kinds.Write if o.defines else kinds.Read)
        for o in analysis.occurrences
        if found is not None and o.symbol == found.symbol
    ]


@server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
def prepare_rename(ls: Server, params: types.PrepareRenameParams) -> types.Range | None:
    analysis = ls.analysis(params.text_document.uri)
    positions = ls.positions(analysis)
    found = analysis.occurrence_at(positions.offset(params.position))
    return positions.range(found.start, found.end) if found is not None else None


@server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
def rename(ls: Server, params: types.RenameParams) -> types.WorkspaceEdit | None:
    analysis = ls.analysis(params.text_document.uri)
    found = analysis.occurrence_at(ls.positions(analysis).offset(params.position))
    if found is None:
        return None
    try:
        changes = edits.rename(ls.files, analysis, found, params.new_name)
    except edits.UnsafeRenameError as reason:
        ls.window_show_message(types.ShowMessageParams(types.MessageType.Error, str(reason)))
        return None
    return types.WorkspaceEdit(changes={uri_of(path): _text_edits(ls, path, each) for path, each in changes.items()})


def _text_edits(ls: Server, path: str, changes: list[edits.Edit]) -> list[types.TextEdit]:
    positions = ls.positions(ls.files.analysis(path))
    return [types.TextEdit(positions.range(edit.start, edit.end), edit.text) for edit in changes]


@server.feature(
    types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
)
def code_action(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
    uri = params.text_document.uri
    analysis = ls.analysis(uri)
    positions = ls.positions(analysis)
    start, end = positions.offset(params.range.start), positions.offset(params.range.end)
    return [
        types.CodeAction(
            title=fix.title,
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[ls.diagnostic(analysis, fix.diagnostic)],
            edit=types.WorkspaceEdit(changes={uri: _text_edits(ls, analysis.path, list(fix.edits))}),
        )
        for fix in edits.fixes(ls.files, analysis, start, end)
    ]


@server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[".", "{", "(", ","]))
def complete(ls: Server, params: types.CompletionParams) -> list[types.CompletionItem]:
    analysis = ls.analysis(params.text_document.uri)
    offset = ls.positions(analysis).offset(params.position)
    return [
        types.CompletionItem(
            label=found.text,
            kind=COMPLETIONS.get(found.kind, types.CompletionItemKind.Text),
            detail=found.detail or None,
            documentation=found.documentation or None,
            additional_text_edits=_text_edits(ls, analysis.path, list(found.edits)) or None,
        )
        for found in completion.complete(analysis, analysis.source.text, offset)
    ]


@server.feature(types.TEXT_DOCUMENT_SIGNATURE_HELP, types.SignatureHelpOptions(trigger_characters=["(", ","]))
def signature_help(ls: Server, params: types.SignatureHelpParams) -> types.SignatureHelp | None:
    analysis = ls.analysis(params.text_document.uri)
    before = analysis.source.text[: ls.positions(analysis).offset(params.position)]
    call = completion.call_around(before)
    if call is None or analysis.unit is None:
        return None
    target = completion.callee_of(analysis.unit, call)
    if target is None:
        return None
    names = completion.names_of(target, call)
    label = f"{target.name}({', '.join(f'{name} {what}'.strip() for name, what in names)})"
    parameters = [types.ParameterInformation(f"{name} {what}".strip()) for name, what in names]
    return types.SignatureHelp(
        [types.SignatureInformation(label, None, parameters)], 0, completion.active_argument(call, names)
    )


@server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
def document_symbols(ls: Server, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    analysis = ls.analysis(params.text_document.uri)
    positions = ls.positions(analysis)

    def symbol(entry: outline.Entry) -> types.DocumentSymbol:
        return types.DocumentSymbol(
            entry.name or "?",
            KINDS[entry.kind],
            positions.range(entry.start, entry.end),
            positions.range(entry.name_start, entry.name_end),
            children=[symbol(inner) for inner in entry.inside],
        )

    return [symbol(entry) for entry in outline.outline(analysis.unit.tree)] if analysis.unit is not None else []


@server.feature(types.WORKSPACE_SYMBOL)
def workspace_symbols(ls: Server, params: types.WorkspaceSymbolParams) -> list[types.SymbolInformation]:
    found: list[types.SymbolInformation] = []
    for path in ls.files.files():
        analysis = ls.files.analysis(path)
        for entry in outline.outline(analysis.unit.tree) if analysis.unit is not None else ():
            if params.query.lower() in entry.name.lower():
                place = types.Location(uri_of(path), ls.positions(analysis).range(entry.name_start, entry.name_end))
                found.append(types.SymbolInformation(place, entry.name, KINDS[entry.kind]))
    return found


@server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
def inlay_hints(ls: Server, params: types.InlayHintParams) -> list[types.InlayHint]:
    analysis = ls.analysis(params.text_document.uri)
    positions = ls.positions(analysis)
    start, end = positions.offset(params.range.start), positions.offset(params.range.end)
    return [
        types.InlayHint(
            positions.position(hint.offset),
            hint.text,
            types.InlayHintKind.Type,
            tooltip=f'in "{hint.model}"' if hint.model else "with the defaults",
            padding_left=True,
        )
        for hint in hints.hints(analysis, start, end)
    ]


@server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
def folding(ls: Server, params: types.FoldingRangeParams) -> list[types.FoldingRange]:
    analysis = ls.analysis(params.text_document.uri)
    found = outline.folds(analysis.unit.tree, analysis.source) if analysis.unit is not None else ()
    kind = types.FoldingRangeKind
    return [
        types.FoldingRange(a - 1, b - 1, kind=kind.Comment if is_comment else kind.Region) for a, b, is_comment in found
    ]


@server.feature(types.TEXT_DOCUMENT_FORMATTING)
def formatting(ls: Server, params: types.DocumentFormattingParams) -> list[types.TextEdit]:
    text = ls.workspace.get_text_document(params.text_document.uri).source
    before, after = (StringIO(each, newline="\n").readlines() for each in (text, format(text)))
    changes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()

    def begin(line: int) -> types.Position:
        if line < len(before) or before[-1].endswith("\n"):
            return types.Position(line, 0)
        return types.Position(line - 1, ls.workspace.position_codec.client_num_units(before[-1]))

    return [
        types.TextEdit(types.Range(begin(first), begin(last)), "".join(after[start:end]))
        for change, first, last, start, end in changes
        if change != "equal"
    ]


@server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, types.SemanticTokensLegend(list(outline.TOKEN_TYPES), []))
def semantic_tokens(ls: Server, params: types.SemanticTokensParams) -> types.SemanticTokens:
    analysis = ls.analysis(params.text_document.uri)
    positions = ls.positions(analysis)
    data: list[int] = []
    line, column = 0, 0
    for start, length, kind in outline.tokens(analysis):
        place = positions.range(start, start + length)
        at = place.start
        data += [at.line - line, at.character - (column if at.line == line else 0)]
        data += [place.end.character - at.character, kind, 0]
        line, column = at.line, at.character
    return types.SemanticTokens(data)


@server.feature(types.TEXT_DOCUMENT_CODE_LENS)
def code_lens(ls: Server, params: types.CodeLensParams) -> list[types.CodeLens]:
    analysis = ls.analysis(params.text_document.uri)
    positions = ls.positions(analysis)
    found: list[types.CodeLens] = []
    for model in analysis.unit.models.values() if analysis.unit is not None else ():
        title = descriptions.model_line(analysis, model)
        if title is not None:
            command = types.Command(title, "archspec.count", arguments=[analysis.path, str(model.name.value)])
            found.append(types.CodeLens(positions.range(model.start, model.start), command))
    return found


def serve() -> None:
    """Serve the editor that started this process, on standard input and output."""
    server.files.prepare()
    server.garbage.start()
    server.start_io()
