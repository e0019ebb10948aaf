"""Rewrites statements as people would write them, where translation makes something clumsier."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence

from archspec.codegen.python.trees import assigned, bind, name, names_in, negated, replaced

MAX_CHOICE_LENGTH = 110
"""Characters up to which an assignment is one choice, rather than two branches."""

_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}


def simplified(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The same statements, shorter."""
    return [_Simplify().visit(statement) for statement in _without_second_names(body)]


def _without_second_names(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """Without `width = hidden` where both stay as they are: `hidden` is then what is read."""
    bound = Counter(word for statement in body for word in assigned(statement))
    for statement in body:
        match statement:
            case ast.Assign([ast.Name(second)], ast.Name(first)):
                if second.isidentifier() and bound[second] == 1 and not bound[first]:  # `self.heads` is kept
                    rest = [other for other in body if other is not statement]
                    return _without_second_names([replaced(other, {second: name(first)}) for other in rest])
            case _:
                pass
    return body


class _Simplify(ast.NodeTransformer):
    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """`0 < x` is `x > 0`."""
        self.generic_visit(node)
        match node:
            case ast.Compare(ast.Constant() as left, [operator], [right]) if not isinstance(right, ast.Constant):
                turned = _TURNED.get(type(operator))
                return ast.Compare(right, [turned()], [left]) if turned is not None else node
            case _:
                return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """`True if c else False` is `c`."""
        self.generic_visit(node)
        match node:
            case ast.IfExp(test, ast.Constant(True), ast.Constant(False)):
                return test
            case ast.IfExp(test, ast.Constant(False), ast.Constant(True)):
                return negated(test)
            case ast.IfExp(_, a, b) if ast.dump(a) == ast.dump(b):
                return a
            case _:
                return node

    def visit_If(self, node: ast.If) -> ast.stmt:
        """Two branches that bind one name are a choice; an `if` alone in another is one with it."""
        self.generic_visit(node)
        match node:
            case ast.If(test, [ast.Assign([ast.Name(one)], a)], [ast.Assign([ast.Name(other)], b)]) if one == other:
                choice = bind(one, self.visit_IfExp(ast.IfExp(test, a, b)))
                return choice if len(ast.unparse(choice)) <= MAX_CHOICE_LENGTH else node
            case ast.If(test, [ast.If(inner, body, [])], []):
                both = [*_parts(test), *_parts(inner)]
                return ast.If(ast.BoolOp(ast.And(), both), body, [])
            case _:
                return node


def _parts(test: ast.expr) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def returned(body: list[ast.stmt]) -> list[ast.stmt]:
    """What is bound only to be returned is returned."""
    match body[-2:]:
        case [ast.Assign([ast.Name(word)], value), ast.Return(ast.Name(other))] if word == other:
            return [*body[:-2], ast.Return(value)]
        case _:
            return body


def without_repeats(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """A body without an assignment to a variable of what it holds already."""
    held: dict[str, ast.expr] = {}
    kept: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.Assign([ast.Name(target)], value):
                if target in held and ast.dump(held[target]) == ast.dump(value):
                    continue
                changed, known = {target}, {target: value}
            case ast.Assign(targets):
                changed, known = names_in(targets), dict[str, ast.expr]()
            case _:
                inside = [n for n in ast.walk(statement) if isinstance(n, ast.Assign)]
                changed, known = names_in([t for n in inside for t in n.targets]), dict[str, ast.expr]()
        held = {t: v for t, v in {**held, **known}.items() if t in known or t not in changed}
        held = {t: v for t, v in held.items() if not changed & names_in([v])}
        kept.append(statement)
    return kept
