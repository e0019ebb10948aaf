"""Resolution of the definitions of a syntax tree."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeGuard

from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.callees import bind_arguments, join_names, report_hyphen
from archspec.compiler.resolve.expressions import Expressions
from archspec.compiler.resolve.files import suggest_definition
from archspec.compiler.resolve.nodes import Arguments, GuardedDeclaration
from archspec.compiler.resolve.scope import DeclaredAddress, Scope
from archspec.compiler.resolve.unit import Definition, Pattern, Unit, address_pattern, covers, pattern_text
from archspec.compiler.resolve.walk import declarations
from archspec.core.diagnostics import Note, Report, Span, suggest
from archspec.core.record import Record
from archspec.ir.ops import OPS, Op
from archspec.language.syntax import tree
from archspec.language.syntax.tree import assigned_names, iter_declarations, iter_statements, names_in

# Resolution of the models of a syntax tree, and of what they expect.


class ResolvedModel(Record):
    """A model in resolved form: its definition, and the arguments."""

    at: tree.Model
    name: str
    definition: Definition
    arguments: Arguments


def resolve_model(unit: Unit, model: tree.Model, report: Report) -> ResolvedModel | None:
    """The resolved form of a model; None where it is of no definition, which is reported."""
    scope = Scope(unit, None, report)
    name = model.callee.text
    binding = unit.names.get(name)
    if binding is None:
        if name not in unit.broken:
            scope.fault("unknown-name", f"unknown name `{name}`", model.callee, help=suggest_definition(unit, name))
        return None
    definition = binding.target
    if not isinstance(definition, Definition | None) or (definition is not None and definition.kind == "fn"):
        scope.fault("wrong-kind", "expected the name of a block or layer", model.callee)
    if not isinstance(definition, Definition) or definition.kind == "fn":
        return None
    expressions = Expressions(scope)
    values: list[nodes.Argument] = []
    forwards = None
    for item in model.arguments.items if model.arguments is not None else ():
        if item.value is None:
            forwards = item
            scope.fault("surplus-argument", "`..` is only allowed inside a definition", item, help="remove it")
        else:
            values.append(nodes.Argument(item, item.name, expressions.resolve(item.value)))
    arguments = Arguments(tuple(values), None, None, False, False, None)
    names = list(definition.hyperparameters)
    bound = (
        None
        if definition.open or forwards
        else bind_arguments(definition.name, names, definition.takes, arguments, model, scope.fault)
    )
    for parameter in definition.hyperparameters.values() if bound is not None else ():
        if parameter.default is None and bound is not None and parameter.name not in bound.hyperparameters:
            message = f"missing hyperparameter `{parameter.name}` in call to `{definition.name}`"
            scope.fault("missing-argument", message, model, help=f"expected hyperparameters: {join_names(names)}")
            bound = None
    return ResolvedModel(model, str(model.name.value), definition, arguments.replace(bound=bound))


def resolve_expectations(unit: Unit, model: tree.Model, names: Iterable[str], report: Report) -> list[nodes.Expr]:
    """Resolve the conditions of the `expect` lines of a model, which can use `names`."""
    scope = Scope(unit, None, report)
    for name in names:
        scope.locals[name] = scope.hyperparameter(unit.span(model.callee))
    return [Expressions(scope).resolve(expect.condition) for expect in model.expects]


class ResolvedDefinition(Record):
    """A definition in resolved form, and its scope, which records the names that are used.

    `returns`: it contains a `return`; `broken`: a part of it could not be parsed.
    """

    defaults: dict[str, nodes.Expr]
    inputs: tuple[nodes.TypedEntry, ...]
    outputs: tuple[nodes.TypedEntry, ...]
    body: tuple[nodes.Statement, ...]
    scope: Scope
    returns: bool
    broken: bool


def resolve_definition(definition: Definition, report: Report) -> ResolvedDefinition:
    """Return the resolved form of a definition, created once; errors are added to the `report` of the first call."""
    known = definition.resolved
    if not isinstance(known, ResolvedDefinition):
        known = definition.resolved = _Definition(definition, report).resolve()
    return known


def uses_hyperparameter(definition: Definition, name: str, report: Report) -> bool:
    """Whether a definition uses a hyperparameter, inherits a default with it, or forwards it to one that uses it."""
    scope = resolve_definition(definition, report).scope
    if name in scope.used:
        return True
    if any(name in callee.hyperparameters and uses_hyperparameter(callee, name, report) for callee in scope.forwards):
        return True
    return any(
        name in names_in(parameter.default) and uses_hyperparameter(definition, parameter.name, report)
        for parameter in definition.hyperparameters.values()
        if parameter.default is not None and parameter.origin is not definition
    )


class _Definition:
    """Resolves one definition, in program order."""

    def __init__(self, definition: Definition, report: Report) -> None:
        self.definition = definition
        self.unit = definition.unit
        self.scope = Scope(self.unit, definition, report)
        self.expressions = Expressions(self.scope)
        self.roles: dict[Pattern, Span] = {}

    def resolve(self) -> ResolvedDefinition:
        node, scope = self.definition.node, self.scope
        defaults = self._defaults()
        for entry in self.definition.inputs:
            scope.bind(entry.name, "input", self.unit.span(entry))
        inputs = tuple([self._entry(entry, entry.default is not None) for entry in self.definition.inputs])
        outputs = tuple([self._entry(output, output.optional) for output in node.outputs])
        self._check_outputs(node.outputs)
        standing = {id(s.value) for s in iter_statements(node.body) if isinstance(s, tree.Declare)}
        for own in iter_declarations(node.body):
            applied = isinstance(own, tree.ModuleDeclaration) and id(own) not in standing
            scope.declared.append(DeclaredAddress(address_pattern(own.address), own, applied))
            if self.definition.kind == "fn":
                scope.fault("ownership", "a function cannot declare anything", own, help="make it a `layer` or `block`")
        body = self._statements(node.body)
        returns = any(isinstance(statement, tree.Return) for statement in iter_statements(node.body))
        if not self.unit.tree.broken and not returns and scope.should_report("return"):
            message = f"`{self.definition.name}` does not return a value"
            scope.fault("missing-return", message, node.name, help="add a `return` statement")
        return ResolvedDefinition(defaults, inputs, outputs, body, scope, returns, scope.broken)

    # The head

    def _defaults(self) -> dict[str, nodes.Expr]:
        scope, found = self.scope, dict[str, nodes.Expr]()
        for name, parameter in self.definition.hyperparameters.items():
            own = parameter.origin is self.definition
            if parameter.default is not None and own:
                found[name] = self.expressions.resolve(parameter.default)
            span = parameter.span if own else self._taken_over()
            if name in self.unit.names and parameter.unit is self.unit:
                scope.report_redefinition(name, parameter.span, self.unit.names[name].span)
            scope.locals[name] = scope.hyperparameter(span)
        node = self.definition.node
        for entry in (*node.hyperparameters, *node.inputs):
            if entry.name == ".." and isinstance(entry.default, tree.Name):
                scope.file_names.add(entry.default.text)
        return found

    def _taken_over(self) -> Span:
        """Return the location of `..Other`."""
        return self.unit.span(next(e for e in self.definition.node.hyperparameters if e.name == ".."))

    def _entry(self, entry: tree.SignatureEntry | tree.Output, optional: bool) -> nodes.TypedEntry:
        self.scope.in_header = True
        shape = self.expressions.listing(entry.shape) if entry.shape is not None else None
        self.scope.in_header = False
        return nodes.TypedEntry(entry, entry.name, entry.type or "real", shape, optional)

    def _check_outputs(self, outputs: tuple[tree.Output, ...]) -> None:
        named: dict[str, Span] = {}
        for output in outputs:
            span = self.unit.span(output)
            if output.name and named.setdefault(output.name, span) != span:
                self.scope.report_redefinition(output.name, span, named[output.name])

    # Statements

    def _statements(self, body: tuple[tree.Statement, ...]) -> tuple[nodes.Statement, ...]:
        found: list[nodes.Statement] = []
        for position, statement in enumerate(body):
            made = self._statement(statement)
            if made is not None:
                found.append(made)
            if isinstance(statement, tree.Return) and position + 1 < len(body):
                self.scope.fault("unreachable", "unreachable statement after `return`", body[position + 1])
                self.scope.broken = True
        return tuple(found)

    def _statement(self, statement: tree.Statement) -> nodes.Statement | None:
        match statement:
            case tree.Assign():
                return self._bind(statement)
            case tree.Declare():
                return self._declare(statement)
            case tree.TensorDeclaration():
                return self._tensor(statement)
            case tree.Tie():
                return self._tie(statement)
            case tree.Require():
                condition = self.expressions.resolve(statement.condition)
                return nodes.Require(statement, condition, statement.message)
            case tree.Role():
                return self._role(statement)
            case tree.Return():
                return self._return(statement)
            case tree.If():
                return self._if(statement)
            case tree.For():
                return self._for(statement)

    def _declares(self) -> tuple[GuardedDeclaration, ...]:
        """Return the declarations since the last call."""
        found, self.scope.declares = self.scope.declares, []
        return tuple([declaration for declaration in found if declaration is not None])

    def _bind(self, statement: tree.Assign) -> nodes.Assign:
        if self._collects(statement):
            assert isinstance(statement.value, tree.Call)
            value = self.expressions.built_ins.collect(statement.value)
            return nodes.Assign(statement, (statement.targets[0].text,), value, self._declares())
        value = self.expressions.resolve(statement.value)
        if isinstance(
            value, nodes.Binary | nodes.Unary | nodes.Apply | nodes.Rearrange | nodes.ModuleDeclaration | nodes.Chain
        ):
            self.scope.computed.update(target.text for target in statement.targets)
        for target in statement.targets:
            if not self.scope.bind(target.text, "value", self.unit.span(target)):
                value = nodes.Invalid(statement.value)
        return nodes.Assign(statement, tuple([t.text for t in statement.targets]), value, self._declares())

    def _collects(self, statement: tree.Statement) -> TypeGuard[tree.Assign]:
        """Whether a statement is `name = collect(...)(...)`."""
        if not isinstance(statement, tree.Assign) or len(statement.targets) != 1 or statement.targets[0].text == "_":
            return False
        return isinstance(statement.value, tree.Call) and self.expressions.built_ins.is_collect(statement.value.callee)

    def _declare(self, statement: tree.Declare) -> nodes.Declare:
        value = statement.value
        if self._misread(statement):
            return nodes.Declare(statement, ())
        if not isinstance(value, tree.ModuleDeclaration) or len(value.lists) > 1:
            if not any(isinstance(s, tree.Return) for s in iter_statements(self.definition.node.body)):
                self.scope.should_report("return")  # the `return` is most likely missing here
            help = "assign it, as in `name = ...`, or return it"
            self.scope.fault("discarded-value", "the value of this statement is unused", value, help=help)
            if (
                isinstance(value, tree.ModuleDeclaration) and value.address.segments
            ):  # it is most likely to be assigned to a name like its address
                self.scope.referred.append(address_pattern(value.address))
                self.scope.should_report(value.address.segments[-1].text)
        with self._suffixed(statement.condition, statement.loop):
            self.expressions.resolve(value)
        return nodes.Declare(statement, self._declares())

    def _misread(self, statement: tree.Declare) -> bool:
        """Whether a statement that is parsed as a declaration is meant differently; reports an error if so."""
        scope, value = self.scope, statement.value
        if report_hyphen(scope, value):
            return True
        own = value
        while not isinstance(own, tree.ModuleDeclaration) and own.start == statement.start:
            parts = [part for part in own if isinstance(part, tree.Expr) and part.start == own.start]
            if not parts:
                return False
            own = parts[0]
        if not isinstance(own, tree.ModuleDeclaration) or not self._is_value(own, whole=own is value):
            return False
        text = self.unit.source.text
        name, rest = text[own.address.start : own.address.end], text[own.callee.start : value.end]
        rest = rest if "\n" not in rest else "..."
        help = f"write `{name} = {rest}` to name a value: a colon declares"
        found = tree.Name(own.callee.start, value.end, rest)
        scope.fault("wrong-kind", f"expected a layer or block after `{name}:`, found a value", found, help=help)
        scope.ignore(value, name)
        return True

    def _is_value(self, own: tree.ModuleDeclaration, whole: bool) -> bool:
        """Whether an address is given to the value of an expression; `whole`: nothing follows what is declared."""
        if not isinstance(own.callee, tree.Name) or not own.address.segments:
            return False
        name = own.callee.text
        local, binding = self.scope.locals.get(name), self.unit.names.get(name)
        if local is not None:
            return local.what == "input" or name in self.scope.computed or (not own.lists and not whole)
        target = binding.target if binding is not None else OPS.get(name)
        return isinstance(target, Op) or (isinstance(target, Definition) and target.kind == "fn")

    def _tensor(self, statement: tree.TensorDeclaration) -> nodes.Declare:
        with self._suffixed(statement.condition, statement.loop):
            resolve = self.expressions.resolve
            shape = self.expressions.listing(statement.shape)
            address = self.expressions.address(statement.address)
            value = self.expressions.optional(statement.value)
            initial = None
            if statement.initial is not None:
                arguments = tuple([resolve(a) for a in statement.initial.arguments])
                initial = nodes.Initializer(statement.initial, statement.initial.name, arguments)
            dtype, modifiers = statement.type or "real", statement.modifiers
            self._check_const(statement)
            tensor = nodes.TensorDeclaration(
                statement, address, modifiers, statement.kind, dtype, shape, value, initial
            )
            parts = [shape, *(initial.arguments if initial is not None else ())]
            is_invariant = value is None and self.expressions.are_invariant(parts)
            own = GuardedDeclaration(tensor, self.scope.guards, self.scope.loop, is_invariant)
        return nodes.Declare(statement, (own, *self._declares()))

    def _check_const(self, statement: tree.TensorDeclaration) -> None:
        """Check that a `const` has a value, and nothing that is for stored tensors."""
        if statement.kind != "const":
            return
        text = self.unit.source.text[statement.address.start : statement.address.end]
        if statement.modifiers:
            message = f"`{statement.modifiers[0]}` does not apply to a `const`, which is not stored"
            self.scope.fault("wrong-kind", message, statement.address, help=f"remove `{statement.modifiers[0]}`")
        elif statement.value is None:
            help = f"give it a value: `{text}: const [n] = real(arange(n))`"
            self.scope.fault("wrong-kind", "a `const` has no value", statement.address, help=help)

    @contextmanager
    def _suffixed(self, condition: tree.Expr | None, loop: tree.Loop | None) -> Generator[None]:
        """Enter the loop and the condition that follow a statement."""
        around = self.expressions.loop(loop) if loop is not None else None
        guard = (self.expressions.resolve(condition), True) if condition is not None else None
        with self.expressions.declaring(guard, around):
            yield
        if loop is not None:
            self.scope.end_loop(loop.variable)

    def _tie(self, statement: tree.Tie) -> nodes.Tie | None:
        loop = self.expressions.loop(statement.loop) if statement.loop is not None else None
        condition = self.expressions.optional(statement.condition)
        alias, counted = self.expressions.address(statement.alias), self.expressions.address(statement.counted)
        if loop is not None:
            self.scope.end_loop(loop.variable)
        both = [self.expressions.is_declared(a, a) for a in (statement.alias, statement.counted)]
        return nodes.Tie(statement, alias, counted, condition, loop) if all(both) else None

    def _role(self, statement: tree.Role) -> nodes.Role:
        scope = self.scope
        places = [(address_pattern(address), address) for address in statement.addresses]
        for pattern, node in places or [((), statement)]:
            span = self.unit.span(node)
            first = self.roles.setdefault(pattern, span)
            if first != span:
                what = f"`{pattern_text(pattern)}`" if pattern else "this definition"
                notes = (Note("first role given here", first),)
                scope.report.error("duplicate-name", f"{what} already has a role", span, notes=notes)
        addresses: list[nodes.Address] = []
        for pattern, node in places:
            address = self.expressions.address(node)
            if scope.broken or any(covers(pattern, d.pattern) or covers(d.pattern, pattern) for d in scope.declared):
                addresses.append(address)
                continue
            near = suggest(pattern_text(pattern), [pattern_text(d.pattern) for d in scope.declared])
            scope.fault("unknown-address", f"nothing is declared at `{pattern_text(pattern)}`", node, help=near)
        return nodes.Role(statement, statement.name, tuple(addresses))

    def _return(self, statement: tree.Return) -> nodes.Return:
        values = tuple([self.expressions.resolve(value) for value in statement.values])
        if self.scope.loops:
            help = "assign the value in the loop and return it after the loop"
            self.scope.fault("unreachable", "`return` is not allowed inside a loop", statement, help=help)
        return nodes.Return(statement, values, self._declares())

    def _if(self, statement: tree.If) -> nodes.If:
        scope = self.scope
        condition = self.expressions.resolve(statement.condition)
        outer = scope.branch
        sides: list[tuple[nodes.Statement, ...]] = []
        for side, body in enumerate((statement.body, statement.otherwise)):
            scope.branch = (*outer, statement.start, side)
            sides.append(self._statements(body))
        scope.branch = outer
        broken = any(statement.start <= b.start < statement.end for b in self.unit.tree.broken)
        binds = tuple(dict.fromkeys(assigned_names((statement,))))
        return nodes.If(statement, condition, sides[0], sides[1], binds, broken)

    def _for(self, statement: tree.For) -> nodes.For:
        scope = self.scope
        loop = self.expressions.loop(statement.loop)
        binds = tuple(dict.fromkeys(assigned_names(statement.body)))
        targets = [s.targets[0] for s in _statements_of_loop(statement.body) if self._collects(s)]
        collects = frozenset([target.text for target in targets])
        outer, collecting = scope.changing, scope.collecting
        scope.changing = outer | {loop.variable, *binds}
        scope.collecting = collecting | collects
        scope.loops += 1
        body = self._statements(statement.body)
        scope.loops -= 1
        scope.changing, scope.collecting = outer, collecting
        scope.end_loop(loop.variable)
        for target in targets:
            scope.bind(target.text, "value", self.unit.span(target))
        scope.computed |= collects
        if targets:
            self._refuse_declarations(body)
        declares, selects = any(map(_may_declare, body)), _has_indexed_read(body, loop.variable)
        return nodes.For(statement, loop, body, binds, tuple(sorted(collects)), declares, selects)

    def _refuse_declarations(self, body: tuple[nodes.Statement, ...]) -> None:
        """Report the first declaration in a loop that collects."""
        for declaration in declarations(body):
            message, help = "a loop that collects cannot declare anything", "declare and apply it outside the loop"
            self.scope.fault("ownership", message, declaration.what.at, help=help)
            return


def _statements_of_loop(body: tuple[tree.Statement, ...]) -> Iterator[tree.Statement]:
    """The statements of a loop, with those in its branches and without those in further loops."""
    for statement in body:
        yield statement
        if isinstance(statement, tree.If):
            yield from _statements_of_loop((*statement.body, *statement.otherwise))


def _has_indexed_read(body: tuple[nodes.Statement, ...], index: str) -> bool:
    """Whether a statement reads an address with an index."""
    return any(
        isinstance(expr, nodes.AddressReference)
        and any(index in walk.local_names(each) for each in expr.address.indices())
        for statement in walk.iter_statements(body)
        for whole in walk.statement_expressions(statement)
        for expr in walk.iter_expressions(whole)
    )


def _may_declare(statement: nodes.Statement) -> bool:
    """Whether an iteration of a loop may affect declarations, at least through a value that it binds."""
    match statement:
        case nodes.If():
            return any(map(_may_declare, (*statement.body, *statement.otherwise)))
        case nodes.Return():
            return bool(statement.declares)
        case _:
            return True
