"""Steps of the language server that no request shows: files that change, limits, names, positions.

Its answers are in tests/golden/language_server/cases.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from paths import ROOT, read_spec

from archspec import Source, Span

pytest.importorskip("pygls")

from test_language_server import ENCODER

from archspec.app.lsp import server
from archspec.app.lsp.edits import UnsafeRenameError, rename
from archspec.app.lsp.workspace import Workspace
from archspec.compiler.evaluate.program import Program
from archspec.compiler.resolve.unit import Definition

descriptions = pytest.importorskip("archspec.app.lsp.descriptions")
edits = pytest.importorskip("archspec.app.lsp.edits")
garbage = pytest.importorskip("archspec.app.lsp.server")
outline = pytest.importorskip("archspec.app.lsp.outline")
positions = pytest.importorskip("archspec.app.lsp.outline")
types = pytest.importorskip("lsprotocol.types")
workspace_module = pytest.importorskip("archspec.app.lsp.workspace")

NET = """\
layer Scale(n, by = 2)(x [n]) -> [n] {
  w: param [n]
  return x * .w * by
}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace()


def analysed(workspace: Workspace, tmp_path: Path, text: str, name: str = "net.arch") -> Any:
    path = str(tmp_path / name)
    workspace.open(path, text)
    return workspace.analysis(path)


def test_a_refused_rename_reads_no_other_file(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = analysed(workspace, tmp_path, NET)
    for number in range(5):
        (tmp_path / f"user{number}.arch").write_text(NET)
    workspace.folders = [str(tmp_path)]
    read: list[str] = []
    analyse = workspace.analyse
    monkeypatch.setattr(workspace, "analyse", lambda path, texts: read.append(path) or analyse(path, texts))
    occurrence = first.occurrence_at(first.source.text.index("by = 2"))
    assert occurrence is not None
    with pytest.raises(UnsafeRenameError, match="already defined"):
        rename(workspace, first, occurrence.symbol, "n")
    rename(workspace, first, occurrence.symbol, "factor")
    assert {*read} == {first.path}


def test_files_are_read_again_after_they_are_closed(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "net.arch"
    path.write_text(NET)
    assert len(analysed(workspace, tmp_path, NET + "odd\n").report.diagnostics) == 1
    workspace.close(str(path))
    assert workspace.analysis(str(path)).report.diagnostics == []
    assert workspace.analysis(str(path)) is workspace.analysis(str(path))


def test_documents_are_published_when_they_are_saved_and_closed() -> None:
    calls: list[Any] = []
    made: Any = SimpleNamespace(
        workspace=SimpleNamespace(text_documents={"file:///a.arch": 1, "file:///b.arch": 2}),
        publish=lambda uri: calls.append(uri),
        files=SimpleNamespace(close=lambda path: calls.append(path)),
        text_document_publish_diagnostics=lambda given: calls.append((given.uri, list(given.diagnostics))),
        client_capabilities=SimpleNamespace(workspace=None),
        workspace_code_lens_refresh=lambda given: calls.append("refresh"),
    )
    server.did_save(made, None)  # type: ignore[arg-type]
    assert calls == ["file:///a.arch", "file:///b.arch"]
    made.client_capabilities.workspace = SimpleNamespace(code_lens=SimpleNamespace(refresh_support=True))
    server.did_save(made, None)  # type: ignore[arg-type]
    assert calls[2:] == ["file:///a.arch", "file:///b.arch", "refresh"]
    calls.clear()
    server.did_close(made, SimpleNamespace(text_document=SimpleNamespace(uri="file:///a.arch")))  # type: ignore[arg-type]
    assert calls == ["/a.arch", ("file:///a.arch", [])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("specs").resolve()


PLAIN = read_spec("editing_plain")


def test_fixes_of_a_place(folder: Path) -> None:
    text = PLAIN.replace("dim batch", "dim batch, one, two")
    workspace = workspace_module.Workspace()
    workspace.open(str(folder / "places.arch"), text)
    analysis = workspace.analysis(str(folder / "places.arch"))
    first, second = text.index("one"), text.index("two")

    def found(start: int, end: int) -> list[str]:
        return [fix.diagnostic.message[-5:] for fix in edits.iter_fixes(workspace, analysis, start, end)]

    assert found(first, first) == found(first - 5, first) == found(first + 3, first + 3) == ["`one`"]
    assert found(first + 4, first + 4) == found(0, first - 1) == found(second + 4, len(text)) == []
    assert found(first + 3, second) == ["`one`", "`two`"] and found(second + 3, len(text)) == ["`two`"]


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


def test_an_edit_compiles_nothing_of_the_library_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    count = Program.count_instance

    def counted(program: Program, definition: Definition, span: Span) -> None:
        compiled.append(definition.unit.source.label)
        count(program, definition, span)

    text = (ROOT / "specs" / "text" / "modernbert.arch").read_text()
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


NAMES = read_spec("editing_names")


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


WRONG = read_spec("editing_wrong")


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


INHERITED = read_spec("editing_inherited")


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
