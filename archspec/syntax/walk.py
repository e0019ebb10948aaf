"""Walks over the syntax tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar, cast

from archspec.record import from_values, is_tuple
from archspec.syntax import tree


def every(part: object) -> Iterator[tree.SyntaxNode]:
    """A node, and all inside it, in the order of the file."""
    pending = [part] if is_tuple(part) else []
    while pending:
        found = pending.pop()
        if isinstance(found, tree.SyntaxNode):
            yield found
        pending += filter(is_tuple, found[::-1])


def every_statement(body: tuple[tree.Statement, ...]) -> Iterator[tree.Statement]:
    """Statements, and those in their branches and loops."""
    for statement in body:
        yield statement
        if isinstance(statement, tree.If):
            yield from every_statement((*statement.body, *statement.otherwise))
        elif isinstance(statement, tree.For):
            yield from every_statement(statement.body)


def names_in(expr: tree.Expr) -> Iterator[str]:
    """Every bare word in an expression."""
    return (node.text for node in every(expr) if isinstance(node, tree.Name))


def assigned(body: tuple[tree.Statement, ...]) -> Iterator[str]:
    """The names that statements bind, nested ones included."""
    for statement in every_statement(body):
        if isinstance(statement, tree.Bind):
            yield from (target.text for target in statement.targets)


def declared(body: tuple[tree.Statement, ...]) -> Iterator[tree.Own | tree.Param]:
    """Whatever statements declare, at any depth."""
    for statement in every_statement(body):
        match statement:
            case tree.Param():
                yield statement
            case tree.Bind() | tree.Declare():
                yield from (node for node in every(statement.value) if isinstance(node, tree.Own))
            case tree.Return():
                yield from (node for node in every(statement.values) if isinstance(node, tree.Own))
            case _:
                pass


N = TypeVar("N")


def relocated(part: N, place: tree.Located) -> N:
    """Return a copy of a node, or a tuple of them, in which all nodes are at `place`."""
    if not is_tuple(part):
        return part
    items = [relocated(item, place) for item in part]
    if not isinstance(part, tree.SyntaxNode):
        return cast("N", tuple(items))
    return from_values(type(part), (place.start, place.end, *items[2:]))
