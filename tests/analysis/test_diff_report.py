"""The report of a difference of each kind: as text, rows, documents and in pictures."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from small import load

import archspec
from archspec.analysis.diff import pictures, report

BEFORE = """
import std { Linear }
dim batch
layer Part(n)(x [batch, n]) -> [batch, n] {
  weight: param [n, n]
  scale: param [n]
  fixed: frozen param [n]
  table: buffer [n]
  old: unused param [2, n]
  spare: unused buffer int [n] = arange(n)
  return linear(x, .weight) * .scale + .fixed * .table
}
block Net(n = 4)(x [batch, n]) -> [batch, n] {
  tie b.weight = a.weight
  return x |> l[i]: Linear(n, n) for i in 0..2 |> a: Part(n) |> b: Part(n)
}
model "net" = Net()
"""
CHANGES = {
    "scale: param [n]": "scale: buffer [n]",
    "fixed: frozen param": "fixed: param",
    "table: buffer [n]": "table: frozen param [n]",
    "old: unused param [2, n]": "new: unused frozen param [2, n]",
    "  tie b.weight = a.weight\n": "",
    "0..2": "0..4",
    '"net"': '"other"',
}


def changed(text: str) -> str:
    for before, after in CHANGES.items():
        text = text.replace(before, after)
    return text


def test_changes_of_each_kind(golden: Callable[[str, str], None]) -> None:
    before, after = load(BEFORE), load(changed(BEFORE))
    lines: list[object] = []
    for a, b in ((before, after), (after, before)):
        found = archspec.diff(a, b)
        drawn = pictures.picture(found, a, b)
        lines += [found, *map(json.dumps, report.rows(found).rows), *re.findall("<title>(.*?)</title>", drawn), ""]
    lines.append(json.dumps(archspec.diff(before, after).to_dict(), indent=1))
    golden("compare/diff-kinds.txt", "\n".join(map(str, lines)) + "\n")


def test_a_long_table_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    found = archspec.diff(load(BEFORE), load(changed(BEFORE)))
    for most, note in ((12, ""), (11, "1 more rows of tensors; use --format csv or json to show all")):
        monkeypatch.setattr(report, "MAX_ROWS", most)
        assert str(found).endswith(note) and ("more rows" in str(found)) == bool(note)
        assert str(found).count("\nadded") == most - 9


AGAIN = """
import std { Linear, LayerNorm }
dim batch
block Body(n = 4)(x [batch, n]) -> [batch, n] {
  return x |> up: Linear(n, n) |> norm: LayerNorm(n)
}
block Around(n = 4, again = false, scale = 2.0)(x [batch, n]) -> [batch, n] {
  h = x |> body: Body(n)
  return (.body(h) if again else h) * scale
}
block Turns(n = 4, blocked = false)(x [batch, n]) -> [batch, n] {
  a: Linear(n, n)
  b: Linear(n, n)
  h = x
  for i in 0..4 {
    is_first = i < 2 if blocked else i % 2 == 0
    h = .a(h) if is_first else .b(h)
  }
  return h
}
model "body" = Body()
model "once" = Around()
model "twice" = Around(again = true)
model "scaled" = Around(again = true, scale = 3.0)
model "in turn" = Turns()
model "in blocks" = Turns(blocked = true)
"""


def test_bodies_and_layers_that_are_applied_again(golden: Callable[[str, str], None], tmp_path: Path) -> None:
    (tmp_path / "again.arch").write_text(AGAIN)
    models = {name: archspec.load(f"{tmp_path / 'again.arch'}:{name}") for name in re.findall('model "(.*?)"', AGAIN)}
    pairs = [("body", "once"), ("body", "twice"), ("once", "twice"), ("twice", "scaled"), ("in turn", "in blocks")]
    found = [archspec.diff(models[a], models[b]) for one, other in pairs for a, b in ((one, other), (other, one))]
    golden("compare/diff-again.txt", "\n\n".join(map(str, found)) + "\n")
