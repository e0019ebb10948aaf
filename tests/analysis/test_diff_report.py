"""The report of a difference of each kind: as text, rows, documents and in pictures."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from paths import read_spec
from small import load

import archspec
from archspec.analysis.diff import pictures, report

BEFORE = read_spec("diff_report_before")
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


AGAIN = read_spec("diff_report_again")


def test_bodies_and_layers_that_are_applied_again(golden: Callable[[str, str], None], tmp_path: Path) -> None:
    (tmp_path / "again.arch").write_text(AGAIN)
    models = {name: archspec.load(f"{tmp_path / 'again.arch'}:{name}") for name in re.findall('model "(.*?)"', AGAIN)}
    pairs = [("body", "once"), ("body", "twice"), ("once", "twice"), ("twice", "scaled"), ("in turn", "in blocks")]
    found = [archspec.diff(models[a], models[b]) for one, other in pairs for a, b in ((one, other), (other, one))]
    golden("compare/diff-again.txt", "\n\n".join(map(str, found)) + "\n")
