"""Selections, sums and the folded tree, on tables made by hand; and the conventions of published counts."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from small import DENSE, load

from archspec import ModuleRow, Params, SelectionRule, Table, Tensor, Tensors
from archspec.analysis.count.count import count
from archspec.analysis.count.groups import (
    RoleComponent,
    find_role_components,
)
from archspec.analysis.count.select import select
from archspec.analysis.count.tree import CountRow, count_tree
from archspec.testing import main


def tensor(name: str, *shape: int, **facts: Any) -> Tensor:
    size = 1
    for n in shape:
        size *= n
    values = {
        "trainable": True,
        "tied_to": None,
        "role": None,
        "layer": name.rpartition(".")[0],
        "type": "Linear",
    } | facts
    return Tensor(name=name, shape=shape, params=0 if values["tied_to"] else size, size=size, **values)


def table(*tensors: Tensor, blocks: tuple[str, ...] = ()) -> Table:
    total = sum(t.params for t in tensors)
    trainable = sum(t.params for t in tensors if t.trainable)
    layers = dict.fromkeys((t.layer, t.type) for t in tensors if t.layer not in blocks)
    modules = [ModuleRow(b, "Block", "block") for b in blocks] + [ModuleRow(a, t, "layer") for a, t in layers]
    return Table(
        "made by hand", {}, {}, Params(total, trainable, total - trainable), Tensors(tensors), (), tuple(modules), {}
    )


SHARED = table(
    tensor("words.weight", 10, 4, layer="words", type="Embedding", role="embedding"),
    tensor("head.dense.weight", 4, 4, role="head"),
    tensor("head.decoder.weight", 10, 4, tied_to="words.weight", role="head"),
    tensor("head.decoder.bias", 10, role="head"),
)


def stack(*kinds: int, prefix: str = "encoder.layer") -> Table:
    """Numbered blocks, each of one layer; `kinds` are the layers' sizes."""
    names = [f"{prefix}.{i}" for i in range(len(kinds))]
    tensors = [tensor(f"{name}.dense.weight", size, 2) for name, size in zip(names, kinds, strict=True)]
    return table(*tensors, blocks=tuple(names))


def rules(*texts: str) -> list[SelectionRule]:
    return [SelectionRule(text[0] == "+", text[1:]) for text in texts]


# Selecting


@pytest.mark.parametrize(
    ("chosen", "total"),
    [
        ([], 66),
        (["-*"], 0),
        (["+*"], 66),
        (["-head.*"], 40),
        (["+head.*"], 66),  # the decoder's other name stands for the shared matrix
        (["+head.*", "-head.decoder.weight"], 26),
        (["-words.weight"], 66),  # its other name is still chosen
        (["-words.weight", "-head.decoder.weight"], 26),
        (["+*.weight", "-*", "+head.dense.*"], 16),  # the last match wins
        (["+words"], 0),  # whole names
        (["+*.bia?"], 10),
    ],
)
def test_rules_apply_in_order_and_a_shared_tensor_counts_once(chosen: list[str], total: int) -> None:
    selection = select(SHARED, rules(*chosen))
    assert selection.total == total == sum(selection.params)


@pytest.mark.parametrize(
    ("chosen", "elsewhere"),
    [
        (["-words.weight"], {"words.weight": "head.decoder.weight"}),
        (["-head.decoder.weight"], {"head.decoder.weight": "words.weight"}),
        (["+*", "-head.*"], {"head.decoder.weight": "words.weight"}),
        (["-words.weight", "-head.decoder.weight"], {}),
        (["-head.*", "+head.*"], {}),
        (["+words.weight"], {}),  # nothing is excluded
        (["-head.*.bias"], {}),
    ],
)
def test_an_excluded_name_of_a_counted_tensor_is_told(chosen: list[str], elsewhere: dict[str, str]) -> None:
    selection = select(SHARED, rules(*chosen))
    assert selection.counted_elsewhere == elsewhere
    lines = str(count(SHARED, rules(*chosen))).splitlines()
    assert [line for line in lines if line.startswith("excluded, but counted as")] == [
        f"excluded, but counted as {counted}: {name}" for name, counted in elsewhere.items()
    ]


# Summing


# The tree


def lines(branches: list[CountRow]) -> list[tuple[int, str, int, int, int]]:
    return [(b.level, b.label, b.times, b.each, b.total) for b in branches]


def test_outermost_lines_sum_to_the_selection() -> None:
    for model in (SHARED, stack(7, 5, 5, 7), stack(*[1] * 30)):
        for chosen in ([], rules("+*.weight"), rules("-*.0.*"), rules("-words.*")):
            selection = select(model, chosen)
            assert sum(b.total for b in count_tree(model, selection) if b.level == 0) == selection.total


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


SMALL_SHARE = """
dim batch
layer E(n)(x [batch, n]) -> [batch, n] {
  weight: param [n]
  return x * .weight
}
block B(total = 46702792704, n = 4096)(x [batch, n]) -> [batch, n] {
  big: unused param [total - n]
  return x |> small: E(n)
}
model "b" = B()
"""


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


def test_heads_that_are_equal_to_other_layers_are_found() -> None:
    two = load(
        f"{DENSE}\nblock Head(n)(x [..., n]) -> [..., n] {{\n  return x |> up: Dense(n) |> down: Dense(n)\n}}\n"
        "block Net(n = 2)(x [..., n]) -> [..., n] {\n  role head for a, b.down\n"
        "  return x |> c: Dense(n) |> a: Head(n) |> b: Head(n)\n}\n"
    )
    assert find_role_components(two.count().table, "head") == [
        RoleComponent("a", ("up", "down"), 12),
        RoleComponent("b.down", (), 6),
    ]
    among_others = load(
        f"{DENSE}\nblock Net(n = 2)(x [..., n]) -> [..., n] {{\n  role head for g.x, g.z\n"
        "  return x |> c: Dense(n) |> g.x: Dense(n, 3) |> g.z: Dense(3, n) |> g.y: Dense(n)\n}\n"
    )
    assert find_role_components(among_others.count().table, "head") == [
        RoleComponent("g.x", (), 9),
        RoleComponent("g.z", (), 8),
    ]
