"""Statements as text, in lines of at most 88 characters."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Sequence

from archspec.core.pretty import LINE, Doc, Group, Nest, lines_between, render

WIDTH = 88
MARGIN = "    "


def _printed(doc: Doc, indent: int) -> list[str]:
    return render(doc, WIDTH, indent * len(MARGIN))


def bracketed(head: str, items: Sequence[str], tail: str, indent: int) -> list[str]:
    """`head`, items between commas, `tail`: in one line, in three, or a line each item."""
    return _printed(_brackets(head, [(item, item) for item in items], tail), indent)


def _brackets(first: str, items: Sequence[tuple[str, Doc]], last: str) -> Group:
    """Items, each in one line and as it can be broken, in brackets."""
    flat = ", ".join(text for text, _ in items)
    inner = Group(flat, lambda: [lines_between([item for _, item in items], ",")])
    return Group(first + flat + last, lambda: [_enclosed(first, inner, last)])


def _enclosed(first: str, doc: Doc, last: str) -> Doc:
    return [first, Nest([LINE, doc]), LINE, last]


# Statements -----------------------------------------------------------------------------------------------------------


def lines_of(body: Sequence[ast.stmt], indent: int) -> list[str]:
    """The lines of statements, `indent` levels in."""
    lines: list[str] = []
    for statement in body:
        match statement:
            case ast.If():
                lines += _if(statement, indent, "if")
            case ast.For(target, iterated):
                lines += _printed(["for ", _target(target), " in ", _doc(iterated), ":"], indent)
                lines += lines_of(statement.body, indent + 1)
            case ast.Assign([target], value):
                lines += _printed(
                    [_target(target) if isinstance(target, ast.Tuple) else unparse_line(target), " = ", _doc(value)],
                    indent,
                )
            case ast.Return(ast.expr() as value):
                lines += _printed(["return ", _target(value)], indent)
            case ast.Raise(ast.expr() as value):
                lines += _printed(["raise ", _doc(value)], indent)
            case ast.Expr(value):
                lines += _printed(_doc(value), indent)
            case _:
                raise TypeError(f"no layout for {ast.dump(statement)}")
    return lines


def _if(statement: ast.If, indent: int, word: str) -> list[str]:
    lines = [*_printed([f"{word} ", _doc(statement.test), ":"], indent), *lines_of(statement.body, indent + 1)]
    match statement.orelse:
        case []:
            pass
        case [ast.If() as inner]:
            lines += _if(inner, indent, "elif")
        case otherwise:
            lines += [MARGIN * indent + "else:", *lines_of(otherwise, indent + 1)]
    return lines


# Expressions ----------------------------------------------------------------------------------------------------------

_HABITS = (
    (re.compile(r"\*\* \((-[\w.]+)\)"), r"** \1"),
    (re.compile(r"(?<![\w\])])([\w.]+) \*\* (-?[\w.]+)(?![\w.(\[])"), r"\1**\2"),
    (re.compile(r"\b(\d+(?:\.\d+)?)e\+?(-?)0*(\d)"), r"\1e\2\3"),
    (re.compile(r"(nn\.ModuleList)\(\((.*)\)\)"), r"\1(\2)"),
)
"""Where `ast.unparse` writes otherwise than people do: powers, small numbers, a generator as the only argument."""


def unparse_line(node: ast.expr) -> str:
    """An expression in one line."""
    text = ast.unparse(node)
    for pattern, replacement in _HABITS:
        text = pattern.sub(replacement, text)
    return double_quoted(text)


def _target(node: ast.expr) -> Doc:
    """A tuple without parentheses if it is in one line; anything else is not in parentheses of its own."""
    doc = _doc(node)
    if isinstance(node, ast.Tuple) and len(node.elts) > 1:
        return Group(unparse_line(node)[1:-1], doc.broken)
    return doc


def _doc(node: ast.expr, inside: bool = False) -> Group:
    """An expression; `inside`: brackets around it let lines end."""

    def broken() -> Sequence[Doc]:
        ways = _broken(node, inside)
        is_name = isinstance(node, ast.Name | ast.Attribute) and not inside
        return [_enclosed("(", unparse_line(node), ")"), *ways] if is_name else ways

    return Group(unparse_line(node), broken)


def _broken(node: ast.expr, inside: bool) -> Sequence[Doc]:
    """The ways in which an expression can be in several lines."""
    match node:
        case ast.Tuple(elements) | ast.List(elements) if elements:
            first, last = "()" if isinstance(node, ast.Tuple) else "[]"
            end = "," if isinstance(node, ast.Tuple) and len(elements) == 1 else ""  # without it, it is no tuple
            return _brackets(first, [(unparse_line(e) + end, _doc(e, inside=True)) for e in elements], last).broken()
        case ast.Call() | ast.Attribute() | ast.Subscript():
            links = _links(node)
            if len(links) < 3:
                return [links]
            return [lines_between(links)] if inside else [_enclosed("(", _doc(node, inside=True), ")")]
        case ast.Starred(value):
            return [["*", _doc(value)]]
        case ast.GeneratorExp(element, [loop]):
            return [[_doc(element, inside=True), LINE, f"for {unparse_line(loop.target)} in ", _doc(loop.iter)]]
        case ast.BinOp() | ast.BoolOp() | ast.Compare() | ast.IfExp() | ast.UnaryOp():
            if inside:
                return [_joined(node)]
            hugged = _hugged(node)
            return [*([hugged] if hugged else []), _enclosed("(", _doc(node, inside=True), ")")]
        case _:
            return [unparse_line(node)]


def _held(node: ast.expr) -> Group:
    """What is called, or a part of is taken: an operation is in parentheses there."""
    return _doc(node, inside=True) if _strength(node) == STRONGEST else _parenthesized(node)


def _parenthesized(node: ast.expr) -> Group:
    return Group(f"({unparse_line(node)})", lambda: [_enclosed("(", _doc(node, inside=True), ")")])


def _links(node: ast.expr) -> list[Doc]:
    """The links of a chain of calls: `f(x)`, `.g(y)[0]`, `.h(z)`."""
    match node:
        case ast.Attribute(value, name):
            links = _links(value)
            is_link = isinstance(value, ast.Call | ast.Subscript) or _strength(value) < STRONGEST
            return [*links, f".{name}"] if is_link else [*links[:-1], [links[-1], f".{name}"]]
        case ast.Subscript(value, index):
            links = _links(value)
            return [*links[:-1], [links[-1], unparse_line(ast.Subscript(ast.Name("_"), index))[1:]]]
        case ast.Call(func):
            links = _links(func)
            return [*links[:-1], [links[-1], _arguments(node)]]
        case _:
            return [_held(node)]


def _arguments(call: ast.Call) -> Doc:
    if not call.args and not call.keywords:
        return "()"
    match call:
        case ast.Call(_, [ast.GeneratorExp() as only], []):
            inner = Group(unparse_line(only)[1:-1], lambda: _broken(only, inside=True))
            return Group(f"({inner.flat})", lambda: [_enclosed("(", inner, ")")])
        case _:
            items: list[tuple[str, Doc]] = [(unparse_line(a), _doc(a, inside=True)) for a in call.args]
            for keyword in call.keywords:
                word = f"{keyword.arg}=" if keyword.arg else "**"
                items.append((word + unparse_line(keyword.value), [word, _doc(keyword.value)]))
            return _brackets("(", items, ")")


def _joined(node: ast.expr) -> Doc:
    """An operation broken before its operators."""
    operands = _operands(node)
    if len(operands) == 1:
        return unparse_line(node)
    parts: list[Doc] = []
    for word, operand, loose in operands:
        doc = _parenthesized(operand) if loose else _doc(operand, inside=not word or isinstance(operand, ast.BinOp))
        parts.append([f"{word} ", doc] if word else doc)
    return lines_between(parts)


def _hugged(node: ast.expr) -> Doc | None:
    """A sum or the like that is broken inside its last operand only, as in `x + f(`; None if that does not do."""
    if not isinstance(node, ast.BinOp | ast.Compare) or len(_operands(node)) > 2:
        return None
    word, right, loose = _operands(node)[-1]
    left, found, _ = unparse_line(node).rpartition(f" {word} " + ("(" if loose else "") + unparse_line(right))
    if not found:
        return None
    head = f"{left} {word} "
    if loose:
        return [head, _enclosed("(", _doc(right, inside=True), ")")]
    inner = _hugged(right) if isinstance(right, ast.BinOp) else None
    if isinstance(right, ast.Call) and len(_links(right)) < 3 and not unparse_line(right).startswith("("):
        inner = _links(right)
    return [head, inner] if inner is not None else None


def _operands(node: ast.expr) -> list[tuple[str, ast.expr, bool]]:
    """The operands of an operation with what stands before each, and whether they need parentheses there."""
    match node:
        case ast.IfExp(test, body, orelse):
            (_, other, loose), *more = _operands(orelse) if isinstance(orelse, ast.IfExp) else [("", orelse, False)]
            return [
                ("", body, isinstance(body, ast.IfExp)),
                ("if", test, isinstance(test, ast.IfExp)),
                ("else", other, loose),
                *more,
            ]
        case ast.BoolOp(operator, values):
            word = "and" if isinstance(operator, ast.And) else "or"
            return [(word if i else "", v, isinstance(v, ast.IfExp | ast.BoolOp)) for i, v in enumerate(values)]
        case ast.BinOp(left, operator, right):
            word = unparse_line(ast.BinOp(ast.Name("a"), operator, ast.Name("b"))).strip("ab").strip()
            strength = _strength(node)
            if _strength(left) == strength and not isinstance(operator, ast.Pow):
                return [*_operands(left), (word, right, _strength(right) <= strength)]
            loose = _strength(left) < strength or (isinstance(operator, ast.Pow) and _strength(left) <= strength)
            return [("", left, loose), (word, right, _strength(right) <= strength)]
        case ast.Compare(left, [operator], [right]):
            word = unparse_line(ast.Compare(ast.Name("a"), [operator], [ast.Name("b")]))[1:-1].strip()
            return [("", left, _strength(left) <= 4), (word, right, _strength(right) <= 4)]
        case _:
            return [("", node, False)]


STRONGEST = 13
"""What names, calls and parts of something have."""

_STRENGTHS: dict[type[ast.operator], int] = {
    ast.BitOr: 5,
    ast.BitAnd: 7,
    ast.Add: 9,
    ast.Sub: 9,
    ast.Mult: 10,
    ast.Div: 10,
    ast.FloorDiv: 10,
    ast.Mod: 10,
    ast.MatMult: 10,
    ast.Pow: 12,
}


def _strength(node: ast.expr) -> int:
    """How strongly an expression holds together, as in Python's table of precedence."""
    match node:
        case ast.IfExp() | ast.Lambda():
            return 0
        case ast.BoolOp():
            return 1
        case ast.UnaryOp(ast.Not()):
            return 3
        case ast.Compare():
            return 4
        case ast.BinOp(_, operator, _):
            return _STRENGTHS[type(operator)]
        case ast.UnaryOp():
            return 11
        case _:
            return STRONGEST


def double_quoted(text: str) -> str:
    """Python text with its strings in double quotes, where that needs no escapes."""
    if "'" not in text:
        return text
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, IndentationError):
        return text
    for start, end in reversed(_string_ranges(tokens)):
        string = text[start:end]
        if "'" in string and '"' not in string:
            prefix, _, rest = string.partition("'")
            text = f'{text[:start]}{prefix}"{rest[:-1]}"{text[end:]}'
    return text


def _string_ranges(tokens: Sequence[tokenize.TokenInfo]) -> list[tuple[int, int]]:
    """Return the ranges of strings in a line. From Python 3.12 on, an f-string is more than one token."""
    ranges: list[tuple[int, int]] = []
    starts: list[int] = []
    for token in tokens:
        kind = tokenize.tok_name[token.type]
        if kind == "FSTRING_START":
            starts.append(token.start[1])
        elif kind == "FSTRING_END":
            start = starts.pop()
            if not starts:
                ranges.append((start, token.end[1]))
        elif kind == "STRING" and not starts:
            ranges.append((token.start[1], token.end[1]))
    return ranges


def _escaped(text: str) -> str:
    """The source of text in a docstring: quotes do not end it, and characters that act on a terminal are spelt out."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def docstring(paragraphs: Sequence[str], indent: int) -> list[str]:
    """A docstring of paragraphs, filled to the width; nothing for none."""
    margin = "    " * indent
    paragraphs = [_escaped(p) for p in paragraphs if p]
    if not paragraphs:
        return []
    filled: list[str] = []
    for i, paragraph in enumerate(paragraphs):
        body = textwrap.wrap(paragraph, WIDTH - len(margin) - (3 if i == 0 else 0), break_long_words=False)
        filled += [*([""] if filled else []), *body]
    if filled[-1].endswith('"'):
        filled[-1] += " "
    if len(filled) == 1 and len(margin) + len(filled[0]) + 6 <= WIDTH:
        return [f'{margin}"""{filled[0]}"""']
    if len(filled) == 1:  # it has no room for the quotes behind it
        filled = textwrap.wrap(filled[0], WIDTH - len(margin) - 6, break_long_words=False)
    return [margin + '"""' + filled[0], *[(margin + line).rstrip() for line in filled[1:]], margin + '"""']
