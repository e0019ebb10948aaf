"""The expressions inside expressions of the syntax tree."""

from __future__ import annotations

from collections.abc import Iterator

from archspec.syntax import tree


def parts(expr: tree.Expr) -> Iterator[tree.Expr]:
    """The expressions directly inside an expression, those in addresses included."""
    match expr:
        case tree.Listing():
            yield from expr.items
        case tree.Unary():
            yield expr.operand
        case tree.Binary():
            yield expr.left
            yield expr.right
        case tree.Conditional():
            yield expr.condition
            yield expr.value
            if expr.otherwise is not None:
                yield expr.otherwise
        case tree.Subscript():
            yield expr.value
            yield expr.position
        case tree.Reference():
            yield from indices(expr.address)
        case tree.Call():
            yield expr.callee
            for arguments in expr.lists:
                yield from (a.value for a in arguments.items if a.value is not None)
        case tree.Own():
            yield from indices(expr.address)
            yield expr.callee
            for arguments in expr.lists:
                yield from (a.value for a in arguments.items if a.value is not None)
        case tree.Chain():
            yield expr.head
            for step in expr.steps:
                yield step.value
                for part in (step.condition, step.otherwise):
                    if part is not None:
                        yield part
                if step.loop is not None:
                    yield step.loop.first
                    yield step.loop.last
        case _:
            pass


def names_in(expr: tree.Expr) -> Iterator[str]:
    """Every bare word in an expression."""
    if isinstance(expr, tree.Name):
        yield expr.text
    for part in parts(expr):
        yield from names_in(part)


def indices(address: tree.Address) -> Iterator[tree.Expr]:
    """The index expressions of an address."""
    for segment in address.segments:
        if segment.number is not None:
            yield segment.number


def assigned(body: tuple[tree.Statement, ...]) -> Iterator[str]:
    """The names that statements bind, nested ones included."""
    for statement in body:
        match statement:
            case tree.Bind():
                yield from (t.text for t in statement.targets)
            case tree.If():
                yield from assigned(statement.body)
                yield from assigned(statement.otherwise)
            case tree.For():
                yield from assigned(statement.body)
            case _:
                pass


def declared(body: tuple[tree.Statement, ...]) -> Iterator[tree.Own | tree.Param]:
    """Whatever statements declare, at any depth."""
    for statement in body:
        match statement:
            case tree.Bind() | tree.Declare():
                yield from _owned(statement.value)
            case tree.Param():
                yield statement
            case tree.Return():
                for value in statement.values:
                    yield from _owned(value)
            case tree.If():
                yield from declared(statement.body)
                yield from declared(statement.otherwise)
            case tree.For():
                yield from declared(statement.body)
            case _:
                pass


def _owned(expr: tree.Expr) -> Iterator[tree.Own]:
    if isinstance(expr, tree.Own):
        yield expr
    for part in parts(expr):
        yield from _owned(part)
