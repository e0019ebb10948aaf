"""`archspec compare`: parts line up whatever they are called, sums are the models' totals, and nothing is pretended."""

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import pytest
import yaml
from bundled import pairs
from small import DENSE

import archspec
from archspec.testing import main

# Parts ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pairs", pairs())
def test_the_parts_of_two_bundled_models_are_all_of_them(pairs: Sequence[tuple[str, str]]) -> None:
    models = {name: archspec.load(name) for name in dict.fromkeys(chain(*pairs))}
    for one, other in ((models[a], models[b]) for a, b in pairs):
        found = archspec.compare(one, other, depth=2)
        for i, model in enumerate((one, other)):
            outer = [part for part in found.parts if part.row.level == 0]
            assert sum(part.params.values[i] or 0 for part in outer) == model.params.total  # type: ignore[misc]
            assert sum(figure.values[i] for figure in found.roles) == model.params.total  # type: ignore[misc]
            names = [c.address for part in outer for c in part.row.groups[i]]
            assert len(names) == len(set(names))
        same = [group for part in found.parts for group in part.row.groups]
        if one is other:
            assert same[::2] == same[1::2] and not found.settings


# Figures --------------------------------------------------------------------------------------------------------------


def test_different_lengths_at_one_size_are_noted(tmp_path: Path) -> None:
    models: list[archspec.Model] = []
    for length in ("seq", "4 * seq", "2 * seq"):
        shape = f"[batch, {length}, width]"
        body = "{ return x |> proj: Linear(width, width) }"
        text = f"import std {{ Linear }}\ndim batch, seq\nblock B(width)(x {shape}) -> {shape} {body}\n"
        models.append(archspec.loads(text + 'model "m" = B(8)'))
    note = "input lengths differ at equal `seq`: "
    costs = archspec.compare(*models, batch=1, seq=32).costs
    assert costs is not None and costs.notes == ("", f"{note}4*seq = 128", f"{note}2*seq = 64")
    costs = archspec.compare(models[0], models[1], batch=1).costs
    assert costs is not None and costs.notes == ("seq symbolic", f"{note}4*seq; seq symbolic")
    costs = archspec.compare(models[1], models[1], batch=1, seq=32).costs
    assert costs is not None and costs.notes == ("", "")


# The command ----------------------------------------------------------------------------------------------------------

PAIRS = {
    "base-large": ("bert-base-uncased", "bert-large-uncased", "--batch", "1", "--seq", "128"),
    "base-roberta": ("bert-base-uncased", "roberta-base"),
    "base-albert": ("bert-base-uncased", "albert-base-v2", "--depth", "2"),
    "transformer-base": ("transformer-base", "bert-base-uncased", "--batch", "1", "--seq", "128"),
    "three": ("bert-base-uncased", "albert-base-v2", "roberta-base"),
}


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["compare", *words])
    return status, *capsys.readouterr()


@pytest.mark.parametrize("pair", PAIRS)
def test_pages(pair: str, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]) -> None:
    status, out, err = run(capsys, *PAIRS[pair])
    assert (status, err) == (0, "")
    golden(f"compare/{pair}.txt", out)


def test_formats(capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]) -> None:
    models = ("bert-base-uncased", "albert-base-v2", "--batch", "1", "--seq", "128")
    texts = {f: run(capsys, *models, "--format", f)[1] for f in ("json", "yaml", "csv", "markdown")}
    document = json.loads(texts["json"])
    assert yaml.safe_load(texts["yaml"]) == document
    assert [m["params"]["total"] for m in document["models"]] == [109_482_240, 11_683_584]
    golden("compare/base-albert.md", texts["markdown"])
    rows = list(csv.DictReader(io.StringIO(texts["csv"])))
    sections = {"hyperparameters", "replaced", "totals", "roles", "components", "costs"}
    assert {row["section"] for row in rows} == sections
    second = sum(int(r["value"]) for r in rows if r["section"] == "components" and r["model"] == "albert-base-v2")
    assert second == 11_683_584


def test_formulas_and_names_are_well_formed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "odd.arch"
    text = "block It(n = 4)(x [n]) -> [n] {\n  w: param [n]\n  return x * .w\n}\n"
    spec.write_text(text + 'model "a | `b`" = It()\nmodel "c" = It(n = 5)\n')
    page = run(capsys, f"{spec}:a | `b`", f"{spec}:c", "--format", "markdown")[1]
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    models = ("bert-base-uncased", "t5-small", "--batch", "1", "--seq", "64")
    figures = json.loads(run(capsys, *models, "--format", "json")[1])["costs"]["figures"]
    flops = archspec.cost("t5-small", batch=1, seq=64).work.flops
    assert figures[0]["values"][1] == str(flops) and "," not in str(flops)
    assert f",{flops},,," in run(capsys, *models, "--format", "csv")[1]


def test_nothing_heavy_is_imported() -> None:
    script = (
        "import sys\nfrom archspec.app.cli import main\n"
        "words = ['compare', 'bert-base-uncased', 'albert-base-v2', '--format', 'json']\n"
        "main(words); first = set(sys.modules)\n"
        "heavy = {'rich', 'networkx', 'lark', 'yaml', 'torch', 'archspec.compiler.elaborate', 'archspec.ir.module'}\n"
        "heavy |= {'archspec.analysis.cost.api'}\n"
        "print(sorted(heavy & first))\n"
    )
    for _ in range(2):  # the first fills the cache
        out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "[]"


# Bars -----------------------------------------------------------------------------------------------------------------


def test_models_that_are_one_layer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spec.arch"
    path.write_text(f'{DENSE}model "one" = Dense(4)\nmodel "two" = Dense(5)\n')
    (part,) = archspec.compare(f"{path}:one", f"{path}:two").parts
    assert part.params == ("(the model)", (20, 30))
    status, out, _ = run(capsys, f"{path}:one", f"{path}:two")
    assert status == 0
    assert re.search(r"^\(the model\) +\(the model\) +20 +30 +10 +x 1\.5", out, re.MULTILINE), out


# Definitions with one name --------------------------------------------------------------------------------------------


def variant(folder: Path, spec: str, block: str, *edits: tuple[str, str]) -> str:
    file = folder / "variant.arch"
    assert main(["new", str(file), "--from", spec, "--block", block]) == 0
    text = file.read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    file.write_text("".join(line for line in text.splitlines(keepends=True) if "expect" not in line))
    return str(file)


def test_a_changed_block_of_the_same_name_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    norm = "    |> attention.output.LayerNorm: Norm(hidden, eps)"
    edits = [(norm, ""), ("    |> attention.self:", f"{norm}\n    |> attention.self:")]
    file = variant(tmp_path, "bert-base-uncased", "Layer", *edits, ("BertLayer)", "BertLayer, layers = 6)"))
    (definition,) = archspec.compare("bert-base-uncased", file).definitions
    assert definition.name == "BertLayer" and definition.changes[0] == {} and definition.changes[1]["moved"] == 1
    capsys.readouterr()
    _, out, _ = run(capsys, "bert-base-uncased", file)
    (line,) = [line for line in out.splitlines() if line.startswith("BertLayer")]
    assert "1 step moved" in line


def test_a_changed_block_on_standard_input_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    edits = [("> + h\n", "> + h\n    |> + h\n"), ("BertLayer)", "BertLayer, layers = 6)")]
    text = Path(variant(tmp_path, "bert-base-uncased", "Layer", *edits)).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    capsys.readouterr()
    status, out, err = run(capsys, "bert-base-uncased", "-")
    assert (status, err) == (0, "") and any(line.startswith("BertLayer  ") for line in out.splitlines())


FUNCTIONS = """import std {{ Linear }}
dim batch, m
fn sharp(x [batch, m]) -> [batch, m] {{ return {sharp} }}
fn act(x [batch, m]) -> [batch, m] {{
  # an activation
  return {act}
}}
block Mlp(n, f = act)(x [batch, n]) -> [batch, n] {{ return x |> up: Linear(n, 2 * n) |> f |> down: Linear(2 * n, n) }}
block Net(n = 4)(x [batch, n]) -> [batch, n] {{ return x |> p[i]: Mlp(n) for i in 0..2 |> {last} }}
model "net" = Net()
"""
SAME = {"sharp": "x * x", "act": "sharp(x) + x", "last": "act"}


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ({"act": "sharp(x) - x"}, {"act": {"computes": 1}}),
        ({"sharp": "x * x * x"}, {"sharp": {"computes": 1}}),
        ({"sharp": "x * x * x", "act": "sharp(x) - x"}, {"sharp": {"computes": 1}, "act": {"computes": 1}}),
        ({"sharp": "(x * x)"}, {}),
        ({"act": "x + sharp(x)"}, {}),
        ({"last": "sharp"}, {"Net": {"returns": 1}}),
    ],
)
def test_a_changed_function_of_the_same_name_is_named(
    edit: dict[str, str], expected: dict[str, dict[str, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "a.arch", tmp_path / "b.arch"]
    for file, texts in zip(files, (SAME, {**SAME, **edit}), strict=True):
        file.write_text(FUNCTIONS.format(**texts))
    definitions = archspec.compare(*map(str, files)).definitions
    assert {name: changes[1] for name, changes in definitions} == expected
    _, out, _ = run(capsys, *map(str, files))
    for name in {*expected} & {"act", "sharp"}:
        assert any(re.match(rf"{name} +1 step with a different computation", line) for line in out.splitlines())
