"""The language server, through its protocol: a client talks to `archspec lsp` over pipes."""

import asyncio
import random
import re
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from difflib import unified_diff
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from paths import ROOT

from archspec import Source, Span, testing
from archspec.compiler.evaluate.program import Program
from archspec.compiler.resolve.unit import Definition
from archspec.core.diagnostics import Report
from archspec.language.syntax.parse import parse

types = pytest.importorskip("lsprotocol.types")
client_module = pytest.importorskip("pygls.lsp.client")
workspace_module = pytest.importorskip("archspec.app.lsp.workspace")
descriptions = pytest.importorskip("archspec.app.lsp.descriptions")
edits = pytest.importorskip("archspec.app.lsp.edits")
outline = pytest.importorskip("archspec.app.lsp.outline")
completion = pytest.importorskip("archspec.app.lsp.completion")
positions = pytest.importorskip("archspec.app.lsp.outline")
garbage = pytest.importorskip("archspec.app.lsp.server")


ENCODER = """\
import std { Linear, LayerNorm }

dim batch, seq

## A feed-forward layer with a residual connection.
block FeedForward(hidden, ffn = 4 * hidden)(x [batch, seq, hidden]) -> [batch, seq, hidden] {
  return x
    |> norm: LayerNorm(hidden)
    |> up:   Linear(hidden, ffn)
    |> tanh
    |> down: Linear(ffn, hidden)
    |> + x
}

block Stack(hidden = 8, layers = 2)(x [batch, seq, hidden]) -> [batch, seq, 4 * hidden] {
  h = x
    |> layer[i]: FeedForward(hidden) for i in 0..layers
  tie last.weight = layer[0].up.weight
  return last: Linear(hidden, 4 * hidden, bias = false)(h)
}

model "tiny" = Stack(layers = 3)
"""


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("specs").resolve()


@pytest.fixture(scope="module")
def editor(folder: Path) -> Iterator[Editor]:
    found = Editor()
    found.start(folder)
    yield found
    found.stop()


@pytest.fixture(scope="module")
def uri(editor: Editor, folder: Path) -> str:
    (folder / "tiny.arch").write_text(ENCODER)
    return editor.open(folder / "tiny.arch", ENCODER)


def test_a_right_file_has_no_diagnostics(editor: Editor, uri: str) -> None:
    assert list(editor.diagnostics(uri)) == []


def test_diagnostics_have_code_place_notes_and_help(editor: Editor, folder: Path) -> None:
    text = ENCODER.replace("tanh", "tahn").replace('model "tiny"', 'model "é𝒳" = Stack()\nmodel "é𝒳"')
    found = editor.diagnostics(editor.open(folder / "wrong.arch", text))
    assert [(d.code, at(text, d.range)) for d in found] == [("unknown-name", "tahn"), ("duplicate-name", '"é𝒳"')]
    assert found[0].message == "unknown name `tahn`\nhelp: did you mean `tanh`?"
    assert [at(text, r.location.range) for r in found[1].related_information] == ['"é𝒳"']


def test_diagnostics_of_imported_files_and_of_whole_files(editor: Editor, folder: Path) -> None:
    def found(name: str, text: str) -> list[tuple[str, str, str, list[str]]]:
        diagnostics = editor.diagnostics(editor.open(folder / name, text))
        related = [[f"{r.location}: {r.message}" for r in d.related_information or ()] for d in diagnostics]
        return [(d.code, f"{d.range}", d.message, r) for d, r in zip(diagnostics, related, strict=True)]

    part = "dim batch\n\nblock Part(n)(x [batch, n]) -> [batch, n] {\n  return x + full([n + 1], 2.0)\n}\n"
    whole = """import "part.arch" { Part }

dim batch

block Whole(n = 4)(x [batch, n], y [batch, n] = none) -> [batch, n] {
  h = x if y == none else x + y
  part: Part(n)
  return .part(h) if y == none else h
}

model "whole" = Whole()
"""
    (folder / "part.arch").write_text(part)
    assert found("whole.arch", whole) == [
        (
            "dimension",
            "7:9-7:17",
            "`+` cannot broadcast [batch, 4] with [5]: 4 != 5\nnote: without `y`\n"
            "help: make each pair of sizes equal, or one of them 1, starting from the last axis",
            [f"{(folder / 'part.arch').as_uri()}:3:13-3:31: in `Part`, used above"],
        )
    ]
    (folder / "part.arch").write_text(part.replace("full", "ful"))
    place = f"{folder / 'part.arch'}:4:14"
    assert found("whole.arch", whole) == [
        ("unknown-name", "0:0-0:0", f"{place}: unknown name `ful`\nhelp: did you mean `full`?", [])
    ]
    large = f"{folder / 'large.arch'} exceeds the size limit of 256 KiB"
    assert found("large.arch", "#" * 262_145) == [("budget", "0:0-0:0", large, [])]


def test_hover(editor: Editor, uri: str) -> None:
    def shown(place: str, inside: int = 0) -> str:
        return editor.ask("hover", uri, ENCODER, place, inside).contents.value

    assert shown("FeedForward(hidden) for") == (
        "```arch\nblock FeedForward(hidden, ffn = 4 * hidden)(x [batch, seq, hidden]) -> [batch, seq, hidden]\n```\n\n"
        "A feed-forward layer with a residual connection."
    )
    assert shown("up:") == '`up` of `FeedForward`\n\n`Linear`: 288 parameters, 16.9% of the model each (in "tiny")'
    assert shown("ffn, hidden)") == 'hyperparameter `ffn` of `FeedForward`, default `4 * hidden`\n\n`32` (in "tiny")'
    assert shown("x\n    |> norm") == 'input `x` of `FeedForward`\n\n`[batch, seq, 8]` (in "tiny")'
    assert shown("h = x") == 'value `h` of `Stack`\n\n`[batch, seq, 8]` (in "tiny")'
    assert shown("tiny") == 'model "tiny": 1,704 parameters'
    assert shown("tanh").startswith("```arch\nop tanh(x number [...])\n```")
    assert at(ENCODER, editor.ask("hover", uri, ENCODER, "FeedForward(hidden) for", 4).range) == "FeedForward"


def test_definition_and_references(editor: Editor, uri: str) -> None:
    def target(place: str, inside: int = 0) -> str:
        found = editor.ask("definition", uri, ENCODER, place, inside)
        source = Path(found.uri.removeprefix("file://")).read_text()
        return f"{Path(found.uri).name}: {at(source, found.range)}: {source.split(chr(10))[found.range.start.line]}"

    assert target("FeedForward(hidden) for").startswith("tiny.arch: FeedForward: block FeedForward(hidden")
    assert target("Linear(hidden, ffn)").startswith("linear.arch: Linear: layer Linear(")
    assert target("up.weight").startswith("tiny.arch: up:     |> up:")
    assert target("layers = 3").startswith("tiny.arch: layers: block Stack(hidden = 8, layers = 2)")
    context = types.ReferenceContext(include_declaration=True)
    found = editor.ask("references", uri, ENCODER, "up.weight", context=context)
    assert [ENCODER.split("\n")[f.range.start.line].strip() for f in found if f.uri == uri] == [
        "|> up:   Linear(hidden, ffn)",
        "tie last.weight = layer[0].up.weight",
    ]


def test_highlights_and_references_distinguish_definitions(editor: Editor, uri: str) -> None:
    def marked(place: str, inside: int = 0) -> list[tuple[int, str]]:
        found = editor.ask("document_highlight", uri, ENCODER, place, inside)
        return [(h.range.start.line + 1, types.DocumentHighlightKind(h.kind).name) for h in found]

    assert marked("FeedForward(hidden)") == [(6, "Write"), (17, "Read")]
    assert marked("LayerNorm }") == [(1, "Read"), (8, "Read")]
    assert marked("h = x") == [(16, "Write"), (19, "Read")]
    assert marked("last:") == [(18, "Read"), (19, "Write")]
    assert marked("ffn, hidden)", 3) == [(6, "Write"), (9, "Read"), (11, "Read")]
    assert marked("seq, hidden]) -> ") and marked("\n\ndim") == []
    for is_declared, lines in ((True, [16, 19]), (False, [19])):
        context = types.ReferenceContext(include_declaration=is_declared)
        found = editor.ask("references", uri, ENCODER, "h = x", context=context)
        assert [each.range.start.line + 1 for each in found] == lines


def test_frozen_parameters_of_a_model(editor: Editor, folder: Path) -> None:
    text = ENCODER.replace("|> up: ", "|> up: frozen ")
    uri = editor.open(folder / "frozen.arch", text)
    hover = editor.ask("hover", uri, text, "tiny").contents.value
    assert hover == 'model "tiny": 1,704 parameters, 864 frozen'


@pytest.mark.parametrize(
    ("place", "name", "before", "after"),
    [
        ("up:", "wide", ("up:", ".up."), ("wide:", ".wide.")),
        ("layer[i]", "blocks", ("layer[",), ("blocks[",)),
        ("ffn =", "inner", ("ffn",), ("inner",)),
        ("h = x", "stream", (r"\bh\b",), ("stream",)),
        ("seq\n", "length", (r"\bseq\b",), ("length",)),
        ("FeedForward(hidden, ffn =", "Mlp", ("FeedForward",), ("Mlp",)),
        ("tiny", "small", ("tiny",), ("small",)),
        ("layers = 2", "depth", (r"\blayers\b",), ("depth",)),
    ],
)
def test_rename(
    editor: Editor, uri: str, place: str, name: str, before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    found = editor.ask("rename", uri, ENCODER, place, new_name=name)
    expected = ENCODER
    for old, new in zip(before, after, strict=True):
        expected = re.sub(old if "\\" in old else re.escape(old), new, expected)
    assert list(found.changes) == [uri]
    assert changed(ENCODER, found.changes[uri]) == expected


def test_what_can_be_renamed_is_the_name_at_a_place(editor: Editor, uri: str) -> None:
    assert at(ENCODER, editor.ask("prepare_rename", uri, ENCODER, "FeedForward(hidden)", 3)) == "FeedForward"
    assert editor.ask("prepare_rename", uri, ENCODER, "|> tanh") is None


def test_a_rename_includes_roles(editor: Editor, folder: Path) -> None:
    text = ENCODER.replace("  return x\n    |> norm", "  role feed_forward for up, down\n  return x\n    |> norm")
    uri = editor.open(folder / "roles.arch", text)
    found = editor.ask("rename", uri, text, "up:", new_name="wide")
    expected = text.replace("up:", "wide:").replace(".up.", ".wide.").replace("for up,", "for wide,")
    assert changed(text, found.changes[uri]) == expected


@pytest.mark.parametrize(
    ("place", "name", "reason"),
    [
        ("Linear(hidden, ffn)", "Dense", "also defined in"),
        ("tanh", "gelu", "is an operation of the language"),
        ("h = x", "x", "has a different meaning there"),
        ("h = x", "1h", "`1h` is not a valid name"),
        ("h = x", "for", "`for` is a keyword"),
        ("up:", "norm", "has a different meaning there"),
    ],
)
def test_a_rename_that_changes_the_meaning_is_refused(
    editor: Editor, uri: str, place: str, name: str, reason: str
) -> None:
    editor.messages.clear()
    assert editor.ask("rename", uri, ENCODER, place, new_name=name) is None
    assert len(editor.messages) == 1 and reason in editor.messages[0]


def test_a_rename_follows_what_is_forwarded(editor: Editor, folder: Path) -> None:
    text = ENCODER.replace("FeedForward(hidden) for", "FeedForward(hidden, ..) for").replace(
        "layers = 2)", "layers = 2, ffn = 16)"
    )
    uri = editor.open(folder / "forwarded.arch", text)
    found = editor.ask("rename", uri, text, "ffn = 16", new_name="inner")
    assert changed(text, found.changes[uri]) == text.replace("ffn", "inner")


SYMBOLS = """\
fn mixed(share = 0.5)(first [4], second [4]) -> (sum [4], rest [4]) {
  return first + share * second, first - second
}
layer Mixing(share = 0.5)(x [4]) -> [4] {
  weight: param [4]
  a, b = mixed(share = share)(first = x, second = .weight)
  return a * b
}
block Several(part = 2)(x [4]) -> [4] {
  for i in 0..part {
    x = x |> mix[i]: Mixing(share = i * 1.0)
  }
  return x
}
model "several" = Several(part = 3) {
  expect params == 4 * part
}
"""


@pytest.mark.parametrize(
    ("place", "old", "new"),
    [
        ("first [4]", "first", "one"),
        ("second = .weight", "second", "other"),
        ("part = 2", "part", "parts"),
        ("i in", "i", "turn"),
        ("mixed(share = share)", "mixed", "joined"),
        ("Mixing(share = i", "Mixing", "Mixed"),
        ("weight: param", "weight", "factor"),
    ],
)
def test_every_use_of_a_symbol_is_renamed(editor: Editor, folder: Path, place: str, old: str, new: str) -> None:
    uri = editor.open(folder / "symbols.arch", SYMBOLS)
    found = editor.ask("rename", uri, SYMBOLS, place, new_name=new)
    assert changed(SYMBOLS, found.changes[uri]) == re.sub(rf"\b{old}\b", new, SYMBOLS)


FIXES = [
    (("tanh", "tahn"), "Change to `tanh`", None),
    (("LayerNorm }", "LayerNorm, Embedding }"), "Remove it", None),
    (("import std { Linear, LayerNorm }", "import std { Linear }"), "Import `LayerNorm` from std", None),
    (("    |> tanh\n", "    |> tanh\n    |> SelfAttention(8, 2)\n"), None, None),
    (("Stack(layers = 3)", "Stack(layers = 3) { expect params == 1_000 }"), "Expect 1,704", "params == 1_704"),
    (("Stack(layers = 3)", "Stack(layer = 3)"), "Change to `layers`", None),
    (("layers = 2)", "layers = 2, extra = 3)"), "Remove it", "layers = 2)"),
]


@pytest.mark.parametrize(("mistake", "title", "result"), FIXES)
def test_quick_fixes_leave_nothing_to_fix(
    editor: Editor, folder: Path, mistake: tuple[str, str], title: str | None, result: str | None
) -> None:
    text = ENCODER.replace(*mistake)
    uri = editor.open(folder / "fix.arch", text)
    diagnostics = editor.diagnostics(uri)
    assert diagnostics
    place = diagnostics[0].range
    context = types.CodeActionContext(diagnostics=diagnostics)
    actions = editor.of("code_action", uri, range=place, context=context)
    if title is None:
        assert all("Import" not in action.title for action in actions)
        return
    assert title in [action.title for action in actions]
    action = next(action for action in actions if action.title == title)
    mended = changed(text, action.edit.changes[uri])
    assert (result is None and mended == ENCODER) or (result or "") in mended
    again = editor.open(folder / "fixed.arch", mended)
    assert list(editor.diagnostics(again)) == []


NET = """\
import std { Linear }

dim batch

block Net(n = 4)(x [batch, n]) -> [batch, n] {
  y = x |> up: Linear(n, n)
  return y * 2.0
}

model "net" = Net() {
  expect params == 20
}
"""


def fixed(text: str, folder: Path) -> dict[str, list[str]]:
    """The fixes of each diagnostic of a text: their titles, each followed by the lines that it changes."""
    path = str(folder / "fixes.arch")
    workspace = workspace_module.Workspace()
    workspace.open(path, text)
    analysis = workspace.analysis(path)
    found: dict[str, list[str]] = {str(each.message): [] for each in analysis.report.diagnostics}
    for fix in edits.iter_fixes(workspace, analysis, 0, len(text)):
        after = edits.apply_edits(text, fix.edits)
        lines = [line.strip() for line in unified_diff(text.splitlines(), after.splitlines(), n=0, lineterm="")]
        found[fix.diagnostic.message] += [fix.title, *[line for line in lines[2:] if not line.startswith("@@")]]
    return found


@pytest.mark.parametrize(
    ("old", "new", "fixes"),
    [
        ("  y =", "  z = x * 3.0\n  y =", {"unused value `z`": ["Remove it", "-  z = x * 3.0"]}),
        (
            "  y =",
            "  w: param [n]\n  v: param [n] if n > 2\n  y =",
            {
                "unused tensor `w`": [
                    "Remove it",
                    "-  w: param [n]",
                    "Mark it `unused`",
                    "-  w: param [n]",
                    "+  w: unused param [n]",
                ],
                "unused tensor `v`": [
                    *("Remove it", "-  v: param [n] if n > 2"),
                    *("Mark it `unused`", "-  v: param [n] if n > 2", "+  v: unused param [n] if n > 2"),
                ],
            },
        ),
        ("dim batch\n\n", "dim batch\ndim other\n\n", {"unused dimension `other`": ["Remove it", "-dim other"]}),
        (
            "dim batch",
            "dim batch, a, b",
            {
                "unused dimension `a`": ["Remove it", "-dim batch, a, b", "+dim batch, b"],
                "unused dimension `b`": ["Remove it", "-dim batch, a, b", "+dim batch, a"],
            },
        ),
        (
            "import std { Linear }\n",
            "import std { Linear }\nimport ops { exp }\n",
            {"unused import `exp`": ["Remove it", "-import ops { exp }"]},
        ),
        (
            "import std { Linear }",
            "import std {\n  Linear,\n  gelu\n}",
            {"unused import `gelu`": ["Remove it", "-  Linear,", "-  gelu", "+  Linear"]},
        ),
        (
            "(n = 4)(x [batch, n])",
            "(n = 4, m = 5)(x [batch, n], z [batch])",
            {
                "unused hyperparameter `m`": [
                    "Remove it",
                    "-block Net(n = 4, m = 5)(x [batch, n], z [batch]) -> [batch, n] {",
                    "+block Net(n = 4)(x [batch, n], z [batch]) -> [batch, n] {",
                ],
                "unused input `z`": [
                    "Remove it",
                    "-block Net(n = 4, m = 5)(x [batch, n], z [batch]) -> [batch, n] {",
                    "+block Net(n = 4, m = 5)(x [batch, n]) -> [batch, n] {",
                ],
            },
        ),
        (
            "params == 20",
            "params == 1_000",
            {
                '"net": expected params == 1,000, found 20 (980 fewer)': [
                    *("Expect 20", "-  expect params == 1_000", "+  expect params == 20")
                ]
            },
        ),
        (
            "return y * 2.0",
            "return gelu(y) * 2.0",
            {
                "unknown name `gelu`": [
                    "Import `gelu` from std",
                    "-import std { Linear }",
                    "+import std { Linear, gelu }",
                ]
            },
        ),
        (
            "Net() {",
            "Net(nn = 4) {",
            {
                "unknown hyperparameter `nn` in call to `Net`": [
                    "Change to `n`",
                    '-model "net" = Net(nn = 4) {',
                    '+model "net" = Net(n = 4) {',
                ]
            },
        ),
        (
            "up: Linear",
            "for.up: Linear",
            {
                "expected an address, found the keyword `for`": [
                    'Change to `"for"`',
                    "-  y = x |> for.up: Linear(n, n)",
                    '+  y = x |> "for".up: Linear(n, n)',
                ]
            },
        ),
    ],
)
def test_what_fixes_change(old: str, new: str, fixes: dict[str, list[str]], folder: Path) -> None:
    assert old in NET
    assert fixed(NET.replace(old, new), folder) == fixes


def test_fixes_of_a_place(folder: Path) -> None:
    text = NET.replace("dim batch", "dim batch, one, two")
    workspace = workspace_module.Workspace()
    workspace.open(str(folder / "places.arch"), text)
    analysis = workspace.analysis(str(folder / "places.arch"))
    first, second = text.index("one"), text.index("two")

    def found(start: int, end: int) -> list[str]:
        return [fix.diagnostic.message[-5:] for fix in edits.iter_fixes(workspace, analysis, start, end)]

    assert found(first, first) == found(first - 5, first) == found(first + 3, first + 3) == ["`one`"]
    assert found(first + 4, first + 4) == found(0, first - 1) == found(second + 4, len(text)) == []
    assert found(first + 3, second) == ["`one`", "`two`"] and found(second + 3, len(text)) == ["`two`"]


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("import std { A }\n", "std", "import std { A, New }\n"),
        ("import std { A, B as C }\nimport ops { x }\n", "std", "import std { A, B as C, New }\nimport ops { x }\n"),
        ("import ops { x }\ndim n\n", "std", "import ops { x }\nimport std { New }\ndim n\n"),
        ("import std { A }\nimport bert { B }\n", "bert", "import std { A }\nimport bert { B, New }\n"),
        ('import "std" { A }\n', "std", 'import "std" { A }\nimport std { New }\n'),
        ("export std { A }\n\ndim n\n", "std", "export std { A }\nimport std { New }\n\ndim n\n"),
        ("dim n\nimport std { A }\n", "std", "dim n\nimport std { A, New }\n"),
        ("dim n\n", "std", "import std { New }\n\ndim n\n"),
        (
            "## Doc\n## more\nfn f(x [1]) -> [1] { return x }\n",
            "std",
            "import std { New }\n\n## Doc\n## more\nfn f(x [1]) -> [1] { return x }\n",
        ),
        ("# c\n\n## Doc\ndim n\n", "std", "# c\n\nimport std { New }\n\n## Doc\ndim n\n"),
        ("# c\ndim n\n", "std", "# c\nimport std { New }\n\ndim n\n"),
        ("", "std", "import std { New }\n\n"),
        ("# c\n", "std", "# c\nimport std { New }\n\n"),
    ],
)
def test_where_imports_are_added(text: str, source: str, expected: str) -> None:
    edit = edits.import_edit(parse(Source("a.arch", text), Report()), text, "New", source)
    assert edits.apply_edits(text, [edit]) == expected


def labels(editor: Editor, uri: str, text: str, place: str, inside: int = 0) -> list[str]:
    return [item.label for item in editor.ask("completion", uri, text, place, inside)]


def test_completion(editor: Editor, folder: Path) -> None:
    text = ENCODER.replace("    |> tanh\n", "    |> re\n    |> Linear(hidden, )\n    |> + .no\n").replace(
        "LayerNorm }", "LayerNorm, Emb }"
    )
    uri = editor.open(folder / "complete.arch", text)
    values = labels(editor, uri, text, "re\n    |> Linear(", 2)
    assert {"tanh", "hidden", "ffn", "x", "batch", "Stack", "SelfAttention", "return"} <= set(values)
    assert labels(editor, uri, text, "hidden, )", 8)[:4] == ["in_features = ", "out_features = ", "bias = ", "std = "]
    assert {"norm", "up", "down"} <= set(labels(editor, uri, text, ".no\n", 3))
    assert "Embedding" in labels(editor, uri, text, "Emb }", 3)
    items = editor.ask("completion", uri, text, "re\n    |> Linear(", 2)
    attention = next(item for item in items if item.label == "SelfAttention")
    assert "import std { Linear, LayerNorm, Emb, SelfAttention }" in changed(text, attention.additional_text_edits)
    assert labels(editor, uri, text, 'model "tiny"', 5) == sorted(
        ["import", "export", "dim", "fn", "layer", "block", "model", "frozen"]
    )
    assert labels(editor, uri, text, "block Stack") == labels(editor, uri, text, 'model "tiny"', 5)
    text = f"{ENCODER[: ENCODER.index('    |> tanh')]}    |> + "  # its brace is missing
    uri = editor.open(folder / "broken.arch", text)
    assert {"hidden", "ffn", "x"} <= set(labels(editor, uri, text, "    |> + ", 9))


def test_what_can_be_written_in_a_definition_with_an_error(folder: Path) -> None:
    def found(rest: str) -> list[str]:
        path = str(folder / "unfinished.arch")
        text = ENCODER[: ENCODER.index("    |> tanh")] + rest
        workspace = workspace_module.Workspace()
        workspace.open(path, text)
        return [each.text for each in completion.complete(workspace.analysis(path), text, len(text))]

    path, text = str(folder / "details.arch"), ENCODER.replace("h = x", "h = Linear(h")
    workspace = workspace_module.Workspace()
    workspace.open(path, text)
    shown = completion.complete(workspace.analysis(path), text, text.index("h = Linear(h") + 12)
    kinds = {each.text: (each.kind, each.detail) for each in shown}
    assert (kinds["in_features = "], kinds["std = "]) == (("argument", "of Linear"), ("argument", "= 0.02"))
    assert (kinds["layers"], kinds["x"]) == (("hyperparameter", ""), ("input", ""))
    assert found("    |> + ")[:3] == ["hidden", "ffn", "x"]
    assert found("    |> nothing(")[:3] == ["hidden", "ffn", "x"]
    assert found("    |> tanh(")[:4] == ["x = ", "hidden", "ffn", "x"]
    assert found("    |> Linear(bias = true, in_features = 3, ")[:2] == ["out_features = ", "std = "]
    assert found("    |> softmax(axis = -1)(")[:2] == ["x = ", "hidden"]
    outside = ["block", "dim", "export", "fn", "frozen", "import", "layer", "model"]
    for rest in ("    |> +\n}\n", "    |> +\n}\n\nm", "    |> +\n}\nblock Ot", '    |> +\n}\nmodel "a" '):
        assert found(rest) == outside
    assert found("    |> + # ") == found('    |> + "') == []
    assert found('    |> +\n}\nmodel "a" = ') == ["FeedForward", "Linear", "LayerNorm"]


@pytest.mark.parametrize(
    ("before", "callee", "position", "arguments"),
    [
        ("f(", "f", 0, ""),
        ("f(a, b", "f", 0, "a, b"),
        ("f(g(x), ", "f", 0, "g(x), "),
        ("f(a, [b, c], d", "f", 0, "a, [b, c], d"),
        ("x |> f (a = 1, ", "f", 0, "a = 1, "),
        ("{ f { g(", "g", 0, ""),
        ("f(a)(", "f", 1, ""),
        ("f(a) (b, ", "f", 1, "b, "),
        ("f(g(a)(b))(c", "f", 1, "c"),
    ],
)
def test_the_call_around_a_place(before: str, callee: str, position: int, arguments: str) -> None:
    call = completion.find_enclosing_call(before)
    assert (call.callee, call.list, call.arguments) == (callee, position, arguments)


@pytest.mark.parametrize("before", ["", "f", "f(a)", "f(a)(x)(", "f((", "f([1, ", "a + (", "f(x) + (y", "f { g"])
def test_places_that_are_in_no_call(before: str) -> None:
    assert completion.find_enclosing_call(before) is None


def test_the_argument_at_a_place() -> None:
    places = {"": 0, "1": 0, "1,": 1, "1, 2, ": 2, "1, 2, 3, ": None, "[1, 2], ": 1, "f(1, 2": 0, "f(1, 2), {3}, ": 2}
    names = {"c = ": 2, "c = 1, ": 1, " b = [1, 2": 1, "a == ": 0, "1, b == 2": 1, "d = 1": None, "1, c=": 2}
    found = {
        text: completion.active_argument(completion.Call("f", 0, text), [("a", ""), ("b", ""), ("c", "")])
        for text in places | names
    }
    assert found == places | names


def test_positions_and_offsets() -> None:
    codecs = pytest.importorskip("pygls.workspace")
    text = "aé😀b\n\n😀😀\nlast"
    source = Source("a.arch", text)
    for encoding, units in (("utf-8", "utf-8"), ("utf-16", "utf-16-le"), ("utf-32", "utf-32-le")):
        of = positions.Positions(source, codecs.PositionCodec(encoding))
        width = len("a".encode(units))
        for offset in range(len(text) + 1):
            before = text[text.rfind("\n", 0, offset) + 1 : offset]
            place = types.Position(text.count("\n", 0, offset), len(before.encode(units)) // width)
            assert of.position(offset) == place and of.offset(place) == offset
        assert [of.offset(types.Position(line, 99)) for line in range(5)] == [4, 5, 8, 13, 13]
        assert of.offset(types.Position(3, 2)) == 11
        assert (of.position(-1), of.position(99)) == (types.Position(0, 0), types.Position(3, 4))
        assert of.span_range(Span(source, 5, 9)) == types.Range(types.Position(1, 0), types.Position(3, 0))
        assert of.range(0, len(source.text)) == types.Range(types.Position(0, 0), types.Position(3, 4))


def test_files_of_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = folder / "tree"
    for name in ("b.arch", "a.arch", "c.txt", "in/d.arch", ".git/e.arch", "node_modules/f.arch", "z/g.arch"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    workspace = workspace_module.Workspace()
    workspace.folders = [str(root)]
    workspace.open(str(root / "new.arch"), "")

    def found() -> set[str]:
        return {str(Path(path).relative_to(root)) for path in workspace.files()}

    assert found() == {"new.arch", "a.arch", "b.arch", "in/d.arch", "z/g.arch"}
    assert next(workspace.files()) == str(root / "new.arch")
    monkeypatch.setattr(workspace_module, "MAX_FILES", 3)
    assert found() == {"new.arch", "a.arch", "b.arch"}
    workspace.close(str(root / "new.arch"))
    monkeypatch.setattr(workspace_module, "MAX_FILES", 4)
    assert found() == {"a.arch", "b.arch", "in/d.arch", "z/g.arch"}


def test_completion_of_bundled_files(editor: Editor, folder: Path) -> None:
    text = f"import b\n{ENCODER}"
    uri = editor.open(folder / "imports.arch", text)
    assert {"bert", "std", "t5"} <= set(labels(editor, uri, text, "import b", 8))


def test_what_completions_are(editor: Editor, folder: Path) -> None:
    def shown(text: str, place: str, *names: str) -> dict[str, tuple[str, str]]:
        uri = editor.open(folder / "kinds.arch", text)
        items = editor.ask("completion", uri, text, place, len(place))
        return {
            i.label: (types.CompletionItemKind(i.kind).name, i.detail or "")
            for i in items
            if not names or i.label in names
        }

    assert shown("import std { Lin }\n", "Lin", "Linear") == {"Linear": ("Class", "exported by std")}
    assert shown("import ops { ta }\n", "ta", "tanh") == {"tanh": ("Function", "op tanh(x number [...])")}
    found = shown("import clip { Cl }\n", "Cl", "Clip", "quick_gelu")
    assert found.keys() == {"Clip"} and found["Clip"][1].startswith("block Clip(")
    assert shown("import nothing { Cl }\n", "Cl") == {}
    assert shown("import b\n", "import b", "ops", "bert") == {"ops": ("Module", ""), "bert": ("Module", "")}
    found = shown(ENCODER.replace("Stack(layers = 3)", "St"), '"tiny" = St')
    assert found.keys() == {"FeedForward", "Stack", "Linear", "LayerNorm"}
    names = "x", "h", "i", "hidden", "batch", "Stack", "gelu", "return", "add"
    assert {name: kind for name, (kind, _) in shown(ENCODER, "h = x", *names).items()} == {
        "x": "Variable",
        "h": "Variable",
        "i": "Variable",
        "hidden": "Variable",
        "batch": "TypeParameter",
        "Stack": "Class",
        "gelu": "Class",
        "return": "Keyword",
        "add": "Function",
    }
    assert shown(ENCODER, "h = x", "gelu")["gelu"][1] == "import std { gelu }"
    found = editor.ask("completion", editor.open(folder / "kinds.arch", ENCODER), ENCODER, "h = x", 5)
    assert {i.label: i.documentation for i in found if i.label in ("FeedForward", "Stack")} == {
        "FeedForward": "A feed-forward layer with a residual connection.",
        "Stack": None,
    }
    assert not shown(ENCODER.replace("h = x", "h = x # h"), "x # h")
    text = ENCODER.replace("|> tanh", "|> softmax(axis = -1)()").replace(
        "up:   Linear(hidden, ", "up:   Linear(bias = true, "
    )
    arguments = {name: detail for name, (_, detail) in shown(text, "Linear(bias = true, ").items() if " = " in name}
    assert arguments == {"in_features = ": "of Linear", "out_features = ": "of Linear", "std = ": "= 0.02"}
    assert shown(text, "softmax(axis = -1)(", "x = ")["x = "][1] == "number [...]"
    assert shown(text, "softmax(", "axis = ")["axis = "][1] == "= -1"


def test_completion_of_addresses(editor: Editor, folder: Path) -> None:
    text = ENCODER.replace(
        "  return x\n    |> norm",
        "  scale: param [hidden]\n  part.one: Linear(hidden, hidden)\n  y = .ANY\n  return x\n    |> norm",
    )

    def shown(given: str) -> dict[str, str]:
        found = text.replace("ANY", given)
        uri = editor.open(folder / "addresses.arch", found)
        return {i.label: i.detail for i in editor.ask("completion", uri, found, f"y = .{given}", len(given) + 5)}

    every = {"scale": "param", "part.one": "Linear", "norm": "LayerNorm", "up": "Linear", "down": "Linear"}
    assert shown("s") == every
    assert shown("part.o") == {"one": "Linear"}
    assert shown("up.w") == {}


def test_signature_help(editor: Editor, uri: str, folder: Path) -> None:
    found = editor.ask("signature_help", uri, ENCODER, "bias = false", 3)
    assert found.signatures[0].label == "Linear(in_features, out_features, bias = true, std = 0.02)"
    assert [each.label for each in found.signatures[0].parameters][1:3] == ["out_features", "bias = true"]
    assert (found.active_parameter, found.active_signature) == (2, 0)
    assert editor.ask("signature_help", uri, ENCODER, "hidden, 4 * hidden, b", 10).active_parameter == 1
    assert editor.ask("signature_help", uri, ENCODER, "h = x") is None
    text = ENCODER.replace("LayerNorm(hidden)", "Nothing(hidden)")
    assert editor.ask("signature_help", editor.open(folder / "nothing.arch", text), text, "Nothing(h", 9) is None


def test_outline_folds_and_lenses(editor: Editor, uri: str) -> None:
    symbols = editor.of("document_symbol", uri)
    assert [(s.name, [c.name for c in s.children]) for s in symbols] == [
        ("FeedForward", ["norm", "up", "down"]),
        ("Stack", ["layer[...]", "last"]),
        ("tiny", []),
    ]
    assert [(s.range.start.line, at(ENCODER, s.selection_range)) for s in (*symbols, symbols[0].children[1])] == [
        (5, "FeedForward"),
        (14, "Stack"),
        (21, '"tiny"'),
        (8, "up"),
    ]
    folds = editor.of("folding_range", uri)
    assert [(f.start_line, f.end_line, f.kind) for f in folds] == [
        (5, 12, "region"),
        (6, 11, "region"),
        (14, 19, "region"),
        (15, 16, "region"),
    ]
    lenses = editor.of("code_lens", uri)
    assert [(lens.command.title, f"{lens.range}") for lens in lenses] == [("1,704 parameters", "21:0-21:0")]
    assert [Path(lens.command.arguments[0]).name for lens in lenses] == [Path(uri).name]
    assert [lens.command.arguments[1:] for lens in lenses] == [("tiny",)]
    found = editor.wait(editor.client.workspace_symbol_async(types.WorkspaceSymbolParams("feed")))
    assert [(s.name, at(ENCODER, s.location.range), s.location.uri) for s in found if s.location.uri == uri] == [
        ("FeedForward", "FeedForward", uri)
    ]
    assert {symbol.name for symbol in found} == {"FeedForward"}


def test_hints(editor: Editor, uri: str) -> None:
    whole = types.Range(types.Position(0, 0), types.Position(1000, 0))
    lines = ENCODER.split("\n")
    found = {lines[h.position.line].strip()[:12]: h.label for h in editor.of("inlay_hint", uri, range=whole)}
    assert found["|> up:   Lin"] == "[batch, seq, 32]  288"
    assert found["|> + x"] == "[batch, seq, 8]"
    assert found["|> layer[i]:"] == "[batch, seq, 8]  568"
    shown = [(h.label, f"{h.position}", h.padding_left, h.tooltip) for h in editor.of("inlay_hint", uri, range=whole)]
    assert shown[1] == ("[batch, seq, 32]  288", "8:32", True, 'in "tiny"')


def test_semantic_tokens(editor: Editor, uri: str) -> None:
    data = editor.of("semantic_tokens_full", uri).data if hasattr(types, "SemanticTokensFullParams") else None
    if data is None:
        parameters = types.SemanticTokensParams(types.TextDocumentIdentifier(uri))
        data = editor.wait(editor.client.text_document_semantic_tokens_full_async(parameters)).data
    kinds = ("function", "class", "parameter", "variable", "property", "typeParameter", "enumMember")
    line = column = 0
    words: dict[str, str] = {}
    for down, right, length, kind, _ in zip(*[iter(data)] * 5, strict=True):
        line, column = line + down, right + (column if down == 0 else 0)
        words[ENCODER.split("\n")[line][column : column + length]] = kinds[kind]
    assert words["Linear"] == "class" and words["tanh"] == "function" and words["ffn"] == "parameter"
    assert words["up"] == "property" and words["batch"] == "typeParameter" and words["tiny"] == "enumMember"


def test_a_file_that_is_not_read_has_no_answers(editor: Editor, folder: Path) -> None:
    text = f"block Large(n)(x [n]) -> [n] {{ return x |> Large(n) }}\n#{'#' * 262_144}\n"
    uri = editor.open(folder / "large.arch", text)
    context = types.ReferenceContext(include_declaration=True)
    for request in ("hover", "definition", "prepare_rename", "signature_help"):
        assert editor.ask(request, uri, text, "Large(n) }", 7) is None, request
    assert editor.ask("rename", uri, text, "Large", new_name="Other") is None
    assert not editor.ask("references", uri, text, "Large", context=context)
    for request in ("document_highlight", "completion"):
        assert not editor.ask(request, uri, text, "Large(n) }", 7), request
    whole = types.Range(types.Position(0, 0), position(text, len(text)))
    assert not editor.of("inlay_hint", uri, range=whole)
    for request in ("document_symbol", "folding_range", "code_lens"):
        assert not editor.of(request, uri), request
    editor.change(uri, text[:50])
    assert editor.of("document_symbol", uri)


def test_other_files_that_are_open_are_read_as_the_editor_has_them(editor: Editor, folder: Path) -> None:
    (folder / "parts.arch").write_text(ENCODER.replace("FeedForward", "Old"))
    parts = editor.open(folder / "parts.arch", ENCODER)
    text = (
        'import "parts.arch" { Stack, FeedForward }\n\nmodel "deep" = Stack(layers = 5)\nmodel "one" = FeedForward(8)\n'
    )
    uri = editor.open(folder / "uses.arch", text)
    assert list(editor.diagnostics(uri)) == []
    found = editor.ask("rename", uri, text, "Stack", new_name="Encoder")
    assert sorted(Path(u).name for u in found.changes) == ["parts.arch", "uses.arch"]
    assert "block Encoder(hidden" in changed(ENCODER, found.changes[parts])


def mutated(text: str, draw: random.Random) -> str:
    """A text with some characters removed, added or moved, as by someone typing."""
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(text) + 1)
        match draw.randrange(4):
            case 0:
                text = text[:at] + text[at + draw.randint(1, 12) :]
            case 1:
                text = text[:at] + draw.choice('(){}[].,:=|>+x \n"#é𝒳') + text[at:]
            case 2:
                other = draw.randrange(len(text) + 1)
                text = text[:at] + text[other : other + 20] + text[at:]
            case _:
                text = text[:at]
    return text or "\n"


def fuzz(editor: Editor, folder: Path, texts: list[str], rounds: int, seed: int) -> None:
    draw = random.Random(seed)
    path = folder / f"fuzz{seed}.arch"
    uri = editor.open(path, "\n")
    for number in range(rounds):
        text = mutated(draw.choice(texts), draw)
        editor.change(uri, text)
        offset = draw.randrange(len(text))
        requests = ["hover", "definition", "completion", "signature_help", "document_highlight", "prepare_rename"]
        request = draw.choice(requests)
        kind = "".join(word.capitalize() for word in request.split("_"))
        parameters = getattr(types, f"{kind}Params")(types.TextDocumentIdentifier(uri), position(text, offset))
        editor.cancel(types.TEXT_DOCUMENT_HOVER, parameters, f"cancelled {seed} {number}")
        editor.wait(getattr(editor.client, f"text_document_{request}_async")(parameters))
        whole = types.Range(types.Position(0, 0), position(text, len(text)))
        editor.of("inlay_hint", uri, range=whole)
        editor.of("document_symbol", uri)
        editor.of("folding_range", uri)
        path.write_text(text)
        expected = testing.check(str(path), root=str(folder))
        shown = [(d.code, d.message.split("\n")[0]) for d in editor.diagnostics(uri)]
        assert shown == [(d.code, d.message) for d in expected if d.span is None or d.span.source.label == str(path)], (
            text
        )


def test_random_edits_are_answered_as_check_answers(editor: Editor, folder: Path) -> None:
    fuzz(editor, folder, [ENCODER], rounds=25, seed=1)


@pytest.mark.slow
def test_many_random_edits(editor: Editor, folder: Path) -> None:
    texts = [ENCODER, *[(ROOT / "specs" / f"{name}.arch").read_text() for name in ("bert", "t5", "llama", "vit")]]
    fuzz(editor, folder, texts, rounds=100, seed=2)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_formatting(editor: Editor, folder: Path, end: str) -> None:
    text = ENCODER.replace("    |> up:   Linear", "    |> up: Linear").replace("+ x\n}\n", "+ x }\n")
    text = f"{text}\ndim  ,".replace("\n", end)
    uri = editor.open(folder / "formatted.arch", text)
    options = types.FormattingOptions(tab_size=4, insert_spaces=True)
    parameters = types.DocumentFormattingParams(types.TextDocumentIdentifier(uri), options)
    edits = editor.wait(editor.client.text_document_formatting_async(parameters))
    assert changed(text, edits) == f"{ENCODER}\ndim  ,\n".replace("\n", end)
    editor.change(uri, ENCODER)
    assert not editor.wait(editor.client.text_document_formatting_async(parameters))


def test_an_edit_compiles_nothing_of_the_library_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    count = Program.count_instance

    def counted(program: Program, definition: Definition, span: Span) -> None:
        compiled.append(definition.unit.source.label)
        count(program, definition, span)

    text = (ROOT / "specs" / "modernbert.arch").read_text()
    path = str(tmp_path / "edited.arch")
    workspace = workspace_module.Workspace()
    workspace.open(path, text)
    workspace.analysis(path)
    monkeypatch.setattr(Program, "count_instance", counted)
    workspace.open(path, f"{text}# edited\n")
    assert workspace.analysis(path).report.diagnostics == []
    assert set(compiled) == {path}


def test_garbage_is_collected_when_checks_pause_or_after_many(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plan:
        def __init__(self, seconds: float, function: Callable[[], None]) -> None:
            self.seconds, self.run = seconds, function

        def cancel(self) -> None:
            plans.remove(self)

    plans: list[Plan] = []
    loop = SimpleNamespace(call_later=lambda *arguments: plans.append(Plan(*arguments)) or plans[-1])
    monkeypatch.setattr(garbage.asyncio, "get_running_loop", lambda: loop)
    collector = garbage.GarbageCollector()
    for _ in range(2):
        waits: list[float] = []
        for _ in range(garbage.MAX_CHECKS):
            collector.after_check()
            (plan,) = plans  # no more than one
            waits.append(plan.seconds)
        assert waits == [garbage.IDLE_SECONDS] * (garbage.MAX_CHECKS - 1) + [0]
        plan.run()  # and then from the start


def test_what_is_kept_of_the_library_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace_module, "MAX_CACHED_BODIES", 50)
    path = str(tmp_path / "edited.arch")
    workspace = workspace_module.Workspace()
    kept: list[int] = []
    for hidden in range(8, 200, 8):
        workspace.open(path, ENCODER.replace("hidden = 8", f"hidden = {hidden}"))
        assert workspace.analysis(path).report.diagnostics == []
        program = workspace._bundled.program(None)
        kept.append(len(program.modules) + len(program.bodies))
    assert max(kept) < 100 and 0 in kept
    assert all((after == 0) == (before > 50) for before, after in pairwise(kept))


NAMES = """\
import std { Linear, LayerNorm as Norm, gelu as smooth }
import ops { tanh as squash }

dim batch, seq

## Half of it.
fn half(share = 0.5)(x [...]) -> (part [...], [...]) {
  return x * share, x - x * share
}

layer Scale(n, power = 2 * n)(x [batch, seq, n], mask bool [batch, seq, 1] = none) -> [batch, seq, n] {
  weight: frozen param [n]
  steps:  buffer int [n] = arange(n)
  extra:  unused param [power]
  y = where(mask, x, 0.0) if mask != none else x
  return y * .weight + real(.steps)
}

block Mix(n = 4, parts = [2, 2], act = smooth)(x [batch, seq, n]) -> (main [batch, seq, n], other [batch, seq, n]) {
  role head for last
  require n > 2
  up = x |> norm: Norm(n) |> first.dense: Linear(n, bias = false, out_features = n) |> act
  a, _ = half(share = 0.25)(up)
  b, c = split(parts, axis = -1)(squash(a))
  near = sum(axis = -1, keep = true)(x) > 0.0
  s = x
  for i in 0..3 {
    s = s + concat(axis = -1)(b, c) |> scale[i]: Scale(n)(_, near)
  }
  tie last.weight = first.dense.weight
  return last: Linear(n, n)(s), x |> deep.layer[j]: Scale(n) for j in 1..3
}

block Both(..Mix, n = 8, parts = [4, 4])(..Mix) -> [batch, seq, n] {
  h, g = mix: Mix(n = n, parts = parts, act = act)(x)
  twice: Scale(n)
  return h + g |> .twice |> .twice |> + .mix.last.bias
}

model "small" = Mix()
model "large" = Both(n = 8) {
  expect params == 29 * n
}
"""


def test_what_names_refer_to(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    """Each name with the kind and the name of its symbol (`=` where it is introduced), and what hovering shows."""
    path = str(tmp_path / "names.arch")
    workspace = workspace_module.Workspace()
    workspace.open(path, NAMES)
    analysis = workspace.analysis(path)
    assert analysis.report.diagnostics == []
    lines: list[str] = []
    for found in analysis.occurrences:
        line = NAMES.count("\n", 0, found.start) + 1
        symbol, sign = found.symbol, "=" if found.defines else " "
        shown = descriptions.hover(analysis, found.start)
        assert shown is not None and shown[1:] == (found.start, found.end)
        text = " | ".join(filter(None, shown[0].split("\n")))
        name = f"{symbol.owner}.{symbol.name}" if symbol.owner else symbol.name
        lines.append(f"{line:2} {NAMES[found.start : found.end]:12} {sign} {symbol.kind} {name}: {text}\n")
    golden("language_server/names.txt", "".join(lines))


def test_outline_folds_colours_and_hints(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    """Of a file with comments: entries with what is inside them, lines to fold, words with their colours, and hints."""
    text = NAMES.replace("dim batch", "# One,\n# two\n# and three.\n\n# Alone.\ndim batch").replace(
        "  for i in 0..3 {\n", "  for i in 0..3 {\n    if i > 1 {\n      s = s * 2.0\n    }\n"
    )
    path = str(tmp_path / "names.arch")
    workspace = workspace_module.Workspace()
    workspace.open(path, text)
    analysis = workspace.analysis(path)

    def place(offset: int) -> str:
        line, column = analysis.source.position(offset)
        return f"{line}:{column}"

    def listed(entry: Any, indent: str = "") -> Iterator[str]:
        yield f"{indent}{entry.kind} {entry.name} {place(entry.start)} {text[entry.name_start : entry.name_end]!r}"
        for inner in entry.children:
            yield from listed(inner, indent + "  ")

    lines = [f"{each.severity}: {each.message}" for each in analysis.report.diagnostics]
    lines += [line for entry in outline.iter_entries(analysis.unit.tree) for line in listed(entry)]
    lines += [f"fold {found}" for found in outline.iter_folds(analysis.unit.tree, analysis.source)]
    for start, length, kind in outline.iter_tokens(analysis):
        lines.append(f"colour {place(start)} {text[start : start + length]} {outline.TOKEN_TYPES[kind]}")
    found = list(descriptions.iter_hints(analysis, 0, len(text)))
    lines += [f"hint {place(hint.offset)} {hint.text} ({hint.model or 'with the defaults'})" for hint in found]
    golden("language_server/structure.txt", "\n".join(lines) + "\n")
    start = text.index("a, _ =")
    (near,) = descriptions.iter_hints(analysis, start + 2, start + 3)
    assert near in found and text[: near.offset].endswith("half(share = 0.25)(up)")


WRONG = """\
import std { Nope, Linear, gelu as smooth }
import std { Linear as Dense, Nothing }

dim batch

layer Table(n, kind = Missing)(x [batch, n], y [batch, n] = none) -> [batch, n] {
  w[i].part: param [n] for i in 0..2
  return x * .w.0.part + .q + .w.part
}

block Net(n = 4, make = Dense(n, n))(x [batch, n]) -> [batch, n] {
  h = table: Table(n)(x = x, y = x)
  g = h |> inner: make |> .inner.weight
  act = Linear(in_features = n, out_features = 2)
  return .table.w.0.part + Table(n, q = 3)(z = h) + .lost.w
}

model "a" = Lost(n = 3)
model "b" = Net(n = 3) {
  expect n == 3
}
"""


def test_what_names_refer_to_in_a_file_with_errors(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    path = str(tmp_path / "wrong.arch")
    workspace = workspace_module.Workspace()
    workspace.open(path, WRONG)
    analysis = workspace.analysis(path)
    lines = [f"{each.code}: {each.message}\n" for each in analysis.report.diagnostics]
    for found in analysis.occurrences:
        line = WRONG.count("\n", 0, found.start) + 1
        sign = "=" if found.defines else " "
        name = f"{found.symbol.owner}.{found.symbol.name}" if found.symbol.owner else found.symbol.name
        shown = descriptions.hover(analysis, found.start)
        assert shown is not None
        text = " | ".join(filter(None, shown[0].split("\n")))
        lines.append(f"{line:2} {WRONG[found.start : found.end]:12} {sign} {found.symbol.kind} {name}: {text}\n")
    golden("language_server/wrong.txt", "".join(lines))
    assert descriptions.hover(analysis, WRONG.index("model")) is None


def test_values_of_defaults_are_those_of_a_model(tmp_path: Path) -> None:
    text = """\
block Net(n = 4, m = 2 * n)(x [m]) -> [m] { return x * 2.0 }
block Other(k = 5, l = 3 * k)(x [l]) -> [l] { return x * 2.0 }
block Last(q = 7)(x [q]) -> [q] { return x * 2.0 }
model "a" = Net(n = 8)
model "b" = Net(n = 16)
model "c" = Other(l = 6)
model "d" = Last()
"""
    path = str(tmp_path / "defaults.arch")
    workspace = workspace_module.Workspace()
    workspace.open(path, text)
    analysis = workspace.analysis(path)
    places = {"n)(x": '`8` (in "a", with others elsewhere)', "k)(x": '`5` (in "c")', "q]) ->": '`7` (in "d")'}
    for place, shown in places.items():
        hover = descriptions.hover(analysis, text.index(place))
        assert hover is not None and hover[0].endswith(f"\n\n{shown}")


FORWARDED = """\
dim batch

layer Inner(n, rate = 0.5, kind = 1)(x [batch, n], mask [batch, n], other [batch, n] = none) -> [batch, n] {
  w: param [n]
  return x * .w * rate + mask * kind + (other if other != none else x)
}

block Outer(n = 4, rate = 0.25)(x [batch, n], mask [batch, n]) -> [batch, n] {
  kind = 3.0
  other = x * kind
  y = inner: Inner(..)(..)
  return second: Inner(n, ..)(x = y, ..) + other
}

block Same(..Outer)(..Outer) -> [batch, n] {
  return outer: Outer(..)(..)
}

model "m" = Same(rate = 0.75)
"""


@pytest.mark.parametrize(
    ("place", "name", "lines"),
    [
        ("mask [batch, n], other", "hide", [3, 5, 8]),
        ("mask [batch, n]) ->", "hide", [3, 5, 8]),
        ("rate = 0.5", "share", [3, 5, 8, 19]),
        ("rate = 0.75", "share", [3, 5, 8, 19]),
        ("kind = 1", "sort", [3, 5]),
        ("kind = 3.0", "sort", [9, 10]),
        ("other [batch", "more", [3, 5]),
        ("other = x", "more", [10, 12]),
        ("x [batch, n], mask [batch, n]) ->", "z", [3, 5, 8, 10, 12]),
        ("n = 4", "size", [3, 4, 8, 12, 15]),
        ("y = inner", "found", [11, 12]),
    ],
)
def test_names_that_are_forwarded_are_renamed_together(place: str, name: str, lines: list[int], folder: Path) -> None:
    path = str(folder / "forwarding.arch")
    workspace = workspace_module.Workspace()
    workspace.open(path, FORWARDED)
    analysis = workspace.analysis(path)
    assert analysis.report.diagnostics == []
    found = analysis.occurrence_at(FORWARDED.index(place))
    after = edits.apply_edits(FORWARDED, edits.rename(workspace, analysis, found.symbol, name)[path])
    pairs = zip(FORWARDED.splitlines(), after.splitlines(), strict=True)
    assert [number for number, (one, other) in enumerate(pairs, 1) if one != other] == lines
    old = FORWARDED[found.start : found.end]
    assert not re.search(
        rf"\b{old}\b", "\n".join(after.splitlines()[number - 1] for number in lines).replace(f".{old}", "")
    )


INHERITED = """\
dim batch

layer Inner(n, rate = 0.5)(x [batch, n]) -> [batch, n] {
  w: param [n]
  return x * .w * rate
}

# It replaces
# a default.
block Same(..Inner, rate = 0.75)(..Inner) -> [batch, n] {
  role head for parts
  parts.one: Inner(n, rate)
  other: Inner(n, rate)
  return .other(.parts.one(x))
}

block Apart(n, rate = 0.5)(x [batch, n]) -> [batch, n] {
  return inner: Inner(n, rate)(x)
}

model "m" = Same(n = 3)
model "apart" = Apart(n = 3)
"""


@pytest.mark.parametrize(
    ("place", "name", "lines"),
    [
        ("rate = 0.5)(x [batch, n]) -> [batch, n] {\n  w", "share", [3, 5, 10, 12, 13]),
        ("rate = 0.75", "share", [3, 5, 10, 12, 13]),
        ("rate = 0.5)(x [batch, n]) -> [batch, n] {\n  return", "share", [17, 18]),
        ("parts.one:", "pieces", [11, 12, 14]),
        ("other:", "last", [13, 14]),
    ],
)
def test_only_what_must_have_one_name_is_renamed_together(
    place: str, name: str, lines: list[int], folder: Path
) -> None:
    path = str(folder / "inherited.arch")
    workspace = workspace_module.Workspace()
    workspace.open(path, INHERITED)
    analysis = workspace.analysis(path)
    assert analysis.report.diagnostics == []
    found = analysis.occurrence_at(INHERITED.index(place))
    after = edits.apply_edits(INHERITED, edits.rename(workspace, analysis, found.symbol, name)[path])
    pairs = zip(INHERITED.splitlines(), after.splitlines(), strict=True)
    assert [number for number, (one, other) in enumerate(pairs, 1) if one != other] == lines


def test_edges_of_names_definitions_statements_and_comments(folder: Path) -> None:
    path = str(folder / "edges.arch")
    workspace = workspace_module.Workspace()
    workspace.open(path, INHERITED)
    analysis = workspace.analysis(path)
    name = INHERITED.index("rate)")
    shown = [analysis.occurrence_at(offset) for offset in range(name - 1, name + 6)]
    assert [each.symbol.name if each else None for each in shown] == [None, *["rate"] * 5, None]
    start, end = INHERITED.index("layer Inner"), INHERITED.index("}") + 1
    inside = [analysis.definition_at(offset) for offset in (start, start + 1, end - 1, end)]
    assert [each.name if each else None for each in inside] == [None, "Inner", "Inner", None]
    start, end = INHERITED.index("  other:") + 2, INHERITED.index("\n  return .other")
    ranges = [(0, start), (0, start + 1), (end, end + 1), (end + 1, end + 1)]
    found = [[hint.offset == end for hint in descriptions.iter_hints(analysis, *each)] for each in ranges]
    assert [any(each) for each in found] == [False, True, True, False]
    assert [lines for *lines, is_comment in outline.iter_folds(analysis.unit.tree, analysis.source) if is_comment] == [
        [8, 9]
    ]


def test_definitions_that_bundled_files_use_are_not_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {
        "std.arch": 'export "own.arch" { Affine }\n',
        "own.arch": "layer Affine(n)(x [..., n]) -> [..., n] {\n  w: param [n]\n  return x * .w\n}\n",
        "use.arch": 'import "own.arch" { Affine }\n\nblock Net(n = 2)(x [n]) -> [n] { return x |> a: Affine(n) }\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(workspace_module.resources, "specs_root", lambda: str(tmp_path))
    workspace = workspace_module.Workspace()
    own, use = str(tmp_path / "own.arch"), str(tmp_path / "use.arch")
    workspace.open(own, texts["own.arch"])

    def renamed(path: str, place: str) -> object:
        analysis = workspace.analysis(path)
        found = analysis.occurrence_at(texts[Path(path).name].index(place))
        try:
            return {Path(p).name for p in edits.rename(workspace, analysis, found.symbol, "Other")}
        except edits.UnsafeRenameError as reason:
            return str(reason)

    assert renamed(own, "w:") == {"own.arch"}
    assert renamed(own, "Affine") == {"own.arch"}
    workspace.folders = [str(tmp_path)]
    assert renamed(own, "Affine") == f"`Affine` is also used in the bundled file {use}"
    workspace.open(use, texts["use.arch"])
    assert renamed(own, "Affine") == {"own.arch", "use.arch"}
    workspace.close(own)
    workspace.folders = []
    assert renamed(use, "Affine(") == f"`Affine` is also defined in {own}, which is not open"


@pytest.mark.parametrize(
    ("place", "name", "reason"),
    [
        ("h = x", "1h", "`1h` is not a valid name"),
        ("h = x", "", "`` is not a valid name"),
        ("h = x", "_", "`_` is not a valid name"),
        ("h = x", "é", "`é` is not a valid name"),
        ("h = x", "for", "`for` is a keyword"),
        ("h = x", "model", None),
        ("h = x", "h_1", None),
        ("up:", "a.b", "`a.b` is not a valid name"),
        ("up:", "a-b", "`a-b` is not a valid name"),
        ("up:", "for", "the name has a different meaning there: expected an address, found the keyword `for`"),
        ("up:", "1", "the name has a different meaning there: expected an address, found the number `1`"),
        ("up:", "_1", None),
        ("tiny", 'a"', '`a"` is not a valid name'),
        ("tiny", "a\\", "`a\\` is not a valid name"),
        ("tiny", "a\n", "`a\n` is not a valid name"),
        ("tiny", "for é", None),
        ("batch,", "in", "`in` is a keyword"),
    ],
)
def test_new_names(place: str, name: str, reason: str | None, folder: Path) -> None:
    path = str(folder / "new_names.arch")
    workspace = workspace_module.Workspace()
    workspace.open(path, ENCODER)
    analysis = workspace.analysis(path)
    found = analysis.occurrence_at(ENCODER.index(place))
    if reason is None:
        assert edits.rename(workspace, analysis, found.symbol, name)
    else:
        with pytest.raises(edits.UnsafeRenameError, match=f"^{re.escape(reason)}$"):
            edits.rename(workspace, analysis, found.symbol, name)


@pytest.mark.parametrize(
    ("place", "name", "before", "after"),
    [
        ("batch, seq", "rows", r"\bbatch\b", "rows"),
        ("squash(", "squeeze", "squash", "squeeze"),
        ("smooth }", "soft", "smooth", "soft"),
        ("main [", "first", "main", "first"),
        ("parts = [2", "sizes", "parts", "sizes"),
        ("twice:", "again", "twice", "again"),
        ("near =", "mask", r"\bnear\b", "mask"),
    ],
)
def test_inherited_and_imported_names_are_renamed(
    editor: Editor, folder: Path, place: str, name: str, before: str, after: str
) -> None:
    uri = editor.open(folder / "names.arch", NAMES)
    found = editor.ask("rename", uri, NAMES, place, new_name=name)
    assert changed(NAMES, found.changes[uri]) == re.sub(before, after, NAMES)
