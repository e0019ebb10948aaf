"""What to say about a token that fits nowhere: one plain sentence, and for common slips how to mend them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from archspec.source import suggest
from archspec.syntax.machine import Fault, Machine, Token, Unexpected

_ITEMS = ("import", "export", "dim", "fn", "layer", "block", "model")
_STATEMENTS = ("if", "for", "return", "tie", "require", "role")
_OWNED = ("param", "buffer", "frozen", "unused")
_OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "and", "or")
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_ENDS = ("_NL", "$END")
_SIGNS = (",", ")", "]", "}", ":", "=", "..", "->", "[", "{")
"""Signs worth naming as expected; operators, which fit nearly everywhere, are not."""


class Slip(NamedTuple):
    """A mistake: the tokens before it, the one `found` there, those after it, and the kinds `accepted` there."""

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
    def at_end(self) -> bool:
        return self.found.kind in _ENDS

    @property
    def wants_value(self) -> bool:
        """Whether an expression can begin here."""
        return {"INT", "["} <= self.accepted

    @property
    def has_value(self) -> bool:
        """Whether an expression can end here."""
        return "+" in self.accepted and not self.wants_value

    @property
    def joined(self) -> str:
        """What is found and the token before it, if nothing stands between them."""
        return self.previous.text + self.found.text if self.previous.end == self.found.start else ""


class Said(NamedTuple):
    """What a rule has to say: a better message, help, a better place; what is None stays as it is."""

    message: str | None = None
    help: str | None = None
    place: tuple[int, int] | None = None


def explain(machine: Machine, error: Unexpected, start: str, following: Sequence[Token] = ()) -> Fault:
    """The Fault for `error`, met while parsing a `start`; `following` is what stands after the tokens parsed."""
    tokens, index = error.tokens, error.index
    end = tokens[-1].end if tokens else 0
    found = [*tokens[index : index + 1], *following, Token(end, end, "$END", "")][0]
    slip = Slip(tokens[:index], found, tokens[index + 1 :], machine.accepted(error.stack), start, machine.keywords)
    said = next((said for rule in _RULES if (said := rule(slip))), Said())
    place = (slip.previous.end, slip.previous.end) if slip.at_end else (found.start, found.end)
    return Fault(said.message or _general(slip), *(said.place or place), said.help)


def _general(slip: Slip) -> str:
    after = f" after `{_short(slip.previous.text)}`" if slip.before else ""
    return f"expected {_expected(slip)}{after}, found {_described(slip.found)}"


def _expected(slip: Slip) -> str:
    accepted = slip.accepted
    for kind, name in (("tie", "a statement"), ("fn", _listed([f"`{word}`" for word in _ITEMS]))):
        if kind in accepted:
            return name
    if "frozen" in accepted:
        return "`param`, `buffer`, or a layer or block" if "param" in accepted else "a layer or block"
    if slip.wants_value:
        return "an expression"
    if {"NAME", "["} <= accepted and "," not in accepted:
        return "a shape"
    if {"NAME", "STRING"} <= accepted and slip.first.text in ("tie", "role"):
        return "an address"
    if "WORD" in accepted:
        return "a name or number"
    names = [name for kind, name in (("NAME", "a name"), ("STRING", "a string")) if kind in accepted]
    if names and "," not in accepted:
        return _listed(names)
    if len(slip.before) == 1 and {":", "="} <= accepted:
        return "`=` or `:`"
    if accepted.intersection(_ENDS) and not {"->", "{"} & accepted:
        return "`,` or the end of the line" if "," in accepted else "the end of the line"
    hidden = {"["} if accepted & {":", "+"} else set[str]()
    hidden |= {":", "="} if slip.has_value else set()
    signs = [sign for sign in _SIGNS if sign in accepted - hidden] or sorted(accepted)[:4]
    return _listed([f"`{sign}`" for sign in signs])


def _listed(words: list[str]) -> str:
    return " or ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else "".join(words)


def _described(token: Token) -> str:
    return "the end of the line" if token.kind in _ENDS else f"`{_short(token.text)}`"


def _short(text: str) -> str:
    return text if len(text) <= 30 else text[:27] + "..."


# Common slips ---------------------------------------------------------------------------------------------------------


def _character(slip: Slip) -> Said | None:
    """What is no token at all."""
    found = slip.found
    if found.kind != "BAD":
        return None
    text = found.text
    if text[0].isdigit():
        return Said(f"expected a number or name, found `{_short(text)}`")
    if text == '"':
        return Said("invalid escape sequence in this string", 'use only `\\"` and `\\\\`')
    if text in "&|" and slip.next.text == text and slip.next.start == found.end:
        mend = "write `and`" if text == "&" else "write `or`"
        return Said(f"unknown operator `{text * 2}`", mend, (found.start, slip.next.end))
    if not text.isprintable() and text not in _CHARACTERS:
        return Said(f"invalid character U+{ord(text):04X}")
    if text in _CHARACTERS:
        return Said(f"unexpected character `{text}`", _CHARACTERS[text])
    help = "use only ASCII letters, digits and `_` in names" if text.isalpha() else None
    return Said(f"invalid character `{text}`", help)


_CHARACTERS = {
    **dict.fromkeys("'`\u2018\u2019\u201c\u201d", 'use double quotes for strings: `"text"`'),
    "!": "write `not`",
    "&": "write `and`",
    "|": "write `or`, or `|>` for a step of a chain",
    ";": "remove it: a statement ends at the end of the line",
    "@": "write `matmul(a, b)`",
    "^": "write `**` for a power",
    "?": "write `value if condition else other`",
    "\u2026": "write `...`",
    "\u2212": "write `-`",
    "\u2013": "write `-`",
    "\u00d7": "write `*`",
    "\u2192": "write `->`",
    "\u00a0": "replace this non-breaking space with a plain space",
}


def _sign(slip: Slip) -> Said | None:
    """Signs of other languages."""
    before, found, joined = slip.previous, slip.found, slip.joined
    both = (before.start, found.end)
    if joined == ":=":
        return Said("unknown operator `:=`", "write `name = value` to assign, `address: Layer()` to declare", both)
    if joined in ("+=", "-=", "*=", "/="):
        name = slip.first.text
        return Said(f"unknown operator `{joined}`", f"write `{name} = {name} {before.text} ...`", both)
    if found.text == "." and before.kind == "INT":
        return Said("expected a digit after the decimal point", f"write `{before.text}.0`", both)
    if found.text in _COMPARISONS and slip.has_value and any(t.text in _COMPARISONS for t in slip.before):
        return Said("comparisons cannot be chained", "join two comparisons with `and`")
    if found.text == "...":
        return Said("`...` is only allowed in shapes")
    if any(t.text == "//" for t in (*slip.before, found)) and (found.text == "//" or not slip.wants_value):
        return Said(help="use `#` for comments: `//` is integer division")
    return None


def _word(slip: Slip) -> Said | None:
    """A word of another language, or a misspelt one, where a statement or an item begins."""
    word = slip.first if len(slip.before) < 2 and slip.found.text != "elif" else slip.found
    place = (word.start, word.end)
    if word.text in _ITEMS and slip.start == "statement" and slip.found.kind in ("NAME", "STRING"):
        return Said(f"`{word.text}` is only allowed at the top level of a file", None, place)
    if slip.start == "item" and not slip.before and word.kind in _INSIDE:
        return Said(help=_INSIDE_HELP)
    if word.kind != "NAME" or (len(slip.before) > 1 and word.text != "elif"):
        return None
    if word.text in _FOREIGN and slip.found.text not in ("=", ":", "."):
        return Said(f"unknown keyword `{word.text}`", _FOREIGN[word.text], place)
    near = suggest(word.text, list(_ITEMS if slip.start == "item" else _STATEMENTS))
    if near and (slip.start == "item" or not slip.at_end):
        return Said(help=near, place=place if slip.start == "item" else None)
    if slip.start == "item":
        return Said(help=_INSIDE_HELP)
    return Said(help=f"write `{word.text}: {slip.found.text} ...`") if slip.found.text in _OWNED else None


_INSIDE = ("STRING", ".", *_STATEMENTS)
_INSIDE_HELP = "put statements inside the braces of a `fn`, `layer` or `block`"
_FOREIGN = {
    **dict.fromkeys(("def", "func", "function", "fun"), "write a function as `fn name(x [n]) -> [n] { ... }`"),
    **dict.fromkeys(("class", "struct", "module"), "use a `layer` to declare tensors, a `block` to declare layers"),
    **dict.fromkeys(("let", "var", "const", "val"), "write `name = value`"),
    "elif": "write `else if`",
    "from": "write `import std { Name }`",
    "while": "loop over a range: `for i in 0..n { ... }`",
    "assert": 'write `require condition, "message"`',
}


def _keyword(slip: Slip) -> Said | None:
    """A keyword where a name or an address should stand."""
    begun = len(slip.before) == 1 and slip.found.text in (".", ":", "=")
    word = slip.previous if begun else slip.found
    if word.text not in slip.keywords or (begun and slip.first.text == "tie"):
        return None
    place = (word.start, word.end)
    if slip.start == "item" and word is slip.first:
        return Said(help=_INSIDE_HELP)
    if slip.found.text in (".", ":") or slip.next.text in (".", ":"):
        return Said(
            f"expected an address, found the keyword `{word.text}`", f'quote it in an address: `"{word.text}"`', place
        )
    if word.text in _OWNED:
        help = f"use a colon to declare: `{slip.first.text}: {word.text} ...`"
        return Said(help=help) if slip.previous.text == "=" else None
    if begun or "NAME" in slip.accepted:
        choice = word.text == "if" and slip.wants_value and slip.next.text != "="
        help = "write `value if condition else other`" if choice else None
        return Said(f"expected a name, found the keyword `{word.text}`", help, place)
    return None


def _owning(slip: Slip) -> Said | None:
    """`:`, `=` and the point of an address."""
    before, found, first = slip.previous, slip.found, slip.first.text
    addressed = ":" in slip.accepted and not slip.has_value
    if before.text == ":" and first in ("if", "for", "else") and slip.at_end:
        return Said(help=f"put the body in braces: `{first} ... {{ }}`")
    if first == "tie" and found.text == ".":
        return Said(help="write both sides of a `tie` as addresses without a leading `.`")
    if before.text == ":" and "frozen" in slip.accepted:
        return Said(help="write `name = value` to assign a value: `address: Layer()` declares")
    if addressed and found.text == "=":
        return Said(help="write `address: Layer()` to declare: only a name can be assigned with `=`")
    if addressed and len(slip.before) > 2:
        return Said(help="write `a.b: Layer()` to declare at `a.b`: `.a.b` refers to what is declared there")
    if found.text == ":" and any(t.text == "[" for t in slip.before):
        return Said(help="use `slice(axis, start, stop)(x)` to take part of a tensor")
    compares = any(token.text in ("if", "and", "or", "not") for token in slip.before)
    if found.text == "=" and (compares or first in ("if", "require", "expect", "else")):
        return Said(help="use `==` to compare")
    return None


def _missing(slip: Slip) -> Said | None:
    """Something that was left out."""
    before, found, accepted, first = slip.previous, slip.found, slip.accepted, slip.first.text
    words = [token.text for token in slip.before]
    if before.text == "return" and slip.wants_value:
        return Said(f"expected a value after `return`, found {_described(found)}")
    if ".." in accepted and "for" in words:
        return Said(help="loop over a range: `for i in 0..n`")
    if found.text == "(" and before.text == ")" and slip.has_value:
        return Said(help="pass at most two lists of arguments: hyperparameters, then inputs")
    if first in ("fn", "layer", "block") and accepted == {"("}:
        return Said(help="add a list of inputs, even if it is empty: `()`")
    if found.text == ":" and first in ("fn", "layer", "block"):
        return Said(help="write an input as `x [batch, hidden]`, or with a type as `x int [batch]`")
    if "->" in accepted and found.text == "(":
        return Said(help="use at most two lists: hyperparameters, then inputs")
    if accepted == {"expect"}:
        return Said(help="write an expectation as `expect params == 1_000`")
    if first == "model" and accepted == {"STRING"}:
        return Said(help=f'put the name of the model in quotes: `model "{_short(found.text)}"`')
    if "->" in accepted:
        return Said(help="declare the outputs: `-> [batch, hidden]`")
    if "[" in accepted and not slip.has_value and {"param", "buffer"}.intersection(words[-2:]):
        return Said(help="add the shape of the tensor: `[n, d]`, or `[]` for a single number")
    listed = "," in accepted and ("=" not in accepted or ")" in accepted)
    if listed and found.kind in ("NAME", "INT", "REAL", "STRING"):
        return Said(help="did you forget a comma?")
    if found.text == "|>" and slip.has_value:
        return Said(help="put the chain in parentheses")
    if "|>" in words and found.text in _OPERATORS and ("|>" in accepted or slip.start == "step"):
        return Said(help="put the operand in parentheses, or split it into two steps")
    if first in ("import", "export") and "{" in accepted:
        return Said(help=f"list the names: `{first} {words[1]} {{ Name }}`")
    if slip.at_end and slip.wants_value and before.text in _OPERATORS:
        return Said(help="put an expression that spans lines in parentheses")
    return None


_RULES: tuple[Callable[[Slip], Said | None], ...] = (_character, _sign, _word, _keyword, _owning, _missing)
