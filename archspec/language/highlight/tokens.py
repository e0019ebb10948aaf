"""The tokens of the language for colours: at each place, the first pattern that matches decides.

They are those of the parser (`syntax.machine`), told apart by what precedes and follows them, since an editor colours
line by line.
"""

from __future__ import annotations

from archspec.core.record import Record
from archspec.language.syntax.parse import CONTEXTUAL, parser

CONTROL = frozenset(("if", "else", "for", "in", "return"))
WORDS = frozenset(("and", "or", "not"))
CONSTANTS = frozenset(("true", "false", "none", "inf"))


class Style(Record):
    """What is coloured: its pattern, TextMate scope and Pygments token type."""

    name: str
    pattern: str
    scope: str
    token: str


def styles() -> list[Style]:
    """All tokens, in the order in which they are tried."""
    reserved = parser().keywords - CONTEXTUAL
    others = sorted(reserved - CONTROL - WORDS - CONSTANTS)
    # Not a segment of an address, which may be called anything: after a dot, before one, or before a colon.
    free = r"(?!\.(?!\.)|\s*:)"
    word = r"[A-Za-z_]\w*"
    return [
        Style("documentation", r"##.*", "comment.line.documentation.arch", "String.Doc"),
        Style("comment", r"#.*", "comment.line.number-sign.arch", "Comment.Single"),
        Style("string", r'"(?:[^"\\\n]|\\.)*"', "string.quoted.double.arch", "String"),
        Style("segment", r"(?<=\.)(?<!\.\.)\w+", "variable.other.member.arch", "Name.Attribute"),
        Style("definition", rf"\b(?:fn|layer|block)\b(?=\s+{word}\s*\()", "storage.type.arch", "Keyword.Declaration"),
        Style(
            "defined",
            rf"(?:(?<=\bfn )|(?<=\blayer )|(?<=\bblock )){word}(?=\s*\()",
            "entity.name.type.arch",
            "Name.Class",
        ),
        Style("model", r"\bmodel\b(?=\s*\")", "storage.type.arch", "Keyword.Declaration"),
        Style("import", r"(?<![\w.])(?:import|export|dim)\b(?=\s+[\"\w])", "keyword.other.arch", "Keyword.Namespace"),
        Style("expect", r"(?<![\w.])expect\b(?!\s*[:=])", "keyword.other.arch", "Keyword"),
        Style("constant", _any(CONSTANTS) + free, "constant.language.arch", "Keyword.Constant"),
        Style("control", _any(CONTROL) + free, "keyword.control.arch", "Keyword"),
        Style("operator word", _any(WORDS) + free, "keyword.operator.word.arch", "Operator.Word"),
        Style("frozen", r"\bfrozen\b(?=\s+[A-Za-z_(])", "storage.modifier.arch", "Keyword"),
        Style("keyword", _any([w for w in others if w != "expect"]) + free, "keyword.other.arch", "Keyword"),
        Style("type", r"\b(?:int|bool|real)\b(?=\s*\[)", "support.type.arch", "Keyword.Type"),
        Style(
            "address",
            r"\w+(?:\.\w+|\[[^\]\n]*\])*(?=\s*:)",
            "variable.other.member.arch",
            "Name.Attribute",
        ),
        Style("number", r"\b\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?\b", "constant.numeric.arch", "Number"),
        Style("piped", r"\b_\b", "variable.language.arch", "Name.Builtin.Pseudo"),
        Style("class", r"\b[A-Z]\w*\b", "entity.name.type.arch", "Name.Class"),
        Style("function", rf"\b{word}(?=\s*\()", "entity.name.function.arch", "Name.Function"),
        Style("argument", rf"\b{word}(?=\s*=(?!=))", "variable.parameter.arch", "Name.Variable"),
        Style("name", rf"\b{word}\b", "variable.other.arch", "Name"),
        Style("operator", r"\|>|->|\.\.\.?|[=!<>]=|//|\*\*|[-+*/%=<>~?]", "keyword.operator.arch", "Operator"),
        Style("punctuation", r"[()\[\]{},.:]", "punctuation.arch", "Punctuation"),
    ]


def _any(words: list[str] | frozenset[str]) -> str:
    return rf"\b(?:{'|'.join(sorted(words))})\b"
