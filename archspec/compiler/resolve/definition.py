"""Resolution of the definitions and models of a syntax tree."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeGuard

from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.callees import bind_arguments, join_names, report_hyphen
from archspec.compiler.resolve.expressions import Expressions
from archspec.compiler.resolve.files import suggest_definition
from archspec.compiler.resolve.labels import entry_names, names_entry
from archspec.compiler.resolve.nodes import Arguments, GuardedDeclaration
from archspec.compiler.resolve.scope import DeclaredAddress, Scope
from archspec.compiler.resolve.unit import Definition, Pattern, Unit, address_pattern, covers, pattern_text
from archspec.compiler.resolve.walk import declarations
from archspec.core.diagnostics import Note, Report, Span, suggest
from archspec.core.record import Record
from archspec.ir.ops import OPS, Op
from archspec.language.syntax import tree
from archspec.language.syntax.tree import assigned_names, iter_declarations, iter_statements, names_in

# Models and their expectations.


class ResolvedModel(Record):
    """A model in resolved form: its definition and arguments."""

    at: tree.Model
    name: str
    definition: Definition
    arguments: Arguments


def resolve_model(unit: Unit, model: tree.Model, report: Report) -> ResolvedModel | None:
    """Return the resolved form of a model; None after reporting that its callee is not a layer or block."""
    scope = Scope(unit, None, report)
    name = model.callee.text
    binding = unit.names.get(name)
    if binding is None:
        if name not in unit.broken:
            scope.fault("unknown-name", f"unknown name `{name}`", model.callee, help=suggest_definition(unit, name))
        return None
    definition = binding.target
    if not isinstance(definition, Definition | None) or (definition is not None and definition.kind == "fn"):
        what = "a function" if isinstance(definition, Definition) else "something else"
        message = f"expected the name of a block or layer, found {what}"
        scope.fault("wrong-kind", message, model.callee, help="a model is an application of a `block` or `layer`")
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

    `returns`: the body contains a `return`. `broken`: a part of the definition could not be parsed.
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
    resolved = definition.resolved
    if not isinstance(resolved, ResolvedDefinition):
        resolved = definition.resolved = _DefinitionResolver(definition, report).resolve()
    return resolved


def uses_hyperparameter(definition: Definition, name: str, report: Report) -> bool:
    """Whether a definition uses a hyperparameter, in an inherited default or in a callee, too."""
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


class _DefinitionResolver:
    """Resolves one definition, in program order."""

    def __init__(self, definition: Definition, report: Report) -> None:
        self.definition = definition
        self.unit = definition.unit
        self.scope = Scope(self.unit, definition, report)
        self.expressions = Expressions(self.scope)
        self.roles: dict[Pattern, Span] = {}
        self.labels: dict[Pattern, Span] = {}

    def resolve(self) -> ResolvedDefinition:
        node, scope = self.definition.node, self.scope
        defaults = self._resolve_defaults()
        for entry in self.definition.inputs:
            scope.bind(entry.name, "input", self.unit.span(entry))
        inputs = tuple(
            [self._resolve_entry("input", entry, entry.default is not None) for entry in self.definition.inputs]
        )
        outputs = tuple([self._resolve_entry("output", output, output.optional) for output in node.outputs])
        self._check_outputs(node.outputs)
        statements = {id(s.value) for s in iter_statements(node.body) if isinstance(s, tree.Declare)}
        for declaration in iter_declarations(node.body):
            applied = isinstance(declaration, tree.ModuleDeclaration) and id(declaration) not in statements
            scope.declared.append(DeclaredAddress(address_pattern(declaration.address), declaration, applied))
            if self.definition.kind == "fn":
                help = "make it a `layer` or `block`"
                scope.fault("ownership", "a function cannot declare anything", declaration, help=help)
        body = self._resolve_statements(node.body)
        returns = any(isinstance(statement, tree.Return) for statement in iter_statements(node.body))
        if not self.unit.tree.broken and not returns and scope.should_report("return"):
            message = f"`{self.definition.name}` does not return a value"
            scope.fault("missing-return", message, node.name, help="add a `return` statement")
        return ResolvedDefinition(defaults, inputs, outputs, body, scope, returns, scope.broken)

    # Signature

    def _resolve_defaults(self) -> dict[str, nodes.Expr]:
        scope, defaults = self.scope, dict[str, nodes.Expr]()
        for name, parameter in self.definition.hyperparameters.items():
            is_own = parameter.origin is self.definition
            if parameter.default is not None and is_own:
                defaults[name] = self.expressions.resolve(parameter.default)
            span = parameter.span if is_own else self._inheritance_span()
            if name in self.unit.names and parameter.unit is self.unit:
                scope.report_redefinition(name, parameter.span, self.unit.names[name].span)
            scope.locals[name] = scope.hyperparameter(span)
        node = self.definition.node
        for entry in (*node.hyperparameters, *node.inputs):
            if entry.name == ".." and isinstance(entry.default, tree.Name):
                scope.file_names.add(entry.default.text)
        return defaults

    def _inheritance_span(self) -> Span:
        """Return the location of `..Other`."""
        return self.unit.span(next(e for e in self.definition.node.hyperparameters if e.name == ".."))

    def _resolve_entry(
        self, kind: Literal["input", "output"], entry: tree.SignatureEntry | tree.Output, optional: bool
    ) -> nodes.TypedEntry:
        self.scope.in_signature = kind
        shape = self.expressions.listing(entry.shape) if entry.shape is not None else None
        self.scope.in_signature = None
        if entry.type == "any" and not self._takes_any(kind):
            help = "write `int` or `bool`, or omit it for reals"
            message = "only inputs of functions, and outputs of those that have such an input, can be `any`"
            self.scope.fault("wrong-kind", message, entry, help=help)
        return nodes.TypedEntry(entry, entry.name, entry.type or "real", shape, optional)

    def _takes_any(self, kind: Literal["input", "output"]) -> bool:
        """Whether an input or an output may have elements of any type."""
        inputs = self.definition.inputs
        return self.definition.kind == "fn" and (kind == "input" or any(entry.type == "any" for entry in inputs))

    def _check_outputs(self, outputs: tuple[tree.Output, ...]) -> None:
        named: dict[str, Span] = {}
        for output in outputs:
            span = self.unit.span(output)
            if output.name and named.setdefault(output.name, span) != span:
                self.scope.report_redefinition(output.name, span, named[output.name])

    # Statements

    def _resolve_statements(self, body: tuple[tree.Statement, ...]) -> tuple[nodes.Statement, ...]:
        result: list[nodes.Statement] = []
        for position, statement in enumerate(body):
            node = self._resolve_statement(statement)
            if node is not None:
                result.append(node)
            if isinstance(statement, tree.Return) and position + 1 < len(body):
                message, help = "unreachable statement after `return`", "move it before the `return`, or remove it"
                self.scope.fault("unreachable", message, body[position + 1], help=help)
                self.scope.broken = True
        return tuple(result)

    def _resolve_statement(self, statement: tree.Statement) -> nodes.Statement | None:
        match statement:
            case tree.Assign():
                return self._resolve_assign(statement)
            case tree.Declare():
                return self._resolve_declare(statement)
            case tree.TensorDeclaration():
                return self._resolve_tensor(statement)
            case tree.Tie():
                return self._resolve_tie(statement)
            case tree.Require():
                condition = self.expressions.resolve(statement.condition)
                return nodes.Require(statement, condition, statement.message)
            case tree.Role():
                addresses, _ = self._resolve_subjects(statement, "role", self.roles)
                return nodes.Role(statement, statement.name, addresses)
            case tree.Label():
                return nodes.Label(statement, statement.text, *self._resolve_subjects(statement, "label", self.labels))
            case tree.Return():
                return self._resolve_return(statement)
            case tree.If():
                return self._resolve_if(statement)
            case tree.For():
                return self._resolve_for(statement)

    def _collect_declarations(self) -> tuple[GuardedDeclaration, ...]:
        """Return the declarations resolved since the last call."""
        collected, self.scope.declares = self.scope.declares, []
        return tuple([declaration for declaration in collected if declaration is not None])

    def _resolve_assign(self, statement: tree.Assign) -> nodes.Assign:
        if self._collects(statement):
            assert isinstance(statement.value, tree.Call)
            value = self.expressions.built_ins.collect(statement.value)
            return nodes.Assign(statement, (statement.targets[0].text,), value, self._collect_declarations())
        value = self.expressions.resolve(statement.value)
        if isinstance(value, _COMPUTED):
            self.scope.computed.update(target.text for target in statement.targets)
        for target in statement.targets:
            if not self.scope.bind(target.text, "value", self.unit.span(target)):
                value = nodes.Invalid(statement.value)
        return nodes.Assign(statement, tuple([t.text for t in statement.targets]), value, self._collect_declarations())

    def _collects(self, statement: tree.Statement) -> TypeGuard[tree.Assign]:
        """Whether a statement is `name = collect(...)(...)`."""
        if not isinstance(statement, tree.Assign) or len(statement.targets) != 1 or statement.targets[0].text == "_":
            return False
        return isinstance(statement.value, tree.Call) and self.expressions.built_ins.is_collect(statement.value.callee)

    def _resolve_declare(self, statement: tree.Declare) -> nodes.Declare:
        value = statement.value
        if self._report_misread(statement):
            return nodes.Declare(statement, ())
        if not isinstance(value, tree.ModuleDeclaration) or len(value.lists) > 1:
            if not any(isinstance(s, tree.Return) for s in iter_statements(self.definition.node.body)):
                self.scope.should_report("return")  # the `return` is most likely missing here
            help = "assign it, as in `name = ...`, or return it"
            self.scope.fault("discarded-value", "the value of this statement is unused", value, help=help)
            if isinstance(value, tree.ModuleDeclaration) and value.address.segments:
                # It was most likely meant to be assigned to the name in its address.
                self.scope.referred.append(address_pattern(value.address))
                self.scope.should_report(value.address.segments[-1].text)
        with self._enter_suffixes(statement.condition, statement.loop):
            self.expressions.resolve(value)
        return nodes.Declare(statement, self._collect_declarations())

    def _report_misread(self, statement: tree.Declare) -> bool:
        """Whether a statement is parsed as a declaration but is meant as an expression; reports an error if so."""
        scope, value = self.scope, statement.value
        if report_hyphen(scope, value):
            return True
        declaration = value
        while not isinstance(declaration, tree.ModuleDeclaration) and declaration.start == statement.start:
            parts = [part for part in declaration if isinstance(part, tree.Expr) and part.start == declaration.start]
            if not parts:
                return False
            declaration = parts[0]
        if not isinstance(declaration, tree.ModuleDeclaration):
            return False
        if not self._is_named_value(declaration, is_complete=declaration is value):
            return False
        text = self.unit.source.text
        name = text[declaration.address.start : declaration.address.end]
        value_text = text[declaration.callee.start : value.end]
        value_text = value_text if "\n" not in value_text else "..."
        help = f"write `{name} = {value_text}` to name a value: a colon declares"
        span_node = tree.Name(declaration.callee.start, value.end, value_text)
        scope.fault("wrong-kind", f"expected a layer or block after `{name}:`, found a value", span_node, help=help)
        scope.ignore(value, name)
        return True

    def _is_named_value(self, declaration: tree.ModuleDeclaration, is_complete: bool) -> bool:
        """Whether a declaration assigns an address to a value; `is_complete`: the statement ends with it."""
        if not isinstance(declaration.callee, tree.Name) or not declaration.address.segments:
            return False
        name = declaration.callee.text
        local, binding = self.scope.locals.get(name), self.unit.names.get(name)
        if local is not None:
            return local.what == "input" or name in self.scope.computed or (not declaration.lists and not is_complete)
        target = binding.target if binding is not None else OPS.get(name)
        return isinstance(target, Op) or (isinstance(target, Definition) and target.kind == "fn")

    def _resolve_tensor(self, statement: tree.TensorDeclaration) -> nodes.Declare:
        with self._enter_suffixes(statement.condition, statement.loop):
            resolve = self.expressions.resolve
            shape = self.expressions.listing(statement.shape)
            address = self.expressions.address(statement.address)
            value = self.expressions.optional(statement.value)
            initial = None
            if statement.initial is not None:
                arguments = tuple([resolve(a) for a in statement.initial.arguments])
                initial = nodes.Initializer(statement.initial, statement.initial.name, arguments)
            dtype, modifiers = statement.type or "real", statement.modifiers
            self._report_const(statement)
            tensor = nodes.TensorDeclaration(
                statement, address, modifiers, statement.kind, dtype, shape, value, initial
            )
            parts = [shape, *(initial.arguments if initial is not None else ())]
            is_invariant = value is None and self.expressions.are_invariant(parts)
            own = GuardedDeclaration(tensor, self.scope.guards, self.scope.loop, is_invariant)
        return nodes.Declare(statement, (own, *self._collect_declarations()))

    def _report_const(self, statement: tree.TensorDeclaration) -> None:
        """Report a `const` without a value or with a modifier of stored tensors."""
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
    def _enter_suffixes(self, condition: tree.Expr | None, loop: tree.Loop | None) -> Generator[None]:
        """Resolve a part of a statement inside the loop and the condition that follow it."""
        resolved_loop = self.expressions.loop(loop) if loop is not None else None
        guard = (self.expressions.resolve(condition), True) if condition is not None else None
        with self.expressions.guard_declarations(guard, resolved_loop):
            yield
        if loop is not None:
            self.scope.end_loop(loop.variable)

    def _resolve_tie(self, statement: tree.Tie) -> nodes.Tie | None:
        loop = self.expressions.loop(statement.loop) if statement.loop is not None else None
        condition = self.expressions.optional(statement.condition)
        alias, counted = self.expressions.address(statement.alias), self.expressions.address(statement.counted)
        if loop is not None:
            self.scope.end_loop(loop.variable)
        declared = [self.expressions.is_declared(a, a) for a in (statement.alias, statement.counted)]
        return nodes.Tie(statement, alias, counted, condition, loop) if all(declared) else None

    def _resolve_subjects(
        self, statement: tree.Role | tree.Label, word: str, seen: dict[Pattern, Span]
    ) -> tuple[tuple[nodes.Address, ...], tuple[str, ...]]:
        """Return the addresses that a role or label is for, and for a label the names of entries."""
        scope = self.scope
        patterns = [(address_pattern(address), address) for address in statement.addresses]
        for pattern, node in patterns or [((), statement)]:
            span = self.unit.span(node)
            first = seen.setdefault(pattern, span)
            if first != span:
                what = f"`{pattern_text(pattern)}`" if pattern else "this definition"
                notes = (Note(f"first {word} given here", first),)
                scope.report.error("duplicate-name", f"{what} already has a {word}", span, notes=notes)
        addresses: list[nodes.Address] = []
        names: list[str] = []
        for pattern, node in patterns:
            if word == "label" and names_entry(self.definition, pattern):
                names.append(str(pattern[0]))
                continue
            address = self.expressions.address(node)
            if scope.broken or any(covers(pattern, d.pattern) or covers(d.pattern, pattern) for d in scope.declared):
                addresses.append(address)
                continue
            subjects = [pattern_text(d.pattern) for d in scope.declared]
            subjects += entry_names(self.definition) if word == "label" else ()
            near = suggest(pattern_text(pattern), subjects)
            scope.fault("unknown-address", f"nothing is declared at `{pattern_text(pattern)}`", node, help=near)
        return tuple(addresses), tuple(names)

    def _resolve_return(self, statement: tree.Return) -> nodes.Return:
        values = tuple([self.expressions.resolve(value) for value in statement.values])
        if self.scope.loops:
            help = "assign the value in the loop and return it after the loop"
            self.scope.fault("unreachable", "`return` is not allowed inside a loop", statement, help=help)
        return nodes.Return(statement, values, self._collect_declarations())

    def _resolve_if(self, statement: tree.If) -> nodes.If:
        scope = self.scope
        condition = self.expressions.resolve(statement.condition)
        outer = scope.branch
        sides: list[tuple[nodes.Statement, ...]] = []
        for side, body in enumerate((statement.body, statement.otherwise)):
            scope.branch = (*outer, statement.start, side)
            sides.append(self._resolve_statements(body))
        scope.branch = outer
        broken = any(statement.start <= b.start < statement.end for b in self.unit.tree.broken)
        binds = tuple(dict.fromkeys(assigned_names((statement,))))
        return nodes.If(statement, condition, sides[0], sides[1], binds, broken)

    def _resolve_for(self, statement: tree.For) -> nodes.For:
        scope = self.scope
        loop = self.expressions.loop(statement.loop)
        binds = tuple(dict.fromkeys(assigned_names(statement.body)))
        targets = [s.targets[0] for s in _loop_statements(statement.body) if self._collects(s)]
        collects = frozenset([target.text for target in targets])
        outer, collecting = scope.changing, scope.collecting
        scope.changing = outer | {loop.variable, *binds}
        scope.collecting = collecting | collects
        scope.loops += 1
        body = self._resolve_statements(statement.body)
        scope.loops -= 1
        scope.changing, scope.collecting = outer, collecting
        scope.end_loop(loop.variable)
        for target in targets:
            scope.bind(target.text, "value", self.unit.span(target))
        scope.computed |= collects
        declares = any(map(_may_declare, body))
        selects = any(declarations(body)) or _has_indexed_read(body, loop.variable)
        return nodes.For(statement, loop, body, binds, tuple(sorted(collects)), declares, selects)


_COMPUTED = (
    *(nodes.Binary, nodes.Unary, nodes.Apply, nodes.Rearrange, nodes.Einsum, nodes.ModuleDeclaration, nodes.Chain),
)
"""The expressions whose values are computed."""


def _loop_statements(body: tuple[tree.Statement, ...]) -> Iterator[tree.Statement]:
    """Yield the statements of a loop, including its branches, but not its nested loops."""
    for statement in body:
        yield statement
        if isinstance(statement, tree.If):
            yield from _loop_statements((*statement.body, *statement.otherwise))


def _has_indexed_read(body: tuple[nodes.Statement, ...], index: str) -> bool:
    """Whether a statement reads an address with the index `index`, or applies an address."""
    return any(
        (
            isinstance(expr, nodes.AddressReference)
            and any(index in walk.local_names(position) for position in expr.address.indices())
        )
        or (isinstance(expr, nodes.Apply) and isinstance(expr.callee, nodes.AddressReference))
        for statement in walk.iter_statements(body)
        for root in walk.statement_expressions(statement)
        for expr in walk.iter_expressions(root)
    )


def _may_declare(statement: nodes.Statement) -> bool:
    """Whether an iteration of a loop may affect declarations, directly or through a value that it assigns."""
    match statement:
        case nodes.If():
            return any(map(_may_declare, (*statement.body, *statement.otherwise)))
        case nodes.Return():
            return bool(statement.declares)
        case _:
            return True
