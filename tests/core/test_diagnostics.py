"""Diagnostics for other programs: `check --format json`, `sarif` and `github`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from archspec import Diagnostic, Note, Source, Span
from archspec.app.cli.run.error import read_entries
from archspec.core.reports.diagnostic_formats import github_text, sarif_text
from archspec.testing import main

SPEC = """import std { Linear, gelu }
dim batch
block Net(n = 2)(x [batch, n]) -> [batch, n] {
  return x
    |> a: Linear(n,
                 n, biass = false)
    |> a: Linear(n, n)
}
model "net" = Net()
"""


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("my specs").mkdir()
    Path("my specs", "net.arch").write_text(SPEC)
    return "my specs/net.arch"


@pytest.mark.parametrize("format", ["json", "sarif", "github"])
def test_formats(
    spec: str, format: str, golden: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", spec, "--format", format]) == 1
    out, err = capsys.readouterr()
    assert not err
    if format == "sarif":  # the descriptions of errors are tested elsewhere
        document = json.loads(out)
        assert out == json.dumps(document, indent=1) + "\n"
        rules = document["runs"][0]["tool"]["driver"]["rules"]
        for rule in rules:
            entry = read_entries()[rule["id"]]
            assert entry == f"## {rule['id']}\n\n{rule['help'].pop('markdown')}"
            del rule["help"]
        out = json.dumps(document, indent=1) + "\n"
    golden(f"findings/{format}.txt", out)


@pytest.mark.parametrize("format", ["json", "sarif", "github"])
def test_files_without_errors(tmp_path: Path, format: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.arch"
    path.write_text("fn f(n) {\n  return n\n}\n")
    assert main(["check", str(path), "--format", format]) == 0
    out = capsys.readouterr().out
    match format:
        case "json":
            assert json.loads(out) == {
                **{"format": 1, "files": [str(path)], "errors": 0, "warnings": 0, "diagnostics": []}
            }
        case "sarif":
            assert json.loads(out)["runs"][0]["results"] == []
        case _:
            assert out == "1 file, no errors or warnings\n"


def test_the_exit_status_does_not_depend_on_the_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for format in ("text", "json", "sarif", "github"):
        assert main(["check", str(tmp_path / "none.arch"), "--format", format]) == 2
    (tmp_path / "a.arch").write_text("dim batch\n")
    for format in ("text", "json", "sarif", "github"):
        assert main(["check", str(tmp_path), "--format", format]) == 0
        assert main(["check", str(tmp_path), "--format", format, "--strict"]) == 1
    capsys.readouterr()


HOSTILE = "100%,a:b\r\n::error::é"


def test_workflow_commands_are_escaped() -> None:
    source = Source("a,b:c%.arch", "one\ntwo\n")
    found = Diagnostic(
        "syntax", HOSTILE, Span(source, 1, 6), (Note("here", Span(source, 0, 1)),), "do\nthis", "warning"
    )
    assert github_text([found, Diagnostic("usage", "no file")]) == (
        "::warning file=a%2Cb%3Ac%25.arch,line=1,endLine=2,title=archspec syntax::100%25,a:b%0D%0A::error::é"
        "%0Anote: here (a,b:c%25.arch:1:1)%0Ahelp: do%0Athis\n"
        "::error title=archspec usage::no file\n"
    )


def test_locations_in_sarif() -> None:
    labels = {"a b.arch": "a%20b.arch", "<stdin>": "%3Cstdin%3E", "/é/x.arch": "file:///%C3%A9/x.arch"}
    found = [Diagnostic("syntax", HOSTILE, Span(Source(label, "x"), 1, 1)) for label in labels]
    results = json.loads(sarif_text(found, {}, "1"))["runs"][0]["results"]
    places = [result["locations"][0]["physicalLocation"] for result in results]
    assert [place["artifactLocation"]["uri"] for place in places] == [*labels.values()]
    assert {tuple(place["region"].values()) for place in places} == {(1, 2, 1, 2)}
