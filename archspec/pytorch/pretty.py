"""Statements as text, in lines of at most 88 characters."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Sequence

WIDTH = 88
MARGIN = "    "


def lines_of(body: Sequence[ast.stmt], indent: int) -> list[str]:
    """The lines of statements, `indent` levels in."""
    lines: list[str] = []
    for statement in body:
        match statement:
            case ast.If():
                lines += _if(statement, indent, "if")
            case ast.For(target, rounds):
                head = _fitted(f"for {_target(target)} in ", rounds, ":", indent)
                lines += [*head, *lines_of(statement.body, indent + 1)]
            case ast.Assign([target], value):
                lines += _assignment(target, value, indent)
            case ast.Return(ast.Tuple() as value) if _fits(f"return {_target(value)}", indent):
                lines.append(f"{MARGIN * indent}return {_target(value)}")
            case ast.Return(ast.expr() as value):
                lines += _fitted("return ", value, "", indent)
            case ast.Raise(ast.expr() as value):
                lines += _fitted("raise ", value, "", indent)
            case ast.Expr(value):
                lines += _fitted("", value, "", indent)
            case _:
                raise TypeError(f"no layout for {ast.dump(statement)}")
    return lines


def _target(target: ast.expr) -> str:
    """An expression that needs no parentheses where it stands."""
    return written(target)[1:-1] if isinstance(target, ast.Tuple) and len(target.elts) > 1 else written(target)


def _assignment(target: ast.expr, value: ast.expr, indent: int) -> list[str]:
    if isinstance(target, ast.Tuple) and not _fits(_target(target) + " = (", indent):
        *lines, last = bracketed("(", [written(e) for e in target.elts], ")", indent)
        return [*lines, *_fitted(last.strip() + " = ", value, "", indent)]
    return _fitted(f"{_target(target)} = ", value, "", indent)


def _if(statement: ast.If, indent: int, word: str) -> list[str]:
    lines = [*_fitted(f"{word} ", statement.test, ":", indent), *lines_of(statement.body, indent + 1)]
    match statement.orelse:
        case []:
            pass
        case [ast.If() as inner]:
            lines += _if(inner, indent, "elif")
        case otherwise:
            lines += [MARGIN * indent + "else:", *lines_of(otherwise, indent + 1)]
    return lines


_HABITS = (
    (re.compile(r"\*\* \((-[\w.]+)\)"), r"** \1"),
    (re.compile(r"(?<![\w\])])([\w.]+) \*\* (-?[\w.]+)(?![\w.(\[])"), r"\1**\2"),
    (re.compile(r"\b(\d+(?:\.\d+)?)e\+?(-?)0*(\d)"), r"\1e\2\3"),
    (re.compile(r"(nn\.ModuleList)\(\((.*)\)\)"), r"\1(\2)"),
)
"""Where `ast.unparse` writes otherwise than people do: powers, small numbers, a generator as the only argument."""


def written(node: ast.expr) -> str:
    """An expression in one line."""
    text = ast.unparse(node)
    for pattern, replacement in _HABITS:
        text = pattern.sub(replacement, text)
    return double_quoted(text)


def bracketed(head: str, items: Sequence[str], tail: str, indent: int) -> list[str]:
    """`head`, items between commas, `tail`: in one line, in three, or a line each item."""
    inside = ", ".join(items)
    if not items or _fits(head + inside + tail, indent):
        return [MARGIN * indent + head + inside + tail]
    if _fits(inside, indent + 1):
        middle = [MARGIN * (indent + 1) + inside]
    else:
        middle = [f"{MARGIN * (indent + 1)}{item}," for item in items]
    return [MARGIN * indent + head, *middle, MARGIN * indent + tail]


def _fits(text: str, indent: int) -> bool:
    return len(MARGIN) * indent + len(text) <= WIDTH


def _fitted(before: str, node: ast.expr, after: str, indent: int, inside: bool = False) -> list[str]:
    """An expression in lines that fit, with text before and after it; `inside`: brackets around it let lines end."""
    text = written(node)
    if _fits(before + text + after, indent):
        return [MARGIN * indent + before + text + after]
    if not inside and (_is_chained(node) or isinstance(node, ast.Name | ast.Attribute)) and _fits(text, indent + 1):
        return [MARGIN * indent + before + "(", MARGIN * (indent + 1) + text, MARGIN * indent + ")" + after]
    match node:
        case ast.Call(func, arguments, keywords) if arguments or keywords:
            head = f"{before}{_holding(func)}("
            if not _fits(head, indent):
                rest = written(ast.Call(ast.Name("_"), arguments, keywords))[1:]
                return _held(before, func, rest + after, indent, inside)
            items = [("", argument) for argument in arguments]
            items += [(f"{k.arg}=" if k.arg else "**", k.value) for k in keywords]
            return _broken(head, items, ")" + after, indent)
        case ast.Tuple(elements) | ast.List(elements) if elements:
            first, last = "()" if isinstance(node, ast.Tuple) else "[]"
            return _broken(before + first, [("", element) for element in elements], last + after, indent)
        case ast.Attribute(value, name):
            return _held(before, value, f".{name}{after}", indent, inside)
        case ast.Call(func, [], []):
            return _held(before, func, f"(){after}", indent, inside)
        case ast.Subscript(value, index):
            part = written(ast.Subscript(ast.Name("_"), index))[1:]
            return _held(before, value, part + after, indent, inside)
        case ast.Starred(value):
            return _fitted(before + "*", value, after, indent, inside)
        case ast.GeneratorExp(element, [rounds]):
            loop = f"for {written(rounds.target)} in "
            return [
                *_fitted(before, element, "", indent, inside),
                *_fitted(loop, rounds.iter, after, indent, inside),
            ]
        case ast.BinOp() | ast.BoolOp() | ast.Compare() | ast.IfExp() | ast.UnaryOp():
            return _operation(before, node, after, indent, inside)
        case _:
            return [MARGIN * indent + before + text + after]


def _held(before: str, node: ast.expr, after: str, indent: int, inside: bool) -> list[str]:
    """What is called, or a part of is taken, which `after` begins with: an operation is in parentheses there."""
    if _strength(node) < STRONGEST:
        return _in_parentheses(before, node, after, indent)
    return _fitted(before, node, after, indent, inside)


def _holding(node: ast.expr) -> str:
    """The same in one line."""
    return f"({written(node)})" if _strength(node) < STRONGEST else written(node)


def _is_chained(node: ast.expr) -> bool:
    """Whether it calls methods of what a method called on a call gave: `f(x).g(y).h(z)`."""
    methods = 0
    while isinstance(node, ast.Subscript | ast.Call | ast.Attribute):
        inner = node.func if isinstance(node, ast.Call) else node.value
        methods += isinstance(node, ast.Attribute) and isinstance(inner, ast.Call | ast.Subscript)
        node = inner
    return methods > 1 or (methods > 0 and isinstance(node, ast.BinOp | ast.Compare))


def _broken(head: str, items: Sequence[tuple[str, ast.expr]], tail: str, indent: int) -> list[str]:
    """Brackets with a line for what is in them, or a line for each item."""
    inside = ", ".join(word + written(value) for word, value in items)
    if len(items) == 1 and isinstance(items[0][1], ast.GeneratorExp):
        inside = inside[1:-1]
    lines: list[str] = []
    if _fits(inside, indent + 1):
        lines.append(MARGIN * (indent + 1) + inside)
    elif len(items) == 1 and isinstance(items[0][1], ast.GeneratorExp):
        lines += _fitted("", items[0][1], "", indent + 1, inside=True)
    else:
        for word, value in items:
            lines += _fitted(word, value, ",", indent + 1, inside=not word)
    return [MARGIN * indent + head, *lines, MARGIN * indent + tail]


def _operation(before: str, node: ast.expr, after: str, indent: int, inside: bool) -> list[str]:
    """An operation broken before its operators; in parentheses of its own, unless there are some around it."""
    if not inside or after.strip(",") or before:
        return _hugged(before, node, after, indent) or _in_parentheses(before, node, after, indent)
    parts = _operands(node)
    if len(parts) == 1:
        return [MARGIN * indent + before + written(node) + after]
    lines: list[str] = []
    for i, (word, operand, loose) in enumerate(parts):
        first = f"{word} " if word else ""
        last = after if i == len(parts) - 1 else ""
        if loose:
            lines += _in_parentheses(first, operand, last, indent)
        elif isinstance(operand, ast.BinOp) and not _fits(first + written(operand) + last, indent):
            begins, *rest = _operation("", operand, last, indent, inside=True)
            lines += [f"{MARGIN * indent}{first}{begins.strip()}", *rest]
        else:
            lines += _fitted(first, operand, last, indent, inside=not first)
    return lines


def _in_parentheses(before: str, node: ast.expr, after: str, indent: int) -> list[str]:
    whole = f"{before}({written(node)}){after}"
    if before and _fits(whole, indent):
        return [MARGIN * indent + whole]
    lines = _fitted("", node, "", indent + 1, inside=True)
    return [f"{MARGIN * indent}{before}(", *lines, f"{MARGIN * indent}){after}"]


def _hugged(before: str, node: ast.expr, after: str, indent: int) -> list[str] | None:
    """A sum or the like that is broken inside its last operand only, as in `x + f(`; None if that does not do."""
    if not isinstance(node, ast.BinOp | ast.Compare) or len(_operands(node)) > 2:
        return None
    word, right, loose = _operands(node)[-1]
    text = written(node)
    end = text.rfind(f" {word} " + ("(" if loose else "") + written(right))
    head = f"{before}{text[:end]} {word} "
    if end < 0 or not _fits(head + "(", indent):
        return None
    if loose:
        return _in_parentheses(head, right, after, indent)
    if isinstance(right, ast.BinOp):
        return _hugged(head, right, after, indent)
    if not isinstance(right, ast.Call):
        return None
    lines = _fitted(head, right, after, indent)
    return lines if all(len(line) <= WIDTH for line in lines) and not lines[0].endswith(f" {word} (") else None


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
            word = written(ast.BinOp(ast.Name("a"), operator, ast.Name("b"))).strip("ab").strip()
            strength = _strength(node)
            if _strength(left) == strength and not isinstance(operator, ast.Pow):
                return [*_operands(left), (word, right, _strength(right) <= strength)]
            loose = _strength(left) < strength or (isinstance(operator, ast.Pow) and _strength(left) <= strength)
            return [("", left, loose), (word, right, _strength(right) <= strength)]
        case ast.Compare(left, [operator], [right]):
            word = written(ast.Compare(ast.Name("a"), [operator], [ast.Name("b")]))[1:-1].strip()
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
    shift = [t for t in tokens if t.type == tokenize.STRING and "'" in t.string and '"' not in t.string]
    for token in reversed(shift):
        prefix, _, rest = token.string.partition("'")
        if rest.endswith("'") and "\\" not in rest:
            text = f'{text[: token.start[1]]}{prefix}"{rest[:-1]}"{text[token.end[1] :]}'
    return text


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
