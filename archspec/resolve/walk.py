"""Walks over the resolved form: the parts of expressions and statements."""

from __future__ import annotations

from collections.abc import Iterator

from archspec.resolve.nodes import (
    Apply,
    Binary,
    Bind,
    Chain,
    Collect,
    Conditional,
    Declaration,
    Declare,
    Dimension,
    Expr,
    For,
    If,
    Length,
    Listing,
    Local,
    Own,
    Partial,
    Read,
    Rearrange,
    Return,
    Statement,
    Subscript,
    Tie,
    Unary,
)


def children(expr: Expr) -> Iterator[Expr]:
    """Yield the direct subexpressions of an expression, including those in addresses."""
    match expr:
        case Listing():
            yield from expr.items
        case Unary():
            yield expr.operand
        case Binary():
            yield expr.left
            yield expr.right
        case Conditional():
            yield expr.condition
            yield expr.value
            if expr.otherwise is not None:
                yield expr.otherwise
        case Subscript():
            yield expr.value
            yield expr.position
        case Length():
            yield expr.value
        case Collect():
            yield expr.value
            yield expr.axis
        case Read():
            yield from expr.address.indices()
        case Apply():
            yield expr.callee
            yield from (argument.value for argument in expr.arguments.every())
        case Rearrange():
            yield expr.value
            yield from (argument.value for argument in expr.sizes)
        case Partial():
            yield expr.callee
            yield from (argument.value for argument in expr.arguments)
        case Own():
            yield from expr.address.indices()
            yield expr.callee
            yield from (argument.value for argument in expr.arguments.every())
        case Chain():
            yield expr.head
            for step in expr.steps:
                yield from (e for e in (step.value, step.condition, step.otherwise) if e is not None)
                if step.loop is not None:
                    yield step.loop.first
                    yield step.loop.last
        case _:
            pass


def local_names(expr: Expr) -> Iterator[str]:
    """Yield the names of the definition that an expression reads and the keys of dimensions, once per occurrence."""
    if isinstance(expr, Local):
        yield expr.name
    elif isinstance(expr, Dimension):
        yield expr.key
    for part in children(expr):
        yield from local_names(part)


def every_expression(expr: Expr) -> Iterator[Expr]:
    """An expression, and all inside it."""
    yield expr
    for part in children(expr):
        yield from every_expression(part)


def every_statement(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    """Statements, and those in their branches and loops."""
    for statement in statements:
        yield statement
        if isinstance(statement, If):
            yield from every_statement((*statement.body, *statement.otherwise))
        elif isinstance(statement, For):
            yield from every_statement(statement.body)


def declarations(statements: tuple[Statement, ...]) -> Iterator[Declaration]:
    """What statements declare, in their branches and loops, too."""
    for statement in every_statement(statements):
        if isinstance(statement, Bind | Declare | Return):
            yield from statement.declares


def expressions(statement: Statement) -> Iterator[Expr]:
    """The values and shapes that stand in a statement itself, without conditions and bounds of loops."""
    match statement:
        case Bind():
            yield statement.value
        case Return():
            yield from statement.values
        case Declare():
            for declaration in statement.declares:
                what = declaration.what
                yield from (what,) if isinstance(what, Own) else (what.shape, *([what.value] if what.value else []))
        case _:
            pass


def conditions(statement: Statement) -> Iterator[Expr]:
    """The conditions of a statement, and those of the expressions in it; what is required is not among them."""
    match statement:
        case If():
            yield statement.condition
        case Declare():
            yield from (condition for declaration in statement.declares for condition, _ in declaration.guards)
        case Tie(condition=condition) if condition is not None:
            yield condition
        case _:
            pass
    for whole in expressions(statement):
        for expr in every_expression(whole):
            if isinstance(expr, Conditional):
                yield expr.condition
            elif isinstance(expr, Chain):
                yield from (step.condition for step in expr.steps if step.condition is not None)
            elif isinstance(expr, Binary) and expr.operator in ("and", "or"):
                yield expr
