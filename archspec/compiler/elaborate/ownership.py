"""The first pass: the module of a definition and its totals of parameters, from its hyperparameters alone."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import cast

from archspec.compiler.elaborate.bodies import compile_constant
from archspec.compiler.elaborate.members import check_nesting, check_subjects, merge, merge_labels, merge_roles
from archspec.compiler.elaborate.ties import close_aliases, merge_ties, tie
from archspec.compiler.evaluate.hyperparameters import Evaluator, hyperparameter_values
from archspec.compiler.evaluate.interpreter import Interpreter
from archspec.compiler.evaluate.partials import split_partial
from archspec.compiler.evaluate.program import Frame, Program, RequirementError
from archspec.compiler.evaluate.values import (
    DYNAMIC,
    POISON,
    Partial,
    Value,
    describe,
    is_list,
    type_description,
    value_key,
)
from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.definition import resolve_definition
from archspec.compiler.resolve.labels import entry_labels
from archspec.compiler.resolve.unit import Definition
from archspec.compiler.resolve.walk import Visitor
from archspec.core.diagnostics import Note
from archspec.core.record import Record
from archspec.ir.module import (
    Initializer,
    Member,
    Module,
    ModuleTensor,
    Type,
)

# Initial values of tensors: distributions after `~`.


class Distribution(Record):
    """The arguments of a distribution: their number, their description, and the minimum number of axes of a tensor."""

    numbers: int
    takes: str
    axes: int = 0


INITIALIZERS = {
    "normal": Distribution(1, "a standard deviation of 0 or more"),
    "truncated_normal": Distribution(1, "a standard deviation above 0"),
    "uniform": Distribution(2, "a lower and an upper bound"),
    "constant": Distribution(1, "a number"),
    "xavier_uniform": Distribution(0, "a tensor with two axes or more", axes=2),
}


def make_initializer(interpreter: Interpreter, node: nodes.Initializer, axes: int) -> Initializer | None:
    """Return the initializer of a tensor with `axes` axes; None after reporting an error."""
    distribution = INITIALIZERS.get(node.name)
    if distribution is None:
        help = f"supported: {', '.join(f'`{n}`' for n in INITIALIZERS)}"
        interpreter.fault("unknown-name", f"unknown initializer `{node.name}`", node.at, help=help)
        return None
    values = [interpreter.value(a) for a in node.arguments]
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) < len(values):
        if POISON not in values:
            interpreter.fault("wrong-kind", f"`{node.name}` expects numbers", node.at)
        return None
    if len(values) != distribution.numbers:
        code = "surplus-argument" if len(values) > distribution.numbers else "missing-argument"
        quantity = "many" if len(values) > distribution.numbers else "few"
        message = f"too {quantity} arguments for `{node.name}`: expected {distribution.numbers}, found {len(values)}"
        interpreter.fault(code, message, node.at)
        return None
    if axes < distribution.axes or not _is_allowed(node.name, numbers):
        arguments = ", ".join(map(str, values)) or "a vector"
        interpreter.fault("wrong-kind", f"`{node.name}` expects {distribution.takes}, found {arguments}", node.at)
        return None
    return Initializer(node.name, tuple([float(v) for v in numbers]))


def _is_allowed(name: str, values: Sequence[float]) -> bool:
    """Whether the arguments of a distribution are valid; a constant may be infinite."""
    match name, values:
        case "normal", (std,):
            return 0 <= std < math.inf
        case "truncated_normal", (std,):
            return 0 < std < math.inf
        case "uniform", (low, high):
            return -math.inf < low <= high < math.inf
        case _:
            return True


def instantiate(program: Program, definition: Definition, values: dict[str, Value]) -> Module:
    """Return the module of a definition with hyperparameters, the same object for equal values."""
    key = (definition, *[value_key(v) for v in values.values()])
    module = program.modules.get(key)
    if module is not None:
        return module
    if any(f.definition is definition for f in program.frames[:-1]):
        names = [f.definition.name for f in program.frames]
        cycle = " -> ".join([*names[names.index(definition.name) : -1], definition.name])
        message, help = f"`{definition.name}` contains itself: {cycle}", "use a loop for repetition: `for i in 0..n`"
        program.error("definition-cycle", message, program.frames[-1].span, help=help)
        return Module(definition.kind, definition.name, values, definition.span)
    program.count_instance(definition, program.frames[-1].span if program.frames else definition.span)
    module = Module(definition.kind, definition.name, values, definition.span)
    module.entry_labels = entry_labels(definition)
    OwnershipInterpreter(program, definition, values, module).run()
    program.modules[key] = module
    program.cached_objects += len(module.members) + 1
    program.definitions[module] = definition
    return module


class OwnershipInterpreter(Evaluator):
    """Interprets a definition as one module. Inputs, and values that depend on them, are DYNAMIC."""

    definition: Definition

    def __init__(self, program: Program, definition: Definition, values: dict[str, Value], module: Module) -> None:
        super().__init__(program, definition.unit, definition, dict(values))
        self.module = module
        for entry in definition.inputs:
            self.env[entry.name] = DYNAMIC
        self.ties: list[tuple[str, str, nodes.Tie]] = []
        self._subjects: list[tuple[str, nodes.Address]] = []  # of roles and labels
        self._invariants: dict[int, Module | ModuleTensor | None] = {}
        self._modules: dict[Hashable, Module] = {}
        self._skipped_branches = _SkippedBranches(self)

    def run(self) -> None:
        form = resolve_definition(self.definition, self.program.report)
        if form.broken:
            self.program.incomplete.add(self.module)
        try:
            self.visit(form.body)
        except RequirementError:
            self.program.refused.add(self.module)
            return
        check_nesting(self.program, self.module)
        check_subjects(self.program, self.unit, self.module, self._subjects)
        merge_roles(self.module)
        merge_labels(self.module)
        self._compute_totals()
        self.program.numbers.finish(self, self.module, [(alias, counted) for alias, counted, _ in self.ties])
        for alias, counted, statement in self.ties:
            tie(self.program, self.module, alias, counted, self.unit, statement.at)
        close_aliases(self.module)
        if self.observer is not None:
            self.observer.on_module(self.module, self.ties)

    def _compute_totals(self) -> None:
        """Compute the totals of the module from its direct members."""
        module = self.module
        for address, member in module.members.items():
            target = member.target
            if isinstance(target, ModuleTensor):
                module.tensors += 1
                module.characters += len(address)
                if target.kind == "param":
                    module.total += target.size
                    module.frozen += target.size if member.frozen else 0
                continue
            module.tensors += target.tensors
            module.characters += target.characters + target.tensors * (len(address) + 1)
            module.total += target.total
            module.frozen += target.total if member.frozen else target.frozen
            for alias, counted in target.aliases.items():
                module.aliases[f"{address}.{alias}"] = f"{address}.{counted}"
        merge_ties(module)
        self.limits.check_tensors(module.tensors, module.characters, module.span)

    # Statements

    def visit_declare(self, statement: nodes.Declare) -> None:
        self._declare(statement.declares)

    def visit_return(self, statement: nodes.Return) -> None:
        self._declare(statement.declares)

    def visit_assign(self, statement: nodes.Assign) -> None:
        self._declare(statement.declares)
        if len(statement.targets) == 1:
            self.env[statement.targets[0]] = self.value(statement.value)
        else:
            self.env.update(dict.fromkeys(statement.targets, DYNAMIC))

    def visit_if(self, statement: nodes.If) -> None:
        condition = self.condition(statement.condition)
        body, otherwise = statement.body, statement.otherwise
        if condition.__class__ is bool:
            self.visit(body if condition else otherwise)
            self._skipped_branches.visit(otherwise if condition else body)
        elif any(map(_declares, (*body, *otherwise))):
            self._report_condition(condition, statement.condition)
        for name in statement.binds:
            if condition.__class__ is bool:
                self.env.setdefault(name, None)
            else:
                self.env[name] = condition

    def visit_for(self, statement: nodes.For) -> None:
        length = statement.at.end - statement.at.start
        if self._is_value_loop(statement):
            self.env.update(dict.fromkeys(statement.binds, DYNAMIC))
            return
        if not statement.declares:
            self.program.numbers.indices(self, statement.loop, length)
            return
        is_complete = self.program.numbers.iterate(
            self, statement.loop, statement.binds, lambda: self.visit(statement.body), length
        )
        if not is_complete:
            self.program.incomplete.add(self.module)
            self.env[statement.loop.variable] = POISON
            self.env.update(dict.fromkeys(statement.binds, POISON))

    def _is_value_loop(self, statement: nodes.For) -> bool:
        """Whether a loop declares nothing, and its iterations depend on an input or are collected."""
        if any(map(_declares, statement.body)):
            return False
        loop = statement.loop
        return bool(statement.collects) or self.value(loop.first) is DYNAMIC or self.value(loop.last) is DYNAMIC

    def indices(self, loop: nodes.Loop | None, length: int) -> Iterable[Value]:
        """Bind and yield each value of a loop's index; yield once without a loop, never for invalid bounds."""
        if loop is None:
            yield 0
            return
        indices = self.program.numbers.indices(self, loop, length)
        if indices is None:
            self.env[loop.variable] = POISON
            self.program.incomplete.add(self.module)
        for self.env[loop.variable] in indices or ():
            yield self.env[loop.variable]

    def count_iterations(self, number: int, length: int, loop: nodes.Loop) -> None:
        self.limits.count_iterations(number, self.unit.span(loop.at))
        super().count_iterations(number, length, loop)

    def visit_tie(self, statement: nodes.Tie) -> None:
        """Record a tie; ties are applied after all declarations."""
        self.program.numbers.on_tied(self, statement)
        for _ in self.indices(statement.loop, _source_length(statement)):
            if statement.condition is not None:
                holds = self.condition(statement.condition)
                if holds is DYNAMIC:
                    self._report_condition(holds, statement.condition)
                if holds is not True:
                    continue
            alias, counted = self.address_text(statement.alias), self.address_text(statement.counted)
            if alias is not None and counted is not None:
                self.ties.append((alias, counted, statement))

    def visit_role(self, statement: nodes.Role) -> None:
        if not statement.at.addresses:
            self.module.roles.append(("", statement.name))
        for address in statement.addresses:
            text = self.address_text(address)
            if text is not None:
                self.module.roles.append((text, statement.name))
                self._subjects.append((text, address))

    def visit_label(self, statement: nodes.Label) -> None:
        if not statement.at.addresses:
            self.module.labels[""] = statement.text
        for address in statement.addresses:
            text = self.address_text(address)
            if text is not None:
                self.module.labels[text] = statement.text
                self._subjects.append((text, address))

    def _report_condition(self, value: Value, condition: nodes.Expr) -> None:
        """Report that a declaration depends on an input, unless the condition has an error."""
        self.program.incomplete.add(self.module)
        if value is DYNAMIC:
            help = "make the condition depend on hyperparameters only"
            self.fault("ownership", "a declaration cannot depend on an input", condition.at, help=help)

    # Declarations

    def _declare(self, declarations: tuple[nodes.GuardedDeclaration, ...]) -> None:
        for declaration in declarations:
            for _ in self.indices(declaration.loop, _source_length(declaration.what)):
                self._declare_iteration(declaration)

    def _declare_iteration(self, declaration: nodes.GuardedDeclaration) -> None:
        for condition, expected in declaration.guards:
            holds = self.condition(condition)
            if holds.__class__ is not bool:
                self._report_condition(holds, condition)
                return
            if holds is not expected:
                self.record_excluded(declaration)
                return
        node = declaration.what
        address = self.address_text(node.address)
        target = self._create_target(declaration)
        if isinstance(node, nodes.ModuleDeclaration) and node.merges and isinstance(target, Module):
            self._merge(target, node)
        else:
            self._add_member(address, target, node)

    def record_excluded(self, declaration: nodes.GuardedDeclaration) -> None:
        """Record the address of a declaration that the hyperparameters exclude."""
        address = self.address_text(declaration.what.address)
        if address is not None:
            self.module.absent.add(address)

    def _create_target(self, declaration: nodes.GuardedDeclaration) -> Module | ModuleTensor | None:
        node = declaration.what
        target = self._invariants.get(id(declaration))
        if target is None:
            target = (
                self._create_tensor(node) if isinstance(node, nodes.TensorDeclaration) else self._create_module(node)
            )
            if declaration.invariant:
                self._invariants[id(declaration)] = target
        return target

    def _add_member(
        self,
        address: str | None,
        target: Module | ModuleTensor | None,
        node: nodes.ModuleDeclaration | nodes.TensorDeclaration,
    ) -> None:
        if address is None or target is None:
            self.program.incomplete.add(self.module)
            return
        if self.observer is not None:
            self.observer.on_declared(node, target)
        members = self.module.members
        span = self.unit.span(node.address.at)
        if address in members:
            first = members[address].span
            repeated = first == span
            is_module = isinstance(target, Module) and isinstance(members[address].target, Module)
            again = f"use `.{address}(x)` to apply it again, or another address" if is_module else "use another address"
            self.program.error(
                "duplicate-address",
                f"address `{address}` is {'declared again in each loop iteration' if repeated else 'already declared'}",
                span,
                notes=() if repeated else (Note("first declared here", first),),
                help="put the index into the address, as in `layer[i]`" if repeated else again,
            )
            return
        members[address] = Member(target, "frozen" in node.modifiers, "unused" in node.modifiers, span)
        self.program.numbers.on_declared(self, self.module, address, node.address)

    def _merge(self, merged: Module, node: nodes.ModuleDeclaration) -> None:
        """Add the members of a merged module."""
        if self.observer is not None:
            self.observer.on_declared(node, merged)
        merge(self.program, self.module, merged, node.modifiers, self.unit.span(node.address.at))
        self.program.numbers.on_merged(self, self.module, merged, node.address)

    def _create_module(self, node: nodes.ModuleDeclaration) -> Module | None:
        callee, partial = split_partial(self.value(node.callee))
        if callee is POISON:
            return None
        if callee is DYNAMIC:
            text = self.unit.source.text
            help = f"to name a value, write `{text[node.address.at.start : node.address.at.end]} = ...`"
            self.fault("ownership", "the module declared here cannot depend on an input", node.callee.at, help=help)
            return None
        if not isinstance(callee, Definition) or callee.kind == "fn":
            help = (
                "write it without an address: a function declares nothing"
                if type_description(callee) == "function"
                else None
            )
            message = f"expected a layer or block after an address, found {describe(callee)}"
            self.fault("wrong-kind", message, node.callee.at, help=help)
            return None
        if self.module.kind == "layer" and not (node.merges and callee.kind == "layer"):
            message = f"a layer can only declare tensors, found the {callee.kind} `{callee.name}`"
            self.fault("wrong-kind", message, node.at, help=f"make `{self.module.type}` a block")
            return None
        bound = self.bind_arguments(node, callee, partial)
        if bound is None:
            return None
        key = self._module_key(partial or callee, node)
        if key in self._modules:
            return self._modules[key]
        values = hyperparameter_values(self, callee, bound.hyperparameters, node.arguments.forward, node.at)
        if values is None:
            return None
        callee = self.specialize(node, callee, partial, values)
        self.program.frames.append(Frame(callee, self.unit, node.at))
        module = instantiate(self.program, callee, values)
        self.program.frames.pop()
        self._modules[key] = module
        return module

    def _module_key(self, callee: Definition | Partial, node: nodes.ModuleDeclaration) -> Hashable:
        """Return a key for the values on which a declaration depends in each iteration of a loop."""
        values = [value_key(self.value(argument.value)) for argument in node.arguments.hyperparameters]
        if node.arguments.forward is not None:
            hyperparameters, env = self.module.hyperparameters, self.env
            values += [
                (name, value_key(env.get(name)))
                for name, value in hyperparameters.items()
                if env.get(name) is not value
            ]
        return (value_key(callee), id(node), *values)

    def _create_tensor(self, tensor: nodes.TensorDeclaration) -> ModuleTensor | None:
        sizes = self.value(tensor.shape)
        if sizes is DYNAMIC:
            message = "the shape of a stored tensor cannot depend on an input"
            self.fault("ownership", message, tensor.shape.at, help="use hyperparameters only")
            return None
        numbers, frozen = self.program.numbers, "frozen" in tensor.modifiers
        shaped = numbers.shape(self, sizes, tensor.shape) if is_list(sizes) else None
        if shaped is None:
            return None
        shape, size = shaped
        if tensor.kind == "param" and tensor.dtype != "real" and not frozen:
            help = "declare it as `frozen`, or as a `buffer`"
            message = f"a parameter of type {tensor.dtype} cannot be trained"
            self.fault("wrong-kind", message, tensor.address.at, help=help)
        initial = None
        if tensor.initial is not None and numbers.counts_elements:
            initial = make_initializer(self, tensor.initial, len(shape))
        weight = ModuleTensor(
            tensor.kind,
            Type(shape, tensor.dtype),
            cast("tuple[int, ...]", shape),  # polynomials if hyperparameters are open
            size,
            frozen,
            "unused" in tensor.modifiers,
            initial,
            self.unit.span(tensor.address.at),
        )
        if tensor.value is not None:
            values = {name: value for name, value in self.env.items() if value is not DYNAMIC}
            weight.value = compile_constant(self.program, self.definition, values, tensor.value, weight.type)
        return weight


class _SkippedBranches(Visitor):
    """Records the addresses of declarations in skipped branches."""

    def __init__(self, ownership: OwnershipInterpreter) -> None:
        self.ownership = ownership

    def _record_excluded(self, statement: nodes.Assign | nodes.Declare | nodes.Return) -> None:
        for declaration in statement.declares:
            for _ in self.ownership.indices(declaration.loop, _source_length(declaration.what)):
                self.ownership.record_excluded(declaration)

    visit_assign = visit_declare = visit_return = _record_excluded

    def visit_for(self, statement: nodes.For) -> None:
        if any(map(_declares, statement.body)):
            for _ in self.ownership.indices(statement.loop, statement.at.end - statement.at.start):
                self.visit(statement.body)


def _source_length(node: nodes.ModuleDeclaration | nodes.TensorDeclaration | nodes.Tie | nodes.Loop) -> int:
    return node.at.end - node.at.start


def _declares(statement: nodes.Statement) -> bool:
    """Whether a statement contains a declaration or a tie, under any condition."""
    ties = any(isinstance(nested, nodes.Tie) for nested in walk.iter_statements((statement,)))
    return ties or any(walk.declarations((statement,)))
