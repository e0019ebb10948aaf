"""The language server, through its protocol: a client talks to `archspec lsp` over pipes."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from editor import Editor, at, changed, position
from paths import ROOT, read_spec

from archspec import testing

types = pytest.importorskip("lsprotocol.types")


ENCODER = read_spec("language_server_encoder")


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
            "help: make the sizes of axis -1 equal, or one of them 1; shapes are aligned at the last axis",
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
        expected = testing.check(str(path))
        shown = [(d.code, d.message.split("\n")[0]) for d in editor.diagnostics(uri)]
        assert shown == [(d.code, d.message) for d in expected if d.span is None or d.span.source.label == str(path)], (
            text
        )


def test_random_edits_are_answered_as_check_answers(editor: Editor, folder: Path) -> None:
    fuzz(editor, folder, [ENCODER], rounds=25, seed=1)


@pytest.mark.slow
def test_many_random_edits(editor: Editor, folder: Path) -> None:
    texts = [
        ENCODER,
        *[
            (ROOT / "specs" / f"{name}.arch").read_text()
            for name in ("text/bert", "seq2seq/t5", "text/llama", "vision/vit")
        ],
    ]
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
