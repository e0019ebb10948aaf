"""A client of the language server, and golden cases for it."""

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

import cases
import pytest
from paths import ROOT

from archspec import testing

types = pytest.importorskip("lsprotocol.types")
client_module = pytest.importorskip("pygls.lsp.client")
MOST = 8
"""The completions of one kind that a case shows."""


class Editor:
    """A client with one document after another, in a loop of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.client = client_module.LanguageClient("editor", "1")
        self.published: dict[str, Any] = {}
        self.messages: list[str] = []
        self.versions: dict[str, int] = {}

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def keep(params: Any) -> None:
            self.published[params.uri] = params

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)
        def show(params: Any) -> None:
            self.messages.append(params.message)

    def wait(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    def start(self, folder: Path) -> None:
        async def begin() -> None:
            await self.client.start_io(sys.executable, "-m", "archspec", "lsp")
            await self.client.initialize_async(
                types.InitializeParams(
                    capabilities=types.ClientCapabilities(),
                    workspace_folders=[types.WorkspaceFolder(folder.as_uri(), "specs")],
                )
            )
            self.client.initialized(types.InitializedParams())

        self.wait(begin())

    def stop(self) -> None:
        async def end() -> None:
            await self.client.shutdown_async(None)
            self.client.exit(None)
            await self.client.stop()

        self.wait(end())
        self.loop.call_soon_threadsafe(self.loop.stop)

    def open(self, path: Path, text: str) -> str:
        uri = path.as_uri()
        self.published.pop(uri, None)
        self.versions[uri] = 0
        item = types.TextDocumentItem(uri, "arch", 0, text)
        self.call(lambda: self.client.text_document_did_open(types.DidOpenTextDocumentParams(item)))
        return uri

    def change(self, uri: str, text: str) -> None:
        self.versions[uri] += 1
        document = types.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri])
        whole = [types.TextDocumentContentChangeWholeDocument(text=text)]
        self.call(lambda: self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, whole)))

    def call(self, function: Callable[[], Any]) -> None:
        done = threading.Event()
        self.loop.call_soon_threadsafe(lambda: (function(), done.set()))
        done.wait(10)

    def diagnostics(self, uri: str) -> Any:
        """The findings for the current version."""

        async def arrive() -> Any:
            for _ in range(2000):
                found = self.published.get(uri)
                if found is not None and found.version == self.versions[uri]:
                    return found.diagnostics
                await asyncio.sleep(0.01)
            raise AssertionError("no diagnostics arrived")

        return self.wait(arrive())

    def ask(self, request: str, uri: str, text: str, place: str, inside: int = 0, **more: Any) -> Any:
        """Send a request about the first `place` in a text."""
        kind = "".join(word.capitalize() for word in request.removesuffix("s").split("_"))
        parameters = getattr(types, f"{kind}Params")(
            text_document=types.TextDocumentIdentifier(uri), position=position(text, text.index(place) + inside), **more
        )
        return self.wait(getattr(self.client, f"text_document_{request}_async")(parameters))

    def cancel(self, method: str, parameters: Any, number: str) -> None:
        """Send a request and withdraw it at once."""

        def send() -> None:
            self.client.protocol.send_request(method, parameters, msg_id=number)
            self.client.cancel_request(types.CancelParams(number))

        self.call(send)

    def of(self, request: str, uri: str, **more: Any) -> Any:
        """Send a request about a whole document."""
        kind = "".join(word.capitalize() for word in request.split("_"))
        parameters = getattr(types, f"{kind}Params")(text_document=types.TextDocumentIdentifier(uri), **more)
        return self.wait(getattr(self.client, f"text_document_{request}_async")(parameters))


def position(text: str, offset: int) -> Any:
    line = text.count("\n", 0, offset)
    start = text.rfind("\n", 0, offset) + 1
    return types.Position(line, len(text[start:offset].encode("utf-16-le")) // 2)


def offset_of(text: str, at: Any) -> int:
    lines = text.split("\n")
    start = sum(len(line) + 1 for line in lines[: at.line])
    return start + len(lines[at.line].encode("utf-16-le")[: 2 * at.character].decode("utf-16-le"))


def changed(text: str, edits: Any) -> str:
    for edit in sorted(edits, key=lambda e: -offset_of(text, e.range.start)):
        text = text[: offset_of(text, edit.range.start)] + edit.new_text + text[offset_of(text, edit.range.end) :]
    return text


def at(text: str, place: Any) -> str:
    return text[offset_of(text, place.start) : offset_of(text, place.end)]


def show_case(editor: Editor, folder: Path, case: cases.Case) -> str:
    """Return a case with the answers to its requests: the words of a section, such as `rename "up:" {"name": "wide"}`.

    A request has a place in the text, the first, and arguments: the offset `inside` the place, the new `name`.
    """
    parts = [f"=== {case.title}\n{case.text}"]
    for number, section in enumerate(case.sections):
        text, words = cases.replaced(case, section)
        request, _, rest = words.partition(" ")
        place, rest = _decode(rest, "")
        arguments, _ = _decode(rest, {})
        path = folder / str(number) / "case.arch"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        uri = editor.open(path, text)
        shown = "\n".join(answer(editor, uri, text, request, place, **arguments)) or "nothing"
        parts.append(
            f"--- {section}\n{shown.replace(uri, path.name).replace(str(path), path.name).replace(f'{ROOT}/', '')}\n\n"
        )
    return "".join(parts)


def _decode(text: str, default: Any) -> tuple[Any, str]:
    if not text.strip():
        return default, ""
    value, end = json.JSONDecoder().raw_decode(text.lstrip())
    return value, text.lstrip()[end:]


def answer(
    editor: Editor, uri: str, text: str, request: str, place: str, inside: int = 0, name: str = ""
) -> Iterator[str]:
    """Yield the lines of an answer."""

    def show(range: Any) -> str:
        return f"{range} {at(text, range)!r}"

    match request:
        case "diagnostics":
            for each in editor.diagnostics(uri):
                yield f"{each.code} {show(each.range)}: {each.message}"
                yield from (f"  {related.location}: {related.message}" for related in each.related_information or ())
        case "hover":
            found = editor.ask("hover", uri, text, place, inside)
            yield from [show(found.range), found.contents.value] if found else []
        case "definition":
            found = editor.ask("definition", uri, text, place, inside)
            target = Path(found.uri.removeprefix("file://"))
            yield f"{target.name}: {target.read_text(encoding='utf-8').splitlines()[found.range.start.line].strip()}"
        case "references":
            for declared in (True, False):
                context = types.ReferenceContext(include_declaration=declared)
                found = editor.ask("references", uri, text, place, inside, context=context)
                yield f"{'all' if declared else 'uses'}: {', '.join(show(each.range) for each in found)}"
        case "document_highlight":
            for each in editor.ask("document_highlight", uri, text, place, inside):
                yield f"{types.DocumentHighlightKind(each.kind).name} {show(each.range)}"
        case "prepare_rename":
            found = editor.ask("prepare_rename", uri, text, place, inside)
            yield from [show(found)] if found else []
        case "rename":
            editor.messages.clear()
            found = editor.ask("rename", uri, text, place, inside, new_name=name)
            yield from editor.messages
            yield from _difference(text, changed(text, found.changes[uri])) if found else []
        case "code_action":
            diagnostics = editor.diagnostics(uri)
            for each in diagnostics:
                yield each.message
                context = types.CodeActionContext(diagnostics=[each])
                for action in editor.of("code_action", uri, range=each.range, context=context):
                    yield f"  {action.title}"
                    fixed = changed(text, action.edit.changes[uri])
                    yield from (f"    {line}" for line in _difference(text, fixed, 1))
                    assert each.message not in [left.message for left in testing.check_text(fixed)]
        case "completion":
            kinds: dict[str, list[str]] = {}
            for each in editor.ask("completion", uri, text, place, inside):
                kind = types.CompletionItemKind(each.kind).name
                kinds.setdefault(kind, []).append(each.label.strip() + f" ({each.detail})" * bool(each.detail))
            for kind, labels in kinds.items():
                yield f"{kind}: {', '.join(labels[:MOST])}{' ...' if len(labels) > MOST else ''}"
        case "signature_help":
            found = editor.ask("signature_help", uri, text, place, inside)
            yield from [f"{s.label}: {[p.label for p in s.parameters]}" for s in found.signatures] if found else []
            yield from [f"signature {found.active_signature}, parameter {found.active_parameter}"] if found else []
        case "document_symbol":
            for symbol in editor.of("document_symbol", uri):
                kind = types.SymbolKind(symbol.kind).name
                yield f"{kind} {symbol.name} {symbol.range} {show(symbol.selection_range)}"
                yield from (f"  {child.name} {show(child.selection_range)}" for child in symbol.children)
        case "folding_range":
            yield from (f"{each.start_line}-{each.end_line} {each.kind}" for each in editor.of("folding_range", uri))
        case "code_lens":
            for each in editor.of("code_lens", uri):
                yield f"{each.range} {each.command.title} {each.command.arguments}"
        case "inlay_hint":
            whole = types.Range(types.Position(0, 0), types.Position(1000, 0))
            for each in editor.of("inlay_hint", uri, range=whole):
                yield f"{each.position} {each.label} ({each.tooltip}) {each.padding_left}"
        case _:
            raise ValueError(request)


def _difference(before: str, after: str, context: int = 0) -> list[str]:
    lines = list(unified_diff(before.splitlines(), after.splitlines(), n=context, lineterm=""))[2:]
    return [line for line in lines if not line.startswith("@@")]
