"""What editors are offered, computed in this process: completion, fixes, hints, renaming, and files that change."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from notation import tree_of
from paths import ROOT

from archspec import Source, Span

pytest.importorskip("pygls")

from test_language_server import ENCODER

from archspec.app.lsp import server
from archspec.app.lsp.completion import active_argument, complete, find_enclosing_call, list_arguments, resolve_callee
from archspec.app.lsp.descriptions import hover, iter_hints
from archspec.app.lsp.edits import UnsafeRenameError, _removal_edit, apply_edits, import_edit, iter_fixes, rename
from archspec.app.lsp.workspace import Workspace
from archspec.compiler.evaluate.program import Program
from archspec.compiler.resolve.unit import Definition
from archspec.core.diagnostics import Report
from archspec.language.syntax.parse import parse

completion = pytest.importorskip("archspec.app.lsp.completion")
descriptions = pytest.importorskip("archspec.app.lsp.descriptions")
edits = pytest.importorskip("archspec.app.lsp.edits")
garbage = pytest.importorskip("archspec.app.lsp.server")
outline = pytest.importorskip("archspec.app.lsp.outline")
positions = pytest.importorskip("archspec.app.lsp.outline")
types = pytest.importorskip("lsprotocol.types")
workspace_module = pytest.importorskip("archspec.app.lsp.workspace")

NET = """\
import std { Linear, LayerNorm as Norm, gelu }

dim batch

layer Scale(n, by = 2)(x [batch, n]) -> [batch, n] {
  weight: param [n]
  return x * .weight * by
}

block Net(n = 4, act = gelu)(x [batch, n]) -> ([batch, n], [batch, 2]) {
  first.one: Scale(n)
  first.two: Linear(n, n)
  y = split([n, n], axis = -1)(x |> up: Linear(n, 2 * n) |> act)
  a, b = split([2, 2], axis = -1)(x)
  z = .first.two(x |> norm: Norm(n)) |> .first.one
  return z, a + b
}

model "net" = Net()
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace()


def analysed(workspace: Workspace, tmp_path: Path, text: str, name: str = "net.arch") -> Any:
    path = str(tmp_path / name)
    workspace.open(path, text)
    return workspace.analysis(path)


RIGHT = NET.replace("  y = split([n, n], axis = -1)(x |> up: Linear(n, 2 * n) |> act)\n", "  y = act(x)\n").replace(
    "return z, a", "return z + y, a"
)


def offered(workspace: Workspace, tmp_path: Path, before: str, line: str, after: str = "") -> dict[str, str]:
    """What is offered at the end of a line, with what each is."""
    analysis = analysed(workspace, tmp_path, RIGHT)
    text = f"{before}{line}{after}"
    return {each.text: each.kind for each in complete(analysis, text, len(before) + len(line))}


def test_candidates_depend_on_what_is_before_them(workspace: Workspace, tmp_path: Path) -> None:
    body = RIGHT[: RIGHT.index("  return z")]

    def found(line: str, before: str = RIGHT) -> dict[str, str]:
        return offered(workspace, tmp_path, before, line)

    assert found("# a comment ") == found('x = "a text') == {}
    assert {"Net": "definition", "Scale": "definition"}.items() <= found('model "other" = ').items()
    assert "gelu" not in found('model "other" = ') and "softmax" not in found('model "other" = N')
    assert {"softmax": "operation"}.items() <= found("import ops { ").items() and "Linear" not in found("import ops { ")
    assert found("import nothing { ") == {} and found("import std { ")["Linear"] == "definition"
    assert found("  a = .", body) == {"first.one": "address", "first.two": "address", "norm": "address"}
    assert found("  a = .first.", body) == {"one": "address", "two": "address"}
    assert list(found("  a = Scale(n, ", body))[:2] == ["n = ", "by = "]
    assert list(found("  a = Scale(n = 3, ", body))[:1] == ["by = "]
    assert list(found("  a = Scale(3)(", body))[:1] == ["x = "]
    assert list(found("  a = softmax(", body))[:1] == ["axis = "]
    assert list(found("  a = softmax()(", body))[:1] == ["x = "]


def test_what_candidates_are(workspace: Workspace, tmp_path: Path) -> None:
    analysis = analysed(workspace, tmp_path, RIGHT)
    body = RIGHT[: RIGHT.index("  return z")] + "  a = ."
    details = {each.text: each.detail for each in complete(analysis, body, len(body))}
    assert details == {"first.one": "Scale", "first.two": "Linear", "norm": "Norm"}
    scale = RIGHT[: RIGHT.index("  return x *")] + "  a = ."
    assert {each.text: each.detail for each in complete(analysis, scale, len(scale))} == {"weight": "param"}
    assert complete(SimpleNamespace(unit=None), "x", 1) == []  # type: ignore[arg-type]


def test_each_kind_of_candidate_has_a_sign(workspace: Workspace, tmp_path: Path) -> None:
    body = RIGHT[: RIGHT.index("  return z")]
    kinds: set[str] = set()
    for line in ("  a = .", "  a = Scale(", "import ", "  a = softmax("):
        kinds.update(offered(workspace, tmp_path, body, line).values())
    assert kinds == {*server.COMPLETION_KINDS}


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("import std { a }\nimport other { b }\n", "import std { a, n }\nimport other { b }\n"),
        ("import other { b }\ndim n\n", "import other { b }\nimport std { n }\ndim n\n"),
        ("# file\n\n## one\n## two\nfn f(n) { return n }\n", "# file\n\nimport std { n }\n\n## one\n## two\n"),
        ("# file\ndim n\n", "# file\nimport std { n }\n\ndim n\n"),
        ("export std { a }\ndim n\n", "export std { a }\nimport std { n }\ndim n\n"),
    ],
)
def test_where_names_are_imported(text: str, edited: str) -> None:
    assert apply_edits(text, [import_edit(tree_of(text), text, "n")]).startswith(edited)


BIG = """
block Big()(x [batch, 99]) -> [batch, 99] {
  return x |> l: Linear(99, 99)
}
model "big" = Big() {
  expect params == 1_000
}
"""
FIXES = [
    ("gelu }", "gelu, relu }", "unused-import", "Remove it", "gelu }"),
    ("one: Scale(n)", "one: Scale(n)\n  third: Scale(n)", "unused-layer", "Mark it `unused`", "third: unused Scale(n)"),
    ("  weight:", "  more: param [n]\n  weight:", "unused-tensor", "Mark it `unused`", "more: unused param [n]"),
    ("act(x)", "relu(act(x))", "unknown-name", "Import `relu` from std", "LayerNorm as Norm, gelu, relu }"),
    ("act(x)", "reluu(act(x))", "unknown-name", "Change to `relu`", "relu(act(x))"),
    ('model "net"', f'{BIG}model "net"', "expect", "Expect 9,900", "expect params == 9_900\n"),
]


@pytest.mark.parametrize(("old", "new", "code", "title", "result"), FIXES)
def test_fixes_remove_their_diagnostic(
    workspace: Workspace, tmp_path: Path, old: str, new: str, code: str, title: str, result: str
) -> None:
    analysis = analysed(workspace, tmp_path, RIGHT.replace(old, new))
    found = {each.title: each for each in iter_fixes(workspace, analysis, 0, 9999) if each.diagnostic.code == code}
    assert title in found, (found, analysis.report.diagnostics)
    text = apply_edits(analysis.source.text, list(found[title].edits))
    assert result in text
    again = analysed(workspace, tmp_path, text, "again.arch")
    assert again.report.diagnostics == []


def test_shapes_are_shown_behind_statements(workspace: Workspace, tmp_path: Path) -> None:
    text = RIGHT.replace("  y = act(x)\n", "  y = act(x)\n  w = tanh(x) |> * 2.0 |> act\n").replace(
        "z + y", "z + y + w"
    )
    analysis = analysed(workspace, tmp_path, text)
    assert analysis.report.diagnostics == []
    every = list(iter_hints(analysis, 0, 9999))
    found = {text[: hint.offset].rpartition("\n")[2].strip(): hint.text for hint in every}
    assert found["y = act(x)"].endswith("[batch, 4]") and found["a, b = split([2, 2], axis = -1)(x)"].endswith(
        "[batch, 2], [batch, 2]"
    )
    assert found["w = tanh(x)"].endswith("[batch, 4]") and found["w = tanh(x) |> * 2.0"].endswith("[batch, 4]")
    assert "20 params" in found["first.two: Linear(n, n)"] or "20" in found["first.two: Linear(n, n)"]
    start = text.index("a, b =")
    assert len(list(iter_hints(analysis, start, start + 3))) == 1


def test_names_that_mean_something_else_are_refused(workspace: Workspace, tmp_path: Path) -> None:
    analysis = analysed(workspace, tmp_path, RIGHT)

    def renamed(place: str, name: str, inside: int = 0) -> str:
        found = analysis.occurrence_at(RIGHT.index(place) + inside)
        assert found is not None
        changes = rename(workspace, analysis, found.symbol, name)
        return apply_edits(RIGHT, changes[analysis.path])

    assert renamed("Norm, gelu", "Normed") == RIGHT.replace("Norm, gelu", "Normed, gelu").replace(
        "Norm(n)", "Normed(n)"
    )
    assert renamed("by = 2", "factor") == RIGHT.replace("by", "factor")
    for place, name, reason in (
        ("by = 2", "n", "the name has a different meaning there"),
        ("by = 2", "if", "`if` is a keyword"),
        ("by = 2", "2", "`2` is not a valid name"),
        ("a, b =", "z", "the name has a different meaning there"),
    ):
        with pytest.raises(UnsafeRenameError, match=reason):
            renamed(place, name)


def test_a_refused_rename_reads_no_other_file(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = analysed(workspace, tmp_path, RIGHT)
    for number in range(5):
        (tmp_path / f"user{number}.arch").write_text(RIGHT)
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
    path.write_text(RIGHT)
    assert len(analysed(workspace, tmp_path, RIGHT + "odd\n").report.diagnostics) == 1
    workspace.close(str(path))
    assert workspace.analysis(str(path)).report.diagnostics == []
    assert workspace.analysis(str(path)) is workspace.analysis(str(path))


def test_a_folder_may_have_many_files(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in "ab":
        (tmp_path / folder).mkdir()
        for name in "cd":
            (tmp_path / folder / f"{name}.arch").write_text(RIGHT)
    workspace.folders = [str(tmp_path)]
    assert len(list(workspace.files())) == 4
    monkeypatch.setattr("archspec.app.lsp.workspace.MAX_FILES", 1)
    assert [Path(file).name for file in workspace.files()] == ["c.arch"]


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


PLAIN = """\
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
    ("before", "part", "after", "left"),
    [
        ("f(a, ", "b", " , c)", "f(a, c)"),
        ("f(a, ", "b", ",\n  c)", "f(a, c)"),
        ("f(a , ", "b", ")", "f(a )"),
        ("f(", "b", ")", "f()"),
        ("x\n  ", "y = 1", "  \nz", "x\nz"),
        ("x\n  ", "y = 1", "", "x\n"),
        ("x\n  ", "y = 1", " # z\n", "x\n   # z\n"),
        ("x\nw ", "y = 1", "\n", "x\nw \n"),
        ("", "y = 1", "\nz\n", "z\n"),
    ],
)
def test_what_is_removed_with_a_part(before: str, part: str, after: str, left: str) -> None:
    text = before + part + after
    assert apply_edits(text, [_removal_edit(text, len(before), len(before) + len(part))]) == left


@pytest.mark.parametrize(
    ("text", "position", "name"),
    [
        ("Scale(", 0, "n"),
        ("Scale(3, ", 1, "by"),
        ("Scale(f(1, 2), ", 1, "by"),
        ("Scale(by = ", 1, "by"),
        ("Scale(by == ", 0, "n"),
        ("Scale(other = ", None, None),
        ("Scale(1, 2, ", None, None),
        ("Scale(1, 2)(", 0, "x"),
        ("softmax(axis = ", 0, "axis"),
        ("layer_norm(eps = 1.0)(x, ", 1, "weight"),
    ],
)
def test_the_argument_that_is_written(
    workspace: Workspace, tmp_path: Path, text: str, position: int | None, name: str | None
) -> None:
    unit = analysed(workspace, tmp_path, RIGHT).unit
    call = find_enclosing_call(text)
    assert call is not None and unit is not None
    target = resolve_callee(unit, call)
    assert target is not None
    names = list_arguments(target, call)
    found = active_argument(call, names)
    assert found == position and (found is None or names[found][0] == name)


def test_only_diagnostics_of_a_part_are_fixed(workspace: Workspace, tmp_path: Path) -> None:
    analysis = analysed(workspace, tmp_path, RIGHT.replace("gelu }", "gelu, relu }"))
    (diagnostic,) = analysis.report.diagnostics
    start, end = diagnostic.span.start, diagnostic.span.end

    def titles(first: int, last: int) -> list[str]:
        return [each.title for each in iter_fixes(workspace, analysis, first, last)]

    assert titles(start, end) == titles(0, start) == titles(end, 9999) == ["Remove it"]
    assert titles(0, start - 1) == titles(end + 1, 9999) == []


def test_what_is_under_the_cursor(workspace: Workspace, tmp_path: Path) -> None:
    broken = analysed(workspace, tmp_path, RIGHT.replace('"net" = Net()', '"net" = Net(n = 5)'), "broken.arch")
    found = hover(broken, broken.source.text.index('"net"') + 2)
    assert found is not None and found[0].startswith('model "net"')
    analysis = analysed(workspace, tmp_path, RIGHT)
    found = hover(analysis, RIGHT.index('"net"') + 2)
    assert found is not None and found[0].startswith('model "net": 32 parameters')
