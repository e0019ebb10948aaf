"""Error messages for unexpected tokens, with suggested fixes for common errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from archspec.core.diagnostics import suggest
from archspec.language.syntax.habits import (
    ENDS,
    Advice,
    ErrorContext,
    explain_python_syntax,
    format_tokens,
    innermost_open_bracket,
)
from archspec.language.syntax.machine import ArchSyntaxError, Parser, Token, UnexpectedTokenError

_ITEM_KEYWORDS = ("import", "export", "dim", "fn", "layer", "block", "model")
_STATEMENT_KEYWORDS = ("if", "for", "return", "tie", "require", "role", "label")
_DECLARATION_KEYWORDS = ("param", "buffer", "const", "frozen", "unused")
_OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "and", "or")
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_SIGNS = (",", ")", "]", "}", ":", "=", "..", "->", "[", "{")
"""Symbols listed as expected; operators are omitted, because they are allowed almost everywhere."""


def explain(
    machine: Parser, error: UnexpectedTokenError, start: str, following: Sequence[Token] = ()
) -> ArchSyntaxError:
    """Convert `error` to an ArchSyntaxError for the start symbol `start`; `following` the tokens after those parsed."""
    tokens, index = error.tokens, error.index
    end = tokens[-1].end if tokens else 0
    unexpected = [*tokens[index : index + 1], *following, Token(end, end, "$END", "")][0]
    context = ErrorContext(
        tokens[:index], unexpected, tokens[index + 1 :], machine.accepted(error.stack), start, machine.keywords
    )
    advice = next((advice for rule in _RULES if (advice := rule(context))), Advice())
    span = (context.previous.end, context.previous.end) if context.at_end else (unexpected.start, unexpected.end)
    return ArchSyntaxError(advice.message or _default_message(context), *(advice.span or span), advice.help)


def _default_message(context: ErrorContext) -> str:
    after = f" after `{_truncate(context.previous.text)}`" if context.before else ""
    return f"expected {_describe_expected(context)}{after}, found {_describe_token(context.unexpected)}"


def _describe_expected(context: ErrorContext) -> str:
    accepted = context.accepted
    for kind, name in (("tie", "a statement"), ("fn", _join_alternatives([f"`{word}`" for word in _ITEM_KEYWORDS]))):
        if kind in accepted:
            return name
    if "frozen" in accepted:
        return "`param`, `buffer`, `const`, or a layer or block" if "param" in accepted else "a layer or block"
    if context.wants_value:
        return "an expression"
    if {"NAME", "["} <= accepted and "," not in accepted:
        return "a shape"
    if {"NAME", "STRING"} <= accepted and context.first.text in ("tie", "role", "label"):
        return "an address"
    if "WORD" in accepted:
        return "a name or number"
    names = [name for kind, name in (("NAME", "a name"), ("STRING", "a string")) if kind in accepted]
    if names and "," not in accepted:
        return _join_alternatives(names)
    if len(context.before) == 1 and {":", "="} <= accepted:
        return "`=` or `:`"
    if accepted.intersection(ENDS) and not {"->", "{"} & accepted:
        return "`,` or the end of the line" if "," in accepted else "the end of the line"
    hidden = {"["} if accepted & {":", "+"} else set[str]()
    hidden |= {":", "="} if context.has_value else set()
    hidden |= {"{"} if "->" in accepted else set()
    signs = [sign for sign in _SIGNS if sign in accepted - hidden] or sorted(accepted)[:4]
    return _join_alternatives([f"`{sign}`" for sign in signs])


def _join_alternatives(words: list[str]) -> str:
    return " or ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else "".join(words)


def _describe_token(token: Token) -> str:
    return "the end of the line" if token.kind in ENDS else f"`{_truncate(token.text)}`"


def _truncate(text: str) -> str:
    return text if len(text) <= 30 else text[:27] + "..."


# Common errors --------------------------------------------------------------------------------------------------------


def _explain_character(context: ErrorContext) -> Advice | None:
    """Explain invalid characters."""
    unexpected = context.unexpected
    if unexpected.kind != "BAD":
        return None
    text = unexpected.text
    if text[0].isdigit():
        help = "put a single `_` between two digits" if re.match(r"[0-9_]*(?:__|_\Z|_[eE][0-9]*\Z)", text) else None
        if re.fullmatch(r"[0-9_.]+[kKMBT]", text):
            help = "write the number in full, as in `110_000_000`"
        return Advice(f"expected a number or name, found `{_truncate(text)}`", help)
    if text == '"':
        return Advice("invalid escape sequence in this string", 'use only `\\"` and `\\\\`')
    if text in "&|" and context.next.text == text and context.next.start == unexpected.end:
        help = "write `and`" if text == "&" else "write `or`"
        return Advice(f"unknown operator `{text * 2}`", help, (unexpected.start, context.next.end))
    if not text.isprintable() and text not in _CHARACTERS:
        return Advice(f"invalid character U+{ord(text):04X}")
    if text in _CHARACTERS:
        return Advice(f"unexpected character `{text}`", _CHARACTERS[text])
    help = "use only ASCII letters, digits and `_` in names" if text.isalpha() else None
    return Advice(f"invalid character `{text}`", help)


_CHARACTERS = {
    **dict.fromkeys("'`\u2018\u2019\u201c\u201d", 'use double quotes for strings: `"text"`'),
    "!": "write `not`",
    "&": "write `and`",
    "|": "write `or`, or `|>` for a step of a chain",
    ";": "remove it: a statement ends at the end of the line",
    "@": "write `matmul(a, b)`",
    "^": "write `**` for a power",
    "\u2026": "write `...`",
    "\u2212": "write `-`",
    "\u2013": "write `-`",
    "\u00d7": "write `*`",
    "\u2192": "write `->`",
    "\u00a0": "replace this non-breaking space with a plain space",
}


def _explain_operator(context: ErrorContext) -> Advice | None:
    """Explain operators of other languages."""
    before, unexpected, joined = context.previous, context.unexpected, context.joined
    span = (before.start, unexpected.end)
    if joined == ":=":
        name = format_tokens(context.before[:-1])
        help = f"write `{name}: {context.next.text}(...)` to declare it"
        is_layer = context.next.text[:1].isupper() or "." in name
        return Advice("unknown operator `:=`", help if is_layer else f"write `{name} = ...` to name a value", span)
    if joined in ("+=", "-=", "*=", "/="):
        name = context.first.text
        help = f"write `{name} = {name} {before.text} ...` in a loop, and assign to a new name elsewhere"
        return Advice(f"unknown operator `{joined}`", help, span)
    if unexpected.text == "." and before.kind == "INT" and re.match(r"(?![eE]\d*\b)[A-Za-z_]", context.next.text):
        return Advice(
            f"expected an address, found the number `{before.text}`",
            f'quote it in an address: `"{before.text}".{context.next.text}`',
            (before.start, before.end),
        )
    if unexpected.text == "." and before.kind == "INT":
        return Advice("expected a digit after the decimal point", f"write `{before.text}.0`", span)
    if unexpected.text in _COMPARISONS and context.has_value and any(t.text in _COMPARISONS for t in context.before):
        return Advice("comparisons cannot be chained", "join two comparisons with `and`")
    if unexpected.text == "...":
        is_range = any(token.text == "for" for token in context.before)
        return Advice("`...` is only allowed in shapes", "write a range with two dots: `0..n`" if is_range else None)
    if unexpected.text == "," and not context.wants_value and any(t.text == "=" for t in context.before):
        return Advice("a statement assigns one value", "assign each value on a line of its own")
    if unexpected.text == "?":
        return Advice("unexpected character `?`", "write `value if condition else other`")
    if any(t.text == "//" for t in (*context.before, unexpected)) and (
        unexpected.text == "//" or not context.wants_value
    ):
        return Advice(help="use `#` for comments: `//` is integer division")
    return None


def _explain_word(context: ErrorContext) -> Advice | None:
    """Explain keywords of other languages, and typos at the start of a statement or an item."""
    word = context.first if len(context.before) < 2 and context.unexpected.text != "elif" else context.unexpected
    span = (word.start, word.end)
    if word.text in _ITEM_KEYWORDS and context.start == "statement" and context.unexpected.kind in ("NAME", "STRING"):
        return Advice(f"`{word.text}` is only allowed at the top level of a file", None, span)
    if context.start == "item" and not context.before and word.kind in _STATEMENT_STARTS:
        return Advice(help=_OUTSIDE_BODY_HELP)
    if context.unexpected.text == "is":
        help = "write `== none`, or `!= none` for `is not None`"
        return Advice("unknown operator `is`", help, (context.unexpected.start, context.unexpected.end))
    if context.previous.text == "lambda":
        lambda_ = context.previous
        return Advice("unknown keyword `lambda`", _FOREIGN_KEYWORDS["def"], (lambda_.start, lambda_.end))
    if [token.text for token in context.before] == ["label"] and context.unexpected.kind == "NAME":
        message = f"expected a string after `label`, found {_describe_token(context.unexpected)}"
        return Advice(message, 'write `label "Text"`, or `label "Text" for address`')
    if word.kind != "NAME" or (len(context.before) > 1 and word.text != "elif"):
        return None
    if word.text in _FOREIGN_KEYWORDS and context.unexpected.text not in ("=", ":", "."):
        return Advice(f"unknown keyword `{word.text}`", _FOREIGN_KEYWORDS[word.text], span)
    keywords: list[str] = [*(_ITEM_KEYWORDS if context.start == "item" else _STATEMENT_KEYWORDS)]
    swapped = next((k for k in keywords if sorted(k) == sorted(word.text)), None)  # `fi`
    near = f"did you mean `{swapped}`?" if swapped else suggest(word.text, keywords)
    if near and (context.start == "item" or not context.at_end):
        return Advice(f"unknown keyword `{word.text}`", near, span)
    if context.start == "item":
        return Advice(help=_OUTSIDE_BODY_HELP)
    return (
        Advice(help=f"write `{word.text}: {context.unexpected.text} ...`")
        if context.unexpected.text in _DECLARATION_KEYWORDS
        else None
    )


_STATEMENT_STARTS = ("STRING", ".", *_STATEMENT_KEYWORDS)
_OUTSIDE_BODY_HELP = "put statements inside the braces of a `fn`, `layer` or `block`"
_FOREIGN_KEYWORDS = {
    **dict.fromkeys(("def", "func", "function", "fun"), "write a function as `fn name(x [n]) -> [n] { ... }`"),
    **dict.fromkeys(("class", "struct", "module"), "use a `layer` to declare tensors, a `block` to declare layers"),
    **dict.fromkeys(("let", "var", "const", "val"), "write `name = value`"),
    "elif": "write `else if`",
    "from": "write `import std { Name }`",
    "while": "loop over a range: `for i in 0..n { ... }`",
    "assert": 'write `require condition, "message"`',
}


def _explain_keyword(context: ErrorContext) -> Advice | None:
    """Explain keywords in place of a name or an address."""
    follows_keyword = len(context.before) == 1 and context.unexpected.text in (".", ":", "=")
    word = context.previous if follows_keyword else context.unexpected
    if word.text not in context.keywords or (follows_keyword and context.first.text == "tie"):
        return None
    span = (word.start, word.end)
    if context.start == "item" and word is context.first:
        return Advice(help=_OUTSIDE_BODY_HELP)
    if context.unexpected.text in (".", ":") or context.next.text in (".", ":"):
        return Advice(
            f"expected an address, found the keyword `{word.text}`", f'quote it in an address: `"{word.text}"`', span
        )
    if word.text in _DECLARATION_KEYWORDS and innermost_open_bracket(context.before) is None:
        help = f"use a colon to declare: `{context.first.text}: {word.text} ...`"
        return Advice(help=help) if context.previous.text == "=" else None
    if word.text == "for" and (context.start == "step" or context.previous.text == "|>"):
        help = "write `for` at the end of the line of the step that it repeats: `|> layers[i]: Layer() for i in 0..n`"
        return Advice(f"expected a step, found the keyword `{word.text}`", help, span)
    if follows_keyword or "NAME" in context.accepted:
        choice = word.text == "if" and context.wants_value and context.next.text != "="
        help = "write `value if condition else other`" if choice else None
        return Advice(f"expected a name, found the keyword `{word.text}`", help, span)
    return None


def _explain_misspelling(context: ErrorContext) -> Advice | None:
    """Explain typos in keywords that do not begin a statement: `param`, `buffer`, `const`, `frozen`, `else`, ..."""
    tokens = [*context.before, context.unexpected]
    word, near = context.unexpected, None
    if context.accepted == {"expect"}:
        near = suggest(word.text, ["expect"])
    elif context.previous.text == "}":
        near = suggest(word.text, ["else"])
    elif ":" in (texts := [token.text for token in tokens]):
        declared = texts.index(":") + 1
        while declared < len(texts) and texts[declared] in ("frozen", "unused"):
            declared += 1
        if declared + 1 < len(tokens) and tokens[declared + 1].text in ("[", "int", "bool", *_DECLARATION_KEYWORDS):
            word = tokens[declared]
            near = suggest(word.text, list(_DECLARATION_KEYWORDS)) if word.kind == "NAME" else None
    return Advice(f"unknown keyword `{_truncate(word.text)}`", near, (word.start, word.end)) if near else None


def _explain_unquoted(context: ErrorContext) -> Advice | None:
    """Explain hyphens and numbers in an address without quotes."""
    unexpected, previous = context.unexpected, context.previous
    first = context.first.kind
    if (
        unexpected.text == ":"
        and previous.kind == "INT"
        and first not in ("for", "if")
        and ".." not in context.accepted
        and innermost_open_bracket(context.before) is None
    ):
        number = f"the number `{previous.text}`"
        help = f'quote it in an address: `"{previous.text}"`'
        return Advice(f"expected an address, found {number}", help, (previous.start, previous.end))
    if unexpected.text != "-":
        return None
    before, after = (
        _adjacent_tokens(context.before[::-1], unexpected)[::-1],
        _adjacent_tokens(context.after, unexpected),
    )
    run = [*before, unexpected, *after]
    following = context.after[len(after)] if len(after) < len(context.after) else unexpected
    declares = context.first.text in ("tie", "role", "label") or following.text == ":" or run[0].text == "."
    if not before or not after or not declares:
        return None
    segments = format_tokens(run).split(".")
    quoted = ".".join(f'"{segment}"' if "-" in segment else segment for segment in segments)
    help = f"quote a segment with a hyphen: `{quoted}`"
    return Advice(f"expected an address, found `{format_tokens(run)}`", help, (run[0].start, run[-1].end))


def _adjacent_tokens(tokens: Sequence[Token], to: Token) -> list[Token]:
    """Return the leading tokens that are parts of an address, adjacent to `to` and to each other."""
    run: list[Token] = []
    for token in tokens:
        is_part = token.text[0].isalnum() or token.text in ("-", ".", "_")
        if not is_part or (token.end != to.start and token.start != to.end):
            break
        run.append(token)
        to = token
    return run


def _explain_declaration(context: ErrorContext) -> Advice | None:
    """Explain errors with `:`, `=` and the `.` of an address."""
    before, unexpected, first = context.previous, context.unexpected, context.first.text
    addressed = ":" in context.accepted and not context.has_value
    if (unexpected.text == ":" or context.at_end) and "{" in context.accepted and first in ("fn", "layer", "block"):
        return Advice(help="put the body in braces: `{ ... }`")
    if first == "model" and unexpected.text == ":" and context.accepted == {"="}:
        return Advice(help='write `model "name" = Block()`')
    if first in ("if", "for", "else") and (unexpected.text == ":" or (before.text == ":" and context.at_end)):
        return Advice(help=f"put the body in braces: `{first} ... {{ }}`")
    if first == "tie" and unexpected.text == ".":
        return Advice(help="write both sides of a `tie` as addresses without a leading `.`")
    if before.text == ".." and ":" in context.accepted and "," not in context.accepted:
        return Advice(help="write `..: Block(...)` to add the declarations of `Block`")
    if before.text == ":" and unexpected.text in ("param", "buffer") and context.before[-2].text == "..":
        return Advice(help="give the tensor an address: only a layer or block can follow `..:`")
    if before.text == ":" and "frozen" in context.accepted and not context.at_end:
        name = format_tokens(context.before[:-1]) if context.start == "statement" else "name"
        return Advice(help=f"write `{name} = ...` to name a value: a colon declares a tensor, layer or block")
    if addressed and unexpected.text == "=":
        return Advice(help="write `address: Layer()` to declare: only a name can be assigned with `=`")
    if addressed and len(context.before) > 2:
        return Advice(help="write `a.b: Layer()` to declare at `a.b`: `.a.b` refers to an existing declaration")
    compares = any(token.text in ("if", "and", "or", "not") for token in context.before)
    if unexpected.text == "=" and (compares or first in ("if", "require", "expect", "else")):
        return Advice(help="use `==` to compare")
    return None


def _explain_omission(context: ErrorContext) -> Advice | None:
    """Explain omissions."""
    before, unexpected, accepted, first = context.previous, context.unexpected, context.accepted, context.first.text
    words = [token.text for token in context.before]
    if before.text == "return" and context.wants_value:
        help = "continue on the same line" if context.at_end else None
        return Advice(f"expected a value after `return`, found {_describe_token(unexpected)}", help)
    if ".." in accepted and "for" in words:
        return _explain_range(context)
    if (first == "for" and before.text == "for" and unexpected.text == "(") or words[-1:] == ["for"]:
        return Advice(help="write `for i in 0..n`")
    if first in ("for", "if") and context.at_end and "{" in accepted:
        body, purpose = ("a loop", "repeat a step") if first == "for" else ("an `if`", "make a step conditional")
        help = f"put the body of {body} in braces; to {purpose}, write `{first}` at the end of the line of the step"
        return Advice(help=help)
    if unexpected.text == "(" and before.text == ")" and context.has_value:
        return Advice(help="pass at most two lists of arguments: hyperparameters, then inputs")
    if first in ("fn", "layer", "block") and accepted == {"("}:
        return Advice(help="add a list of inputs, even if it is empty: `()`")
    if unexpected.text == ":" and first in ("fn", "layer", "block"):
        return Advice(help="write an input as `x [batch, hidden]`, or with a type as `x int [batch]`")
    if "->" in accepted and unexpected.text == "(":
        return Advice(help="use at most two lists: hyperparameters, then inputs")
    if accepted == {"expect"}:
        return Advice(help="write an expectation as `expect params == 1_000`")
    if first == "model" and accepted == {"STRING"}:
        return Advice(help=f'put the name of the model in quotes: `model "{_truncate(unexpected.text)}"`')
    if "->" in accepted:
        return Advice(help="declare the outputs: `-> [batch, hidden]`")
    if "[" in accepted and not context.has_value and {"param", "buffer", "const"}.intersection(words[-2:]):
        return Advice(help="add the shape of the tensor: `[n, d]`, or `[]` for a single number")
    listed = "," in accepted and ("=" not in accepted or ")" in accepted)
    if "|>" in accepted and (unexpected.text == "->" or (unexpected.kind == "NAME" and context.next.text == ":")):
        return Advice(help="begin a step of a chain with `|>`")
    if listed and unexpected.kind in ("NAME", "INT", "REAL", "STRING"):
        return Advice(help="did you forget a comma?")
    in_value = not context.wants_value and first not in ("model", "tie")
    if unexpected.text == "|>" and in_value and {"if", "=", "for"}.intersection(words):
        return Advice(help="put the chain in parentheses")
    if "|>" in words and unexpected.text in _OPERATORS and ("|>" in accepted or context.start == "step"):
        return Advice(help="put the operand in parentheses, or split it into two steps")
    if first in ("import", "export") and "{" in accepted and unexpected.text in (".", "/"):
        return Advice(help=f'put a path in quotes: `{first} "directory/file.arch" {{ Name }}`')
    if first in ("import", "export") and "{" in accepted:
        return Advice(help=f"list the names: `{first} {words[1]} {{ Name }}`")
    if unexpected.text == "{" and context.start in ("statement", "step"):
        return Advice(help="remove it: braces hold the body of a definition, an `if` or a `for`")
    return _explain_broken_line(context) if context.at_end else None


def _explain_range(context: ErrorContext) -> Advice:
    """Explain a number, a call of `range` or a slice in place of the range of a loop."""
    start = next(k for k, token in enumerate(context.before) if token.text == "in") + 1
    tokens = context.before[start:]
    text = format_tokens(tokens)
    if ".." in text or not text:
        return Advice(help="loop over a range: `for i in 0..n`")
    bounds = re.fullmatch(r"range\((?:([^(),]+), )?([^(),]+)\)", text)
    span = (tokens[0].start, tokens[-1].end)
    first, last = (bounds[1] or "0", bounds[2]) if bounds else ("0", text)
    if context.unexpected.text == ":" and context.next.kind in ("NAME", "INT"):
        first, last, span = text, context.next.text, (context.unexpected.start, context.unexpected.end)
    wrong = ":" if last == context.next.text else text
    return Advice(f"expected a range after `in`, found `{wrong}`", f"write `{first}..{last}`", span)


def _explain_broken_line(context: ErrorContext) -> Advice | None:
    """Explain a statement that is broken by a line end."""
    text = context.previous.text
    if text == ",":
        return Advice(help="keep the list on one line: only `( )`, `[ ]` and an import can span lines")
    if text == ":" and "frozen" in context.accepted:
        address = format_tokens([t for t in context.before[:-1] if t.text != "|>"])
        return Advice(help=f"begin on the same line: `{address}: Layer(...)`")
    if text in _OPERATORS and context.wants_value:
        return Advice(help="put an expression that spans lines in parentheses")
    return Advice(help="continue on the same line") if text in ("=", "->", "return") else None


_RULES: tuple[Callable[[ErrorContext], Advice | None], ...] = (
    _explain_character,
    _explain_unquoted,
    _explain_misspelling,
    explain_python_syntax,
    _explain_operator,
    _explain_word,
    _explain_keyword,
    _explain_declaration,
    _explain_omission,
)
