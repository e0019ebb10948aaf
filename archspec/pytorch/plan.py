"""A definition's statements as far as ownership goes: what is owned where, under which conditions, how often."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from archspec.resolve.files import Definition
from archspec.syntax import tree


class Bound(NamedTuple):
    """Names bound to a value, which may be a number that ownership depends on."""

    targets: tuple[str, ...]
    value: tree.Expr


class Owning(NamedTuple):
    """Something owned. It is owned where every guard (condition, wanted) holds, once for each round of `loop`.

    `address` is its text where no index is in it. `invariant`: every round owns the same thing.
    """

    node: tree.Own | tree.Param
    address: str | None
    guards: tuple[tuple[tree.Expr, bool], ...]
    loop: tree.Loop | None
    invariant: bool


class Tying(NamedTuple):
    node: tree.Tie


class Requiring(NamedTuple):
    node: tree.Require


class Naming(NamedTuple):
    node: tree.Role


class Branch(NamedTuple):
    condition: tree.Expr
    body: Plan
    otherwise: Plan


class Repeat(NamedTuple):
    loop: tree.Loop
    body: Plan
    owns: bool
    length: int


Entry: TypeAlias = Bound | Owning | Tying | Requiring | Naming | Branch | Repeat
Plan: TypeAlias = tuple[Entry, ...]


def plan_of(definition: Definition) -> Plan:
    """The plan of a definition, made once."""
    if definition.plan is None:
        definition.plan = _plan(definition.node.body, frozenset())
    return definition.plan


def _plan(body: tuple[tree.Statement, ...], changing: frozenset[str]) -> Plan:
    entries: list[Entry] = []
    for statement in body:
        match statement:
            case tree.Bind():
                entries += _owned(statement.value, (), None, changing)
                entries.append(Bound(tuple(t.text for t in statement.targets), statement.value))
            case tree.Declare():
                guards = ((statement.condition, True),) if statement.condition else ()
                entries += _owned(statement.value, guards, statement.loop, changing)
            case tree.Param():
                guards = ((statement.condition, True),) if statement.condition else ()
                entries.append(Owning(statement, fixed(statement.address), guards, statement.loop, False))
            case tree.Return():
                for value in statement.values:
                    entries += _owned(value, (), None, changing)
            case tree.Tie():
                entries.append(Tying(statement))
            case tree.Require():
                entries.append(Requiring(statement))
            case tree.Role():
                entries.append(Naming(statement))
            case tree.If():
                then, otherwise = _plan(statement.body, changing), _plan(statement.otherwise, changing)
                entries.append(Branch(statement.condition, then, otherwise))
            case tree.For():
                inside = changing | {statement.loop.variable} | set(assigned(statement.body))
                inner = _plan(statement.body, inside)
                entries.append(
                    Repeat(statement.loop, inner, any(map(_matters, inner)), statement.end - statement.start)
                )
    return tuple(entries)


def _matters(entry: Entry) -> bool:
    """Whether a round of a loop may change anything by this entry."""
    return not isinstance(entry, Branch) or any(map(_matters, (*entry.body, *entry.otherwise)))


def _owned(
    expr: tree.Expr,
    guards: tuple[tuple[tree.Expr, bool], ...],
    loop: tree.Loop | None,
    changing: frozenset[str],
) -> Iterator[Owning]:
    match expr:
        case tree.Own():
            inside = changing | {loop.variable} if loop else changing
            invariant = not inside or not any(name in inside or name == ".." for name in _static_names(expr))
            yield Owning(expr, fixed(expr.address), guards, loop, invariant)
            for arguments in expr.lists:
                for item in arguments.items:
                    if item.value is not None:
                        yield from _owned(item.value, guards, loop, changing)
        case tree.Conditional():
            yield from _owned(expr.value, (*guards, (expr.condition, True)), loop, changing)
            if expr.otherwise is not None:
                yield from _owned(expr.otherwise, (*guards, (expr.condition, False)), loop, changing)
        case tree.Chain():
            yield from _owned(expr.head, guards, loop, changing)
            for step in expr.steps:
                repeat = step.loop or loop
                then = (*guards, (step.condition, True)) if step.condition else guards
                yield from _owned(step.value, then, repeat, changing)
                if step.otherwise is not None and step.condition is not None:
                    yield from _owned(step.otherwise, (*guards, (step.condition, False)), repeat, changing)
        case _:
            for part in parts(expr):
                yield from _owned(part, guards, loop, changing)


def _static_names(own: tree.Own) -> Iterator[str]:
    """Names that decide what is owned: those of the callee and of the hyperparameters; ".." could be any."""
    yield from names_in(own.callee)
    for item in own.lists[0].items if own.lists else ():
        if item.value is None:
            yield ".."
        else:
            yield from names_in(item.value)


def bound_names(plan: Plan) -> Iterator[str]:
    """The names that a plan binds."""
    for entry in plan:
        match entry:
            case Bound():
                yield from entry.targets
            case Repeat():
                yield from bound_names(entry.body)
            case Branch():
                yield from bound_names((*entry.body, *entry.otherwise))
            case _:
                pass


def plan_owns(plan: Plan) -> bool:
    """Whether a plan owns or ties anything, under any conditions."""
    return any(
        isinstance(e, Owning | Tying)
        or (isinstance(e, Repeat) and plan_owns(e.body))
        or (isinstance(e, Branch) and plan_owns((*e.body, *e.otherwise)))
        for e in plan
    )


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


def fixed(address: tree.Address) -> str | None:
    """An address as text, or None if there is an index to evaluate in it."""
    if any(s.number is not None for s in address.segments):
        return None
    return ".".join(s.text for s in address.segments)


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
