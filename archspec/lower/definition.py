"""What can be said of one definition before anything is compiled: names, arguments, and what is never used."""

from __future__ import annotations

from typing import Any, NamedTuple

from archspec.lower.evaluate import Evaluator, listed
from archspec.lower.patterns import Pattern, by_first_word, covers, nearest_address, pattern_of, pattern_text
from archspec.lower.plan import Branch, Owning, Plan, Repeat, indices, names_in, parts, plan_of
from archspec.lower.program import Program
from archspec.lower.statements import every, exclusive, is_none, returns
from archspec.lower.units import Definition
from archspec.lower.unused import check_unused, report_unused_name
from archspec.ops import OPS
from archspec.source import Note, Span, nearest, suggest
from archspec.syntax import tree


class Local(NamedTuple):
    """A name bound in a definition; `depth` counts the loops around its binding."""

    what: str
    span: Span
    depth: int
    branch: tuple[int, ...]


class OwnedAt(NamedTuple):
    """An address that a definition owns something at."""

    pattern: Pattern
    node: tree.Own | tree.Param
    applied: bool


class DefinitionCheck:
    """Walks one definition in program order."""

    def __init__(self, program: Program, definition: Definition, used: set[str]) -> None:
        self.program = program
        self.definition = definition
        self.unit = definition.unit
        self.evaluator = Evaluator(program, self.unit, definition, {})
        self.imports_used = used
        self.locals: dict[str, Local] = {}
        self.past: dict[str, Local] = {}
        self.used: set[str] = set()
        self.owned: list[OwnedAt] = []
        self.referred: list[tuple[Pattern, tree.Address | tree.Reference]] = []
        self.roles: dict[Pattern, Span] = {}
        self.meant: list[Pattern] = []  # what a misspelt address most likely stands for
        self.in_header = False
        self.chains = 0
        self.loops = 0
        self.branch: tuple[int, ...] = ()
        node = definition.node
        self.broken = any(node.start <= b.start < node.end for b in self.unit.tree.broken)

    def run(self) -> None:
        node = self.definition.node
        for name, parameter in self.definition.hyperparameters.items():
            if parameter.default is not None and parameter.unit is self.unit:
                self.visit(parameter.default)
            if name in self.unit.names and parameter.unit is self.unit:
                self._twice(name, parameter.span, self.unit.names[name].span)
            self.locals[name] = Local("hyperparameter", self._hyperparameter_span(name), 0, ())
        for entry in node.hyperparameters:
            if entry.name == ".." and isinstance(entry.default, tree.Name):
                self.imports_used.add(entry.default.text)
        for entry in node.inputs:
            self._bind(entry.name, "input", self.unit.span(entry))
            if entry.default is not None and not is_none(entry.default):
                self.error("wrong-kind", "the default of an input must be `none`", entry.default)
        self.in_header = True
        for entry in (*node.inputs, *node.outputs):
            for item in entry.shape.items if entry.shape else ():
                self.visit(item)
        self.in_header = False
        self._check_outputs(node.outputs)
        self._collect(node.body)
        for owned in self.owned if self.definition.kind == "fn" else ():
            self.error(
                "ownership", "a function cannot declare anything", owned.node, help="make it a `layer` or `block`"
            )
        self.statements(node.body)
        self._check_references()
        if not self.unit.tree.broken and not returns(node.body) and self.evaluator.is_news("return"):
            self.error(
                "missing-return",
                f"`{self.definition.name}` does not return a value",
                node.name,
                help="add a `return` statement",
            )
        elif not self.broken:
            check_unused(self)

    def error(self, code: str, message: str, node: Any, *, help: str | None = None) -> None:
        self.evaluator.fault(code, message, node, help=help)

    # Names

    def _hyperparameter_span(self, name: str) -> Span:
        parameter = self.definition.hyperparameters[name]
        node = self.definition.node
        if parameter.unit is self.unit and node.start <= parameter.span.start < node.end:
            return parameter.span
        taken = next(e for e in self.definition.node.hyperparameters if e.name == "..")
        return self.unit.span(taken)

    def _bind(self, name: str, what: str, span: Span) -> None:
        if name == "_":
            return
        first = self.locals.get(name)
        if first is not None:
            carried = first.depth < self.loops and first.what != "index"
            other_branch = what == "value" and exclusive(first.branch, self.branch)
            if not carried and not other_branch:
                self._twice(name, span, first.span)
            return
        for known in (self.unit.names.get(name), self.unit.dims.get(name)):
            if known is not None:
                self._twice(name, span, known if isinstance(known, Span) else known.span)
                self.program.unknown.add((self.definition, name))
                self.imports_used.add(name)
        self.locals[name] = Local(what, span, self.loops, self.branch)

    def _twice(self, name: str, span: Span, first: Span) -> None:
        note = Note("first defined here", first)
        self.program.error("duplicate-name", f"`{name}` is already defined", span, notes=(note,))

    def _use(self, node: tree.Name) -> None:
        name = node.text
        if name == "_":
            if not self.chains:
                self.error("unknown-name", "`_` is only allowed in a chain step", node)
        elif name in self.locals:
            self.used.add(name)
        elif name in self.unit.names or name in self.unit.dims:
            self.imports_used.add(name)
        elif name not in OPS and name != "len" and self.evaluator.is_news(name, everywhere=self.in_header):
            if name in self.past:
                help = "assign it before the loop: names first assigned in a loop end with it"
            else:
                others: list[str] = [*self.unit.names, *self.unit.dims, *([] if self.in_header else OPS)]
                near = nearest(name, list(self.locals)) or nearest(name, others)
                help = f"did you mean `{near}`?" if near else None
                if self.in_header and not near:
                    help = f"to use it as a dimension, declare it: `dim {name}`"
                if near:  # then that is used
                    self.used.add(near)
                    self.imports_used.add(near)
            self.error("unknown-name", f"unknown name `{name}`", node, help=help)

    def _check_outputs(self, outputs: tuple[tree.Output, ...]) -> None:
        named: dict[str, Span] = {}
        for output in outputs:
            span = self.unit.span(output)
            if output.name and named.setdefault(output.name, span) != span:
                self._twice(output.name, span, named[output.name])

    # Statements

    def statements(self, body: tuple[tree.Statement, ...]) -> None:
        for position, statement in enumerate(body):
            self._statement(statement)
            if isinstance(statement, tree.Return) and position + 1 < len(body):
                self.error("unreachable", "unreachable statement after `return`", body[position + 1])
                self.broken = True

    def _statement(self, statement: tree.Statement) -> None:
        match statement:
            case tree.Bind():
                self.visit(statement.value)
                for target in statement.targets:
                    self._bind(target.text, "value", self.unit.span(target))
            case tree.Declare():
                self._declare(statement)
            case tree.Param():
                with_index = (*statement.shape.items, *indices(statement.address))
                extra = (statement.value, *(statement.initial.arguments if statement.initial else ()))
                self._suffixed(statement.condition, statement.loop, (*with_index, *(e for e in extra if e is not None)))
            case tree.Tie():
                inside = (*indices(statement.alias), *indices(statement.counted))
                self._suffixed(statement.condition, statement.loop, inside)
                for address in (statement.alias, statement.counted):
                    self.referred.append((pattern_of(address), address))
            case tree.Require():
                self.visit(statement.condition)
            case tree.Role():
                self._once_a_role(statement)
                for address in statement.addresses:
                    for index in indices(address):
                        self.visit(index)
                    self._check_role(address)
            case tree.Return():
                for value in statement.values:
                    self.visit(value)
                if self.loops:
                    help = "assign the value in the loop and return it after the loop"
                    self.error(
                        "unreachable",
                        "`return` is not allowed inside a loop",
                        statement,
                        help=help,
                    )
            case tree.If():
                self.visit(statement.condition)
                outer = self.branch
                for side, body in enumerate((statement.body, statement.otherwise)):
                    self.branch = (*outer, statement.start, side)
                    self.statements(body)
                self.branch = outer
            case tree.For():
                self._loop(statement.loop)
                self.loops += 1
                self.statements(statement.body)
                self.loops -= 1
                self._end_loop(statement.loop)

    def _declare(self, statement: tree.Declare) -> None:
        value = statement.value
        if not isinstance(value, tree.Own) or len(value.lists) > 1:
            help = "assign it, as in `name = ...`, or return it"
            if not returns(self.definition.node.body):
                self.evaluator.is_news("return")  # which is what was forgotten here
            self.error("unused-value", "the value of this statement is unused", value, help=help)
        self._suffixed(statement.condition, statement.loop, (value,))

    def _suffixed(self, condition: tree.Expr | None, loop: tree.Loop | None, inside: tuple[tree.Expr, ...]) -> None:
        if loop is not None:
            self._loop(loop)
        for expr in (*((condition,) if condition is not None else ()), *inside):
            self.visit(expr)
        if loop is not None:
            self._end_loop(loop)

    def _loop(self, loop: tree.Loop) -> None:
        self.visit(loop.first)
        self.visit(loop.last)
        self._bind(loop.variable, "index", Span(self.unit.source, loop.start, loop.end))

    def _end_loop(self, loop: tree.Loop) -> None:
        ended = [
            name
            for name, local in self.locals.items()
            if local.depth > self.loops or (name == loop.variable and local.what == "index")
        ]
        for name in ended:
            local = self.locals.pop(name)
            self.past[name] = local
            if local.what == "value" and name not in self.used and not self.broken:
                report_unused_name(self.program, name, local)

    # Expressions

    def visit(self, expr: tree.Expr) -> None:
        match expr:
            case tree.Name():
                self._use(expr)
            case tree.Reference():
                for index in indices(expr.address):
                    self.visit(index)
                self.referred.append((pattern_of(expr.address), expr))
            case tree.Own():
                for index in indices(expr.address):
                    self.visit(index)
                self.visit(expr.callee)
                self._arguments(expr.callee, expr.lists)
                hyper = expr.lists[0] if expr.lists else None
                inputs = expr.lists[1] if len(expr.lists) > 1 else None
                self._check_arguments(expr.callee, hyper, inputs, expr)
            case tree.Call():
                self.visit(expr.callee)
                self._arguments(expr.callee, expr.lists)
                if len(expr.lists) == 2:
                    self._check_arguments(expr.callee, expr.lists[0], expr.lists[1], expr)
            case tree.Chain():
                self.visit(expr.head)
                self.chains += 1
                for step in expr.steps:
                    self._step(step)
                self.chains -= 1
            case _:
                for part in parts(expr):
                    self.visit(part)

    def _step(self, step: tree.Step) -> None:
        if not step.operator:
            for expr in (step.value, step.otherwise):
                self._check_stream(expr)
        inside = (step.value, *((step.otherwise,) if step.otherwise is not None else ()))
        self._suffixed(step.condition, step.loop, inside)

    def _check_stream(self, expr: tree.Expr | None) -> None:
        """A step whose inputs are written out must say where the stream goes."""
        if not isinstance(expr, tree.Own | tree.Call) or not expr.lists:
            return
        only_inputs = isinstance(expr, tree.Call) and isinstance(expr.callee, tree.Reference)
        inputs = expr.lists[0] if only_inputs else expr.lists[1] if len(expr.lists) > 1 else None
        if inputs is not None and not any(a.value is not None and "_" in names_in(a.value) for a in inputs.items):
            name = self.unit.source.text[expr.callee.start : expr.callee.end]
            message = f"the piped value is not passed to `{name}`"
            self.error("stream", message, inputs, help="mark its position with `_`")

    def _arguments(self, callee: tree.Expr, lists: tuple[tree.Arguments, ...]) -> None:
        for arguments in lists:
            for item in arguments.items:
                if item.value is not None:
                    self.visit(item.value)
                else:
                    target = self._known(callee)
                    hyper = self.definition.hyperparameters
                    self.used.update(n for n in hyper if target is None or n in target.hyperparameters)

    def _known(self, callee: tree.Expr) -> Definition | None:
        """The definition that a callee names, where that does not depend on hyperparameters."""
        if not isinstance(callee, tree.Name) or callee.text in self.locals:
            return None
        binding = self.unit.names.get(callee.text)
        return binding.target if binding and isinstance(binding.target, Definition) else None

    def _check_arguments(
        self, callee: tree.Expr, hyper: tree.Arguments | None, inputs: tree.Arguments | None, node: Any
    ) -> None:
        target = self._known(callee)
        if target is None:
            return
        declared = target.hyperparameters
        for item in hyper.items if hyper is not None else ():
            local = self.locals.get(item.value.text) if isinstance(item.value, tree.Name) else None
            if local is not None and local.what == "input":
                self.evaluator.refuse_input(target, item)
                return
        given = self.evaluator.match(target.name, tuple(declared), hyper, "hyperparameter")
        forwarded = self.definition.hyperparameters if given and ".." in given else {}
        for name, parameter in declared.items() if given is not None else ():
            if name not in (given or {}) and name not in forwarded and parameter.default is None:
                message = f"missing hyperparameter `{name}` in call to `{target.name}`"
                self.error("missing-argument", message, node, help=f"expected hyperparameters: {listed(declared)}")
        if inputs is not None:
            self.evaluator.match(target.name, [e.name for e in target.node.inputs], inputs, "input")

    # Addresses

    def _collect(self, body: tuple[tree.Statement, ...]) -> None:
        def walk(plan: Plan) -> None:
            for entry in plan:
                match entry:
                    case Owning():
                        applied = isinstance(entry.node, tree.Own) and id(entry.node) not in declared
                        self.owned.append(OwnedAt(pattern_of(entry.node.address), entry.node, applied))
                    case Branch():
                        walk(entry.body)
                        walk(entry.otherwise)
                    case Repeat():
                        walk(entry.body)
                    case _:
                        pass

        declared = {id(d.value) for d in every(body) if isinstance(d, tree.Declare)}
        walk(plan_of(self.definition))

    def _check_references(self) -> None:
        owned = by_first_word([o.pattern for o in self.owned])
        for pattern, node in self.referred:
            if self.broken or any(covers(o, pattern) for o in owned.get(pattern[0], ())):
                continue
            if not self.evaluator.is_news(f".{pattern_text(pattern)}"):
                continue
            if self.definition.kind == "fn":
                self.error("unknown-address", "a function has no addresses; use a `layer` or `block`", node)
                continue
            text = pattern_text(pattern)
            near = nearest_address(text, [pattern_text(o.pattern) for o in self.owned])
            self.meant += [o.pattern for o in self.owned if near and f"`{pattern_text(o.pattern)}" in near]
            dot = "." if isinstance(node, tree.Reference) else ""
            self.error("unknown-address", f"nothing is declared at `{dot}{text}`", node, help=near)

    def _once_a_role(self, statement: tree.Role) -> None:
        """Of two roles for the same tensors one would do nothing."""
        places = [(pattern_of(address), address) for address in statement.addresses]
        for pattern, node in places or [((), statement)]:
            span = self.unit.span(node)
            first = self.roles.setdefault(pattern, span)
            if first != span:
                note = Note("first role given here", first)
                what = f"`{pattern_text(pattern)}`" if pattern else "this definition"
                self.program.error("duplicate-name", f"{what} already has a role", span, notes=(note,))

    def _check_role(self, address: tree.Address) -> None:
        if self.broken:
            return
        pattern = pattern_of(address)
        if not any(covers(pattern, o.pattern) or covers(o.pattern, pattern) for o in self.owned):
            near = suggest(pattern_text(pattern), [pattern_text(o.pattern) for o in self.owned])
            self.error("unknown-address", f"nothing is declared at `{pattern_text(pattern)}`", address, help=near)
