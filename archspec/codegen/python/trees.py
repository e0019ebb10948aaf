"""Python expressions and statements as `ast` nodes: made from templates, looked into, and pruned."""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar, cast

Node = TypeVar("Node", bound=ast.AST)


def py(template: str, /, **parts: ast.expr) -> ast.expr:
    """The expression of a template, with `parts` in the place of the names in it: `py("x + 1", x=code)`."""
    return replaced(parse_template(template), parts)


def replaced(node: Node, parts: dict[str, ast.expr]) -> Node:
    """An expression or statement with `parts` in the place of the names in it."""
    return substituted(copy.deepcopy(node), lambda inner: parts.get(inner.id) if isinstance(inner, ast.Name) else None)


def substituted(node: Node, other: Callable[[ast.AST], ast.expr | None]) -> Node:
    """The node itself, in which expressions are replaced for which there are others."""
    return cast("Node", _Substitute(other).visit(node))


class _Substitute(ast.NodeTransformer):
    def __init__(self, other: Callable[[ast.AST], ast.expr | None]) -> None:
        self.other = other

    def visit(self, node: ast.AST) -> ast.AST:
        other = self.other(node)
        return other if other is not None else self.generic_visit(node)


@functools.cache
def parse_template(template: str) -> ast.expr:
    return ast.parse(template, mode="eval").body


def reads(statements: Iterable[ast.stmt], code: ast.expr) -> bool:
    """Whether an expression occurs in statements."""
    wanted = ast.dump(code)
    nodes = (node for statement in statements for node in ast.walk(statement))
    return any(isinstance(node, type(code)) and ast.dump(node) == wanted for node in nodes)


def reading(statement: ast.stmt, code: ast.expr, other: ast.expr) -> ast.stmt:
    """A statement with another expression in the place of one."""
    replaced = ast.dump(code)
    return substituted(copy.deepcopy(statement), lambda inner: other if ast.dump(inner) == replaced else None)


def name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def literal(value: bool | int | float | str | None) -> ast.expr:
    """A constant; infinities and negative numbers as Python writes them."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return py("math.inf") if value > 0 else py("-math.inf")
    if isinstance(value, int | float) and value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


def apply(callee: ast.expr, arguments: Sequence[ast.expr], keywords: dict[str, ast.expr] | None = None) -> ast.Call:
    """A call; one of a `partial` that is made there is a call of the function itself."""
    function, bound = _unbound(callee)
    words = [ast.keyword(key, value) for key, value in {**bound, **(keywords or {})}.items()]
    return ast.Call(function, list(arguments), words)


def partial(callee: ast.expr, keywords: dict[str, ast.expr]) -> ast.expr:
    """A callable with keyword arguments bound."""
    function, bound = _unbound(callee)
    bound |= keywords
    return apply(name("partial"), [function], bound) if bound else function


def _unbound(callee: ast.expr) -> tuple[ast.expr, dict[str, ast.expr]]:
    """The function of a `partial`, and what is bound in it; any other callable itself."""
    match callee:
        case ast.Call(ast.Name("partial"), [function], bound):
            return function, {word.arg: word.value for word in bound if word.arg is not None}
        case _:
            return callee, {}


def sequence(items: Sequence[ast.expr], kind: type[ast.Tuple] | type[ast.List] = ast.Tuple) -> ast.expr:
    return kind(list(items), ast.Load())


def method(code: ast.expr, attribute: str) -> ast.expr:
    return ast.Attribute(code, attribute, ast.Load())


def bind(target: ast.expr | str, value: ast.expr) -> ast.stmt:
    """`target = value`."""
    return ast.Assign([name(target) if isinstance(target, str) else target], value, lineno=0)


def raised_if(wrong: ast.expr, message: ast.expr) -> ast.If:
    """A check that raises a ValueError with a message."""
    return ast.If(wrong, [ast.Raise(py("ValueError(message)", message=message))], [])


def text(node: ast.expr) -> str:
    return ast.unparse(node)


def names_in(nodes: Iterable[ast.AST]) -> set[str]:
    """Every name that the nodes read."""
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def stored(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Every name of `self.name` that the nodes read."""
    for node in nodes:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name) and inner.value.id == "self":
                yield inner.attr


def assigned(node: ast.AST) -> list[str]:
    """The names that a statement or comprehension binds, and those that are bound inside it, once for each time."""
    found: list[str] = []
    for inner in ast.walk(node):
        targets = inner.targets if isinstance(inner, ast.Assign) else []
        if isinstance(inner, ast.For | ast.comprehension):
            targets = [inner.target]
        found += [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
    return found


def prune(body: Sequence[ast.stmt], needed: set[str]) -> tuple[list[ast.stmt], set[str]]:
    """A body without assignments that nothing reads, and the names that must be bound before it.

    `needed` are the names read after it. What is assigned has no effects but its value.
    """
    kept: list[ast.stmt] = []
    live = set(needed)
    for statement in reversed(body):
        match statement:
            case ast.Pass():
                continue
            case ast.Assign(targets=[target]) if (bound := _bound(target)) is not None:
                if not bound & live:
                    continue
                value = statement.value
                if isinstance(target, ast.Tuple):
                    items = [e if isinstance(e, ast.Name) and e.id in live else name("_") for e in target.elts]
                    statement = bind(sequence(items), value)
                live = (live - bound) | names_in([value])
            case ast.If():
                then, before = prune(statement.body, live)
                otherwise, other = prune(statement.orelse, live)
                if not then and not otherwise:
                    continue
                test = statement.test
                if not then:
                    then, otherwise, test = otherwise, [], negated(test)
                statement = ast.If(test, then, otherwise)
                live = before | other | names_in([test])
            case ast.For():
                bound = names_in([statement.target])
                again = set(live)  # what is read after an iteration, there or in the next
                inside, before = prune(statement.body, again)
                while not before - bound <= again:
                    again |= before - bound
                    inside, before = prune(statement.body, again)
                if not inside:
                    continue
                statement = ast.For(_unless_unused(statement.target, names_in(inside)), statement.iter, inside, [])
                live = live | (before - bound) | names_in([statement.iter])
            case _:
                live |= names_in([statement])
        kept.append(statement)
    return kept[::-1], live


def _bound(target: ast.expr) -> set[str] | None:
    """The names that an assignment binds; None if it sets an attribute or the like."""
    if isinstance(target, ast.Name):
        return {target.id}
    if isinstance(target, ast.Tuple) and all(isinstance(e, ast.Name) for e in target.elts):
        return {e.id for e in target.elts if isinstance(e, ast.Name) and e.id != "_"}
    return None


def _unless_unused(target: ast.expr, used: set[str]) -> ast.expr:
    return name("_") if isinstance(target, ast.Name) and target.id not in used else target


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


def negated(test: ast.expr) -> ast.expr:
    """The opposite of a condition."""
    match test:
        case ast.Compare(left, [operator], [right]) if type(operator) in _OPPOSITE:
            return ast.Compare(left, [_OPPOSITE[type(operator)]()], [right])
        case ast.UnaryOp(ast.Not(), inner):
            return inner
        case _:
            return py("not x", x=test)
