"""The values of the expressions in a model's definitions in every use, for the translation of definitions to PyTorch.

A compiled body describes one instance; the resolved form describes a definition. A trace adds the conditions that a
model decides, and the types of values.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import cast

from archspec.compiler.elaborate.models import compile_model
from archspec.compiler.evaluate.numbers import (
    DerivedArithmetic,
    as_sizes,
    decisive_sizes,
    is_size,
    sizes_in,
    strip_origin,
)
from archspec.compiler.evaluate.program import CompileTarget, InputArgument, Program
from archspec.compiler.evaluate.values import (
    COMPARISONS,
    DYNAMIC,
    POISON,
    ModuleReference,
    MultipleOutputs,
    Tensor,
    Value,
    value_key,
)
from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.definition import resolve_definition, uses_hyperparameter
from archspec.compiler.resolve.unit import Definition, Unit, is_numeric
from archspec.core.diagnostics import Report
from archspec.core.record import Record
from archspec.ir.module import Body, Module, ModuleTensor, Type, find_member, iter_tensors
from archspec.ir.ops import Op
from archspec.ir.table import PlainValue
from archspec.language.syntax import tree

AppliedNode = nodes.Apply | nodes.ModuleDeclaration
EvaluatedNode = nodes.Expr | nodes.Step


class RecordedValues:
    """The values of `node`: the types of tensors, and static values (None for `none`)."""

    __slots__ = ("node", "statics", "types")

    def __init__(self, node: EvaluatedNode | None) -> None:
        self.node = node  # keeps the node alive: values are stored by its identity
        self.types: dict[Type, None] = {}
        self.statics: dict[Hashable, Value] = {}

    def add(self, value: Value) -> None:
        if isinstance(value, Tensor):
            self.types[value.type] = None
        elif not isinstance(value, MultipleOutputs | ModuleReference):
            value = strip_origin(value)
            self.statics[value_key(value)] = value


class DefinitionUse(Record):
    """One instance of a definition: its hyperparameters, its module, the arguments of its inputs, and its body."""

    values: dict[str, Value]
    module: Module | None
    arguments: tuple[InputArgument, ...]
    body: Body


class Application(Record):
    """An application of one callee in the definition `caller`, with its arguments by name."""

    caller: Definition
    node: AppliedNode
    bound: nodes.BoundArguments


class Trace:
    """The values, applications and declarations of one compilation of a model, by the identity of resolved nodes.

    `copies` are those of definitions that are compiled once for each key of their hyperparameters, by key;
    `applied_copies` are the copies that are applied where the callee is a value with this key.

    `root` is the definition of the model. `seen` has the values of a node. `uses` has the instances of a definition,
    in an order in which a definition follows those that it uses. `applications` are by node and callee; `variants` are
    applications of the same callee with different hyperparameters bound in it. `definitions` maps a module to its
    definition. `declared_targets` has the modules and tensors of a declaration, each once; declarations in exclusive
    branches may have one address. `ties` has, for each tie, whether its alias had only one name before in every module.
    `explicit` are the hyperparameters of the root that the model sets, `sizes` those that are integers or
    lists of integers: numbers record how they are computed from these sizes (see `DerivedArithmetic`).
    """

    def __init__(self, root: Definition, explicit: frozenset[str], sizes: frozenset[str]) -> None:
        self.root = root
        self.explicit = explicit
        self.sizes = sizes
        self.seen: dict[int, RecordedValues] = {}
        self.uses: dict[Definition, list[DefinitionUse]] = {}
        self.applications: dict[int, dict[Definition | Op, Application]] = {}
        self.variants: dict[int, dict[tuple[Definition | Op, frozenset[str]], Application]] = {}
        self.definitions: dict[Module, Definition] = {}
        self.copies: dict[Definition, dict[Hashable, Definition]] = {}
        self.applied_copies: dict[Hashable, dict[Definition, None]] = {}
        self.declared_targets: dict[int, dict[int, Module | ModuleTensor]] = {}
        self.ties: dict[int, bool] = {}
        self.numbers = DerivedArithmetic()
        self._last: dict[int, Value] = {}
        self._decided: dict[int, set[str]] = {}

    # Events of the compilation

    def on_value(self, node: EvaluatedNode, value: Value) -> None:
        """Record a value of an expression or step."""
        if value is not POISON and value is not DYNAMIC:
            key = id(node)
            seen = self.seen.get(key)
            if seen is None:
                seen = self.seen[key] = RecordedValues(node)
            seen.add(value)
            self._last[key] = value
            if value.__class__ is bool:
                self._decided.setdefault(key, set()).update(self._sizes_deciding(node))

    def _sizes_deciding(self, node: EvaluatedNode) -> frozenset[str]:
        """Return the sizes that decide a comparison, or the choice among booleans."""
        last = self._last
        match node:
            case nodes.Binary() if id(node.left) not in last:
                return frozenset()  # a test whether a tensor is declared, which does not read the tensor
            case nodes.Binary(operator=operator) if operator in COMPARISONS:
                return decisive_sizes(operator, last[id(node.left)], last[id(node.right)])
            case nodes.Binary(operator="in" | "not in"):
                return sizes_in((last[id(node.left)], last[id(node.right)]))
            case nodes.Apply(arguments=arguments) if arguments.forward is None:
                return sizes_in(tuple([last.get(id(argument.value)) for argument in arguments.every()]))
            case nodes.Apply():
                return self.sizes
            case nodes.Subscript():
                return sizes_in(last[id(node.position)])
            case _:
                return frozenset()

    def on_applied(
        self, caller: Definition | None, node: AppliedNode, callee: Definition | Op, bound: nodes.BoundArguments
    ) -> None:
        """Record an application."""
        if caller is not None:
            application = Application(caller, node, bound)
            value = self._last.get(id(node.callee))
            if isinstance(callee, Definition) and self.is_copy(callee) and not isinstance(node.callee, nodes.Global):
                self.applied_copies.setdefault(value_key(strip_origin(value)), {})[callee] = None
            first = self.applications.setdefault(id(node), {}).setdefault(callee, application)
            if prebound_hyperparameters(first.bound) != prebound_hyperparameters(bound):
                self.variants.setdefault(id(node), {})[callee, prebound_hyperparameters(bound)] = application

    def on_declared(
        self, node: nodes.ModuleDeclaration | nodes.TensorDeclaration, target: Module | ModuleTensor
    ) -> None:
        """Record the module or tensor of a declaration."""
        self.declared_targets.setdefault(id(node), {})[id(target)] = target

    def on_body(self, target: CompileTarget, inputs: tuple[InputArgument, ...], body: Body) -> None:
        """Record a use of a definition."""
        self.uses.setdefault(target.definition, []).append(DefinitionUse(target.values, target.module, inputs, body))

    def on_module(self, module: Module, ties: list[tuple[str, str, nodes.Tie]]) -> None:
        """Record the ties of a module (alias, counted, node), in program order."""
        shared: set[str] = set()  # names of tensors with several names
        for address, member in module.members.items():
            for names in member.target.aliases.items() if isinstance(member.target, Module) else ():
                shared.update(f"{address}.{name}" for name in names)
        for merged in module.merged.values():
            shared.update(name for names in merged.aliases.items() for name in names)
        for alias, counted, node in ties:
            aliased = find_member(module, alias)
            suffixes = [f".{name}" for name, _ in iter_tensors(aliased)] if isinstance(aliased, Module) else [""]
            is_unshared = not any(alias + name in shared for name in suffixes)
            self.ties[id(node)] = self.ties.get(id(node), True) and is_unshared
            shared.update(address + name for address in (alias, counted) for name in suffixes)

    # Queries

    def decisive_sizes(self) -> set[str]:
        """Return the sizes of the model whose change would make the generated code wrong.

        A comparison with the same result in all uses depends on such a size: the code has only one side of it. The
        conditions of `require` remain in the code.
        """
        functions = {callee for callees in self.applications.values() for callee in callees if is_numeric(callee)}
        definitions = (*self.uses, *self.definitions.values(), *functions)
        bodies = [resolve_definition(definition, Report()).body for definition in definitions]
        required = {
            id(expr)
            for statement in walk.iter_statements(tuple(s for body in bodies for s in body))
            if isinstance(statement, nodes.Require)
            for expr in walk.iter_expressions(statement.condition)
        }
        generic = {  # the code of a function of numbers has both branches
            id(expr)
            for function in functions
            for statement in walk.iter_statements(resolve_definition(function, Report()).body)
            for root in walk.statement_expressions(statement)
            for expr in walk.iter_expressions(root)
        }
        fixed = (
            sizes
            for key, sizes in self._decided.items()
            if key not in required | generic and len(self.seen[key].statics) == 1
        )
        return self.numbers.decisive.union(*fixed)

    def static_values(self, node: nodes.Expr) -> Mapping[Hashable, Value]:
        """Return the static values of an expression."""
        seen = self.seen.get(id(node))
        return seen.statics if seen is not None else {}

    def targets(self, node: nodes.ModuleDeclaration | nodes.TensorDeclaration) -> list[Module | ModuleTensor]:
        """Return the modules and tensors of a declaration in all uses; none in a branch that no use takes."""
        return list(self.declared_targets.get(id(node), {}).values())

    def truth(self, node: nodes.Expr) -> bool | None:
        """Return the value of a condition if it is equal in all uses, otherwise None."""
        if isinstance(node, nodes.Literal):
            return node.value if isinstance(node.value, bool) else None
        values = list(self.static_values(node).values())
        return values[0] if len(values) == 1 and isinstance(values[0], bool) else None

    def callees(self, node: AppliedNode) -> list[Definition | Op]:
        """Return the callees of an application or declaration in all uses."""
        return [callee for callee in self.applications.get(id(node), {}) if callee not in self.copies]

    def is_copy(self, definition: Definition) -> bool:
        """Whether a definition is a copy for some of the uses of another definition."""
        return any(definition in copies.values() for copies in self.copies.values())

    def bound_arguments(self, node: AppliedNode, callee: Definition | Op) -> nodes.BoundArguments:
        """Return the arguments of an application by the names of a callee."""
        return self.applications[id(node)][callee].bound

    def argument_variants(self, node: AppliedNode, callee: Definition | Op) -> list[nodes.BoundArguments]:
        """Return the arguments of an application of a callee, for any hyperparameters that are bound in it."""
        variants = [
            site.bound
            for (variant_callee, _), site in self.variants.get(id(node), {}).items()
            if variant_callee is callee
        ]
        return [self.bound_arguments(node, callee), *variants]

    def sites(self, callee: Definition) -> list[Application]:
        """Return all applications of a definition."""
        applications = [by_callee[callee] for by_callee in self.applications.values() if callee in by_callee]
        variants = [variant for by_callee in self.variants.values() for variant in by_callee.items()]
        return [*applications, *[site for (variant_callee, _), site in variants if variant_callee is callee]]


def prebound_hyperparameters(bound: nodes.BoundArguments) -> frozenset[str]:
    """Return the hyperparameters that are already bound in the callee of an application."""
    return frozenset(
        [n for n, argument in bound.hyperparameters.items() if isinstance(argument.value, nodes.BoundHyperparameter)]
    )


def trace_model(
    unit: Unit,
    model: tree.Model,
    overrides: Mapping[str, PlainValue],
    values: dict[str, Value],
    specialized: Iterable[Definition] = (),
) -> Trace:
    """Compile a model that compiled with `values` again, and record the values of its expressions.

    Definitions that are `specialized` are compiled once for each key of their hyperparameters.
    """
    binding = unit.names[model.callee.text]
    assert isinstance(binding.target, Definition)
    items = model.arguments.items if model.arguments is not None else ()
    explicit = (item.name or name for item, name in zip(items, binding.target.hyperparameters, strict=False))
    used = {
        name: value
        for name, value in values.items()
        if is_size(value) and uses_hyperparameter(binding.target, name, Report())
    }
    sizes = {name: cast("PlainValue", as_sizes(name, value)) for name, value in used.items()}
    trace = Trace(binding.target, frozenset((*explicit, *overrides)), frozenset(sizes))
    program = Program(trace.numbers, trace)
    program.copies = trace.copies = {definition: {} for definition in specialized}
    program.begin(Report(), unit.source)
    compiled = compile_model(program, unit, model, {**overrides, **sizes})
    assert compiled is not None
    trace.definitions = program.definitions
    return trace
