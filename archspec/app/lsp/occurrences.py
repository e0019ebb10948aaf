"""Every name in a file, with what it refers to: for definitions, references and renaming."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.definition import ResolvedDefinition, resolve_definition, resolve_model
from archspec.compiler.resolve.unit import Definition, Pattern, Unit, address_pattern, covers, without_indices
from archspec.core.diagnostics import Report
from archspec.core.record import Record
from archspec.ir.ops import Op
from archspec.language.syntax import tree
from archspec.language.syntax.tree import iter_nodes

MAX_DEPTH = 32
"""The limit on nested declarations through which an address is followed."""


class Symbol(Record):
    """What a name refers to, the same in every file.

    `kind` is "definition", "operation", "alias", "dimension", "model", "hyperparameter", "input", "output", "value"
    or "address"; `path` and `owner` are the file and the definition that it is in. An address is one segment,
    with those before it.
    """

    kind: str
    path: str
    owner: str
    name: str


class Occurrence(Record):
    """Characters `start` to `end` of a file name a symbol; `defines` where it is introduced.

    `node` is the resolved node, and `target` the definition or operation, where there is one.
    """

    start: int
    end: int
    symbol: Symbol
    defines: bool
    node: object = None
    target: Definition | Op | None = None


def occurrences_in(unit: Unit, paths: Mapping[Unit, str]) -> list[Occurrence]:
    """The names in a file in order; `paths` has the files that definitions come from."""
    found = _File(unit, paths).occurrences()
    return sorted({(o.start, o.end, o.symbol): o for o in found}.values(), key=lambda o: (o.start, o.end))


def symbol_of(definition: Definition, paths: Mapping[Unit, str]) -> Symbol:
    """The symbol of a definition."""
    return Symbol("definition", path_of(definition.unit, paths), "", definition.name)


def path_of(unit: Unit, paths: Mapping[Unit, str]) -> str:
    """The path of a file, or its label if it was not read from a file."""
    return paths.get(unit, unit.source.label)


def forwarded_in(
    unit: Unit, paths: Mapping[Unit, str], callees: Mapping[int, Iterable[Definition | Op]]
) -> Iterator[frozenset[Symbol]]:
    """Pairs of hyperparameters or inputs that must have the same name, because `..` connects them.

    `callees` are those that were applied, by the identity of the resolved node.
    """
    file = _File(unit, paths)
    for binding in unit.names.values():
        if isinstance(binding.target, Definition) and not binding.imported:
            yield from _Body(file, binding.target).forwarded(callees)


class _File:
    """The names of a file."""

    def __init__(self, unit: Unit, paths: Mapping[Unit, str]) -> None:
        self.unit = unit
        self.paths = paths
        self.path = path_of(unit, paths)
        self.text = unit.source.text

    def occurrences(self) -> Iterator[Occurrence]:
        for item in self.unit.tree.items:
            match item:
                case tree.Import():
                    yield from self._import(item)
                case tree.DimensionDeclaration():
                    for name in item.names:
                        yield self.at(name, Symbol("dimension", self.path, "", name.text), defines=True)
                case tree.Model():
                    yield from self._model(item)
                case tree.Definition():
                    binding = self.unit.names.get(item.name.text)
                    if binding is not None and isinstance(binding.target, Definition) and binding.target.node is item:
                        yield from _Body(self, binding.target).occurrences()

    def at(
        self,
        place: tree.Located,
        symbol: Symbol,
        defines: bool = False,
        node: object = None,
        target: Definition | Op | None = None,
    ) -> Occurrence:
        return Occurrence(place.start, place.end, symbol, defines, node, target)

    def target(self, name: str, target: Definition | Op) -> Symbol:
        """The symbol that `name`, as it is written in the file, stands for."""
        if name != target.name:
            return Symbol("alias", self.path, "", name)
        if isinstance(target, Op):
            return Symbol("operation", "", "", name)
        return symbol_of(target, self.paths)

    def name(self, at: tree.Name) -> Iterator[Occurrence]:
        """The occurrence of a name of the file."""
        binding = self.unit.names.get(at.text)
        if binding is not None and binding.target is not None:
            yield self.at(at, self.target(at.text, binding.target), target=binding.target)

    def _import(self, item: tree.Import) -> Iterator[Occurrence]:
        for entry in item.names:
            binding = self.unit.names.get(entry.alias)
            target = binding.target if binding is not None and not item.export else None
            if target is None or not self.text.startswith(entry.name, entry.start):
                continue
            end = entry.start + len(entry.name)
            yield Occurrence(entry.start, end, self.target(target.name, target), False, None, target)
            if entry.alias != entry.name:
                start = entry.end - len(entry.alias)
                yield Occurrence(start, entry.end, Symbol("alias", self.path, "", entry.alias), True, None, target)

    def _model(self, item: tree.Model) -> Iterator[Occurrence]:
        name = Symbol("model", self.path, "", str(item.name.value))
        yield Occurrence(item.name.start + 1, item.name.end - 1, name, True)
        yield from self.name(item.callee)
        form = resolve_model(self.unit, item, Report())
        if form is None:
            return
        for argument in form.arguments.hyperparameters:
            yield from self.argument(argument, form.definition)
            yield from self.globals_in(argument.value)
        for condition in item.expects:
            for word in iter_nodes(condition):
                if isinstance(word, tree.Name) and word.text in form.definition.hyperparameters:
                    yield self.at(word, self.hyperparameter(form.definition, word.text))

    def argument(self, argument: nodes.Argument, callee: Definition | Op | None) -> Iterator[Occurrence]:
        """The name of an argument."""
        at = argument.at
        if not argument.name or not self.text.startswith(argument.name, at.start):  # `..` stands for several
            return
        end = at.start + len(argument.name)
        if isinstance(callee, Definition):
            if argument.name in callee.hyperparameters:
                yield Occurrence(at.start, end, self.hyperparameter(callee, argument.name), False)
            elif any(entry.name == argument.name for entry in callee.inputs):
                yield Occurrence(at.start, end, self.input(callee, argument.name), False)

    def hyperparameter(self, definition: Definition, name: str) -> Symbol:
        origin = definition.hyperparameters[name].origin
        return Symbol("hyperparameter", path_of(origin.unit, self.paths), origin.name, name)

    def input(self, definition: Definition, name: str) -> Symbol:
        origin = definition.inherited_inputs[name][0] if name in definition.inherited_inputs else definition
        return Symbol("input", path_of(origin.unit, self.paths), origin.name, name)

    def globals_in(self, expr: nodes.Expr) -> Iterator[Occurrence]:
        """The names of the file in an expression, and those of arguments."""
        for part in walk.iter_expressions(expr):
            if isinstance(part, nodes.Global):
                yield self.at(part.at, self.target(part.name, part.target), node=part, target=part.target)
            elif isinstance(part, nodes.Dimension):
                yield self.at(part.at, Symbol("dimension", self.path, "", part.name), node=part)
            elif isinstance(part, nodes.Apply | nodes.ModuleDeclaration):
                callee = part.callee.target if isinstance(part.callee, nodes.Global) else None
                for argument in part.arguments.every():
                    yield from self.argument(argument, callee)
            elif isinstance(part, nodes.Partial):
                for argument in part.arguments:
                    yield from self.argument(argument, part.callee.target)


class _Body:
    """The names of one definition."""

    def __init__(self, file: _File, definition: Definition) -> None:
        self.file = file
        self.definition = definition
        self.form: ResolvedDefinition = resolve_definition(definition, Report())

    def occurrences(self) -> Iterator[Occurrence]:
        file, node = self.file, self.definition.node
        yield file.at(node.name, symbol_of(self.definition, file.paths), defines=True, target=self.definition)
        for entry in (*node.hyperparameters, *node.inputs):
            if entry.name == "..":
                yield from file.name(entry.default) if isinstance(entry.default, tree.Name) else ()
            else:
                kind = "hyperparameter" if entry in node.hyperparameters else "input"
                symbol = Symbol(kind, file.path, self.definition.name, entry.name)
                yield Occurrence(entry.start, entry.start + len(entry.name), symbol, True)
        for name, default in self.form.defaults.items():
            parameter = self.definition.hyperparameters.get(name)
            if parameter is not None and parameter.origin is self.definition:
                yield from self._expression(default)
        own = [entry for entry in self.form.inputs if entry.name not in self.definition.inherited_inputs]
        for entry in (*own, *self.form.outputs):
            if entry.shape is not None:
                yield from self._expression(entry.shape)
        for output in node.outputs:
            if output.name:
                symbol = Symbol("output", file.path, self.definition.name, output.name)
                yield Occurrence(output.start, output.start + len(output.name), symbol, True)
        for statement in walk.iter_statements(self.form.body):
            yield from self._statement(statement)

    def local(self, name: str) -> Symbol:
        if name in self.definition.hyperparameters:
            return self.file.hyperparameter(self.definition, name)
        if any(entry.name == name for entry in self.definition.inputs):
            return self.file.input(self.definition, name)
        return Symbol("value", self.file.path, self.definition.name, name)

    def forwarded(self, callees: Mapping[int, Iterable[Definition | Op]]) -> Iterator[frozenset[Symbol]]:
        """Pairs of names of this definition and of another that `..` connects."""
        node = self.definition.node
        for entry in (*node.hyperparameters, *node.inputs):
            binding = (
                self.definition.unit.names.get(entry.default.text) if isinstance(entry.default, tree.Name) else None
            )
            if entry.name == ".." and binding is not None and isinstance(binding.target, Definition):
                yield from self._shared(binding.target)
        for statement in walk.iter_statements(self.form.body):
            for whole in walk.statement_expressions(statement):
                for part in walk.iter_expressions(whole):
                    if isinstance(part, nodes.Apply | nodes.ModuleDeclaration) and _forwards(part.arguments):
                        known = part.callee.target if isinstance(part.callee, nodes.Global) else None
                        for callee in (known, *callees.get(id(part), ())):
                            if isinstance(callee, Definition):
                                yield from self._shared(callee)

    def _shared(self, other: Definition) -> Iterator[frozenset[Symbol]]:
        for name in other.hyperparameters:
            if name in self.definition.hyperparameters:
                yield frozenset({self.local(name), self.file.hyperparameter(other, name)})
        own = {entry.name for entry in self.definition.inputs}
        for entry in other.inputs:
            if entry.name in own:
                yield frozenset({self.local(entry.name), self.file.input(other, entry.name)})

    def _statement(self, statement: nodes.Statement) -> Iterator[Occurrence]:
        for expr in walk.statement_expressions(statement):
            yield from self._expression(expr)
        match statement:
            case nodes.Assign():
                for target in statement.at.targets:
                    if target.text != "_":
                        yield Occurrence(target.start, target.end, self.local(target.text), True, statement.value)
            case nodes.Declare():
                for declaration in statement.declares:
                    if isinstance(declaration.what, nodes.TensorDeclaration):
                        yield from self._address(declaration.what.address, defines=True, node=declaration.what)
                    yield from self._index(declaration.loop)
            case nodes.Tie():
                yield from self._address(statement.alias)
                yield from self._address(statement.counted)
                yield from self._index(statement.loop)
            case nodes.Role():
                for address in statement.addresses:
                    yield from self._address(address)
            case nodes.For():
                yield from self._index(statement.loop)
            case _:
                pass

    def _index(self, loop: nodes.Loop | None) -> Iterator[Occurrence]:
        found = re.compile(r"for\s+(\w+)").match(self.file.text, loop.at.start) if loop is not None else None
        if found is not None:
            symbol = Symbol("value", self.file.path, self.definition.name, found[1])
            yield Occurrence(*found.span(1), symbol, True)

    def _expression(self, expr: nodes.Expr) -> Iterator[Occurrence]:
        yield from self.file.globals_in(expr)
        for part in walk.iter_expressions(expr):
            match part:
                case nodes.Local() if self.file.text.startswith(part.name, part.at.start):
                    yield Occurrence(part.at.start, part.at.end, self.local(part.name), False, part)
                case nodes.AddressReference():
                    yield from self._address(part.address, node=part)
                case nodes.ModuleDeclaration() if part.address.segments:
                    yield from self._address(part.address, defines=True, node=part)
                case nodes.Chain():
                    for step in part.steps:
                        yield from self._index(step.loop)
                case _:
                    pass

    def _address(self, address: nodes.Address, defines: bool = False, node: object = None) -> Iterator[Occurrence]:
        """The segments of an address, each the symbol of the definition that declares it."""
        pattern = without_indices(address_pattern(address.at))
        segments = _segments(self.definition, pattern, defines, self.file.paths)
        at = 0
        for segment in address.at.segments:
            start = self.file.text.find(segment.text, segment.start, segment.end)
            symbol = segments[at] if at < len(segments) else None
            at += bool(segment.text) + (segment.number is not None)
            if segment.text and start >= 0 and symbol is not None:
                last = at == len(pattern)
                yield Occurrence(start, start + len(segment.text), symbol, defines and last, node if last else None)


def _forwards(arguments: nodes.Arguments) -> bool:
    """Whether `..` stands for some of the arguments."""
    given = [argument.at for argument in arguments.inputs or ()]
    return arguments.forward is not None or any(isinstance(at, tree.Argument) and at.value is None for at in given)


def _segments(
    definition: Definition, pattern: Pattern, declares: bool, paths: Mapping[Unit, str], depth: int = 0
) -> list[Symbol]:
    """The symbol of each segment of an address in a definition: that of the definition that declares it.

    The list is shorter than the address where a callee is not known.
    """
    own = [_segment(definition, pattern[: k + 1], paths) for k in range(len(pattern))]
    if declares or depth > MAX_DEPTH:
        return own
    declared = resolve_definition(definition, Report()).scope.declared
    if any(covers(pattern, without_indices(each.pattern)) for each in declared):
        return own
    around = [each for each in declared if covers(without_indices(each.pattern), pattern)]
    for each in sorted(around, key=lambda each: -len(each.pattern)):
        callee = _callee(definition, each.node)
        length = len(each.pattern)
        inner = _segments(callee, pattern[length:], False, paths, depth + 1) if callee is not None else []
        if length or inner:
            return own[:length] + inner
    return []


def _callee(definition: Definition, node: tree.ModuleDeclaration | tree.TensorDeclaration) -> Definition | None:
    """The definition that is declared, unless it is a hyperparameter."""
    if not isinstance(node, tree.ModuleDeclaration) or not isinstance(node.callee, tree.Name):
        return None
    binding = definition.unit.names.get(node.callee.text)
    target = binding.target if binding is not None else None
    return target if isinstance(target, Definition) else None


def _segment(definition: Definition, prefix: Pattern, paths: Mapping[Unit, str]) -> Symbol:
    words = [word if word is not None else "[]" for word in prefix]
    return Symbol("address", path_of(definition.unit, paths), definition.name, ".".join(words))
