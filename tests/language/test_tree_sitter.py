"""The grammar for tree-sitter reads what the compiler reads."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from highlighting import tree_sitter_grammar
from paths import ROOT

from archspec.language.syntax.lines import scan
from archspec.language.syntax.parse import parser

GRAMMAR = ROOT / "editors" / "tree-sitter"
SPECS = sorted((ROOT / "specs").rglob("*.arch"))
COMMENTS = ("comment", "documentation")


def test_the_parser_was_generated_from_the_grammar() -> None:
    made = json.loads((GRAMMAR / "src" / "grammar.json").read_text())
    rules = dict(re.findall(r"^    (\w+): \S+ => (.*),$", tree_sitter_grammar(), re.MULTILINE))
    assert list(made["rules"]) == list(rules)
    for name, rule in rules.items():
        if not rule.startswith(("/", "token")):
            assert list(_leaves_of(made["rules"][name])) == re.findall(r'(?<=\$\.)\w+|"[^"]+"', rule)
    source = (GRAMMAR / "src" / "parser.c").read_text()
    named = {f'= "{name}",' for name in rules if not name.startswith("_") and name != "file"}
    assert [name for name in named if name not in source] == []


def _leaves_of(rule: dict[str, Any]) -> Iterator[str]:
    """The symbols and literals of a rule in order, as in the JavaScript."""
    if rule["type"] == "SYMBOL":
        yield rule["name"]
    elif rule["type"] == "STRING":
        yield f'"{rule["value"]}"'
    for part in [*rule.get("members", ()), *([rule["content"]] if "content" in rule else ())]:
        yield from _leaves_of(part)
    if rule["type"] == "ALIAS":
        yield rule["value"]


@pytest.fixture(scope="module")
def language(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The compiled grammar."""
    library = pytest.importorskip("tree_sitter")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("a C compiler is missing")
    path = tmp_path_factory.mktemp("parser") / "arch.so"
    command = [compiler, "-shared", "-fPIC", "-I.", "-o", str(path), "parser.c", "scanner.c"]
    subprocess.run(command, cwd=GRAMMAR / "src", check=True)
    function = ctypes.CDLL(str(path)).tree_sitter_arch
    function.restype = ctypes.c_void_p
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return library.Language(capsule(function(), b"tree_sitter.Language", None))


def tree_of(language: Any, text: str) -> Any:
    from tree_sitter import Parser  # pyright: ignore

    return Parser(language).parse(text.encode()).root_node


def leaves(node: Any) -> Iterator[str]:
    """The texts of the tokens, without comments and line ends."""
    if node.child_count == 0 and node.type not in COMMENTS and node.text.strip():
        yield node.text.decode()
    for child in node.children:
        yield from leaves(child)


@pytest.mark.slow
def test_every_bundled_spec_has_the_tokens_of_the_compiler(language: Any) -> None:
    for path in SPECS:
        text = path.read_text()
        tree = tree_of(language, text)
        assert not tree.has_error, path
        tokens = [token.text for token in parser().tokens(scan(text).text) if token.kind != "_NL"]
        assert list(leaves(tree)) == tokens, path


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong", ["block A(n)(x [n]) -> [n] { return }", "dim a b", 'model "a" = A(', "fn f(a) { return a }}"]
)
def test_a_wrong_text_has_an_error(language: Any, wrong: str) -> None:
    assert tree_of(language, wrong).has_error


CONTINUED = """\
fn f(x [n])
  -> [n]
{
  # a comment
  y = x   # another
    # before a step
    |> tanh

  if a {
    return y
  }
  else {
    return (
      x
    )
  }
}
"""


@pytest.mark.slow
def test_lines_go_on_where_they_do_for_the_compiler(language: Any) -> None:
    tree = tree_of(language, CONTINUED)
    assert not tree.has_error
    body = tree.children[0].children[-1]
    assert [child.type for child in body.named_children if child.type not in COMMENTS] == ["bind", "branch"]


NAMED_LABEL = """\
block A(label = 1)(x [n]) -> [n] {
  label "The text"
  label "Tokens" for x, self.label
  label: B(label = label)
  label[0].a: param [n]
  label, y = f(x, label)
  label |> g(label = "a")
  role label for label
  return .label(label) |> + label
}
"""


@pytest.mark.slow
def test_label_is_a_keyword_only_before_a_string(language: Any) -> None:
    from tree_sitter import Query, QueryCursor  # pyright: ignore

    tree = tree_of(language, NAMED_LABEL)
    assert not tree.has_error
    assert list(leaves(tree)) == [t.text for t in parser().tokens(scan(NAMED_LABEL).text) if t.kind != "_NL"]
    statements = [child.type for child in tree.children[0].children[-1].named_children]
    assert statements == ["label", "label", "declare", "param", "bind", "declare", "role", "result"]
    query = Query(language, (GRAMMAR / "queries" / "highlights.scm").read_text())
    lines = sorted(n.start_point[0] for n in QueryCursor(query).captures(tree)["keyword"] if n.text == b"label")
    assert lines == [1, 2]


@pytest.mark.slow
def test_colours(language: Any) -> None:
    from tree_sitter import Query, QueryCursor  # pyright: ignore

    query = Query(language, (GRAMMAR / "queries" / "highlights.scm").read_text())
    tree = tree_of(language, (ROOT / "specs" / "text" / "bert.arch").read_text())
    found = {name: {node.text.decode() for node in nodes} for name, nodes in QueryCursor(query).captures(tree).items()}
    assert {"block", "model", "expect"} <= found["keyword"]
    assert {"BertLayer", "Bert"} <= found["type.definition"] and {"Linear", "LayerNorm"} <= found["type"]
    assert {"gelu", "dropout"} <= found["function"] and "hidden" in found["variable.parameter"]
    assert {"attention", "dense"} <= found["property"] and "768" in found["number"]
