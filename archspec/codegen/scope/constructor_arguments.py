"""The hyperparameters that stay arguments in the generated code; any other is its value in the model.

An argument is what differs between uses in the model, or what depends on a size of the model for whose other values the
same code is right.
"""

from __future__ import annotations

from typing import NamedTuple

from archspec.compiler.elaborate.trace import Application, Trace
from archspec.compiler.evaluate.numbers import sizes_in, strip_origin
from archspec.compiler.evaluate.partials import split_partial
from archspec.compiler.evaluate.values import Value, static_values, value_key
from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.definition import resolve_definition
from archspec.compiler.resolve.unit import Definition
from archspec.core.algebra import Polynomial
from archspec.core.diagnostics import Report
from archspec.language.syntax import tree


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
            if isinstance(seen.node, nodes.Subscript):
                continue  # each is made in its own way
            callees = [split_partial(value)[0] for value in seen.statics.values()]
            chosen = {callee for callee in callees if isinstance(callee, Definition)}
            self.interchangeable |= chosen if len(chosen) > 1 else set()
        for definition in self.interchangeable & trace.copies.keys():
            self.interchangeable.update(trace.copies[definition].values())
        self._known: dict[Definition, Hyperparameters] = {}
        self._values: dict[Definition, list[dict[str, Value]]] = {}
        for module, definition in trace.definitions.items():
            self._values.setdefault(definition, []).append(static_values(module))
        for definition, uses in trace.uses.items():
            self._values.setdefault(definition, [use.values for use in uses])
        fixed = trace.decisive_sizes()
        for word in reversed(trace.root.hyperparameters):  # a default that is fixed fixes what it is made of
            default = hyperparameter_default(trace.root, word) if word not in trace.explicit and word in fixed else None
            fixed.update(walk.local_names(default) if default is not None else ())
        self._open = trace.sizes - fixed

    def of(self, definition: Definition) -> Hyperparameters:
        if definition not in self._known:
            arguments, derived = set[str](), set[str]()
            for word in definition.hyperparameters:
                if definition in self.interchangeable and definition.kind != "fn":
                    arguments.add(word)
                elif self._is_open(definition, word):
                    (arguments if self._is_given(definition, word) else derived).add(word)
            self._known[definition] = Hyperparameters(frozenset(arguments), frozenset(derived))
        return self._known[definition]

    def renamed(self, definition: Definition, word: str) -> str | None:
        """The hyperparameter before `word` whose value it has by default, if it is never given."""
        default = hyperparameter_default(definition, word) if word in self.of(definition).derived else None
        words = list(definition.hyperparameters)
        is_before = isinstance(default, nodes.Local) and default.name in words[: words.index(word)]
        return default.name if isinstance(default, nodes.Local) and is_before else None

    def _is_open(self, definition: Definition, word: str) -> bool:
        """Whether a hyperparameter differs between uses, or depends on a size that may be another one."""
        values = [known[word] for known in self._values.get(definition, ())]
        return len({value_key(strip_origin(value)) for value in values}) > 1 or any(map(self._varies, values))

    def _varies(self, value: Value) -> bool:
        return isinstance(value, Polynomial) or not self._open.isdisjoint(sizes_in(value))

    def _is_given(self, definition: Definition, word: str) -> bool:
        """Whether some use gives a hyperparameter; the model's own sizes may all be given."""
        if definition is self.trace.root:
            return word in self.trace.sizes
        return any(passed_argument(site, word) is not None for site in self.trace.sites(definition))


def hyperparameter_default(definition: Definition, word: str) -> nodes.Expr | None:
    """The default of a hyperparameter in resolved form."""
    parameter = definition.hyperparameters[word]
    return None if parameter.default is None else resolve_definition(parameter.origin, Report()).defaults[word]


def passed_argument(site: Application, word: str) -> nodes.Expr | None:
    """What an application passes for a hyperparameter; None where it has its default."""
    argument = site.bound.hyperparameters.get(word)
    if argument is not None:
        return argument.value
    forwards = site.node.arguments.forward is not None and word in site.caller.hyperparameters
    at = site.node.at
    return nodes.Local(tree.Name(at.start, at.end, word), word) if forwards else None
