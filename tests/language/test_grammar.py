"""Grammar, parser tables and trees as plain data; the spans of all nodes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from notation import item, tree_of, walk
from paths import ROOT

from archspec.core.diagnostics import ArchError
from archspec.core.resources import grammar_text
from archspec.language.syntax import store, tree
from archspec.language.syntax import tables as parser_tables
from archspec.language.syntax.tables import STARTS, generate, load_tables

SPECS = sorted(Path(str(ROOT / "specs")).rglob("*.arch"))

# The grammar ----------------------------------------------------------------------------------------------------------


def test_the_grammar_has_no_conflict() -> None:
    pytest.importorskip("interegular")
    from lark import Lark

    Lark(grammar_text(), parser="lalr", lexer="contextual", start=list(STARTS), strict=True)


def test_the_tables_are_current() -> None:
    assert json.loads(json.dumps(generate())) == load_tables()


@pytest.mark.parametrize("content", [None, "", "{", '{"origin": 0}'])
def test_missing_and_old_tables_are_generated_again(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = load_tables()
    path = tmp_path / "parser_tables.json"
    if content is not None:
        path.write_text(content)
    monkeypatch.setattr(parser_tables, "PATH", str(path))
    assert json.loads(json.dumps(load_tables())) == expected
    assert json.loads(path.read_text()) == expected
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_tables_that_cannot_be_written_are_still_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = load_tables()
    monkeypatch.setattr(parser_tables, "PATH", str(tmp_path / "missing" / "parser_tables.json"))
    assert json.loads(json.dumps(load_tables())) == expected


def test_a_checkout_without_tables_and_lark_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser_tables, "PATH", str(tmp_path / "parser_tables.json"))
    monkeypatch.setitem(sys.modules, "lark", None)
    with pytest.raises(ArchError, match="lark is required") as raised:
        load_tables()
    assert [(d.code, d.help) for d in raised.value.diagnostics] == [("missing-package", "run `pip install lark`")]


def test_parsing_needs_no_lark() -> None:
    load_tables()
    program = """
import sys
from archspec.core.diagnostics import Report, Source
from archspec.language.syntax.parse import parse
assert parse(Source("a", "dim n"), Report()).items
assert "lark" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


# All nodes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
def test_bundled_specs(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    file = tree_of(text)
    assert (file.start, file.end, file.broken) == (0, len(text), ())
    for node, parent in walk(file):
        written = text[node.start : node.end]
        if parent is not None:
            assert parent.start <= node.start < node.end <= parent.end
            assert written == written.strip()
        if isinstance(node, tree.Name):
            assert written.strip("()") == node.text
    assert store.load(json.loads(json.dumps(store.dump(file)))) == file


def test_a_span_includes_its_parentheses() -> None:
    text = "fn f(x [n]) -> [n] { return (x + 1) * (2) }"
    product = item(text).body[0].values[0]
    assert text[product.left.start : product.left.end] == "(x + 1)"
    assert text[product.start : product.end] == "(x + 1) * (2)"


# Trees as plain data --------------------------------------------------------------------------------------------------


EVERYTHING = """import std { A as B }
dim n
## doc
block C(..B, a = none, b = 1.5)(x int [..., n] = none) -> (y [n]) { # comment
  z, _ = (x |> a.b[0]: frozen C(..)(_) if not a else f for i in 0..n |> + x[0]) if a
  w: param int [n] = -1 for i in 0..n
  v: param [n] ~ normal(0.02)
  s: frozen unused param [n]
  t: unused frozen buffer bool [n]
  tie w = v if a
  require a, "m"
  role norm for w
  label "C"
  label "c" for w, a
  if a { .w(x) } else { for i in 0..n { } }
  return z
}
model "m" = C(a = true) { expect params == 1 }
"""


WORDS = """
layer L(a, b)(x [n], i int [n] = none, m bool [] = none) -> (real [n], k int [n], l bool [n]) {{
  w: frozen unused param [n]
  v: unused frozen param int [n]
  u: frozen buffer bool [n]
  t: unused buffer [n]
  s: const int [n] = arange(n)
  r: param [n]
  p: frozen unused Linear(n)
  y = x |> f |> + 1 |> - 2 |> * 3 |> / 4
  z = [{values}]
  return y, z, not i
}}
fn f(a) {{ return -a }}
block B(n)(x [n]) -> [n] {{ return x }}
"""
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or")


def test_a_tree_is_read_back_from_plain_data() -> None:
    values = ", ".join([f"(a {operator} b)" for operator in OPERATORS])
    for text in (WORDS.format(values=values), EVERYTHING, ""):
        file = tree_of(text)
        assert store.load(json.loads(json.dumps(store.dump(file)))) == file
