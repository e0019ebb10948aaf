"""What editors are offered, computed in this process: completion, fixes, hints, renaming, and files that change."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from notation import tree_of

pytest.importorskip("pygls")

from pygls.workspace import PositionCodec

from archspec.app.lsp import server
from archspec.app.lsp.completion import active_argument, complete, find_enclosing_call, list_arguments, resolve_callee
from archspec.app.lsp.descriptions import hover, iter_hints
from archspec.app.lsp.edits import UnsafeRenameError, _removal_edit, apply_edits, import_edit, iter_fixes, rename
from archspec.app.lsp.outline import Positions
from archspec.app.lsp.workspace import Workspace

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


def test_only_diagnostics_of_a_part_are_fixed(workspace: Workspace, tmp_path: Path) -> None:
    analysis = analysed(workspace, tmp_path, RIGHT.replace("gelu }", "gelu, relu }"))
    (diagnostic,) = analysis.report.diagnostics
    start, end = diagnostic.span.start, diagnostic.span.end

    def titles(first: int, last: int) -> list[str]:
        return [each.title for each in iter_fixes(workspace, analysis, first, last)]

    assert titles(start, end) == titles(0, start) == titles(end, 9999) == ["Remove it"]
    assert titles(0, start - 1) == titles(end + 1, 9999) == []


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


def test_what_is_under_the_cursor(workspace: Workspace, tmp_path: Path) -> None:
    broken = analysed(workspace, tmp_path, RIGHT.replace('"net" = Net()', '"net" = Net(n = 5)'), "broken.arch")
    found = hover(broken, broken.source.text.index('"net"') + 2)
    assert found is not None and found[0].startswith('model "net"')
    analysis = analysed(workspace, tmp_path, RIGHT)
    found = hover(analysis, RIGHT.index('"net"') + 2)
    assert found is not None and found[0].startswith('model "net": 32 parameters')


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
    )
    server.did_save(made, None)  # type: ignore[arg-type]
    assert calls == ["file:///a.arch", "file:///b.arch"]
    calls.clear()
    server.did_close(made, SimpleNamespace(text_document=SimpleNamespace(uri="file:///a.arch")))  # type: ignore[arg-type]
    assert calls == ["/a.arch", ("file:///a.arch", [])]


def test_the_range_of_a_file(workspace: Workspace, tmp_path: Path) -> None:
    analysis = analysed(workspace, tmp_path, "dim a\ndim \N{GRINNING FACE}")
    text = analysis.source.text
    found = Positions(analysis.source, PositionCodec()).range(0, len(text))
    assert (found.start.line, found.start.character, found.end.line, found.end.character) == (0, 0, 1, 6)
