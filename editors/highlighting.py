"""Generator of the grammars for editors: TextMate (VS Code) and tree-sitter.

Run `python editors/highlighting.py` after a change of the language, then
`tree-sitter generate --abi 14` in `editors/tree-sitter/`; tests check that they are current.

The grammar for tree-sitter is translated from `grammars/arch.lark`. Tree-sitter rules cannot match the empty text, so a
rule that may be empty is optional in all its uses. A keyword that is also a name (`TITLING`) is an alternative of
every name, because its lexer prefers keywords. The line end is a token of the scanner in
`editors/tree-sitter/src/scanner.c`, which has the same rules as `syntax.lines`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from archspec.core.record import Record
from archspec.core.resources import grammar_text
from archspec.language.highlight.tokens import CONSTANTS, CONTROL, WORDS, styles
from archspec.language.syntax.machine import TITLING
from archspec.language.syntax.tables import load_tables

EDITORS = Path(__file__).parent

_PIECE = re.compile(r"\"(?:[^\"\\]|\\.)*\"|->|\w+|[()*+?|]")
_COMMENT = re.compile(r"(?:^|\s)// .*")
_RULE = re.compile(r"^(?P<passes>\?)?(?P<name>[a-z_]+):(?P<text>.*(?:\n +\|.*)*)", re.MULTILINE)
_TERMINAL = re.compile(r"^([A-Z]+): /(.*)/$", re.MULTILINE)

_MULTIPLES = {"?": "optional", "*": "repeat", "+": "repeat1"}

BRACKETS = ("(", ")", "[", "]", "{", "}")
SEPARATORS = (",", ".", ":")
NAMED_SYMBOL = "..."
"""A symbol that is a separate node."""

NODE_QUERIES = """
(comment) @comment
(documentation) @comment.documentation
(string) @string
(ellipsis) @operator
[(int) (real)] @number
(dtype) @type.builtin
(definition . (name) @type.definition)
(entry . (name) @variable.parameter)
(argument (name) @variable.parameter)
(segment) @property
(address [(place (name) @property) (subscript (place (name) @property))])
(dotted . [(place (name) @property) (subscript (place (name) @property))])
([(imported . (name) @type) (callee (name) @type) (model (name) @type)] (#match? @type "^[A-Z]"))
([(imported . (name) @function) (callee (name) @function)] (#not-match? @function "^[A-Z]"))
([(call . (place (name) @function)) (step . (place (name) @function))] (#not-match? @function "^[A-Z]"))
([(call . (place (name) @type)) (step . (place (name) @type))] (#match? @type "^[A-Z]"))
"""


class Part(Record):
    """A part of a rule: a "symbol" or "literal", or an "optional", "repeat", "repeat1", "seq" or "choice" of parts."""

    kind: str
    text: str
    parts: tuple[Part, ...]


class Alternative(Record):
    """An alternative of a rule, and the name of its node if it differs from the rule."""

    part: Part
    alias: str


class Rule(Record):
    """A rule. An alternative that is one symbol has no node if `passes` is set."""

    passes: bool
    alternatives: tuple[Alternative, ...]


def textmate_grammar() -> dict[str, object]:
    """Return the grammar for TextMate, VS Code and GitHub."""
    return {
        "name": "archspec",
        "scopeName": "source.arch",
        "fileTypes": ["arch"],
        "patterns": [{"name": style.scope, "match": style.pattern} for style in styles()],
    }


def generated_files() -> dict[Path, str]:
    """Return the contents of the generated files."""
    return {
        EDITORS / "vscode" / "syntaxes" / "arch.tmLanguage.json": json.dumps(textmate_grammar(), indent=2) + "\n",
        EDITORS / "tree-sitter" / "grammar.js": tree_sitter_grammar(),
        EDITORS / "tree-sitter" / "queries" / "highlights.scm": tree_sitter_queries(),
    }


def tree_sitter_grammar() -> str:
    """Return the grammar in JavaScript, the input of tree-sitter."""
    text = grammar_text()
    lines = [f"{name}: $ => {rule}," for name, rule in _Translation(_parse_rules(text)).rules()]
    patterns = dict(_TERMINAL.findall(text))
    words = [f'alias("{word}", $.name)' for word in sorted(TITLING)]
    lines.append(f"_name: $ => choice($.name, {', '.join(words)}),")
    lines += [f"{name.lower()}: _ => /{pattern}/," for name, pattern in patterns.items()]
    pattern_of_style = {style.name: style.pattern for style in styles()}
    lines.append(f"documentation: _ => token(prec(1, /{pattern_of_style['documentation']}/)),")
    lines.append(f"comment: _ => /{pattern_of_style['comment']}/,")
    body = "\n".join(f"    {line}" for line in lines)
    return f"""// Written by `python editors/highlighting.py` from grammars/arch.lark.

module.exports = grammar({{
  name: "arch",
  externals: $ => [$._newline],
  extras: $ => [/\\s/, $.documentation, $.comment],
  word: $ => $.name,
  rules: {{
{body}
  }},
}});
"""


def tree_sitter_queries() -> str:
    """Return the highlight queries."""
    literals = load_tables()["literals"]
    symbols = {text for text in literals if not text.isalpha()} - {*BRACKETS, *SEPARATORS, NAMED_SYMBOL}
    other_keywords = {text for text in literals if text.isalpha()} - CONTROL - WORDS - CONSTANTS
    lists = [
        (other_keywords, "keyword"),
        (CONTROL, "keyword.control"),
        (WORDS, "keyword.operator"),
        (CONSTANTS, "constant.builtin"),
        (symbols, "operator"),
        (BRACKETS, "punctuation.bracket"),
        (SEPARATORS, "punctuation.delimiter"),
    ]
    lines = [f"[{' '.join(json.dumps(word) for word in sorted(words))}] @{capture}" for words, capture in lists]
    return "\n".join(["; Written by `python editors/highlighting.py`.", "", *lines, NODE_QUERIES])


def _parse_rules(text: str) -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for match in _RULE.finditer(_COMMENT.sub("", text)):
        pieces = _PIECE.findall(match["text"])
        rules[match["name"]] = Rule(bool(match["passes"]), tuple(_parse_alternatives(pieces)))
        assert not pieces
    return rules


def _parse_alternatives(pieces: list[str]) -> Iterator[Alternative]:
    """Parse alternatives up to a closing parenthesis."""
    while True:
        part = _parse_sequence(pieces)
        alias = ""
        if pieces and pieces[0] == "->":
            alias = pieces[1]
            del pieces[:2]
        yield Alternative(part, alias)
        if not pieces or pieces[0] != "|":
            return
        pieces.pop(0)


def _parse_sequence(pieces: list[str]) -> Part:
    parts: list[Part] = []
    while pieces and pieces[0] not in ("|", ")", "->"):
        piece = pieces.pop(0)
        if piece == "(":
            part = _create_choice([alternative.part for alternative in _parse_alternatives(pieces)])
            pieces.pop(0)
        else:
            part = Part("literal" if piece.startswith('"') else "symbol", piece, ())
        if pieces and pieces[0] in _MULTIPLES:
            part = Part(_MULTIPLES[pieces.pop(0)], "", (part,))
        parts.append(part)
    return parts[0] if len(parts) == 1 else Part("seq", "", tuple(parts))


def _create_choice(parts: list[Part]) -> Part:
    return parts[0] if len(parts) == 1 else Part("choice", "", tuple(parts))


class _Translation:
    """The translation to rules of tree-sitter; a rule whose name begins with `_` has no node."""

    def __init__(self, rules: dict[str, Rule]) -> None:
        self._source_rules = rules
        self._empty: set[str] = set()
        while True:
            empty = {name for name, rule in rules.items() if any(self._may_be_empty(a.part) for a in rule.alternatives)}
            if empty == self._empty:
                break
            self._empty = empty

    def rules(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the definition of each rule."""
        for name, rule in self._source_rules.items():
            yield from self._translate_rule(name, rule)

    def _translate_rule(self, name: str, rule: Rule) -> Iterator[tuple[str, str]]:
        choices: list[Part] = []
        nodes: dict[str, list[Part]] = {}
        for part, alias in rule.alternatives:
            is_start = name == next(iter(self._source_rules))
            pattern = part if is_start else self._without_empty(part)
            if pattern is None:
                continue
            if rule.passes and not alias and pattern.kind in ("symbol", "literal"):
                choices.append(pattern)
            else:
                nodes.setdefault(alias or name, []).append(pattern)
        if not self._is_hidden(name):
            yield name, self._format_part(_create_choice(nodes[name]))
            return
        formatted = [self._format_part(choice) for choice in choices]
        for node, parts in nodes.items():
            if name.startswith("_"):
                formatted += map(self._format_part, parts)
                continue
            yield (node if node == name else f"_{name}_{node}"), self._format_part(_create_choice(parts))
            formatted.append(f"$.{node}" if node == name else f"alias($._{name}_{node}, $.{node})")
        yield f"_{name.lstrip('_')}", f"choice({', '.join(formatted)})"

    def _is_hidden(self, name: str) -> bool:
        """Whether uses of a rule refer to a name that has no node."""
        rule = self._source_rules[name]
        return rule.passes or name.startswith("_") or any(alternative.alias for alternative in rule.alternatives)

    def _may_be_empty(self, part: Part) -> bool:
        match part.kind:
            case "symbol":
                return part.text in self._empty
            case "optional" | "repeat":
                return True
            case "choice":
                return any(map(self._may_be_empty, part.parts))
            case _:
                return part.kind != "literal" and all(map(self._may_be_empty, part.parts))

    def _without_empty(self, part: Part) -> Part | None:
        """Return a part that does not match the empty text; None if it matches nothing else."""
        if not self._may_be_empty(part):
            return part
        match part.kind:
            case "optional":
                return self._without_empty(part.parts[0])
            case "repeat":
                return Part("repeat1", "", part.parts)
            case _ if not part.parts:
                return None
            case _:
                raise ValueError(f"every part of {part} may be empty")

    def _format_part(self, part: Part) -> str:
        match part.kind:
            case "literal":
                return part.text
            case "symbol":
                return self._format_symbol(part.text)
            case _:
                return f"{part.kind}({', '.join(map(self._format_part, part.parts))})"

    def _format_symbol(self, name: str) -> str:
        if name == "_NL":
            return "$._newline"
        if name == "NAME":
            return "$._name"
        if name not in self._source_rules:
            return f"$.{name.lower()}"
        used = f"$._{name.lstrip('_')}" if self._is_hidden(name) else f"$.{name}"
        return f"optional({used})" if name in self._empty else used


if __name__ == "__main__":
    for path, text in generated_files().items():
        path.write_text(text)
