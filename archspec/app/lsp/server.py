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
from archspec.app.lsp import completion, descriptions, edits, outline
from archspec.app.lsp.outline import Positions
from archspec.app.lsp.workspace import Analysis, Workspace
from archspec.core.diagnostics import Diagnostic, Span
from archspec.language.format.api import format

# Garbage collection between checks, because a collection can take longer than a check.

IDLE_SECONDS = 0.3
"""Seconds without a check after which garbage is collected."""

MAX_CHECKS = 50
"""Maximum number of checks between two collections."""


class GarbageCollector:
    """The schedule of garbage collections."""

    def __init__(self) -> None:
        self._checks = 0  # since the last collection
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Disable automatic collection, and exclude all current objects from later collections."""
        gc.disable()
        gc.freeze()

    def after_check(self) -> None:
        """Collect garbage soon, unless another check comes first."""
        self._checks += 1
        if self._timer is not None:
            self._timer.cancel()
        delay = IDLE_SECONDS if self._checks < MAX_CHECKS else 0
        self._timer = asyncio.get_running_loop().call_later(delay, self._collect)

    def _collect(self) -> None:
        gc.collect()
        self._checks = 0


# Server --------------------------------------------------------------------------------------------------------------

SYMBOL_KINDS = {
    "fn": types.SymbolKind.Function,
    "layer": types.SymbolKind.Class,
    "block": types.SymbolKind.Class,
    "model": types.SymbolKind.Object,
    "address": types.SymbolKind.Field,
}
COMPLETION_KINDS = {
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
CHECK_DELAY_SECONDS = 0.001
"""Seconds to wait for further changes before a changed text is checked."""


class Server(LanguageServer):
    """A language server with the open files of an editor; `pending` are the scheduled checks by URI."""

    def __init__(self) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            "archspec", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Incremental
        )
        self.files = Workspace()
        self.pending: dict[str, asyncio.TimerHandle] = {}
        self.garbage = GarbageCollector()

    def analysis(self, uri: str) -> Analysis:
        """Return the analysis of an open document."""
        path = document_path(uri)
        document = self.workspace.get_text_document(uri)
        self.files.open(path, document.source)
        return self.files.analysis(path)

    def positions(self, analysis: Analysis) -> Positions:
        """Return the converter of positions in an analysed file."""
        return Positions(analysis.source, self.workspace.position_codec)

    def publish(self, uri: str) -> None:
        """Send the diagnostics of a file."""
        pending = self.pending.pop(uri, None)
        if pending is not None:
            pending.cancel()
        document = self.workspace.get_text_document(uri)
        analysis = self.analysis(uri)
        diagnostics = [self.diagnostic(analysis, diagnostic) for diagnostic in analysis.report.diagnostics]
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, diagnostics=diagnostics, version=document.version)
        )
        self.garbage.after_check()

    def publish_soon(self, uri: str) -> None:
        """Send the diagnostics of a file unless another change follows at once."""
        pending = self.pending.pop(uri, None)
        if pending is not None:
            pending.cancel()
        self.pending[uri] = asyncio.get_running_loop().call_later(CHECK_DELAY_SECONDS, self.publish, uri)

    def diagnostic(self, analysis: Analysis, diagnostic: Diagnostic) -> types.Diagnostic:
        """Return a diagnostic in the form of the protocol."""
        positions = self.positions(analysis)
        range, message, span = positions.range(0, 0), diagnostic.message, diagnostic.span
        if span is not None and span.source is analysis.source:
            range = positions.span_range(span)
        elif span is not None:
            message = f"{span}: {message}"
        lines = [message, *[f"note: {note.text}" for note in diagnostic.notes if note.span is None]]
        if diagnostic.help:
            lines.append(f"help: {diagnostic.help}")
        related = [self._related(analysis, note.text, note.span) for note in diagnostic.notes if note.span is not None]
        return types.Diagnostic(
            range=range,
            message="\n".join(lines),
            severity=SEVERITIES[diagnostic.severity],
            code=diagnostic.code,
            source="archspec",
            related_information=related or None,
            tags=[types.DiagnosticTag.Unnecessary] if diagnostic.code.startswith("unused-") else None,
        )

    def _related(self, analysis: Analysis, text: str, span: Span) -> types.DiagnosticRelatedInformation:
        return types.DiagnosticRelatedInformation(location=self.location(analysis, span), message=text)

    def location(self, analysis: Analysis, span: Span) -> types.Location:
        """Return the location of a span in the file or in one of its imports."""
        paths = {unit.source: path for unit, path in analysis.paths.items()}
        path = paths.get(span.source, analysis.path)
        positions = Positions(span.source, self.workspace.position_codec)
        return types.Location(uri=document_uri(path), range=positions.span_range(span))


def document_path(uri: str) -> str:
    """Return the path of a document; its URI if it is not a file, such as a new document."""
    return uris.to_fs_path(uri) or uri


def document_uri(path: str) -> str:
    """Return the URI of a path."""
    return uris.from_fs_path(path) or path


server = Server()


@server.feature(types.INITIALIZED)
def initialized(ls: Server, params: types.InitializedParams) -> None:
    ls.files.folders = [document_path(folder.uri) for folder in ls.workspace.folders.values()]


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
    workspace = ls.client_capabilities.workspace
    lenses = workspace.code_lens if workspace is not None else None
    if lenses is not None and lenses.refresh_support:
        ls.workspace_code_lens_refresh(None)


@server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
def did_close(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    uri = params.text_document.uri
    ls.files.close(document_path(uri))
    ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=[]))


@server.feature(types.TEXT_DOCUMENT_HOVER)
def hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
    analysis = ls.analysis(params.text_document.uri)
    positions = ls.positions(analysis)
    description = descriptions.hover(analysis, positions.offset(params.position))
    if description is None:
        return None
    text, start, end = description
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), positions.range(start, end))


@server.feature(types.TEXT_DOCUMENT_DEFINITION)
def definition(ls: Server, params: types.DefinitionParams) -> types.Location | None:
    analysis = ls.analysis(params.text_document.uri)
    occurrence = analysis.occurrence_at(ls.positions(analysis).offset(params.position))
    if occurrence is None or not occurrence.symbol.path:
        return None
    symbol = occurrence.symbol
    target = analysis if symbol.path == analysis.path else ls.files.analysis(symbol.path)
    for candidate in target.occurrences:
        if candidate.symbol == symbol and candidate.defines:
            location = ls.positions(target).range(candidate.start, candidate.end)
            return types.Location(document_uri(target.path), location)
    return None


@server.feature(types.TEXT_DOCUMENT_REFERENCES)
def references(ls: Server, params: types.ReferenceParams) -> list[types.Location]:
    analysis = ls.analysis(params.text_document.uri)
    occurrence = analysis.occurrence_at(ls.positions(analysis).offset(params.position))
    if occurrence is None:
        return []
    return [
        types.Location(document_uri(file.path), ls.positions(file).range(reference.start, reference.end))
        for file, reference in edits.iter_references(ls.files, frozenset({occurrence.symbol}))
        if params.context.include_declaration or not reference.defines
    ]


@server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
def highlight(ls: Server, params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
    analysis = ls.analysis(params.text_document.uri)
    positions = ls.positions(analysis)
    occurrence = analysis.occurrence_at(positions.offset(params.position))
    kinds = types.DocumentHighlightKind
    return [
        types.DocumentHighlight(positions.range(o.start, o.end), kinds.Write if o.defines else kinds.Read)
        for o in analysis.occurrences
        if occurrence is not None and o.symbol == occurrence.symbol
    ]


@server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
def prepare_rename(ls: Server, params: types.PrepareRenameParams) -> types.Range | None:
    analysis = ls.analysis(params.text_document.uri)
    positions = ls.positions(analysis)
    occurrence = analysis.occurrence_at(positions.offset(params.position))
    return positions.range(occurrence.start, occurrence.end) if occurrence is not None else None


@server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
def rename(ls: Server, params: types.RenameParams) -> types.WorkspaceEdit | None:
    analysis = ls.analysis(params.text_document.uri)
    occurrence = analysis.occurrence_at(ls.positions(analysis).offset(params.position))
    if occurrence is None:
        return None
    try:
        changes = edits.rename(ls.files, analysis, occurrence.symbol, params.new_name)
    except edits.UnsafeRenameError as reason:
        ls.window_show_message(types.ShowMessageParams(types.MessageType.Error, str(reason)))
        return None
    return types.WorkspaceEdit(
        changes={document_uri(path): _text_edits(ls, path, changed) for path, changed in changes.items()}
    )


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
        for fix in edits.iter_fixes(ls.files, analysis, start, end)
    ]


@server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[".", "{", "(", ","]))
def complete(ls: Server, params: types.CompletionParams) -> list[types.CompletionItem]:
    analysis = ls.analysis(params.text_document.uri)
    offset = ls.positions(analysis).offset(params.position)
    return [
        types.CompletionItem(
            label=candidate.text,
            kind=COMPLETION_KINDS.get(candidate.kind, types.CompletionItemKind.Text),
            detail=candidate.detail or None,
            documentation=candidate.documentation or None,
            additional_text_edits=_text_edits(ls, analysis.path, list(candidate.edits)) or None,
        )
        for candidate in completion.complete(analysis, analysis.source.text, offset)
    ]


@server.feature(types.TEXT_DOCUMENT_SIGNATURE_HELP, types.SignatureHelpOptions(trigger_characters=["(", ","]))
def signature_help(ls: Server, params: types.SignatureHelpParams) -> types.SignatureHelp | None:
    analysis = ls.analysis(params.text_document.uri)
    before = analysis.source.text[: ls.positions(analysis).offset(params.position)]
    call = completion.find_enclosing_call(before)
    if call is None or analysis.unit is None:
        return None
    target = completion.resolve_callee(analysis.unit, call)
    if target is None:
        return None
    arguments = completion.list_arguments(target, call)
    labels = [f"{name} {detail}".strip() for name, detail in arguments]
    signature = types.SignatureInformation(
        f"{target.name}({', '.join(labels)})", None, [types.ParameterInformation(label) for label in labels]
    )
    return types.SignatureHelp([signature], 0, completion.active_argument(call, arguments))


@server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
def document_symbols(ls: Server, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    analysis = ls.analysis(params.text_document.uri)
    positions = ls.positions(analysis)

    def symbol(entry: outline.Entry) -> types.DocumentSymbol:
        return types.DocumentSymbol(
            entry.name or "?",
            SYMBOL_KINDS[entry.kind],
            positions.range(entry.start, entry.end),
            positions.range(entry.name_start, entry.name_end),
            children=[symbol(child) for child in entry.children],
        )

    return [symbol(entry) for entry in outline.iter_entries(analysis.unit.tree)] if analysis.unit is not None else []


@server.feature(types.WORKSPACE_SYMBOL)
def workspace_symbols(ls: Server, params: types.WorkspaceSymbolParams) -> list[types.SymbolInformation]:
    symbols: list[types.SymbolInformation] = []
    for path in ls.files.files():
        analysis = ls.files.analysis(path)
        for entry in outline.iter_entries(analysis.unit.tree) if analysis.unit is not None else ():
            if params.query.lower() in entry.name.lower():
                name = ls.positions(analysis).range(entry.name_start, entry.name_end)
                location = types.Location(document_uri(path), name)
                symbols.append(types.SymbolInformation(location, entry.name, SYMBOL_KINDS[entry.kind]))
    return symbols


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
        for hint in descriptions.iter_hints(analysis, start, end)
    ]


@server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
def folding(ls: Server, params: types.FoldingRangeParams) -> list[types.FoldingRange]:
    analysis = ls.analysis(params.text_document.uri)
    folds = outline.iter_folds(analysis.unit.tree, analysis.source) if analysis.unit is not None else ()
    kind = types.FoldingRangeKind
    return [
        types.FoldingRange(first - 1, last - 1, kind=kind.Comment if is_comment else kind.Region)
        for first, last, is_comment in folds
    ]


@server.feature(types.TEXT_DOCUMENT_FORMATTING)
def formatting(ls: Server, params: types.DocumentFormattingParams) -> list[types.TextEdit]:
    text = ls.workspace.get_text_document(params.text_document.uri).source
    before, after = (StringIO(version, newline="\n").readlines() for version in (text, format(text)))
    changes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()

    def line_start(line: int) -> types.Position:
        if line < len(before) or before[-1].endswith("\n"):
            return types.Position(line, 0)
        return types.Position(line - 1, ls.workspace.position_codec.client_num_units(before[-1]))

    return [
        types.TextEdit(types.Range(line_start(first), line_start(last)), "".join(after[start:end]))
        for change, first, last, start, end in changes
        if change != "equal"
    ]


@server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, types.SemanticTokensLegend(list(outline.TOKEN_TYPES), []))
def semantic_tokens(ls: Server, params: types.SemanticTokensParams) -> types.SemanticTokens:
    analysis = ls.analysis(params.text_document.uri)
    positions = ls.positions(analysis)
    data: list[int] = []
    line, column = 0, 0
    for start, length, kind in outline.iter_tokens(analysis):
        name = positions.range(start, start + length)
        first = name.start
        data += [first.line - line, first.character - (column if first.line == line else 0)]
        data += [name.end.character - first.character, kind, 0]
        line, column = first.line, first.character
    return types.SemanticTokens(data)


@server.feature(types.TEXT_DOCUMENT_CODE_LENS)
def code_lens(ls: Server, params: types.CodeLensParams) -> list[types.CodeLens]:
    analysis = ls.analysis(params.text_document.uri)
    positions = ls.positions(analysis)
    return [
        types.CodeLens(
            positions.range(lens.offset, lens.offset),
            types.Command(lens.title, "archspec.count", arguments=[analysis.path, lens.name]),
        )
        for lens in descriptions.iter_lenses(analysis)
    ]


def serve() -> None:
    """Serve the editor that started this process, on standard input and output."""
    server.files.prepare()
    server.garbage.start()
    server.start_io()
