"""The whole message for mistakes that people made who had read the documentation: one finding each, with its fix.

A file under tests/golden/messages has cases: a title, a spec, and what `check` says of it.
`pytest --update-golden` writes the messages anew.
"""

import contextlib
import re
from collections.abc import Callable
from pathlib import Path

import paths
import pytest
from paths import ROOT

from archspec import testing
from archspec.testing import main

GOLDEN = paths.GOLDEN / "messages"


def cases(text: str) -> list[tuple[str, str]]:
    """The titles and specs in a golden file."""
    return [(title, spec) for title, spec in re.findall(r"^=== (.+)\n((?:(?!---\n|=== ).*\n)*)", text, re.MULTILINE)]


@pytest.mark.parametrize("name", [path.stem for path in sorted(GOLDEN.glob("*.txt"))])
def test_messages(name: str, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    shown = ""
    for title, spec in cases((GOLDEN / f"{name}.txt").read_text(encoding="utf-8")):
        (tmp_path / "spec.arch").write_text(spec, encoding="utf-8")
        with contextlib.chdir(tmp_path):
            found = testing.check("spec.arch")
        assert len(found) == 1, (title, *(d.render() for d in found))
        assert found[0].help or found[0].notes, title
        shown += f"=== {title}\n{spec}---\n{found[0].render()}\n\n"
    golden(f"messages/{name}.txt", shown)


# Commands that do what was meant --------------------------------------------------------------------------------------


def output(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main(arguments) == status
    return capsys.readouterr().out


def test_show_takes_files_and_definitions(capsys: pytest.CaptureFixture[str]) -> None:
    attention = output(capsys, "show", "std/attention")
    assert output(capsys, "show", "std/attention.arch") == attention
    assert output(capsys, "show", "specs/std/attention.arch") == attention
    shown = output(capsys, "show", "SelfAttention")
    header, _, source = shown.partition("\n\n")
    assert header == "# specs/std/attention.arch"
    assert source.startswith("## Attention of a sequence to itself") and source.rstrip() in attention
    assert "\nblock SelfAttention(" in source and source.endswith("}\n")


@pytest.mark.parametrize("name", ["FeedForward", "Decoder", "SinusoidalEmbedding"])
def test_show_has_every_definition_of_a_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    headers = re.findall(r"^# (specs/.+)$", output(capsys, "show", name), re.MULTILINE)
    specs = Path(str(ROOT / "specs"))
    defining = [p for p in specs.rglob("*.arch") if re.search(rf"^(layer|block) {name}\(", p.read_text(), re.M)]
    paths = sorted(path.relative_to(specs.parent).as_posix() for path in defining)
    assert headers == sorted(paths, key=lambda path: not path.startswith("specs/std/"))


def test_check_takes_a_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "parts").mkdir()
    part = "layer Scale(n)(x [..., n]) -> [..., n] {\n  scale: param [n]\n  return x * .scale\n}\n"
    (tmp_path / "base.arch").write_text(part)
    (tmp_path / "parts" / "again.arch").write_text('export "../base.arch" { Scale }\n')
    (tmp_path / "main.arch").write_text('import "parts/again.arch" { Scale }\nmodel "m" = Scale(3)\n')
    (tmp_path / "notes.txt").write_text("no spec")
    assert output(capsys, "check", str(tmp_path)) == "3 files, no errors or warnings\n"
    (tmp_path / "base.arch").write_text(part.replace(".scale", ".scal"))
    assert output(capsys, "check", str(tmp_path), status=1) == "3 files, 1 error\n"


def test_graph_takes_a_format(capsys: pytest.CaptureFixture[str]) -> None:
    for format in ("dot", "mermaid", "json"):
        graph = output(capsys, "graph", "bert-base-uncased", "--to", format)
        assert output(capsys, "graph", "bert-base-uncased", "--format", format) == graph
