"""`archspec diff`: what makes one model of another is exact, and no two computations are called the same."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from paths import read_spec
from small import DENSE, load

import archspec
from archspec.testing import main

PRENORM = """# prenorm.arch
import std  { Linear, LayerNorm, SelfAttention, gelu }
import bert { Bert }

dim batch, seq

block PreNormLayer(hidden, heads, ffn, eps)
                  (x [batch, seq, hidden], mask bool [...] = none) -> [batch, seq, hidden] {
  role attention    for attention.output.dense
  role feed_forward for intermediate.dense, output.dense
  h = x
    |> attention.output.LayerNorm: LayerNorm(hidden, eps)
    |> attention.self:             SelfAttention(hidden, heads)(_, mask)
    |> attention.output.dense:     Linear(hidden, hidden)
    |> + x
  return h
    |> output.LayerNorm:           LayerNorm(hidden, eps)
    |> intermediate.dense:         Linear(hidden, ffn)
    |> gelu
    |> output.dense:               Linear(ffn, hidden)
    |> + h
}

model "bert-base-prenorm" = Bert(Layer = PreNormLayer) { expect params == 109_482_240 }
"""


def prenorm(folder: Path) -> str:
    """A pre-norm variant of BERT."""
    path = folder / "prenorm.arch"
    path.write_text(PRENORM)
    return str(path)


# Tensors --------------------------------------------------------------------------------------------------------------


def test_kinds_of_changes() -> None:
    text = (
        DENSE
        + """
block It(n = 4, tied = true, wide = 4)(x [..., n]) -> [..., n] {
  a: Dense(n, n, bias = false)
  b: Dense(n, n, bias = false)
  c: Dense(n, wide, bias = false)
  tie b.weight = a.weight if tied
  h = x |> .a |> .b
  return h + sum(axis = -1, keep = true)(.c(h))
}
"""
    )
    base, wide, untied = load(text), load(text, wide=5), load(text, tied=False)
    frozen = load(text.replace("  c: Dense", "  c: frozen Dense"))
    found = archspec.diff(base, wide).tensors
    assert [(c.name, c.kinds, c.before and c.before.shape, c.after and c.after.shape) for c in found] == [
        ("c.weight", ("reshaped",), (4, 4), (5, 4))
    ]
    assert [(c.name, c.kinds) for c in archspec.diff(base, untied).tensors] == [("b.weight", ("untied",))]
    assert [(c.name, c.kinds) for c in archspec.diff(untied, base).tensors] == [("b.weight", ("tied",))]
    assert [(c.name, c.kinds) for c in archspec.diff(base, frozen).tensors] == [("c.weight", ("frozen",))]
    assert [(c.name, c.kinds) for c in archspec.diff(frozen, base).tensors] == [("c.weight", ("unfrozen",))]
    with pytest.raises(ValueError, match="cannot apply the changes"):
        archspec.diff(base, wide).apply(wide)


# Operations -----------------------------------------------------------------------------------------------------------

SPEC = "dim rows\n" + DENSE + read_spec("diff_labels")
BASE = load(SPEC)


REWRITINGS = {
    "a function under another name": ("scaled", "halved"),
    "a function written out": ("|> scaled", "|> * 0.5 |> tanh"),
    "a block under another name": ("Part", "Mixer"),
    "the order of a sum": ("h + x", "x + h"),
    "a value under another name": ("  h = x\n", "  g = x\n"),
}


@pytest.mark.parametrize("what", REWRITINGS)
def test_the_same_computation_written_otherwise_does_not_differ(what: str) -> None:
    old, new = REWRITINGS[what]
    text = SPEC.replace(old, new)
    if what == "a function written out":
        text = text.replace("fn scaled(x [...]) -> [...] { return tanh(x * 0.5) }\n", "")
    if what == "a value under another name":
        text = text.replace("h + x", "g + x")
    assert text != SPEC and not archspec.diff(BASE, load(text))


# The command ----------------------------------------------------------------------------------------------------------

PAIRS = {
    "base-large": ("bert-base-uncased", "bert-large-uncased"),
    "base-roberta": ("bert-base-uncased", "roberta-base"),
    "base-albert": ("bert-base-uncased", "albert-base-v2"),
    "base-mlm": ("bert-base-uncased", "bert-base-uncased-mlm"),
    "transformer-base": ("transformer-base", "bert-base-uncased"),
}


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["diff", *words])
    return status, *capsys.readouterr()


@pytest.mark.parametrize("pair", [*PAIRS, "base-prenorm"])
def test_pages(
    pair: str, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None], tmp_path: Path
) -> None:
    a, b = PAIRS.get(pair) or ("bert-base-uncased", prenorm(tmp_path))
    status, out, err = run(capsys, a, b)
    assert (status, err) == (1, "")
    golden(f"compare/diff-{pair}.txt", out)


def test_formats(capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]) -> None:
    models = ("bert-base-uncased", "roberta-base")
    texts = {f: run(capsys, *models, "--format", f) for f in ("json", "yaml", "csv", "markdown")}
    assert {status for status, _, _ in texts.values()} == {1}
    document = json.loads(texts["json"][1])
    assert yaml.safe_load(texts["yaml"][1]) == document
    golden("compare/diff-base-roberta.md", texts["markdown"][1])
    rows = list(csv.DictReader(io.StringIO(texts["csv"][1])))
    assert len(rows) == len(document["tensors"]) + len(document["operations"])
    assert [row["name"] for row in rows if row["part"] == "tensors"] == [t["name"] for t in document["tensors"]]
