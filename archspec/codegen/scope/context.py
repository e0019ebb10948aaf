"""Shared state of the translation of a file: names, containers, and the definitions written so far."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from archspec.codegen.python.trees import literal, name, sequence
from archspec.codegen.python.trees import partial as bound
from archspec.codegen.scope.attribute_paths import AttributePaths, Pattern, own_members
from archspec.codegen.scope.constructor_arguments import ConstructorArguments
from archspec.codegen.scope.contiguous import is_contiguous, is_split, iter_word_containers
from archspec.codegen.scope.names import RESERVED_FILE_NAMES, RESERVED_MODULE_NAMES, python_name
from archspec.codegen.scope.operations import function_of
from archspec.compiler.elaborate.trace import Trace
from archspec.compiler.evaluate.numbers import strip_origin
from archspec.compiler.evaluate.values import Partial, Value, is_list, static_values, value_key
from archspec.compiler.resolve.definition import ResolvedDefinition, resolve_definition
from archspec.compiler.resolve.unit import Definition
from archspec.core.diagnostics import Report
from archspec.ir.module import Body, Module, ModuleTensor
from archspec.ir.ops import Op

# Generated Python for one definition.


class FunctionInput(NamedTuple):
    """An input as a parameter of a function; `kind` is that of its value. `by_name`: it is keyword-only."""

    name: str
    kind: str
    optional: bool = False
    by_name: bool = False


class Output(NamedTuple):
    """An output: its name ("" for none), and its kind, None where it is absent. `optional`: in some uses it is."""

    name: str
    kind: str | None
    rank: int | None
    optional: bool = False


class EmittedDefinition(NamedTuple):
    """A definition in Python.

    `kept` are the hyperparameters it takes, some `keyword_only`, `inputs` its inputs (None for one that is never
    given), `needs` what a function must be given besides. `record` names the tuple its outputs come in, if they have
    names. `base` is the class it derives from; `init` and `forward` are the statements of those methods, `forward` None
    where the base has it; a function has `forward` alone. `is_unused`: it is only passed as a value, and never applied.
    A function of numbers has its `head` in lines.
    """

    name: str
    definition: Definition
    kept: tuple[str, ...] = ()
    keyword_only: frozenset[str] = frozenset()
    inputs: tuple[FunctionInput | None, ...] = ()
    outputs: tuple[Output, ...] = ()
    record: str | None = None
    needs: frozenset[str] = frozenset()
    base: str = ""
    init: Sequence[ast.stmt] = ()
    forward: Sequence[ast.stmt] | None = None
    is_unused: bool = False
    head: Sequence[str] = ()


class Context:
    """`names` are the definitions' in Python, `records` those of the tuples that named outputs come in.

    `arguments` decides which hyperparameters remain arguments; any other is its value in the model. `emitted` writes a
    definition, if it is not yet written, and says how it is used.
    """

    def __init__(
        self, trace: Trace, arguments: ConstructorArguments, emitted: Callable[[Definition], EmittedDefinition]
    ) -> None:
        self.trace = trace
        self.arguments = arguments
        self.emitted = emitted
        self._places: dict[Definition, AttributePaths] = {}
        self._parameters: dict[Definition, dict[str, str]] = {}
        self._attributes: dict[Definition, dict[str, str]] = {}
        self._modules: dict[Definition, list[Module]] = {}
        for module, definition in trace.definitions.items():
            self._modules.setdefault(definition, []).append(module)
        self._bases = {
            definition: list(dict.fromkeys(trace.definitions[m] for module in modules for m in module.merged.values()))
            for definition, modules in self._modules.items()
        }
        self._shared = self._shared_containers()
        self.names = self._named()
        self.records: dict[Definition, str] = {}
        for definition, word in self.names.items():
            self.records[definition] = python_name(f"{word}Output", {*self.names.values(), *self.records.values()})
        self.taken = {*RESERVED_FILE_NAMES, *self.names.values(), *self.records.values()}

    def _named(self) -> dict[Definition, str]:
        """The definitions' own names; of two that share one, the root's file goes first."""
        unit = self.trace.root.unit
        values = [v for uses in self.trace.uses.values() for use in uses for v in use.values.values()]
        values += [v for seen in self.trace.seen.values() for v in seen.statics.values()]
        definitions = dict.fromkeys((*self._modules, *self.trace.uses, *_definitions(values)))
        for definition in self.trace.copies:
            definitions.pop(definition, None)
        names: dict[Definition, str] = {}
        for definition in sorted(definitions, key=lambda d: d.unit is not unit):
            word = python_name(definition.name, RESERVED_FILE_NAMES)
            taken, count = set(names.values()), 2
            while word in taken:
                word, count = f"{definition.name}{count}", count + 1
            names[definition] = word
        return names

    def _shared_containers(self) -> dict[Definition, set[str]]:
        """Return the containers with numbered parts that a class and one of its base classes fill, by definition."""
        members = {
            definition: {tuple(address.split(".")) for module in modules for address in own_members(module)}
            for definition, modules in self._modules.items()
        }
        shared = {definition: set[str]() for definition in members}
        families = [(definition, base) for definition in members for base in self._ancestors(definition)]
        for pair in families:
            first, second = [{word for word, *_ in members[definition]} for definition in pair]
            for definition in pair:
                numbered = {word for word, *parts in members[definition] if any(map(str.isdigit, parts))}
                for other in pair:
                    shared[other] |= numbered & first & second
        for definition, base in families:
            shared[definition] |= shared[base]
        return shared

    def form(self, definition: Definition) -> ResolvedDefinition:
        """The resolved form of a definition."""
        return resolve_definition(definition, Report())

    def modules(self, definition: Definition) -> list[Module]:
        return self._modules.get(definition, [])

    def places(self, definition: Definition) -> AttributePaths:
        if definition not in self._places:
            form = self.form(definition)
            contiguous = partial(is_contiguous, form, self.trace)
            split = partial(is_split, definition, form, self.trace)
            shared = self._shared.get(definition, ())
            containers = iter_word_containers(form)
            self._places[definition] = AttributePaths(self.modules(definition), contiguous, split, shared, containers)
        return self._places[definition]

    def bases(self, definition: Definition) -> list[Definition]:
        """The definitions that a definition merges in some use."""
        return self._bases.get(definition, [])

    def is_inherited(self, definition: Definition, container: Pattern) -> bool:
        """Whether a base class makes a plain container."""
        return any(container in self.places(base).plain for base in self._ancestors(definition))

    def all_places(self, definition: Definition) -> list[AttributePaths]:
        """The places of a definition, and of those that it merges."""
        return [self.places(other) for other in (definition, *self._ancestors(definition))]

    def tables(self, definition: Definition) -> list[Body]:
        """What computes the constant tables of a definition."""
        found: list[Body] = []
        for module in self.modules(definition):
            weights = [m.target for m in module.members.values() if isinstance(m.target, ModuleTensor)]
            found += [weight.value for weight in weights if weight.value is not None]
        return found

    # Hyperparameters

    def values(self, definition: Definition, word: str) -> list[Value]:
        """The values of a hyperparameter in all uses."""
        uses = self.trace.uses.get(definition, ())
        values = [static_values(m)[word] for m in self.modules(definition)] or [use.values[word] for use in uses]
        return [strip_origin(value) for value in values]

    def specialize(self, value: Definition | Partial) -> Definition | None:
        """Return the definition that is applied where this value is; None if that is one of several copies."""
        definition = value.definition if isinstance(value, Partial) else value
        if definition not in self.trace.copies:
            return definition
        copies = list(self.trace.applied_copies.get(value_key(strip_origin(value)), ()))
        return copies[0] if len(copies) == 1 else None

    def is_settled(self, definition: Definition, word: str) -> bool:
        """Whether a hyperparameter is its one value in the model, rather than an argument or derived from one."""
        known = self.arguments.of(definition)
        return word not in known.arguments and word not in known.derived

    def parameters(self, definition: Definition) -> dict[str, str]:
        """The Python names of the hyperparameters."""
        if definition not in self._parameters:
            found: dict[str, str] = {}
            for word in definition.hyperparameters:
                found[word] = python_name(word, self.taken | set(found.values()))
            self._parameters[definition] = found
        return self._parameters[definition]

    def attribute(self, definition: Definition, word: str) -> str:
        """The attribute of a module that keeps a hyperparameter."""
        if definition not in self._attributes:
            taken = self._family(definition) | RESERVED_MODULE_NAMES
            found: dict[str, str] = {}
            for hyper in definition.hyperparameters:
                found[hyper] = python_name(hyper.lstrip("_") or "value", taken | set(found.values()))
            self._attributes[definition] = found
        return self._attributes[definition][word]

    def _family(self, definition: Definition) -> set[str]:
        """Return the attributes that instances of a class have in addition to those named in its definition.

        These are its parts, those of its base and derived classes, and the hyperparameters that its bases keep.
        """
        derived = [other for other in self._modules if definition in self._ancestors(other)]
        around = [places for other in (definition, *derived) for places in self.all_places(other)]
        parts = {pattern[0] for places in around for pattern in places.members}
        bases = self._ancestors(definition)
        return parts | {self.attribute(base, word) for base in bases for word in base.hyperparameters}

    def _ancestors(self, definition: Definition) -> list[Definition]:
        """The definitions that a definition merges, and those that they merge."""
        return [other for base in self.bases(definition) for other in (base, *self._ancestors(base))]

    def code_of(self, value: Value) -> ast.expr | None:
        """A static value as code; None for an operation that is no function in PyTorch."""
        match value:
            case Definition():
                definition = self.specialize(value)
                return name(self.emitted(definition).name) if definition is not None else None
            case Partial():
                return self._partial(value)
            case Op():
                return function_of(value)
            case _ if is_list(value):
                items = [self.code_of(item) for item in value]
                known = [item for item in items if item is not None]
                return sequence(known) if len(known) == len(items) else None
            case bool() | int() | float() | str() | None:
                return literal(value)
            case _:
                return None

    def _partial(self, value: Partial) -> ast.expr | None:
        """A definition with those of its bound hyperparameters that are arguments."""
        definition = self.specialize(value)
        if definition is None:
            return None
        emitted, parameters = self.emitted(definition), self.parameters(definition)
        keywords: dict[str, ast.expr] = {}
        for word, item in value.values:
            if word not in emitted.kept:
                continue
            argument = self.code_of(item)
            if argument is None:
                return None
            keywords[parameters[word]] = argument
        return bound(name(emitted.name), keywords)


def _definitions(values: Iterable[Value]) -> Iterator[Definition]:
    """The definitions among values and in lists of them."""
    for value in values:
        if isinstance(value, Definition):
            yield value
        elif isinstance(value, Partial):
            yield value.definition
            yield from _definitions([item for _, item in value.values])
        elif is_list(value):
            yield from _definitions(value)


def distinct(values: Iterable[Value]) -> list[Value]:
    """Static values, each once."""
    return list({value_key(value): value for value in values}.values())
