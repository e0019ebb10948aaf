"""The first pass: the module of a definition, from its hyperparameters alone."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import cast

from archspec.compiler.elaborate.bodies import constant_body
from archspec.compiler.elaborate.members import check_nesting, check_roles, merge, merge_roles, merge_ties
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
from archspec.compiler.resolve.unit import Definition, Unit
from archspec.compiler.resolve.walk import Visitor
from archspec.core.diagnostics import Note, suggest
from archspec.core.record import Record
from archspec.ir.module import (
    Initializer,
    LocatedTensor,
    Member,
    Module,
    ModuleTensor,
    Type,
    canonical_name,
    find_member,
    is_frozen,
    iter_tensors,
)
from archspec.language.syntax import tree

# Initial values of tensors: the distributions after `~`.


class Distribution(Record):
    """The arguments of a distribution: their number, a description, and the minimum number of axes of the tensor."""

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
    """Return the initialization of a tensor with so many axes; None after reporting an error."""
    known = INITIALIZERS.get(node.name)
    if known is None:
        help = f"supported: {', '.join(f'`{n}`' for n in INITIALIZERS)}"
        interpreter.fault("unknown-name", f"unknown initializer `{node.name}`", node.at, help=help)
        return None
    values = [interpreter.value(a) for a in node.arguments]
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) < len(values):
        if POISON not in values:
            interpreter.fault("wrong-kind", f"`{node.name}` expects numbers", node.at)
        return None
    if len(values) != known.numbers:
        code = "surplus-argument" if len(values) > known.numbers else "missing-argument"
        many = "many" if len(values) > known.numbers else "few"
        message = f"too {many} arguments for `{node.name}`: expected {known.numbers}, found {len(values)}"
        interpreter.fault(code, message, node.at)
        return None
    if axes < known.axes or not _is_allowed(node.name, numbers):
        given = ", ".join(map(str, values)) or "a vector"
        interpreter.fault("wrong-kind", f"`{node.name}` expects {known.takes}, found {given}", node.at)
        return None
    return Initializer(node.name, tuple([float(v) for v in numbers]))


def _is_allowed(name: str, values: Sequence[float]) -> bool:
    """Whether the arguments are valid; a constant may be infinite."""
    match name, values:
        case "normal", (std,):
            return 0 <= std < math.inf
        case "truncated_normal", (std,):
            return 0 < std < math.inf
        case "uniform", (low, high):
            return -math.inf < low <= high < math.inf
        case _:
            return True


# Ties of tensors, or of all tensors in two subtrees.


def close_aliases(module: Module) -> None:
    """Map every alias directly to the counted name."""
    for alias in module.aliases:
        module.aliases[alias] = canonical_name(module, alias)


def tie(program: Program, module: Module, alias: str, counted: str, unit: Unit, node: tree.Tie) -> None:
    """Make `alias` another name of `counted` in `module`, or report why that is impossible."""
    pairs = list(_pairs(program, module, alias, counted, unit, node))
    tied_inside = [pair for pair in pairs if pair[0][0] in module.aliases]
    for (name, leaf), (other, _) in pairs:
        if name in module.aliases:
            continue
        if canonical_name(module, other) == name:
            _find_cycle(program, name, other, unit, node)
            continue
        module.aliases[name] = other
        if leaf.weight.kind == "param":
            module.total -= leaf.weight.size
            module.frozen -= leaf.weight.size if leaf.frozen else 0
    for (name, _), (other, _) in tied_inside:
        if canonical_name(module, name) != canonical_name(module, other):
            first = module.aliases[name]
            message = f"`{name}` is already tied to `{first}`"
            program.error("tie-twice", message, unit.span(node.alias), help=f"tie `{first}` instead")
        elif len(pairs) == 1:
            _find_cycle(program, name, other, unit, node)


def _find_cycle(program: Program, alias: str, counted: str, unit: Unit, node: tree.Tie) -> None:
    program.error(
        "tie-circle",
        f"`{alias}` and `{counted}` are already the same tensor"
        if alias != counted
        else f"cannot tie `{alias}` to itself",
        unit.span(node),
        help="tie every other name of a shared tensor to the one that is counted",
    )


def _pairs(
    program: Program, module: Module, alias: str, counted: str, unit: Unit, node: tree.Tie
) -> Iterator[tuple[tuple[str, LocatedTensor], tuple[str, LocatedTensor]]]:
    one, other = find_member(module, alias), find_member(module, counted)
    for found, address, place in ((one, alias, node.alias), (other, counted, node.counted)):
        if found is None:
            if not (program.is_incomplete(module, address) or unit.broken & set(address.split("."))):
                near = suggest(address, [name for name, _ in _some_leaves(module)])
                program.error(
                    "unknown-address", f"cannot tie `{address}`: nothing is declared there", unit.span(place), help=near
                )
            return
    for found, address, place in ((one, alias, node.alias), (other, counted, node.counted)):
        if isinstance(found, LocatedTensor) and found.weight.kind == "const":
            message = f"cannot tie `{address}`: a `const` is not stored"
            program.error("tie-shape", message, unit.span(place), help="declare it as a `buffer`, or remove the tie")
            return
    if isinstance(one, LocatedTensor) and isinstance(other, LocatedTensor):
        if _same(program, alias, one, counted, other, unit, node):
            yield (alias, one), (counted, other)
        return
    if isinstance(one, LocatedTensor) or isinstance(other, LocatedTensor):
        tensor, module_ = (alias, counted) if isinstance(one, LocatedTensor) else (counted, alias)
        message = f"cannot tie the tensor `{tensor}` and the layer or block `{module_}`"
        program.error("tie-shape", message, unit.span(node), help=f"name a tensor, as in `{module_}.weight`")
        return
    assert isinstance(one, Module) and isinstance(other, Module)
    ours = _stored_tensor(one, is_frozen(module, alias))
    theirs = _stored_tensor(other, is_frozen(module, counted))
    only = [n for n in ours if n not in theirs] + [n for n in theirs if n not in ours]
    if only:
        owner = alias if only[0] in ours else counted
        message = f"cannot tie `{alias}` and `{counted}`: only `{owner}` has a tensor `{only[0]}`"
        program.error("tie-shape", message, unit.span(node))
        return
    for name, leaf in ours.items():
        pair = f"{alias}.{name}", f"{counted}.{name}"
        if not _same(program, pair[0], leaf, pair[1], theirs[name], unit, node):
            return
        yield (pair[0], leaf), (pair[1], theirs[name])


def _stored_tensor(module: Module, frozen: bool) -> dict[str, LocatedTensor]:
    return {name: leaf for name, leaf in iter_tensors(module, frozen=frozen) if leaf.weight.kind != "const"}


def _same(
    program: Program, alias: str, one: LocatedTensor, counted: str, other: LocatedTensor, unit: Unit, node: tree.Tie
) -> bool:
    if one.weight.type == other.weight.type and one.weight.kind == other.weight.kind:
        return True
    difference = (
        f"{list(one.weight.shape)} and {list(other.weight.shape)}"
        if one.weight.shape != other.weight.shape
        else f"{one.weight.type.dtype} {one.weight.kind} and {other.weight.type.dtype} {other.weight.kind}"
    )
    message = f"cannot tie `{alias}` and `{counted}`: they are {difference}"
    program.error("tie-shape", message, unit.span(node))
    return False


def _some_leaves(module: Module) -> Iterator[tuple[str, LocatedTensor]]:
    for count, pair in enumerate(iter_tensors(module)):
        if count == 2000:
            return
        yield pair


def instantiate(program: Program, definition: Definition, values: dict[str, Value]) -> Module:
    """Return the module of a definition with hyperparameters, the same object for the same values."""
    key = (definition, *[value_key(v) for v in values.values()])
    module = program.modules.get(key)
    if module is not None:
        return module
    if any(f.definition is definition for f in program.frames[:-1]):
        names = [f.definition.name for f in program.frames]
        circle = " -> ".join([*names[names.index(definition.name) : -1], definition.name])
        message, help = f"`{definition.name}` contains itself: {circle}", "use a loop for repetition: `for i in 0..n`"
        program.error("definition-cycle", message, program.frames[-1].span, help=help)
        return Module(definition.kind, definition.name, values, definition.span)
    program.count_instance(definition, program.frames[-1].span if program.frames else definition.span)
    module = Module(definition.kind, definition.name, values, definition.span)
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
        self._roles: list[tuple[str, nodes.Address]] = []
        self._invariants: dict[int, Module | ModuleTensor | None] = {}
        self._modules: dict[Hashable, Module] = {}
        self._skipped = _Skipped(self)

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
        check_roles(self.program, self.unit, self.module, self._roles)
        merge_roles(self.module)
        self._add_up()
        self.program.numbers.finish(self, self.module, [(alias, counted) for alias, counted, _ in self.ties])
        for alias, counted, statement in self.ties:
            tie(self.program, self.module, alias, counted, self.unit, statement.at)
        close_aliases(self.module)
        if self.observer is not None:
            self.observer.on_module(self.module, self.ties)

    def _add_up(self) -> None:
        """Compute the totals from the direct members."""
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
            self._skipped.visit(otherwise if condition else body)
        elif any(map(_declares, (*body, *otherwise))):
            self._refuse_condition(condition, statement.condition)
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
        done = self.program.numbers.iterate(
            self, statement.loop, statement.binds, lambda: self.visit(statement.body), length
        )
        if not done:
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
        """Yield once for each value of a loop's index, which is bound; once without a loop, never for wrong bounds."""
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
        """Record a tie, which is made after all declarations."""
        self.program.numbers.on_tied(self, statement)
        for _ in self.indices(statement.loop, _length(statement)):
            if statement.condition is not None:
                holds = self.condition(statement.condition)
                if holds is DYNAMIC:
                    self._refuse_condition(holds, statement.condition)
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
                self._roles.append((text, address))

    def _refuse_condition(self, value: Value, condition: nodes.Expr) -> None:
        """Report that a declaration depends on an input, unless another error explains the unknown condition."""
        self.program.incomplete.add(self.module)
        if value is DYNAMIC:
            help = "make the condition depend on hyperparameters only"
            self.fault("ownership", "a declaration cannot depend on an input", condition.at, help=help)

    # Declarations

    def _declare(self, declarations: tuple[nodes.GuardedDeclaration, ...]) -> None:
        for declaration in declarations:
            for _ in self.indices(declaration.loop, _length(declaration.what)):
                self._declare_once(declaration)

    def _declare_once(self, declaration: nodes.GuardedDeclaration) -> None:
        for condition, wanted in declaration.guards:
            holds = self.condition(condition)
            if holds.__class__ is not bool:
                self._refuse_condition(holds, condition)
                return
            if holds is not wanted:
                self.record_excluded(declaration)
                return
        what = declaration.what
        address = self.address_text(what.address)
        made = self._made(declaration)
        if isinstance(what, nodes.ModuleDeclaration) and what.merges and isinstance(made, Module):
            self._merge(made, what)
        else:
            self._add(address, made, what)

    def record_excluded(self, declaration: nodes.GuardedDeclaration) -> None:
        """Record the address of a declaration that does not apply."""
        address = self.address_text(declaration.what.address)
        if address is not None:
            self.module.absent.add(address)

    def _made(self, declaration: nodes.GuardedDeclaration) -> Module | ModuleTensor | None:
        what = declaration.what
        made = self._invariants.get(id(declaration))
        if made is None:
            made = self._weight(what) if isinstance(what, nodes.TensorDeclaration) else self._make(what)
            if declaration.invariant:
                self._invariants[id(declaration)] = made
        return made

    def _add(
        self,
        address: str | None,
        made: Module | ModuleTensor | None,
        what: nodes.ModuleDeclaration | nodes.TensorDeclaration,
    ) -> None:
        if address is None or made is None:
            self.program.incomplete.add(self.module)
            return
        if self.observer is not None:
            self.observer.on_declared(what, made)
        members = self.module.members
        at = self.unit.span(what.address.at)
        if address in members:
            first = members[address].span
            repeated = first == at
            self.program.error(
                "duplicate-address",
                f"address `{address}` is {'declared again in each loop iteration' if repeated else 'already declared'}",
                at,
                notes=() if repeated else (Note("first declared here", first),),
                help="put the index into the address, as in `layer[i]`"
                if repeated
                else "use `.address(x)` to apply it again",
            )
            return
        members[address] = Member(made, "frozen" in what.modifiers, "unused" in what.modifiers, at)
        self.program.numbers.on_declared(self, self.module, address, what.address)

    def _merge(self, other: Module, own: nodes.ModuleDeclaration) -> None:
        """Declare what another module declares."""
        if self.observer is not None:
            self.observer.on_declared(own, other)
        merge(self.program, self.module, other, own.modifiers, self.unit.span(own.address.at))
        self.program.numbers.on_merged(self, self.module, other, own.address)

    def _make(self, own: nodes.ModuleDeclaration) -> Module | None:
        callee, partial = split_partial(self.value(own.callee))
        if callee is POISON:
            return None
        if callee is DYNAMIC:
            text = self.unit.source.text
            help = f"to name a value, write `{text[own.address.at.start : own.address.at.end]} = ...`"
            self.fault("ownership", "the module declared here cannot depend on an input", own.callee.at, help=help)
            return None
        if not isinstance(callee, Definition) or callee.kind == "fn":
            help = (
                "write it without an address: a function declares nothing"
                if type_description(callee) == "function"
                else None
            )
            message = f"expected a layer or block after an address, found {describe(callee)}"
            self.fault("wrong-kind", message, own.callee.at, help=help)
            return None
        if self.module.kind == "layer" and not (own.merges and callee.kind == "layer"):
            message = f"a layer can only declare tensors, found the {callee.kind} `{callee.name}`"
            self.fault("wrong-kind", message, own.at, help=f"make `{self.module.type}` a block")
            return None
        bound = self.bind_arguments(own, callee, partial)
        if bound is None:
            return None
        key = self._key(partial or callee, own)
        if key in self._modules:
            return self._modules[key]
        values = hyperparameter_values(self, callee, bound.hyperparameters, own.arguments.forward, own.at)
        if values is None:
            return None
        self.program.frames.append(Frame(callee, self.unit, own.at))
        module = instantiate(self.program, callee, values)
        self.program.frames.pop()
        self._modules[key] = module
        return module

    def _key(self, callee: Definition | Partial, own: nodes.ModuleDeclaration) -> Hashable:
        """Return a key for the values on which a declaration depends in each iteration of a loop."""
        values = [value_key(self.value(argument.value)) for argument in own.arguments.hyperparameters]
        if own.arguments.forward is not None:
            given, env = self.module.hyperparameters, self.env
            values += [(name, value_key(env.get(name))) for name, value in given.items() if env.get(name) is not value]
        return (value_key(callee), id(own), *values)

    def _weight(self, tensor: nodes.TensorDeclaration) -> ModuleTensor | None:
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
            cast("tuple[int, ...]", shape),  # of symbols where hyperparameters are open, in a formula alone
            size,
            frozen,
            "unused" in tensor.modifiers,
            initial,
            self.unit.span(tensor.address.at),
        )
        if tensor.value is not None:
            known = {name: value for name, value in self.env.items() if value is not DYNAMIC}
            weight.value = constant_body(self.program, self.definition, known, tensor.value, weight.type)
        return weight


class _Skipped(Visitor):
    """Records the declarations of a branch that is not taken."""

    def __init__(self, ownership: OwnershipInterpreter) -> None:
        self.ownership = ownership

    def _skip(self, statement: nodes.Assign | nodes.Declare | nodes.Return) -> None:
        for declaration in statement.declares:
            for _ in self.ownership.indices(declaration.loop, _length(declaration.what)):
                self.ownership.record_excluded(declaration)

    visit_assign = visit_declare = visit_return = _skip

    def visit_for(self, statement: nodes.For) -> None:
        if any(map(_declares, statement.body)):
            for _ in self.ownership.indices(statement.loop, statement.at.end - statement.at.start):
                self.visit(statement.body)


def _length(node: nodes.ModuleDeclaration | nodes.TensorDeclaration | nodes.Tie | nodes.Loop) -> int:
    return node.at.end - node.at.start


def _declares(statement: nodes.Statement) -> bool:
    """Whether a statement declares or ties anything, under any condition."""
    ties = any(isinstance(inner, nodes.Tie) for inner in walk.iter_statements((statement,)))
    return ties or any(walk.declarations((statement,)))
