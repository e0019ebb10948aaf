"""Walks over the syntax tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar, cast

from archspec.core.record import from_values, is_tuple
from archspec.language.syntax import tree


def iter_nodes(part: object) -> Iterator[tree.SyntaxNode]:
    """A node, and all inside it, in the order of the file."""
    pending = [part] if is_tuple(part) else []
    while pending:
        found = pending.pop()
        if isinstance(found, tree.SyntaxNode):
            yield found
        pending += filter(is_tuple, found[::-1])


def iter_statements(body: tuple[tree.Statement, ...]) -> Iterator[tree.Statement]:
    """Statements, and those in their branches and loops."""
    for statement in body:
        yield statement
        if isinstance(statement, tree.If):
            yield from iter_statements((*statement.body, *statement.otherwise))
        elif isinstance(statement, tree.For):
            yield from iter_statements(statement.body)


def names_in(expr: tree.Expr) -> Iterator[str]:
    """Every bare word in an expression."""
    return (node.text for node in iter_nodes(expr) if isinstance(node, tree.Name))


def assigned_names(body: tuple[tree.Statement, ...]) -> Iterator[str]:
    """The names that statements bind, nested ones included."""
    for statement in iter_statements(body):
        if isinstance(statement, tree.Assign):
            yield from (target.text for target in statement.targets)


def iter_declarations(body: tuple[tree.Statement, ...]) -> Iterator[tree.ModuleDeclaration | tree.TensorDeclaration]:
    """Whatever statements declare, at any depth."""
    for statement in iter_statements(body):
        match statement:
            case tree.TensorDeclaration():
                yield statement
            case tree.Assign() | tree.Declare():
                yield from (node for node in iter_nodes(statement.value) if isinstance(node, tree.ModuleDeclaration))
            case tree.Return():
                yield from (node for node in iter_nodes(statement.values) if isinstance(node, tree.ModuleDeclaration))
            case _:
                pass


N = TypeVar("N")


def relocate(part: N, place: tree.Located) -> N:
    """Return a copy of a node, or a tuple of them, in which all nodes are at `place`."""
    if not is_tuple(part):
        return part
    items = [relocate(item, place) for item in part]
    if not isinstance(part, tree.SyntaxNode):
        return cast("N", tuple(items))
    return from_values(type(part), (place.start, place.end, *items[2:]))
