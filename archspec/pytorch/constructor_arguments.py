"""Which hyperparameters stay arguments in the generated code; any other is its value in the model.

An argument is what differs between uses in the model, or what depends on a size of the model for whose other values the
same code is right. It is not right for those of a size on which a condition depends that the model settles: the code
has one side of it only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from archspec.elaborate.trace import Trace
from archspec.elaborate.values import key_of
from archspec.pytorch.size_dependence import SizeDependence, default_of, form_of, given_to, is_size, loops
from archspec.resolve import nodes, walk
from archspec.resolve.unit import Definition


class Hyperparameters(NamedTuple):
    """Hyperparameters of a definition: `arguments`, and those `derived` from them by their defaults, never given."""

    arguments: frozenset[str]
    derived: frozenset[str]


class ConstructorArguments:
    """Decides for each definition. `interchangeable` ones stand in for each other, and must be called alike."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.interchangeable: set[Definition] = set()
        for seen in trace.seen.values():
            chosen = {v for v in seen.statics.values() if isinstance(v, Definition)}
            self.interchangeable |= chosen if len(chosen) > 1 else set()
        self._known: dict[Definition, Hyperparameters] = {}
        self._sizes = SizeDependence(trace)
        self._values: dict[Definition, list[dict[str, Any]]] = {}
        for module, definition in trace.definitions.items():
            self._values.setdefault(definition, []).append(module.hyperparameters)
        for definition, uses in trace.uses.items():
            self._values.setdefault(definition, [use.values for use in uses])
        self._fixed = {size for definition in self._values for size in self._decisive(definition)}
        for word in reversed(trace.root.hyperparameters):  # a default that is fixed fixes what it is made of
            default = self._own_default(word)
            if default is not None and word in self._fixed:
                self._fixed |= self._sizes.of(trace.root, default)

    def of(self, definition: Definition) -> Hyperparameters:
        if definition not in self._known:
            words = definition.hyperparameters
            if definition is self.trace.root:
                arguments, derived = self._own()
            elif definition in self.interchangeable and definition.kind != "fn":
                arguments, derived = set(words), set[str]()
            else:
                arguments, derived = self._decided(definition)
            self._known[definition] = Hyperparameters(frozenset(arguments), frozenset(derived))
        return self._known[definition]

    def renamed(self, definition: Definition, word: str) -> str | None:
        """The hyperparameter before `word` whose value it has by default, if it is never given."""
        default = default_of(definition, word) if word in self.of(definition).derived else None
        words = list(definition.hyperparameters)
        is_before = isinstance(default, nodes.Local) and default.name in words[: words.index(word)]
        return default.name if isinstance(default, nodes.Local) and is_before else None

    def _own(self) -> tuple[set[str], set[str]]:
        """The model's own definition: its sizes."""
        root = self.trace.root
        arguments = {w for w, v in self._values[root][0].items() if is_size(v) and w not in self._fixed}
        derived = set[str]()
        for word in root.hyperparameters:
            default = self._own_default(word)
            if default is not None and word not in arguments and self._is_open(default, root, arguments | derived):
                derived.add(word)
        return arguments, derived

    def _own_default(self, word: str) -> nodes.Expr | None:
        """The default of one of the model's hyperparameters that has it."""
        return None if word in self.trace.given else default_of(self.trace.root, word)

    def _decided(self, definition: Definition) -> tuple[set[str], set[str]]:
        sites = self.trace.sites(definition)
        arguments, derived = set[str](), set[str]()
        for word in definition.hyperparameters:
            given = [(site.caller, value) for site in sites if (value := given_to(site, word)) is not None]
            default = default_of(definition, word)
            varies = len({key_of(values[word]) for values in self._values.get(definition, ())}) > 1
            computed = default is not None and self._is_open(default, definition, arguments | derived)
            if not given:
                derived |= {word} if varies or computed else set()
            elif varies or (len(given) < len(sites) and computed) or any(self._is_open_in(*each) for each in given):
                arguments.add(word)
        return arguments, derived

    def _is_open_in(self, caller: Definition, given: nodes.Expr) -> bool:
        known = self.of(caller)
        return self._is_open(given, caller, known.arguments | known.derived)

    def _is_open(self, expr: nodes.Expr, definition: Definition, open: set[str] | frozenset[str]) -> bool:
        """Whether an expression depends on open hyperparameters, sizes of inputs, or indices of loops."""
        binds: dict[str, list[nodes.Expr]] = {}
        for statement in walk.every_statement(form_of(definition).body):
            for word in statement.targets if isinstance(statement, nodes.Bind) else ():
                assert isinstance(statement, nodes.Bind)
                binds.setdefault(word, []).append(statement.value)
        pending, seen = list(walk.local_names(expr)), set[str]()
        while pending:
            word = pending.pop()
            if word in open or (word not in definition.hyperparameters and word not in binds):
                return True
            if word not in seen:
                seen.add(word)
                pending += [name for value in binds.get(word, ()) for name in walk.local_names(value)]
        return False

    def _decisive(self, definition: Definition) -> Iterator[str]:
        """The sizes of the model that conditions of a definition depend on which the model settles."""
        form = form_of(definition)
        conditions = [c for statement in walk.every_statement(form.body) for c in walk.conditions(statement)]
        defaults = [e for default in form.defaults.values() for e in walk.every_expression(default)]
        conditions += [e.condition for e in defaults if isinstance(e, nodes.Conditional)]
        for condition in (side for whole in conditions for side in _sides(whole)):
            if self.trace.truth(condition) is not None:
                yield from self._sizes.of(definition, condition)
        for loop in loops(form.body):
            bounds = [list(self.trace.statics(bound)) or [bound] for bound in (loop.first, loop.last)]
            if bounds[0] == bounds[1] or _literal(loop.first) in bounds[1]:  # no iteration in some use
                yield from self._sizes.of(definition, loop.first) | self._sizes.of(definition, loop.last)


def _literal(expr: nodes.Expr) -> Any:
    return expr.value if isinstance(expr, nodes.Literal) else expr


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
