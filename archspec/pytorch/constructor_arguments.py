"""Which hyperparameters stay arguments in the generated code; any other is its value in the model.

An argument is what differs between uses in the model, or what depends on a size of the model for whose other values the
same code is right. It is not right for those of a size that a condition depends on which the model settles: the code
has one side of it only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

from archspec.elaborate.trace import Trace
from archspec.elaborate.values import key_of
from archspec.resolve import nodes
from archspec.resolve.definition import Resolved, resolved
from archspec.resolve.files import Definition
from archspec.source import Report


class Hyperparameters(NamedTuple):
    """Hyperparameters of a definition: `arguments`, and those `derived` from them by their defaults, never given."""

    arguments: frozenset[str]
    derived: frozenset[str]


def interchangeable(trace: Trace) -> set[Definition]:
    """Definitions that stand in for each other: they must be called alike."""
    found: set[Definition] = set()
    for seen in trace.seen.values():
        chosen = {v for v in seen.statics.values() if isinstance(v, Definition)}
        if len(chosen) > 1:
            found |= chosen
    return found


class ConstructorArguments:
    """Decides for each definition of a model."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.interchangeable = interchangeable(trace)
        self._known: dict[Definition, Hyperparameters] = {}
        self._sizes: dict[tuple[Definition, str], set[str]] = {}
        self._binds: dict[Definition, dict[str, list[nodes.Expr]]] = {}
        definitions = dict.fromkeys((*trace.uses, *trace.definitions.values()))
        self._settling = {size for definition in definitions for size in self._settled_sizes(definition)}
        for word in list(self._settling):
            self._settling |= self._roots_of_default(word)

    def of(self, definition: Definition) -> Hyperparameters:
        if definition not in self._known:
            words = definition.hyperparameters
            if definition is self.trace.root:
                arguments = {word for word in words if self._is_open_size(word)}
                derived = {word for word in words if word not in arguments and self._is_derived(word, arguments)}
            elif definition in self.interchangeable and definition.kind != "fn":
                arguments, derived = set(words), set[str]()
            else:
                arguments, derived = self._decided(definition)
            self._known[definition] = Hyperparameters(frozenset(arguments), frozenset(derived))
        return self._known[definition]

    # The model's own definition

    def _is_open_size(self, word: str) -> bool:
        return _is_size(self._values(self.trace.root, word)[0]) and word not in self._settling

    def _is_derived(self, word: str, arguments: set[str]) -> bool:
        default = self.default(self.trace.root, word)
        if default is None or word in self.trace.given:
            return False
        return bool(self._roots(self.trace.root, default) & arguments)

    def _roots_of_default(self, word: str) -> set[str]:
        default = self.default(self.trace.root, word)
        return set() if default is None or word in self.trace.given else self._roots(self.trace.root, default)

    # Others

    def _decided(self, definition: Definition) -> tuple[set[str], set[str]]:
        sites = self.trace.sites(definition)
        arguments, derived = set[str](), set[str]()
        for word in definition.hyperparameters:
            given = [value for site in sites if (value := self.given(site.caller, site.node, site.bound, word))]
            default = self.default(definition, word)
            is_omitted = len(given) < len(sites)
            varies = len({key_of(value) for value in self._values(definition, word)}) > 1
            from_default = default is not None and self._is_open(default, definition, arguments | derived)
            if not given:
                derived |= {word} if varies or from_default else set()
            elif varies or (is_omitted and from_default) or any(self._is_open_in(*each) for each in given):
                arguments.add(word)
        return arguments, derived

    def given(
        self, caller: Definition, node: nodes.Apply | nodes.Own, bound: nodes.Bound, word: str
    ) -> tuple[Definition, nodes.Expr | str] | None:
        """What a use passes for a hyperparameter: an expression, or a forwarded name; None if nothing."""
        argument = bound.hyperparameters.get(word)
        if argument is not None:
            return caller, argument.value
        if node.arguments.forward is not None and word in caller.hyperparameters:
            return caller, word
        return None

    def default(self, definition: Definition, word: str) -> nodes.Expr | None:
        """The default of a hyperparameter in resolved form."""
        parameter = definition.hyperparameters[word]
        return None if parameter.default is None else _form(parameter.origin).defaults[word]

    def renamed(self, definition: Definition, word: str) -> str | None:
        """The hyperparameter before `word` whose value it has by default, if it is never given."""
        default = self.default(definition, word) if word in self.of(definition).derived else None
        words = list(definition.hyperparameters)
        is_before = isinstance(default, nodes.Local) and default.name in words[: words.index(word)]
        return default.name if isinstance(default, nodes.Local) and is_before else None

    def _is_open_in(self, caller: Definition, given: nodes.Expr | str) -> bool:
        known = self.of(caller)
        return self._is_open(given, caller, known.arguments | known.derived)

    def _is_open(self, expr: nodes.Expr | str, definition: Definition, open: Iterable[str]) -> bool:
        """Whether an expression depends on open hyperparameters, sizes of inputs, or indices of loops."""
        names, rest = self._closure(definition, expr)
        return bool(rest or names & set(open))

    def _values(self, definition: Definition, word: str) -> list[Any]:
        modules = [m for m, d in self.trace.definitions.items() if d is definition]
        uses = self.trace.uses.get(definition, ())
        return [m.hyperparameters[word] for m in modules] or [use.values[word] for use in uses]

    # What expressions depend on

    def _closure(self, definition: Definition, expr: nodes.Expr | str) -> tuple[set[str], set[str]]:
        """The hyperparameters that an expression depends on, and the other names."""
        if definition not in self._binds:
            self._binds[definition] = {}
            for word, value in _bound(_form(definition).body):
                self._binds[definition].setdefault(word, []).append(value)
        binds = self._binds[definition]
        names, rest, seen = set[str](), set[str](), set[str]()
        pending = [expr] if isinstance(expr, str) else list(nodes.local_names(expr))
        while pending:
            word = pending.pop()
            if word in seen:
                continue
            seen.add(word)
            if word in definition.hyperparameters:
                names.add(word)
            elif word not in binds:
                rest.add(word)
            for value in binds.get(word, ()):
                pending += nodes.local_names(value)
        return names, rest

    def _roots(self, definition: Definition, expr: nodes.Expr | str) -> set[str]:
        """The model's own hyperparameters that an expression depends on."""
        names, rest = self._closure(definition, expr)
        found = {root for word in names for root in self._roots_of(definition, word)}
        for loop in _loops(_form(definition).body):
            if loop.variable in rest:
                found |= self._roots(definition, loop.first) | self._roots(definition, loop.last)
        return found

    def _roots_of(self, definition: Definition, word: str) -> set[str]:
        if definition is self.trace.root:
            return {word}
        key = definition, word
        if key not in self._sizes:
            found = self._sizes[key] = set[str]()
            for site in self.trace.sites(definition):
                given = self.given(site.caller, site.node, site.bound, word)
                default = self.default(definition, word)
                if given is not None:
                    found |= self._roots(*given)
                elif default is not None:
                    found |= self._roots(definition, default)
        return self._sizes[key]

    def _settled_sizes(self, definition: Definition) -> Iterator[str]:
        """The model's own hyperparameters that conditions of a definition depend on which the model settles."""
        form = _form(definition)
        exprs = [*_expressions(form.body), *form.defaults.values()]
        for expr in (e for top in exprs for e in _every(top)):
            for condition in _conditions(expr):
                if self.trace.truth(condition) is not None:
                    yield from self._roots_compared(definition, condition)
        for condition in _statement_conditions(form.body):
            for side in _sides(condition):
                if self.trace.truth(side) is not None:
                    yield from self._roots_compared(definition, side)
        for loop in _loops(form.body):
            bounds = [list(self.trace.statics(bound)) for bound in (loop.first, loop.last)]
            if bounds[0] == bounds[1]:  # no iteration at all
                yield from self._roots(definition, loop.first) | self._roots(definition, loop.last)

    def _roots_compared(self, definition: Definition, condition: nodes.Expr) -> set[str]:
        """Those that a condition depends on; whether something is `none` does not depend on sizes."""
        match condition:
            case nodes.Binary(operator="and" | "or"):
                return self._roots_compared(definition, condition.left) | self._roots_compared(
                    definition, condition.right
                )
            case nodes.Binary(operator="==" | "!=", left=left, right=right):
                if any(isinstance(e, nodes.Literal) and e.value is None for e in (left, right)):
                    return set()
            case nodes.Unary(operator="not"):
                return self._roots_compared(definition, condition.operand)
            case _:
                pass
        return self._roots(definition, condition)


def _form(definition: Definition) -> Resolved:
    return resolved(definition, Report())


def _is_size(value: Any) -> bool:
    """Whether a value is an integer, or a list of integers."""
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        return bool(items) and all(map(_is_size, items))
    return value.__class__ is int


def _bound(statements: Sequence[nodes.Statement]) -> Iterator[tuple[str, nodes.Expr]]:
    """The names that statements bind, with what decides their values."""
    for statement in statements:
        match statement:
            case nodes.Bind():
                for word in statement.targets:
                    yield word, statement.value
            case nodes.If():
                for word, value in _bound((*statement.body, *statement.otherwise)):
                    yield word, value
                    yield word, statement.condition
            case nodes.For():
                for word, value in _bound(statement.body):
                    yield word, value
                    yield word, statement.loop.first
                    yield word, statement.loop.last
            case _:
                pass


def _loops(statements: Sequence[nodes.Statement]) -> Iterator[nodes.Loop]:
    """All loops in statements."""
    for statement in statements:
        match statement:
            case nodes.For():
                yield statement.loop
                yield from _loops(statement.body)
            case nodes.If():
                yield from _loops((*statement.body, *statement.otherwise))
            case nodes.Declare():
                yield from {id(d.loop): d.loop for d in statement.declares if d.loop is not None}.values()
            case nodes.Tie(loop=nodes.Loop() as loop):
                yield loop
            case _:
                pass
        for expr in _expressions((statement,)):
            for part in _every(expr):
                if isinstance(part, nodes.Chain):
                    yield from (step.loop for step in part.steps if step.loop is not None)


def _every(expr: nodes.Expr) -> Iterator[nodes.Expr]:
    """An expression, and all inside it."""
    yield expr
    for part in nodes.children(expr):
        yield from _every(part)


def _expressions(statements: Sequence[nodes.Statement]) -> Iterator[nodes.Expr]:
    """The expressions of statements, conditions excepted."""
    for statement in statements:
        match statement:
            case nodes.Bind():
                yield statement.value
            case nodes.Return():
                yield from statement.values
            case nodes.Declare():
                for declaration in statement.declares:
                    what = declaration.what
                    if isinstance(what, nodes.Own):
                        yield what
                    else:
                        yield from (e for e in (what.shape, what.value) if e is not None)
            case nodes.If():
                yield from _expressions((*statement.body, *statement.otherwise))
            case nodes.For():
                yield from _expressions(statement.body)
            case _:
                pass


def _conditions(expr: nodes.Expr) -> Iterator[nodes.Expr]:
    """The conditions that an expression asks itself, and the sides of them."""
    match expr:
        case nodes.Conditional():
            yield from _sides(expr.condition)
        case nodes.Chain():
            for step in expr.steps:
                if step.condition is not None:
                    yield from _sides(step.condition)
        case nodes.Binary(operator="and" | "or"):
            yield from _sides(expr)
        case _:
            pass


def _statement_conditions(statements: Sequence[nodes.Statement]) -> Iterator[nodes.Expr]:
    for statement in statements:
        match statement:
            case nodes.If():
                yield statement.condition
                yield from _statement_conditions((*statement.body, *statement.otherwise))
            case nodes.For():
                yield from _statement_conditions(statement.body)
            case nodes.Declare():
                yield from (condition for d in statement.declares for condition, _ in d.guards)
            case nodes.Tie(condition=condition) if condition is not None:
                yield condition
            case _:
                pass


def _sides(condition: nodes.Expr) -> Iterator[nodes.Expr]:
    """A condition, and what `and`, `or` and `not` join in it."""
    yield condition
    match condition:
        case nodes.Binary(operator="and" | "or"):
            yield from _sides(condition.left)
            yield from _sides(condition.right)
        case nodes.Unary(operator="not"):
            yield from _sides(condition.operand)
        case _:
            pass
