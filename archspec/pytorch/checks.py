"""What is checked of the numbers that a class or function is given.

A `require` of the spec; and that conditions which the model settles, so that the code has one side of them only, come
out the same: with other numbers it would silently compute something else.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from archspec.pytorch.code import literal, name, names_in, negated, prune, py
from archspec.pytorch.forward import Forward
from archspec.pytorch.layout import written
from archspec.pytorch.plan import names_in as words_in
from archspec.pytorch.plan import parts
from archspec.pytorch.values import STATIC, Val
from archspec.source import ArchError
from archspec.syntax import tree

_BUILTIN = frozenset({"abs", "float", "int", "len", "math", "max", "min", "range"})
_UNKNOWN = "?"
"""Stands for what is not known when a module is made; checks of it are left out."""


def all_checks(scope: Forward) -> list[ast.stmt]:
    """The checks of a definition; `scope` is new: what names stand for where the checks are to be made."""
    _Walk(scope).statements(scope.definition.node.body)
    return prune(scope.body, set())[0]


def about(checks: Sequence[ast.stmt], made_of: Mapping[str, set[str]] = MappingProxyType({})) -> Iterator[set[str]]:
    """The variables that each check is about; those that are bound on the way are `made_of` others."""
    known = dict(made_of)

    def origins(codes: Sequence[ast.expr]) -> set[str]:
        return {origin for word in names_in(codes) for origin in known.get(word, {word})}

    for statement in checks:
        match statement:
            case ast.Assign(targets=[ast.Name(target)], value=value):
                known[target] = origins([value])
            case ast.If(test=test, body=[ast.Raise()]):
                yield origins([test])
            case ast.If(test=test, body=then, orelse=otherwise):
                for inside in (*about(then, known), *about(otherwise, known)):
                    yield inside | origins([test])
            case ast.For(target=ast.Name(target), iter=rounds, body=inner):
                known[target] = {target} | origins([rounds])
                yield from about(inner, known)
            case _:
                pass


def confined(checks: list[ast.stmt], known: set[str], wanted: Callable[[ast.expr], bool]) -> list[ast.stmt]:
    """Those checks that can be made from the variables `known`, of tests that are `wanted`."""
    return prune(_confined(checks, known | _BUILTIN, wanted), set())[0]


class _Walk:
    """Goes through a definition, and appends checks to the body of its scope."""

    def __init__(self, scope: Forward) -> None:
        self.scope = scope
        self.said: set[str] = set()

    def statements(self, statements: Sequence[tree.Statement]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: tree.Statement) -> None:
        scope = self.scope
        match statement:
            case tree.Bind(targets=targets, value=value):
                self._expr(value)
                for target in targets:
                    if target.text != "_":
                        self._bind(target.text, value if len(targets) == 1 else None)
            case tree.Return(values=values):
                for value in values:
                    self._expr(value)
            case tree.Require(condition=condition, message=message):
                of_sizes = scope.is_function and not set(words_in(condition)) & set(scope.definition.hyperparameters)
                if scope.is_static(condition) and not of_sizes:
                    self._refuse(negated(scope.verbatim(condition)), message)
            case tree.Declare(value=value, condition=condition, loop=loop):
                self._looped(loop, None, lambda: self._options(condition, lambda: self._expr(value), None))
            case tree.Param(condition=condition, loop=loop, shape=shape):
                self._looped(loop, shape, lambda: self._options(condition, lambda: self._expr(shape), None))
            case tree.Tie(condition=condition, loop=loop) if condition is not None:
                self._looped(loop, condition, lambda: self._settled(condition))
            case tree.If(condition=condition, body=body, otherwise=otherwise):
                self._options(condition, lambda: self.statements(body), lambda: self.statements(otherwise))
            case tree.For(loop=loop, body=body):
                self._looped(loop, None, lambda: self.statements(body))
            case _:
                pass

    def _bind(self, word: str, value: tree.Expr | None) -> None:
        """Binds a name; what it stood for before, if anything, it stands for no more."""
        scope = self.scope
        variable = scope.variable(word)
        if value is not None and scope.is_static(value):
            scope.bind(variable, scope.static(value))
        elif word in scope.env:
            scope.bind(variable, name(_UNKNOWN))
        else:
            return
        scope.env[word] = Val(name(variable), STATIC, 0)

    def _expr(self, expr: tree.Expr) -> None:
        match expr:
            case tree.Conditional(condition=condition, value=value, otherwise=otherwise):
                self._options(
                    condition,
                    lambda: self._expr(value),
                    (lambda: self._expr(otherwise)) if otherwise is not None else None,
                )
            case tree.Chain(head=head, steps=steps):
                self._expr(head)
                for step in steps:
                    self._looped(step.loop, step, lambda step=step: self._step(step))
            case tree.Binary(operator="and", left=left, right=right) if self.scope.is_static(left):
                self._options(left, lambda: self._side(right), None)
            case tree.Binary(operator="or", left=left, right=right) if self.scope.is_static(left):
                self._options(left, None, lambda: self._side(right))
            case _:
                for part in parts(expr):
                    self._expr(part)

    def _side(self, condition: tree.Expr) -> None:
        """A condition, or a side of one."""
        self._expr(condition)
        self._settled(condition)

    def _step(self, step: tree.Step) -> None:
        otherwise = step.otherwise
        self._options(
            step.condition,
            lambda: self._expr(step.value),
            (lambda: self._expr(otherwise)) if otherwise is not None else None,
        )

    def _options(
        self, condition: tree.Expr | None, then: Callable[[], None] | None, otherwise: Callable[[], None] | None
    ) -> None:
        """What is under a condition, on the sides that are ever taken."""
        then, otherwise = then or _nothing, otherwise or _nothing
        if condition is None:
            then()
            return
        self._side(condition)
        scope = self.scope
        chosen = scope.truth(condition)
        if chosen is not None:
            (then if chosen else otherwise)()
        elif scope.is_static(condition):
            env, said = dict(scope.env), set(self.said)
            first, _ = scope.aside(then)
            scope.env, self.said = dict(env), set(said)
            second, _ = scope.aside(otherwise)
            scope.env, self.said = env, said
            if first or second:
                scope.body.append(ast.If(scope.static(condition), first or [ast.Pass()], second))

    def _looped(self, loop: tree.Loop | None, repeated: tree.Expr | tree.Step | None, work: Callable[[], None]) -> None:
        """What is repeated, in a loop of its own."""
        scope = self.scope
        if loop is None:
            work()
            return
        if not (scope.is_static(loop.first) and scope.is_static(loop.last)):
            return
        index, rounds = scope.rounds(loop)
        if repeated is not None and not scope.was_seen(repeated):
            self._refuse(py("a < b", a=scope.static(loop.first), b=scope.static(loop.last)), None)
            return
        outer, said = dict(scope.env), set(self.said)
        scope.env[loop.variable] = Val(index, STATIC, 0)
        inner, _ = scope.aside(work)
        scope.env, self.said = outer, said
        if inner:
            scope.body.append(ast.For(index, rounds, inner, []))

    def _settled(self, condition: tree.Expr) -> None:
        """A check of a condition that comes out the same in all uses."""
        chosen = self.scope.truth(condition)
        if chosen is None:
            return
        try:
            test = self.scope.static(condition)
        except ArchError:
            return  # it is about what has no form here, and so cannot be another
        self._refuse(negated(test) if chosen else test, None)

    def _refuse(self, test: ast.expr, message: str | None) -> None:
        shown = written(test)
        if names_in([test]) and shown not in self.said:
            self.said.add(shown)
            told = literal(message or f"this was not written for {shown}")
            self.scope.body.append(ast.If(test, [ast.Raise(py("ValueError(told)", told=told))], []))


def _nothing() -> None:
    pass


def _confined(body: Sequence[ast.stmt], known: set[str], wanted: Callable[[ast.expr], bool]) -> list[ast.stmt]:
    """What can be computed from known variables."""
    known = set(known)
    kept: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(target)], value=value):
                if names_in([value]) <= known:
                    known.add(target)
                    kept.append(statement)
                else:
                    known.discard(target)
            case ast.If(test=test, body=[ast.Raise()]):
                if names_in([test]) <= known and wanted(test):
                    kept.append(statement)
            case ast.If(test=test, body=then, orelse=otherwise) if names_in([test]) <= known:
                first, second = _confined(then, known, wanted), _confined(otherwise, known, wanted)
                kept.append(ast.If(test, first or [ast.Pass()], second))
                known -= (_assigned(then) | _assigned(otherwise)) - (_assigned(first) & _assigned(second))
            case ast.For(target=target, iter=rounds, body=inner) if names_in([rounds]) <= known:
                known -= _assigned(inner)
                kept.append(ast.For(target, rounds, _confined(inner, known | names_in([target]), wanted), []))
            case _:
                known -= _assigned([statement])
    return kept


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    """The variables that statements bind."""
    found = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Assign)]
    return {target.id for assign in found for target in assign.targets if isinstance(target, ast.Name)}
