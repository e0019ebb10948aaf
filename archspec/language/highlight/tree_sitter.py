"""The grammar for tree-sitter, translated from `grammars/arch.lark`.

Tree-sitter rules are never empty, so a rule that may be is optional wherever it is used. The end of a line is a token
of the scanner in `editors/tree-sitter/src/scanner.c`, which decides as `syntax.lines` does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from archspec.core.record import Record
from archspec.core.resources import grammar_text
from archspec.language.highlight.tokens import CONSTANTS, CONTROL, WORDS, styles
from archspec.language.syntax.machine import load_tables

_PIECE = re.compile(r"\"(?:[^\"\\]|\\.)*\"|->|\w+|[()*+?|]")
_COMMENT = re.compile(r"(?:^|\s)// .*")
_RULE = re.compile(r"^(?P<passes>\?)?(?P<name>[a-z_]+):(?P<text>.*(?:\n +\|.*)*)", re.MULTILINE)
_TERMINAL = re.compile(r"^([A-Z]+): /(.*)/$", re.MULTILINE)

_MULTIPLES = {"?": "optional", "*": "repeat", "+": "repeat1"}

BRACKETS = ("(", ")", "[", "]", "{", "}")
SEPARATORS = (",", ".", ":")
NAMED = "..."
"""A sign that is a node of its own."""

NODES = """
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
    """An alternative of a rule, and the node that it makes if that is not the rule's."""

    part: Part
    alias: str


class Rule(Record):
    """A rule. A `passes` rule makes no node of an alternative that is one symbol."""

    passes: bool
    alternatives: tuple[Alternative, ...]


def grammar() -> str:
    """The grammar in the JavaScript that tree-sitter reads."""
    text = grammar_text()
    lines = [f"{name}: $ => {rule}," for name, rule in _Translation(_rules(text)).rules()]
    patterns = dict(_TERMINAL.findall(text))
    lines += [f"{name.lower()}: _ => /{pattern}/," for name, pattern in patterns.items()]
    known = {style.name: style.pattern for style in styles()}
    lines.append(f"documentation: _ => token(prec(1, /{known['documentation']}/)),")
    lines.append(f"comment: _ => /{known['comment']}/,")
    body = "\n".join(f"    {line}" for line in lines)
    return f"""// Written by `python -m archspec.language.highlight.generate` from grammars/arch.lark.

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


def highlights() -> str:
    """The query for colours."""
    literals = load_tables()["literals"]
    signs = {text for text in literals if not text.isalpha()} - {*BRACKETS, *SEPARATORS, NAMED}
    others = {text for text in literals if text.isalpha()} - CONTROL - WORDS - CONSTANTS
    lists = [
        (others, "keyword"),
        (CONTROL, "keyword.control"),
        (WORDS, "keyword.operator"),
        (CONSTANTS, "constant.builtin"),
        (signs, "operator"),
        (BRACKETS, "punctuation.bracket"),
        (SEPARATORS, "punctuation.delimiter"),
    ]
    lines = [f"[{' '.join(json.dumps(word) for word in sorted(words))}] @{capture}" for words, capture in lists]
    return "\n".join(["; Written by `python -m archspec.language.highlight.generate`.", "", *lines, NODES])


def _rules(text: str) -> dict[str, Rule]:
    found: dict[str, Rule] = {}
    for match in _RULE.finditer(_COMMENT.sub("", text)):
        pieces = _PIECE.findall(match["text"])
        found[match["name"]] = Rule(bool(match["passes"]), tuple(_alternatives(pieces)))
        assert not pieces
    return found


def _alternatives(pieces: list[str]) -> Iterator[Alternative]:
    """Read alternatives up to a closing parenthesis."""
    while True:
        part = _sequence(pieces)
        alias = ""
        if pieces and pieces[0] == "->":
            alias = pieces[1]
            del pieces[:2]
        yield Alternative(part, alias)
        if not pieces or pieces[0] != "|":
            return
        pieces.pop(0)


def _sequence(pieces: list[str]) -> Part:
    parts: list[Part] = []
    while pieces and pieces[0] not in ("|", ")", "->"):
        piece = pieces.pop(0)
        if piece == "(":
            part = _choice([alternative.part for alternative in _alternatives(pieces)])
            pieces.pop(0)
        else:
            part = Part("literal" if piece.startswith('"') else "symbol", piece, ())
        if pieces and pieces[0] in _MULTIPLES:
            part = Part(_MULTIPLES[pieces.pop(0)], "", (part,))
        parts.append(part)
    return parts[0] if len(parts) == 1 else Part("seq", "", tuple(parts))


def _choice(parts: list[Part]) -> Part:
    return parts[0] if len(parts) == 1 else Part("choice", "", tuple(parts))


class _Translation:
    """The rules of tree-sitter; a name with `_` before it makes no node."""

    def __init__(self, rules: dict[str, Rule]) -> None:
        self._known = rules
        self._empty: set[str] = set()
        while True:
            found = {name for name, rule in rules.items() if any(self._may_be_empty(a.part) for a in rule.alternatives)}
            if found == self._empty:
                break
            self._empty = found

    def rules(self) -> Iterator[tuple[str, str]]:
        """The name and the definition of each rule."""
        for name, rule in self._known.items():
            yield from self._rule(name, rule)

    def _rule(self, name: str, rule: Rule) -> Iterator[tuple[str, str]]:
        choices: list[Part] = []
        nodes: dict[str, list[Part]] = {}
        for part, alias in rule.alternatives:
            is_start = name == next(iter(self._known))
            full = part if is_start else self._full(part)
            if full is None:
                continue
            if rule.passes and not alias and full.kind in ("symbol", "literal"):
                choices.append(full)
            else:
                nodes.setdefault(alias or name, []).append(full)
        if not self._is_hidden(name):
            yield name, self._shown(_choice(nodes[name]))
            return
        shown = [self._shown(choice) for choice in choices]
        for node, parts in nodes.items():
            if name.startswith("_"):
                shown += map(self._shown, parts)
                continue
            yield (node if node == name else f"_{name}_{node}"), self._shown(_choice(parts))
            shown.append(f"$.{node}" if node == name else f"alias($._{name}_{node}, $.{node})")
        yield f"_{name.lstrip('_')}", f"choice({', '.join(shown)})"

    def _is_hidden(self, name: str) -> bool:
        """Whether a rule is used by a name that makes no node."""
        rule = self._known[name]
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

    def _full(self, part: Part) -> Part | None:
        """A part without the empty text; None if it is nothing else."""
        if not self._may_be_empty(part):
            return part
        match part.kind:
            case "optional":
                return self._full(part.parts[0])
            case "repeat":
                return Part("repeat1", "", part.parts)
            case _ if not part.parts:
                return None
            case _:
                raise ValueError(f"every part of {part} may be empty")

    def _shown(self, part: Part) -> str:
        match part.kind:
            case "literal":
                return part.text
            case "symbol":
                return self._symbol(part.text)
            case _:
                return f"{part.kind}({', '.join(map(self._shown, part.parts))})"

    def _symbol(self, name: str) -> str:
        if name == "_NL":
            return "$._newline"
        if name not in self._known:
            return f"$.{name.lower()}"
        used = f"$._{name.lstrip('_')}" if self._is_hidden(name) else f"$.{name}"
        return f"optional({used})" if name in self._empty else used
