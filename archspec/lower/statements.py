"""What statements alone tell, whatever their names mean."""

from __future__ import annotations

from collections.abc import Iterator

from archspec.syntax import tree


def every(body: tuple[tree.Statement, ...]) -> Iterator[tree.Statement]:
    """Statements, and those in their branches and loops."""
    for statement in body:
        yield statement
        if isinstance(statement, tree.If):
            yield from every((*statement.body, *statement.otherwise))
        elif isinstance(statement, tree.For):
            yield from every(statement.body)


def returns(body: tuple[tree.Statement, ...]) -> bool:
    """Whether there is a `return` anywhere in statements."""
    return any(isinstance(statement, tree.Return) for statement in every(body))


def exclusive(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether two places are in different branches of one `if`."""
    for (start_a, side_a), (start_b, side_b) in zip(_pairs(a), _pairs(b), strict=False):
        if start_a != start_b:
            return False
        if side_a != side_b:
            return True
    return False


def _pairs(branch: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(branch[i], branch[i + 1]) for i in range(0, len(branch), 2)]


def is_none(expr: tree.Expr) -> bool:
    """Whether it is written `none`."""
    return isinstance(expr, tree.Literal) and expr.value is None
