"""The first pass: what a definition owns, from its hyperparameters alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from archspec.ir import Initial, Member, Module, Type, Weight, find, prefixes
from archspec.lower.address import address_text
from archspec.lower.evaluate import Evaluator
from archspec.lower.flow import constant_body
from archspec.lower.initial import initial_of
from archspec.lower.operands import report_require
from archspec.lower.plan import (
    Bound,
    Branch,
    Naming,
    Owning,
    Plan,
    Repeat,
    Requiring,
    Tying,
    bound_names,
    plan_of,
    plan_owns,
)
from archspec.lower.program import Frame, Program, Refused
from archspec.lower.tie import close_aliases, tie
from archspec.lower.units import Definition
from archspec.lower.values import DYNAMIC, LARGEST, POISON, describe, key_of, kind_of
from archspec.source import Note
from archspec.syntax import tree


def instantiate(program: Program, definition: Definition, values: dict[str, Any]) -> Module:
    """The module of a definition with hyperparameters; the same object for the same values."""
    key = (definition, *[key_of(v) for v in values.values()])
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
    (program.owner or Owner)(program, definition, values, module).run()
    program.modules[key] = module
    program.kept += len(module.members) + 1
    program.definitions[module] = definition
    return module


class Owner(Evaluator):
    """Works out one module."""

    def __init__(self, program: Program, definition: Definition, values: dict[str, Any], module: Module) -> None:
        super().__init__(program, definition.unit, definition, dict(values))
        self.module = module
        for entry in definition.node.inputs:
            self.env[entry.name] = DYNAMIC
        self._given_roles: list[tuple[str, tree.Address]] = []
        self.ties: list[tuple[str, str, tree.Tie]] = []
        self._invariants: dict[int, Module | None] = {}
        self._modules: dict[Any, Module] = {}

    def run(self) -> None:
        assert self.definition is not None
        try:
            self._run(plan_of(self.definition))
        except Refused:
            return
        self._check_nesting()
        self._check_roles()
        self._add_up()
        for alias, counted, node in self.ties:
            tie(self.program, self.module, alias, counted, self.unit, node)
        close_aliases(self.module)

    def _add_up(self) -> None:
        """Totals from what is owned directly."""
        module = self.module
        for address, member in module.members.items():
            target = member.target
            if isinstance(target, Weight):
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
        self.program.check_tensors(module.tensors, module.characters, module.span)

    def _run(self, plan: Plan) -> None:
        for entry in plan:
            match entry:
                case Owning():
                    self._own(entry)
                case Bound():
                    self._bind(entry)
                case Repeat():
                    self._repeat(entry)
                case Branch():
                    self._branch(entry)
                case Requiring():
                    self.require(entry.node)
                case Naming():
                    self._role(entry.node)
                case Tying():
                    self._tie(entry.node)

    def _repeat(self, entry: Repeat) -> None:
        local = set(bound_names(entry.body)) - self.env.keys()
        for _ in self._rounds(entry.loop, entry.length, run=entry.owns):
            for name in local:
                self.env.pop(name, None)
            self._run(entry.body)

    def _tie(self, node: tree.Tie) -> None:
        """Notes a tie, to be made when everything is owned."""
        for _ in self._rounds(node.loop, node.end - node.start) if node.loop else (0,):
            if node.condition is not None:
                holds = self.condition(node.condition)
                if holds is DYNAMIC:
                    self._dynamic_ownership(node.condition)
                if holds is not True:
                    continue
            alias, counted = address_text(self, node.alias), address_text(self, node.counted)
            if alias is not None and counted is not None:
                self.ties.append((alias, counted, node))

    # Statements

    def _bind(self, entry: Bound) -> None:
        if len(entry.targets) == 1:
            self.env[entry.targets[0]] = self.value(entry.value)
        else:
            for name in entry.targets:
                self.env[name] = DYNAMIC

    def _branch(self, entry: Branch) -> None:
        condition = self.condition(entry.condition)
        if condition.__class__ is bool:
            self._run(entry.body if condition else entry.otherwise)
            self._skip(entry.otherwise if condition else entry.body)
        elif condition is DYNAMIC and plan_owns((*entry.body, *entry.otherwise)):
            self._dynamic_ownership(entry.condition)
        for name in bound_names((*entry.body, *entry.otherwise)):
            if condition.__class__ is bool:
                self.env.setdefault(name, None)
            else:
                self.env[name] = condition

    def _skip(self, plan: Plan) -> None:
        """Notes what a branch that is not taken would own."""
        for entry in plan:
            match entry:
                case Owning():
                    for _ in self._rounds(entry.loop, _length(entry)) if entry.loop else (0,):
                        self._leave_out(entry)
                case Repeat() if plan_owns(entry.body):
                    for _ in self._rounds(entry.loop, entry.length):
                        self._skip(entry.body)
                case Branch():
                    self._skip((*entry.body, *entry.otherwise))
                case _:
                    pass

    def _leave_out(self, entry: Owning) -> None:
        address = entry.address or address_text(self, entry.node.address)
        if address is not None:
            self.module.absent.add(address)

    def _dynamic_ownership(self, condition: tree.Expr) -> None:
        self.fault(
            "ownership",
            "a declaration cannot depend on an input",
            condition,
            help="make the condition depend on hyperparameters only",
        )

    def require(self, node: tree.Require) -> None:
        if self.condition(node.condition) is False:
            report_require(self, node)
            self.program.refused.add(self.module)
            raise Refused

    def _role(self, node: tree.Role) -> None:
        if not node.addresses:
            self.module.roles.append(("", node.name))
        for address in node.addresses:
            text = address_text(self, address)
            if text is not None:
                self.module.roles.append((text, node.name))
                self._given_roles.append((text, address))

    def _rounds(self, loop: tree.Loop, length: int, run: bool = True) -> Iterator[int]:
        indices = self._indices(loop, length)
        if indices is None:
            self.env[loop.variable] = POISON
        for index in indices if indices and run else ():
            self.env[loop.variable] = index
            yield index

    def _indices(self, loop: tree.Loop, length: int) -> Iterable[Any] | None:
        """The indices of a loop over `length` characters; None if what is wrong with them was reported."""
        first, last = self.value(loop.first), self.value(loop.last)
        for value, node in ((first, loop.first), (last, loop.last)):
            if value is DYNAMIC:
                message = "the number of loop iterations cannot depend on an input"
                self.fault("ownership", message, node, help="make it a hyperparameter")
                return None
            if value is not POISON and value.__class__ is not int:
                self.fault("wrong-kind", f"expected an integer loop bound, found {describe(value)}", node)
                return None
        if first is POISON or last is POISON or self.counts_down(first, last, loop):
            return None
        self.program.count_iterations(last - first, self.unit.span(loop))
        self.program.count_work((last - first) * length, self.unit.span(loop))
        return range(first, last)

    # Owning

    def _own(self, entry: Owning) -> None:
        if entry.loop is None:
            self._own_once(entry)
            return
        for index in self._indices(entry.loop, _length(entry)) or ():
            self.env[entry.loop.variable] = index
            self._own_once(entry)

    def _own_once(self, entry: Owning) -> None:
        for condition, wanted in entry.guards:
            holds = self.condition(condition)
            if holds is DYNAMIC:
                self._dynamic_ownership(condition)
            if holds is not wanted:
                self._leave_out(entry)
                return
        address = entry.address or address_text(self, entry.node.address)
        self._add(address, self._made_by(entry), entry.node)

    def _made_by(self, entry: Owning) -> Module | Weight | None:
        if isinstance(entry.node, tree.Param):
            return self._weight(entry.node)
        if not entry.invariant:
            return self._make(entry.node)
        made = self._invariants.get(id(entry))
        if made is None:
            made = self._invariants[id(entry)] = self._make(entry.node)
        return made

    def _add(self, address: str | None, made: Module | Weight | None, node: tree.Own | tree.Param) -> None:
        if address is None or made is None:
            self.program.incomplete.add(self.module)
            return
        members = self.module.members
        if address in members:
            first = members[address].span
            at = self.unit.span(node.address)
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
        frozen, unused = "frozen" in node.modifiers, "unused" in node.modifiers
        members[address] = Member(made, frozen, unused, self.unit.span(node.address))

    def _make(self, node: tree.Own) -> Module | None:
        callee = self.value(node.callee)
        if callee is POISON:
            return None
        if callee is DYNAMIC:
            self.fault("ownership", "the module declared here cannot depend on an input", node.callee)
            return None
        if not isinstance(callee, Definition) or callee.kind == "fn":
            help = "write it without an address: a function declares nothing" if kind_of(callee) == "function" else None
            message = f"expected a layer or block after an address, found {describe(callee)}"
            self.fault("wrong-kind", message, node.callee, help=help)
            return None
        if self.module.kind == "layer":
            message = f"a layer can only declare tensors, found the {callee.kind} `{callee.name}`"
            self.fault("wrong-kind", message, node, help=f"make `{self.module.type}` a block")
            return None
        given = node.lists[0] if node.lists else None
        key = self._key(callee, given, node)
        if key in self._modules:
            return self._modules[key]
        values = self.hyperparameters(callee, given, node)
        if values is None:
            return None
        self.program.frames.append(Frame(callee, self.unit, node))
        module = instantiate(self.program, callee, values)
        self.program.frames.pop()
        self._modules[key] = module
        return module

    def _key(self, callee: Definition, given: tree.Arguments | None, node: tree.Own) -> Any:
        """What a statement owns depends on this only, from round to round of a loop."""
        values = [
            key_of(self.value(item.value) if item.value is not None else tuple(self.env.values()))
            for item in (given.items if given is not None else ())
        ]
        return (callee, id(node), *values)

    def _weight(self, node: tree.Param) -> Weight | None:
        sizes = self.value(node.shape)
        if sizes is POISON:
            return None
        if sizes is DYNAMIC:
            message = "the shape of a stored tensor cannot depend on an input"
            self.fault("ownership", message, node.shape, help="use hyperparameters only")
            return None
        size = self._elements(sizes, node.shape)
        if size is None:
            return None
        if node.kind == "param" and node.type and "frozen" not in node.modifiers:
            help = "declare it as `frozen`, or as a `buffer`"
            self.fault("wrong-kind", f"a parameter of type {node.type} cannot be trained", node.address, help=help)
        weight = Weight(
            node.kind,
            Type(sizes, node.type or "real"),
            sizes,
            size,
            "frozen" in node.modifiers,
            "unused" in node.modifiers,
            self._initial(node.initial, len(sizes)) if node.initial is not None else None,
            self.unit.span(node.address),
        )
        if node.value is not None:
            weight.value = constant_body(self.program, self, node, weight.type)
        return weight

    def _elements(self, sizes: tuple[Any, ...], node: tree.Listing) -> int | None:
        """The number of elements of a tensor; None if its sizes are wrong, which has been reported."""
        size = 1
        for value, item in zip(sizes, node.items, strict=True):
            if value.__class__ is not int or value < 1:
                self._wrong_size(value, item)
                return None
            size *= value
        if size > LARGEST:
            self.fault("budget", "the number of elements of this tensor does not fit in 64 bits", node)
            return None
        return size

    def _wrong_size(self, value: Any, node: tree.Expr) -> None:
        help = None
        if value.__class__ is float:
            help = "use `//` for integer division"
        elif value.__class__ is int:
            help = "use `if` to leave out a tensor"
        message = f"expected a positive integer size, found {describe(value)}"
        self.program.error("wrong-kind", message, self.unit.span(node), help=help)

    def _initial(self, node: tree.Initial, axes: int) -> Initial | None:
        return initial_of(self, node, axes)

    def _check_roles(self) -> None:
        """A role for an address must be about something that is owned, or that the hyperparameters leave out."""
        if not self._given_roles or self.unit.broken or self.module in self.program.incomplete:
            return
        around = {prefix for own in (*self.module.members, *self.module.absent) for prefix in prefixes(own)}
        for address, node in self._given_roles:
            left_out = not self.module.absent.isdisjoint(prefixes(address))
            if address not in around and not left_out and find(self.module, address) is None:
                self.fault("unknown-address", f"nothing is declared at `{address}`", node)

    def _check_nesting(self) -> None:
        """An address inside another's would belong to two owners."""
        members = self.module.members
        for address, member in members.items():
            end = address.find(".")
            while end >= 0:
                outer = members.get(address[:end])
                if outer is not None:
                    self.program.error(
                        "duplicate-address",
                        f"address `{address}` is inside `{address[:end]}`, which is already declared",
                        member.span,
                        notes=(Note("declared here", outer.span),),
                    )
                    break
                end = address.find(".", end + 1)


def _length(entry: Owning) -> int:
    return entry.node.end - entry.node.start
