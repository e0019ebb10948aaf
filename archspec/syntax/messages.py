"""What to say about a token that fits nowhere: one plain sentence, and for common slips how to mend them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from archspec.source import suggest
from archspec.syntax.machine import Fault, Machine, Token, Unexpected

_ITEMS = ("import", "export", "dim", "fn", "layer", "block", "model")
_STATEMENTS = ("if", "for", "return", "tie", "require", "role")
_EXPRESSION = frozenset("NAME STRING INT REAL ( [ . - not true false none inf".split())
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_ENDS = frozenset(("_NL", "$END"))
_SIGNS = (",", ")", "]", "}", ":", "=", "..", "->", "[", "{")
"""Signs worth naming as expected; operators, which fit nearly everywhere, are not."""


class Slip(NamedTuple):
    """The place of a mistake: tokens before it, the token `found` there, those after it, and the `accepted` kinds."""

    before: Sequence[Token]
    found: Token
    after: Sequence[Token]
    accepted: set[str]
    start: str
    keywords: frozenset[str]

    @property
    def previous(self) -> Token:
        return self.before[-1] if self.before else Token(self.found.start, self.found.start, "", "")

    @property
    def first(self) -> Token:
        return self.before[0] if self.before else self.found

    @property
    def next(self) -> Token:
        return self.after[0] if self.after else Token(self.found.end, self.found.end, "$END", "")

    @property
    def wants_value(self) -> bool:
        return {"INT", "["} <= self.accepted

    @property
    def at_end(self) -> bool:
        return self.found.kind in _ENDS


def explain(machine: Machine, error: Unexpected, start: str, following: Sequence[Token] = ()) -> Fault:
    """The Fault for `error`, met while parsing a `start`; `following` is what stands after the tokens parsed, if anything."""
    tokens, index = error.tokens, error.index
    if index < len(tokens):
        found = tokens[index]
    else:
        end = tokens[-1].end if tokens else 0
        found = following[0] if following else Token(end, end, "$END", "")
    slip = Slip(
        tokens[:index], found, tokens[index + 1 :], machine.accepted(error.stack), start, machine.keywords
    )
    message, help = _general(slip), None
    for rule in _RULES:
        said = rule(slip)
        if said:
            message, help = said[0] or message, said[1]
            break
    if slip.at_end:
        return Fault(message, slip.previous.end, slip.previous.end, help)
    return Fault(message, found.start, found.end, help)


def _general(slip: Slip) -> str:
    after = f" after `{_short(slip.previous.text)}`" if slip.before else ""
    return f"expected {_expected(slip)}{after}, found {_described(slip.found)}"


def _expected(slip: Slip) -> str:
    accepted = slip.accepted
    if "tie" in accepted:
        return "a statement"
    if "fn" in accepted:
        return _listed([f"`{word}`" for word in _ITEMS])
    if "param" in accepted:
        return "`param`, `buffer`, or a layer or block"
    if slip.wants_value:
        return "an expression"
    names = [name for kind, name in _NAMED if kind in accepted]
    if names:
        return _listed(names)
    if len(slip.before) == 1 and {":", "="} <= accepted:
        return "`=` or `:`"
    signs = [f"`{sign}`" for sign in _SIGNS if sign in accepted and not (sign in ("[", ":") and "+" in accepted)]
    if accepted & _ENDS:
        return "the end of the line" if "->" not in accepted and "{" not in accepted else _listed(signs)
    return _listed(signs) or "something else"


_NAMED = (("WORD", "a word or number"), ("NAME", "a name"), ("STRING", "a string"))


def _listed(words: list[str]) -> str:
    return " or ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else "".join(words)


def _described(token: Token) -> str:
    return "the end of the line" if token.kind in _ENDS else f"`{_short(token.text)}`"


def _short(text: str) -> str:
    return text if len(text) <= 30 else text[:27] + "..."


# Common slips ---------------------------------------------------------------------------------------------------------

_Said = tuple[str | None, str | None] | None  # a message (None: the general one) and a help, or nothing to say


def _character(slip: Slip) -> _Said:
    found = slip.found
    if found.kind != "BAD":
        return None
    text = found.text
    if text[0].isdigit():
        return f"`{_short(text)}` is neither a number nor a name", None
    double = slip.next.text == text and slip.next.start == found.end
    if text in "&|" and double:
        return f"`{text * 2}` is no operator", f"write `{'and' if text == '&' else 'or'}`"
    if text == '"':
        return "this string has a `\\` that escapes nothing", 'only `\\"` and `\\\\` have a meaning'
    if text in _CHARACTERS:
        return f"`{text}` means nothing here", _CHARACTERS[text]
    help = "names are made of letters from a to z, digits and `_`" if text.isalpha() else None
    return f"`{text}` means nothing in this language", help


_QUOTES = 'strings stand in double quotes: `"text"`'
_CHARACTERS = {
    **dict.fromkeys("'`\u2018\u2019\u201c\u201d", _QUOTES),
    "!": "write `not`",
    "&": "write `and`",
    "|": "write `or`, or `|>` for a step of a chain",
    ";": "the end of a line ends a statement",
    "@": "write `matmul(a, b)`",
    "^": "a power is written `**`",
    "\u2026": "write `...`",
    "\u2212": "write `-`",
    "\u2013": "write `-`",
    "\u00d7": "write `*`",
    "\u2192": "write `->`",
    "\u00a0": "this is a space that does not break; write a plain one",
}


def _sign(slip: Slip) -> _Said:
    before, found = slip.previous, slip.found
    joined = before.end == found.start
    if found.text == "=" and joined and before.text == ":":
        return "`:=` is no sign of this language", "`name = value` binds a value, `address: Layer()` owns one"
    if found.text == "=" and joined and before.text in tuple("+-*/"):
        name = slip.first.text
        return f"`{before.text}=` is no sign of this language", f"write `{name} = {name} {before.text} ...`"
    if found.text == "*" and joined and before.text == "*":
        return None, "a power is written `**`"
    if found.text == "." and before.kind == "INT":
        return "a number needs a digit after its point", f"write `{before.text}.0`"
    if found.text in _COMPARISONS and any(t.text in _COMPARISONS for t in slip.before) and "and" in slip.accepted:
        return "comparisons cannot be chained", "join two of them with `and`"
    if found.text == "...":
        return "`...` can only stand in a shape", None
    return None


def _comment(slip: Slip) -> _Said:
    slashes = [t for t in (*slip.before, slip.found) if t.text == "//"]
    if slashes and (slip.found.text == "//" or not slip.wants_value):
        return None, "`//` divides; a comment begins with `#`"
    return None


def _word(slip: Slip) -> _Said:
    """A word from another language, or a misspelt one, where a statement or an item begins."""
    begins = slip.found if not slip.before or "tie" in slip.accepted else slip.first if len(slip.before) == 1 else None
    if begins is None and slip.found.text == "elif":
        begins = slip.found
    if begins is None or begins.kind != "NAME":
        return None
    if begins.text in _FOREIGN:
        return f"`{begins.text}` begins nothing in this language", _FOREIGN[begins.text]
    if slip.found.kind in ("NAME", "STRING", "INT", "(", "BAD") or not slip.before:
        near = suggest(begins.text, list(_ITEMS if slip.start == "item" else _STATEMENTS))
        if near:
            return None, near
    if slip.start == "item" and not slip.before:
        return None, "statements stand inside the braces of a `fn`, `layer` or `block`"
    return None


_FOREIGN = {
    **dict.fromkeys(("def", "func", "function", "fun"), "a function is written `fn name(x [n]) -> [n] { ... }`"),
    **dict.fromkeys(("class", "struct", "module"), "write `layer` for what owns tensors, `block` for what owns layers"),
    **dict.fromkeys(("let", "var", "const", "val"), "a value is bound by `name = value` alone"),
    "elif": "write `else if`",
    "from": "write `import std { Linear }`",
    "while": "loops have a known length: `for i in 0..n { ... }`",
    "assert": 'write `require condition, "message"`',
    "params": "write `address: param [n, d]`",
    "self": "what a definition owns is written `.address`",
}


def _keyword(slip: Slip) -> _Said:
    """A keyword where a name or an address should stand."""
    word = slip.previous if slip.found.text in (".", ":", "=") and len(slip.before) == 1 else slip.found
    if word.text not in slip.keywords:
        return None
    if word is slip.previous and slip.found.text != "=" or slip.next.text in (".", ":"):
        return f"`{word.text}` is a keyword", f'an address may quote it: `"{word.text}"`'
    if word.text in ("param", "buffer", "frozen", "unused") and slip.previous.text == "=":
        return None, "what is owned stands after a colon: `weight: param [n]`"
    if (word is slip.previous or "NAME" in slip.accepted) and word.text not in ("param", "buffer", "frozen", "unused"):
        return f"`{word.text}` is a keyword and cannot be a name", None
    return None


def _owning(slip: Slip) -> _Said:
    """`:`, `=` and the point of an address."""
    before, found, accepted = slip.previous, slip.found, slip.accepted
    addressed = ":" in accepted and "+" not in accepted and "=" not in accepted
    if before.text == ":" and slip.first.text in ("if", "for", "else") and slip.at_end:
        return None, "a body stands in braces: `if condition { ... }`"
    if before.text == ":" and "param" in accepted and found.kind != "BAD":
        return None, "`address: Layer()` owns; a value is bound by `name = value`"
    if before.text in ("tie", "=") and slip.first.text == "tie" and found.text == ".":
        return None, "both sides of a `tie` are addresses, without a point before them"
    if addressed and found.text == "=":
        return None, "an address owns: `address: Layer()`; only a name can be bound with `=`"
    if addressed and len(slip.before) > 2:
        return None, "`.a.b` is what this definition owns at `a.b`; `a.b: Layer()` owns it there"
    if found.text == ":" and any(t.text == "[" for t in slip.before):
        return None, "a part of a tensor is `slice(axis, start, stop)(x)`"
    if found.text == "=" and slip.first.text in ("if", "require", "expect", "else"):
        return None, "`==` compares"
    return None


def _missing(slip: Slip) -> _Said:
    """Something that was left out."""
    before, found, accepted = slip.previous, slip.found, slip.accepted
    if before.text == "return" and slip.wants_value:
        return f"expected a value after `return`, found {_described(found)}", None
    if slip.first.text == "for" and ".." in accepted or ("for" in [t.text for t in slip.before[-4:]] and ".." in accepted):
        return None, "a loop runs over a range: `for i in 0..n`"
    if found.text == "(" and before.text == ")" and "(" not in accepted and "+" in accepted:
        return None, "there are two lists of arguments at most: hyperparameters, then inputs"
    if "->" in accepted and slip.first.text in ("fn", "layer", "block"):
        return None, "a definition says what it yields: `-> [batch, hidden]`"
    if before.text in ("param", "buffer", "int", "bool") and "[" in accepted and "+" not in accepted:
        return None, "a tensor has a shape: `[n, d]`, or `[]` for a single number"
    if "," in accepted and found.kind in _EXPRESSION and found.text not in ("(", "[", ".", "-"):
        return None, "is a comma missing?"
    if "|>" in [t.text for t in slip.before] and found.text in tuple("+-*/") and "|>" in accepted:
        return None, "give the step parentheses, or make it two steps"
    if slip.first.text in ("import", "export") and "{" in accepted:
        return None, f"name what it takes: `{slip.first.text} std {{ Linear }}`"
    if slip.at_end and slip.wants_value and before.text in tuple("+-*/") + ("and", "or", "//", "%", "**"):
        return None, "an expression goes on to the next line only in parentheses"
    return None


_RULES: tuple[Callable[[Slip], _Said], ...] = (_character, _sign, _comment, _word, _keyword, _owning, _missing)
