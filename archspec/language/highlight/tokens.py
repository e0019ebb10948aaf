"""The tokens of the language for highlighting: at each offset, the first pattern that matches applies.

They are the tokens of the parser (`syntax.machine`), distinguished by the text before and after them, because editors
highlight line by line.
"""

from __future__ import annotations

from archspec.core.record import Record
from archspec.language.syntax.parse import CONTEXTUAL, parser

CONTROL = frozenset(("if", "else", "for", "in", "return"))
WORDS = frozenset(("and", "or", "not"))
CONSTANTS = frozenset(("true", "false", "none", "inf"))


class Style(Record):
    """A highlighted token: its pattern, TextMate scope and Pygments token type."""

    name: str
    pattern: str
    scope: str
    token: str


def styles() -> list[Style]:
    """Return all tokens, in the order in which they are tried."""
    reserved = parser().keywords - CONTEXTUAL
    other_keywords = sorted(reserved - CONTROL - WORDS - CONSTANTS)
    # Excludes segments of addresses, which may be any word: before a dot or a colon.
    not_segment = r"(?!\.(?!\.)|\s*:)"
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
        Style("label", r"(?<![\w.])label\b(?=\s*\")", "keyword.other.arch", "Keyword"),
        Style("import", r"(?<![\w.])(?:import|export|dim)\b(?=\s+[\"\w])", "keyword.other.arch", "Keyword.Namespace"),
        Style("expect", r"(?<![\w.])expect\b(?!\s*[:=])", "keyword.other.arch", "Keyword"),
        Style("constant", _any_word(CONSTANTS) + not_segment, "constant.language.arch", "Keyword.Constant"),
        Style("control", _any_word(CONTROL) + not_segment, "keyword.control.arch", "Keyword"),
        Style("operator word", _any_word(WORDS) + not_segment, "keyword.operator.word.arch", "Operator.Word"),
        Style("frozen", r"\bfrozen\b(?=\s+[A-Za-z_(])", "storage.modifier.arch", "Keyword"),
        Style(
            "keyword",
            _any_word([w for w in other_keywords if w != "expect"]) + not_segment,
            "keyword.other.arch",
            "Keyword",
        ),
        Style("type", r"\b(?:int|bool|real|any)\b(?=\s*\[)", "support.type.arch", "Keyword.Type"),
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


def _any_word(words: list[str] | frozenset[str]) -> str:
    return rf"\b(?:{'|'.join(sorted(words))})\b"
