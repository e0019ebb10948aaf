"""The names in a file and the symbols they refer to, for definitions, references and renaming."""

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
"""Maximum number of nested declarations through which an address is followed."""


class Symbol(Record):
    """The target of a name; names in several files can refer to one symbol.

    `kind` is "definition", "operation", "alias", "dimension", "model", "hyperparameter", "input", "output", "value"
    or "address"; `path` and `owner` are its file and definition. Each segment of an address is a symbol, whose name
    includes the preceding segments.
    """

    kind: str
    path: str
    owner: str
    name: str


class Occurrence(Record):
    """A name of a symbol, the characters `start` to `end` of a file; `defines` is true where the symbol is introduced.

    `node` is the resolved node, and `target` the definition or operation, if there is one.
    """

    start: int
    end: int
    symbol: Symbol
    defines: bool
    node: object = None
    target: Definition | Op | None = None


def list_occurrences(unit: Unit, paths: Mapping[Unit, str]) -> list[Occurrence]:
    """Return the names in a file in order; `paths` are the files of the units."""
    occurrences = _File(unit, paths).occurrences()
    return sorted({(o.start, o.end, o.symbol): o for o in occurrences}.values(), key=lambda o: (o.start, o.end))


def _definition_symbol(definition: Definition, paths: Mapping[Unit, str]) -> Symbol:
    return Symbol("definition", _unit_path(definition.unit, paths), "", definition.name)


def _unit_path(unit: Unit, paths: Mapping[Unit, str]) -> str:
    """Return the path of a unit, or its label if it was not read from a file."""
    return paths.get(unit, unit.source.label)


def iter_forwarded(
    unit: Unit, paths: Mapping[Unit, str], callees: Mapping[int, Iterable[Definition | Op]]
) -> Iterator[frozenset[Symbol]]:
    """Yield pairs of hyperparameters or inputs that must have the same name, because `..` connects them.

    `callees` are the applied definitions and operations by the `id` of the resolved node.
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
        self.path = _unit_path(unit, paths)
        self.text = unit.source.text

    def occurrences(self) -> Iterator[Occurrence]:
        for item in self.unit.tree.items:
            match item:
                case tree.Import():
                    yield from self._import(item)
                case tree.DimensionDeclaration():
                    for name in item.names:
                        yield self.occurrence(name, Symbol("dimension", self.path, "", name.text), defines=True)
                case tree.Model():
                    yield from self._model(item)
                case tree.Definition():
                    binding = self.unit.names.get(item.name.text)
                    if binding is not None and isinstance(binding.target, Definition) and binding.target.node is item:
                        yield from _Body(self, binding.target).occurrences()

    def occurrence(
        self,
        located: tree.Located,
        symbol: Symbol,
        defines: bool = False,
        node: object = None,
        target: Definition | Op | None = None,
    ) -> Occurrence:
        return Occurrence(located.start, located.end, symbol, defines, node, target)

    def target(self, name: str, target: Definition | Op) -> Symbol:
        """Return the symbol that a name in this file refers to: an alias if the target has a different name."""
        if name != target.name:
            return Symbol("alias", self.path, "", name)
        if isinstance(target, Op):
            return Symbol("operation", "", "", name)
        return _definition_symbol(target, self.paths)

    def name(self, name: tree.Name) -> Iterator[Occurrence]:
        """Yield the occurrence of a name that the file defines or imports."""
        binding = self.unit.names.get(name.text)
        if binding is not None and binding.target is not None:
            yield self.occurrence(name, self.target(name.text, binding.target), target=binding.target)

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
                    yield self.occurrence(word, self.hyperparameter(form.definition, word.text))

    def argument(self, argument: nodes.Argument, callee: Definition | Op | None) -> Iterator[Occurrence]:
        """Yield the name of an argument."""
        start = argument.at.start
        if not argument.name or not self.text.startswith(argument.name, start):  # `..` stands for several arguments
            return
        end = start + len(argument.name)
        if isinstance(callee, Definition):
            if argument.name in callee.hyperparameters:
                yield Occurrence(start, end, self.hyperparameter(callee, argument.name), False)
            elif any(entry.name == argument.name for entry in callee.inputs):
                yield Occurrence(start, end, self.input(callee, argument.name), False)

    def hyperparameter(self, definition: Definition, name: str) -> Symbol:
        origin = definition.hyperparameters[name].origin
        return Symbol("hyperparameter", _unit_path(origin.unit, self.paths), origin.name, name)

    def input(self, definition: Definition, name: str) -> Symbol:
        origin = definition.inherited_inputs[name][0] if name in definition.inherited_inputs else definition
        return Symbol("input", _unit_path(origin.unit, self.paths), origin.name, name)

    def globals_in(self, expr: nodes.Expr) -> Iterator[Occurrence]:
        """Yield the names of the file and of arguments in an expression."""
        for part in walk.iter_expressions(expr):
            if isinstance(part, nodes.Global):
                yield self.occurrence(part.at, self.target(part.name, part.target), node=part, target=part.target)
            elif isinstance(part, nodes.Dimension):
                yield self.occurrence(part.at, Symbol("dimension", self.path, "", part.name), node=part)
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
        yield file.occurrence(
            node.name, _definition_symbol(self.definition, file.paths), defines=True, target=self.definition
        )
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
        inputs = [entry for entry in self.form.inputs if entry.name not in self.definition.inherited_inputs]
        for entry in (*inputs, *self.form.outputs):
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
        """Yield pairs of a name in this definition and a name in another one that `..` connects."""
        node = self.definition.node
        for entry in (*node.hyperparameters, *node.inputs):
            binding = (
                self.definition.unit.names.get(entry.default.text) if isinstance(entry.default, tree.Name) else None
            )
            if entry.name == ".." and binding is not None and isinstance(binding.target, Definition):
                yield from self._shared(binding.target)
        for statement in walk.iter_statements(self.form.body):
            for expression in walk.statement_expressions(statement):
                for part in walk.iter_expressions(expression):
                    if isinstance(part, nodes.Apply | nodes.ModuleDeclaration) and _forwards(part.arguments):
                        named = part.callee.target if isinstance(part.callee, nodes.Global) else None
                        for callee in (named, *callees.get(id(part), ())):
                            if isinstance(callee, Definition):
                                yield from self._shared(callee)

    def _shared(self, definition: Definition) -> Iterator[frozenset[Symbol]]:
        """Yield the pairs of equally named hyperparameters or inputs of this definition and another one."""
        for name in definition.hyperparameters:
            if name in self.definition.hyperparameters:
                yield frozenset({self.local(name), self.file.hyperparameter(definition, name)})
        inputs = {entry.name for entry in self.definition.inputs}
        for entry in definition.inputs:
            if entry.name in inputs:
                yield frozenset({self.local(entry.name), self.file.input(definition, entry.name)})

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
            case nodes.Label():
                for address in statement.addresses:
                    yield from self._address(address)
                for address in statement.at.addresses:
                    text = address.segments[0].text
                    if text in statement.names and self.file.text.startswith(text, address.start):
                        symbol = self.local(text)
                        if symbol.kind == "value":
                            symbol = symbol._replace(kind="output")
                        yield Occurrence(address.start, address.end, symbol, False)
            case nodes.For():
                yield from self._index(statement.loop)
            case _:
                pass

    def _index(self, loop: nodes.Loop | None) -> Iterator[Occurrence]:
        clause = re.compile(r"for\s+(\w+)").match(self.file.text, loop.at.start) if loop is not None else None
        if clause is not None:
            symbol = Symbol("value", self.file.path, self.definition.name, clause[1])
            yield Occurrence(*clause.span(1), symbol, True)

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
        """Yield the segments of an address; each is a symbol of the definition that declares it."""
        pattern = without_indices(address_pattern(address.at))
        symbols = _segment_symbols(self.definition, pattern, defines, self.file.paths)
        index = 0
        for segment in address.at.segments:
            start = self.file.text.find(segment.text, segment.start, segment.end)
            symbol = symbols[index] if index < len(symbols) else None
            index += bool(segment.text) + (segment.number is not None)
            if segment.text and not segment.names and start >= 0 and symbol is not None:
                is_last = index == len(pattern)
                end = start + len(segment.text)
                yield Occurrence(start, end, symbol, defines and is_last, node if is_last else None)


def _forwards(arguments: nodes.Arguments) -> bool:
    """Return whether `..` stands for some of the arguments."""
    inputs = [argument.at for argument in arguments.inputs or ()]
    return arguments.forward is not None or any(
        isinstance(node, tree.Argument) and node.value is None for node in inputs
    )


def _segment_symbols(
    definition: Definition, pattern: Pattern, declares: bool, paths: Mapping[Unit, str], depth: int = 0
) -> list[Symbol]:
    """Return the symbol of each segment of an address in a definition, in the definition that declares the segment.

    The list is shorter than the address if a callee is a hyperparameter.
    """
    symbols = [_segment_symbol(definition, pattern[: k + 1], paths) for k in range(len(pattern))]
    if declares or depth > MAX_DEPTH:
        return symbols
    declared = resolve_definition(definition, Report()).scope.declared
    if any(covers(pattern, without_indices(item.pattern)) for item in declared):
        return symbols
    enclosing = [item for item in declared if covers(without_indices(item.pattern), pattern)]
    for item in sorted(enclosing, key=lambda item: -len(item.pattern)):
        callee = _declared_definition(definition, item.node)
        length = len(item.pattern)
        nested = _segment_symbols(callee, pattern[length:], False, paths, depth + 1) if callee is not None else []
        if length or nested:
            return symbols[:length] + nested
    return []


def _declared_definition(
    definition: Definition, node: tree.ModuleDeclaration | tree.TensorDeclaration
) -> Definition | None:
    """Return the definition of a declared module; None for a tensor or a hyperparameter."""
    if not isinstance(node, tree.ModuleDeclaration) or not isinstance(node.callee, tree.Name):
        return None
    binding = definition.unit.names.get(node.callee.text)
    target = binding.target if binding is not None else None
    return target if isinstance(target, Definition) else None


def _segment_symbol(definition: Definition, prefix: Pattern, paths: Mapping[Unit, str]) -> Symbol:
    words = [word if word is not None else "[]" for word in prefix]
    return Symbol("address", _unit_path(definition.unit, paths), definition.name, ".".join(words))
