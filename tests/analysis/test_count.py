"""Selections, sums and the folded tree, on tables made by hand; and the conventions of published counts."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from paths import read_spec
from small import DENSE, load

from archspec import ModuleRow, Params, Table, Tensor, Tensors
from archspec.testing import main


def table(*tensors: Tensor, blocks: tuple[str, ...] = ()) -> Table:
    total = sum(t.params for t in tensors)
    trainable = sum(t.params for t in tensors if t.trainable)
    layers = dict.fromkeys((t.layer, t.type) for t in tensors if t.layer not in blocks)
    modules = [ModuleRow(b, "Block", "block") for b in blocks] + [ModuleRow(a, t, "layer") for a, t in layers]
    return Table(
        "made by hand", {}, {}, Params(total, trainable, total - trainable), Tensors(tensors), (), tuple(modules), {}
    )


# The tree


def lines(branches: list[Any]) -> list[tuple[int, str, int, int, int]]:
    return [(b.level, b.label, b.times, b.each, b.total) for b in branches]


# The command, on bundled models


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["count", *arguments]) == 0
    return capsys.readouterr().out


def counted(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    return json.loads(run(capsys, *arguments, "--format", "json"))


def test_order_of_rules_matters(capsys: pytest.CaptureFixture[str]) -> None:
    norms_last = counted(capsys, "bert-base-uncased", "--exclude", "*.bias", "--select", "*LayerNorm.bias")["selected"]
    norms_first = counted(capsys, "bert-base-uncased", "--select", "*LayerNorm.bias", "--exclude", "*.bias")["selected"]
    assert (norms_last, norms_first) == (108_808_704 + 768 * 768, 0)


def test_json_has_what_is_promised(capsys: pytest.CaptureFixture[str]) -> None:
    document = counted(capsys, "bert-base-uncased-mlm")
    assert list(document) == [
        "format",
        "model",
        "hyperparameters",
        "overrides",
        "params",
        "active",
        "selected",
        "tensors",
        "buffers",
    ]
    assert document["format"] == 1
    assert document["params"] == {"total": 109_514_298, "trainable": 109_514_298, "frozen": 0}
    assert document["selected"] == 109_514_298
    assert all(list(t) == list(Tensor._fields) for t in document["tensors"])
    tied = next(t for t in document["tensors"] if t["name"] == "cls.predictions.decoder.weight")
    assert tied["params"] == 0 and tied["size"] == 30522 * 768
    assert tied["tied_to"] == "bert.embeddings.word_embeddings.weight"
    assert sum(t["params"] for t in document["tensors"]) == 109_514_298


@pytest.mark.parametrize("by", ["tensor", "layer", "block", "role"])
def test_every_view_sums_to_the_total_in_every_format(capsys: pytest.CaptureFixture[str], by: str) -> None:
    for arguments, total in (
        (("bert-base-uncased", "--set", "layers=2", "--by", by), 109_482_240 - 10 * 7_087_872),
        (("transformer-seq2seq", "--by", by), 10_152_448),
    ):
        assert sum(row["params"] for row in counted(capsys, *arguments)["rows"]) == total
        rows = csv.DictReader(io.StringIO(run(capsys, *arguments, "--format", "csv")))
        assert sum(int(row["params"]) for row in rows) == total
        assert yaml.safe_load(run(capsys, *arguments, "--format", "yaml")) == counted(capsys, *arguments)
        for format in ("table", "markdown"):
            assert f"{total:,} parameters" in run(capsys, *arguments, "--format", format)


@pytest.mark.parametrize(("k", "more"), [(8, []), (9, ["1 more name"]), (1010, ["1,002 more names"])])
def test_a_report_has_few_ties_and_shapes(k: int, more: list[str]) -> None:
    text = """
layer Five(n, five = true)(x [..., n]) -> [..., n] {
  a: param [n]
  b: param [n, n]
  c: frozen param [n]
  d: param [n]
  e: param [1] if five
  kept: buffer [n]
  return linear(x, .b) * .a * .c * .d + (.e if five else 0.0) + .kept
}
block Net(n = 2, k = 8)(x [..., n]) -> [..., n] {
  tie again[i].weight = first.weight for i in 0..k
  return x |> first: Dense(n) |> again[i]: Dense(n) for i in 0..k |> five: Five(n) |> four: Five(n, false)
}
"""
    lines = str(load(DENSE + text, k=k).count()).splitlines()
    total, tensors = 27 + 2 * k, 11 + k
    rows = [" ".join(line.split()) for line in lines[2:7]]
    ties = [f"tied: again.{i}.weight = first.weight (4 counted once)" for i in range(8)]
    assert rows == [
        "address type tensors each parameters share",
        f"first Dense 2 x 2 + 2 6 {600 / total:.1f} %",
        f"again.* {k} x Dense 2 2 {2 * k:,} {200 * k / total:.1f} % tied",
        f"five Five 5 tensors 11 {1100 / total:.1f} % frozen",
        f"four Five 2 + 2 x 2 + 2 + 2 10 {1000 / total:.1f} % frozen",
    ]
    size = " (2.05K)" if total > 1000 else ""
    assert lines[8:] == [
        f"{total:,} parameters{size} in {tensors:,} tensors ({tensors + k:,} names), each counted once",
        f"{total - 4:,} trainable, 4 frozen",
        *ties,
        *[f"tied: {text}; use --by tensor to show all" for text in more],
        "not counted: 2 buffers (stored, not parameters)",
    ]


SMALL_SHARE = read_spec("count_small_share")


@pytest.mark.parametrize("n", [4_096, 131_072])
def test_small_shares_are_not_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str], n: int) -> None:
    spec = tmp_path / "b.arch"
    spec.write_text(SMALL_SHARE)
    arguments = [str(spec), "--set", f"n={n}", "--by", "layer"]
    for by in ([], ["--by", "tensor"], ["--by", "layer"]):
        (row,) = [line for line in run(capsys, *arguments, *by).splitlines() if line.startswith("small")]
        assert "< 0.1 %" in row
    (row,) = [
        row for row in json.loads(run(capsys, *arguments, "--format", "json"))["rows"] if row["address"] == "small"
    ]
    assert row["share"] == n / 46_702_792_704
    table = csv.DictReader(io.StringIO(run(capsys, *arguments, "--format", "csv")))
    assert [float(row["share"]) for row in table if row["address"] == "small"] == [n / 46_702_792_704]
