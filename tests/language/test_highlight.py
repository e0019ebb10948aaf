"""Colours: those of the parser's tokens, in every bundled spec."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from highlighting import generated_files, textmate_grammar
from paths import ROOT
from pygments.token import STANDARD_TYPES, string_to_tokentype

from archspec import Source
from archspec.core.diagnostics import Report
from archspec.language.highlight.lexer import ArchLexer
from archspec.language.highlight.tokens import styles
from archspec.language.syntax import tree
from archspec.language.syntax.lines import scan
from archspec.language.syntax.parse import CONTEXTUAL, parse, parser
from archspec.language.syntax.tree import iter_nodes

SPECS = sorted((ROOT / "specs").rglob("*.arch"))


def coloured(text: str) -> dict[tuple[int, int], str]:
    """The Pygments token type of each range that is not blank."""
    found = ArchLexer().get_tokens_unprocessed(text)
    return {(start, start + len(word)): str(kind) for start, kind, word in found if word.strip()}


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_tokens_have_the_colours_of_what_they_are(path: Path) -> None:
    text = path.read_text()
    colours = coloured(text)
    by_start = {start: kind for (start, _), kind in colours.items()}
    file = parse(Source("x", text), Report())
    names = {node.start for node in iter_nodes(file) if isinstance(node, tree.Name)}
    for comment in file.comments:
        assert by_start[comment.start] in ("Token.Comment.Single", "Token.Literal.String.Doc")
    for token in parser().tokens(scan(text).text):
        kind = by_start.get(token.start, "inside an address")
        around = f"{kind}: {text[token.start - 20 : token.end + 20]}"
        if token.kind in parser().keywords - CONTEXTUAL:
            assert kind.startswith(("Token.Keyword", "Token.Operator.Word")), around
        elif token.kind in ("INT", "REAL"):
            assert kind in ("Token.Literal.Number", "inside an address"), around
        elif token.start in names:
            assert kind.startswith("Token.Name") or kind == "inside an address", around
    for item in file.items:
        if isinstance(item, tree.Definition):
            assert by_start[item.start] == "Token.Keyword.Declaration"
            assert by_start[item.name.start] == "Token.Name.Class"


def test_label_is_a_keyword_only_before_a_string() -> None:
    text = 'block A(label)(x [label]) -> [1] {\n  label "B" for label\n  label: C(label = label.label)\n}'
    kinds = [kind for (start, _), kind in coloured(text).items() if text.startswith("label", start)]
    assert [kind for kind in kinds if kind == "Token.Keyword"] == ["Token.Keyword"] and len(kinds) == 8
    scopes = [scope for start, _, scope in scoped(text) if text.startswith("label", start)]
    assert scopes.count("keyword.other.arch") == 1


def test_the_grammars_of_editors_are_current() -> None:
    for path, text in generated_files().items():
        assert path.read_text() == text, f"{path}: run `python editors/highlighting.py`"


def scoped(text: str) -> Iterator[tuple[int, int, str]]:
    """The scopes that an editor gives to a text with the TextMate grammar: line by line, the earliest match first."""
    patterns = [(re.compile(p["match"]), p) for p in textmate_grammar()["patterns"]]
    start = 0
    for line in text.split("\n"):
        at = 0
        while True:
            found = [(m.start(), k, m) for k, (pattern, _) in enumerate(patterns) if (m := pattern.search(line, at))]
            if not found:
                break
            _, k, match = min(found, key=lambda each: each[:2])
            yield start + match.start(), start + match.end(), patterns[k][1]["name"]
            at = max(match.end(), at + 1)
        start += len(line) + 1


@pytest.mark.parametrize(
    "path", [p for p in SPECS if p.stem in ("bert", "t5", "mamba", "attention")], ids=lambda p: p.stem
)
def test_editors_and_pygments_agree(path: Path) -> None:
    text = path.read_text()
    assert {(a, b) for a, b, _ in scoped(text)} == set(coloured(text))


def test_styles_of_pygments_have_a_colour_for_every_token() -> None:
    assert [each.token for each in styles() if string_to_tokentype(each.token) not in STANDARD_TYPES] == []


def test_the_colours_of_a_spec(golden: Callable[[str, str], None]) -> None:
    text = (ROOT / "specs" / "text" / "bert.arch").read_text()
    shown = [f"{kind.removeprefix('Token.'):22} {text[a:b]}" for (a, b), kind in coloured(text).items()]
    golden("highlighting/bert.txt", "\n".join(shown) + "\n")
