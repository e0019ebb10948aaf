"""What statements alone tell, whatever their names mean."""

from __future__ import annotations

from collections.abc import Iterator

from archspec.syntax import tree


def declares(body: tuple[tree.Statement, ...]) -> Iterator[tree.Declare]:
    """The declarations in statements, those in branches and loops included."""
    for statement in body:
        match statement:
            case tree.Declare():
                yield statement
            case tree.If():
                yield from declares((*statement.body, *statement.otherwise))
            case tree.For():
                yield from declares(statement.body)
            case _:
                pass


def returns(body: tuple[tree.Statement, ...]) -> Iterator[bool]:
    """True for each `return` in statements, those in branches and loops included."""
    for statement in body:
        match statement:
            case tree.Return():
                yield True
            case tree.If():
                yield from returns((*statement.body, *statement.otherwise))
            case tree.For():
                yield from returns(statement.body)
            case _:
                pass


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
