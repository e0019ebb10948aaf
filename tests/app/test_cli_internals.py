"""Steps of the code that the tests of cli cannot reach through public names."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from paths import ROOT
from test_cli import DOCUMENTS

import archspec
from archspec.app.cli import _paint
from archspec.app.cli.arguments import parsers
from archspec.app.cli.progress import PROGRESS
from archspec.app.cli.run.error import read_entries
from archspec.core import resources
from archspec.core.reports import tables
from archspec.pipeline import generate, index
from archspec.testing import main

NARROW = {
    **DOCUMENTS,
    "compare-names": ("compare", "bert-base-multilingual-cased", "vit-base-patch16-224", "clip-vit-base-patch32-text"),
}


@pytest.mark.parametrize("name", NARROW)
def test_documents_on_narrow_terminals(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]
) -> None:
    pages: list[str] = []
    drops: list[list[int]] = []

    def used(view: tables.View) -> tables.View:
        drops.append([column.drop for column in view.columns if column.drop])
        return tables.used(view)

    monkeypatch.setattr("archspec.core.reports.terminal.used", used)
    for width in (80, 64, 48, 36):
        monkeypatch.setenv("COLUMNS", str(width))
        assert main([*NARROW[name]]) in (0, 1)
        pages.append(f"=== {width}\n{capsys.readouterr().out}")
    golden(f"narrow/{name}.txt", "\n".join(pages))
    assert all(len(set(order)) == len(order) for order in drops)  # columns are left out one after the other


def test_numbers_of_options_are_as_large_as_they_may_be() -> None:
    options = parsers()["cost"].parse_args(["gpt2", "--past", str(2**63 - 2), "--seq", str(2**63 - 1), "--depth", "0"])
    assert (options.past, options.seq, options.depth) == (2**63 - 2, 2**63 - 1, 0)
    assert parsers()["search"].parse_args(["gpt2", "--jobs", "1024"]).jobs == 1024
    with pytest.raises(SystemExit):
        parsers()["search"].parse_args(["gpt2", "--jobs", "1025"])


def test_the_index_of_bundled_models_is_current() -> None:
    assert index.read_index() is not None, "run `python -m archspec.pipeline.generate`"
    models = [(model.file, model.name) for model in index.read_index() or []]
    assert models == index.find_models()
    assert index.read_index()[0].params == archspec.load(models[0][1]).params  # pyright: ignore[reportOptionalSubscript]


@pytest.mark.slow
@pytest.mark.slow
def test_the_index_has_the_counts_of_all_bundled_models() -> None:
    assert generate.index_text() == (ROOT / "specs" / index.INDEX_FILE).read_text(encoding="utf-8")


def test_the_index_is_written_beside_the_specs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "specs", tmp_path / "specs")
    (tmp_path / "specs" / index.INDEX_FILE).unlink()
    monkeypatch.setattr(resources, "specs_root", lambda: str(tmp_path / "specs"))
    monkeypatch.setattr(generate, "find_models", lambda: [("bert", "bert-base-uncased")])
    generate.write_index()
    written = json.loads((tmp_path / "specs" / index.INDEX_FILE).read_text(encoding="utf-8"))
    assert written["models"] == [["bert", "bert-base-uncased", *archspec.load("bert-base-uncased").params]]


@pytest.mark.parametrize(
    ("text", "models"),
    [
        ('{"specs": [0, 0], "models": [["a", "b", 3, 2, 1]]}', [("a", "b", (3, 2, 1))]),
        ('{"specs": [0, 0], "models": []}', []),
        ('{"specs": [0, 1], "models": []}', None),
        ('{"specs": [0, 0], "models": [["a"]]}', None),
        ('{"specs": [0, 0], "models": [["a", "b", 3]]}', None),
        ('{"specs": [0, 0], "models": 3}', None),
        ('{"specs": [0, 0]}', None),
        ("[]", None),
        ("{", None),
        ("\udcff", None),
        (None, None),
    ],
)
def test_a_damaged_index_is_no_index(
    text: str | None, models: list[object] | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(resources, "specs_root", lambda: str(tmp_path))
    if text is not None:
        (tmp_path / index.INDEX_FILE).write_bytes(text.encode("utf-8", "surrogateescape"))
    found = index.read_index()
    assert models == (None if found is None else [(each.file, each.name, tuple(each.params)) for each in found])


def test_an_index_is_of_the_names_and_texts_of_specs(tmp_path: Path) -> None:
    def of(**texts: str) -> list[int]:
        shutil.rmtree(tmp_path)
        for name, text in texts.items():
            path = tmp_path / f"{name.replace('_', '/')}.arch"
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text)
        (tmp_path / "other.txt").write_text("left out")
        return index.fingerprint(str(tmp_path))

    found = [of(a="12", b="3"), of(a="1", b="23"), of(a="3", b="12"), of(c="12", b="3"), of(a_a="12", b="3")]
    assert len({checksum for checksum, _ in found}) == 5
    assert {size for _, size in found} == {3} and of(a="1234")[1] == 4
    assert of(b="3", a="12") == found[0] == of(a="12", b="3")


def test_list_compiles_specs_that_are_not_those_of_the_index(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "specs", tmp_path / "specs")
    for path in (tmp_path / "specs").glob("*/*.arch"):
        if path.parent.name != "std" and path.stem != "bert":
            path.unlink()
    spec = tmp_path / "specs" / "text" / "bert.arch"
    spec.write_text(spec.read_text().replace('model "bert-base-uncased" ', 'model "another" '))
    monkeypatch.setattr(resources, "specs_root", lambda: str(tmp_path / "specs"))
    assert index.read_index() is None
    assert main(["list", "another", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["text,bert,another,109482240,109482240,0"]
    number = len(index.find_models())
    assert f"archspec list, model {number} of {number}" == PROGRESS.step


def test_error_prints_the_entry_of_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["error"]) == 0
    codes = capsys.readouterr().out.split()
    assert codes and codes == list(read_entries())
    for code in codes:
        assert main(["error", code]) == 0
        assert capsys.readouterr().out.startswith(f"## {code}\n")
    assert main(["error", f"error[{codes[0]}]"]) == 0
    capsys.readouterr()
    assert main(["error", codes[0] + "x"]) == 2
    assert f"did you mean `{codes[0]}`?" in capsys.readouterr().err


def test_the_first_words_of_findings_have_colours() -> None:
    text = "error[x]: a: b\n --> f:1:1\n1 | help: no\nhelp: c\nnote: d\nwarning[y]: e\n"
    bold = "\x1b[1;{}m{}\x1b[0m{}\n"
    first, second = bold.format(31, "error[x]:", " a: b"), bold.format(32, "help:", " c")
    third, fourth = bold.format(36, "note:", " d"), bold.format(33, "warning[y]:", " e")
    assert _paint(text) == f"{first} --> f:1:1\n1 | help: no\n{second}{third}{fourth}"


def test_the_words_of_help(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]
) -> None:
    """Descriptions alone: `argparse` lays out the names of options differently in each version of Python."""
    monkeypatch.setenv("COLUMNS", "1000")

    def read_help() -> str:
        return re.sub(r"(?<=\S)(?:  +|\n {10,})", "  ", capsys.readouterr().out)

    assert main(["--help"]) == 0
    whole = read_help()
    said = [whole]
    for command in re.findall(r"^    (\w+) ", whole, re.MULTILINE):
        assert main([command, "--help"]) == 0
        description, *groups = read_help().split("\n\n")[1:]
        told = [re.split(r"  +", line)[-1] for group in groups for line in group.split("\n")[1:]]
        options = [action for action in parsers()[command]._actions if action.option_strings]
        told += [" ".join([*o.option_strings, *map(str, o.choices or [o.metavar or ""])]).rstrip() for o in options]
        said.append("\n".join([f"{command}: {description}", *(f"  {line}" for line in told if line)]))
    golden("help.txt", re.sub(r"^usage.*\n\n", "", "\n".join(said)))
