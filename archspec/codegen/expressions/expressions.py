"""Expressions over tensors, and definitions applied to them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from archspec.codegen.expressions.chains import Chains
from archspec.codegen.expressions.rearranging import rearranged
from archspec.codegen.expressions.static_code import StaticCode
from archspec.codegen.expressions.tensor_code import TensorCode
from archspec.codegen.expressions.tensor_types import TensorTypes
from archspec.codegen.python.trees import apply, bind, literal, method, name, py, sequence
from archspec.codegen.scope.context import EmittedDefinition
from archspec.codegen.scope.operations import add_device
from archspec.codegen.scope.scope import Scope, SourceNode
from archspec.codegen.scope.values import (
    ABSENT_VALUE,
    ANY,
    BOOL,
    FREE,
    INT,
    KIND,
    REAL,
    STATIC,
    CodeValue,
    MultipleOutputs,
)
from archspec.compiler.elaborate.trace import AppliedNode, prebound_hyperparameters
from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.unit import Definition
from archspec.ir.module import Module, ModuleTensor
from archspec.ir.ops import OPERATORS, Op

_DTYPES = {INT: "torch.int64", BOOL: "torch.bool"}


class Results(NamedTuple):
    """A definition applied: the code, and what comes out."""

    code: ast.expr
    kinds: tuple[str | None, ...]
    ranks: tuple[int | None, ...]


class Expressions:
    """Translates expressions. `elements` is what an iteration of a loop calls the layer that it applies; `begun`
    are the names of tensors that were numbers before a loop.
    """

    def __init__(self, scope: Scope, types: TensorTypes, fuses: bool = True) -> None:
        self.scope = scope
        self.types = types
        self.static = StaticCode(scope)
        self.tensors = TensorCode(scope, types, fuses)
        self.elements: dict[int, ast.Name] = {}
        self.begun: set[str] = set()
        self.chains = Chains(self)

    @property
    def _clock(self) -> int:
        return self.scope.statements.clock

    def one(self, expr: nodes.Expr) -> CodeValue:
        """The value of an expression that has one."""
        return self.single(self.expr(expr), expr)

    def single(self, value: CodeValue | MultipleOutputs, node: SourceNode) -> CodeValue:
        if isinstance(value, MultipleOutputs):
            self.scope.refuse("several outputs are used as one", node)
        return value

    def expr(self, expr: nodes.Expr) -> CodeValue | MultipleOutputs:
        value = self._expr(expr)
        if isinstance(value, CodeValue) and value.is_tensor and None in self.scope.seen(expr).statics:
            return value._replace(optional=True)
        return value

    def _expr(self, expr: nodes.Expr) -> CodeValue | MultipleOutputs:
        scope = self.scope
        if isinstance(expr, nodes.PipedValue):
            return scope.env["_"]
        if scope.absent(expr):
            return ABSENT_VALUE
        if isinstance(expr, nodes.Global) and isinstance(expr.target, Op) and expr.target.alone:
            return CodeValue(name(expr.name), STATIC, op=expr.target.name)
        if scope.is_static(expr) and not self._reads_begun(expr):
            return self._number(expr)
        match expr:
            case nodes.Local():
                return self._local(expr)
            case nodes.Unary():
                word = "neg" if expr.operator == "-" else "not"
                return self.tensors.operate(word, [self.one(expr.operand)], {}, expr)
            case nodes.Binary():
                values = [self.one(expr.left), self.one(expr.right)]
                return self.tensors.operate(OPERATORS[expr.operator], values, {}, expr)
            case nodes.Conditional():
                return self._conditional(expr)
            case nodes.AddressReference():
                return self._tensor(expr)
            case nodes.Apply() | nodes.Rearrange() | nodes.Einsum() | nodes.ModuleDeclaration():
                return self.applied(expr)
            case nodes.Chain():
                return self.chains.chain(expr)
            case _:
                scope.refuse("this has no form in PyTorch", expr)

    def _reads_begun(self, expr: nodes.Expr) -> bool:
        """Whether an expression that is a number in some iterations reads a tensor that a number began."""
        return bool(self.begun) and not self.begun.isdisjoint(walk.local_names(expr))

    def _number(self, expr: nodes.Expr) -> CodeValue:
        known = self.scope.env.get(expr.name) if isinstance(expr, nodes.Local) else None
        number = self.static.number(expr)
        if isinstance(known, CodeValue) and known.name is not None and not known.is_tensor:
            return known._replace(counts=number.counts)  # of all iterations of a loop
        return number

    def _local(self, expr: nodes.Local) -> CodeValue | MultipleOutputs:
        """Return the value of a name that is a tensor in some use; it may have been bound to `none` earlier."""
        scope = self.scope
        value = scope.env[expr.name]
        if isinstance(value, MultipleOutputs) or value.is_tensor:
            return value
        dtypes = {t.dtype for t in scope.seen(expr).types}
        if len(dtypes) != 1 or set(scope.seen(expr).statics) - {None}:
            scope.refuse("this is a tensor in one case and a number in another", expr)
        variable = scope.statements.variable(expr.name)
        return CodeValue(name(variable), KIND[dtypes.pop()], scope.rank(expr), name=variable, made=self._clock)

    def _conditional(self, expr: nodes.Conditional) -> CodeValue | MultipleOutputs:
        statements = self.scope.statements
        chosen = self.scope.truth(expr.condition)
        if chosen is not None:
            value = expr.value if chosen else expr.otherwise
            return self.expr(value) if value is not None else ABSENT_VALUE
        test = self.static.code(expr.condition)
        then, first = statements.capture_statements(lambda: self.one(expr.value))
        otherwise, second = statements.capture_statements(
            lambda: self.one(expr.otherwise) if expr.otherwise is not None else ABSENT_VALUE
        )
        first, second = self.unify_values(first, second, expr)
        known = first if first.is_tensor else second
        if not then and not otherwise:
            code = ast.IfExp(test, first.code, second.code)
            return CodeValue(code, known.kind, known.rank, "option", (first, second), made=self._clock, test=test)
        target = self.scope.fresh("chosen", "part")
        statements.note(target)
        statements.body.append(ast.If(test, [*then, bind(target, first.code)], [*otherwise, bind(target, second.code)]))
        return CodeValue(name(target), known.kind, known.rank, made=self._clock)

    def unify_values(self, first: CodeValue, second: CodeValue, node: SourceNode) -> tuple[CodeValue, CodeValue]:
        """Convert the two values of a conditional to a common kind."""
        for a, b in ((first, second), (second, first)):
            if a.is_tensor and b.is_number:
                self.scope.refuse("this is a tensor in one case and a number in another", node)
        if {first.kind, second.kind} == {REAL, FREE}:
            return self.tensors.in_model_type(first), self.tensors.in_model_type(second)
        return first, second

    # What is declared

    def reach(self, address: nodes.Address) -> tuple[ast.expr, list[Module | ModuleTensor]]:
        """The code of something declared, however deep, and what it is: in other uses something else, perhaps."""
        scope = self.scope
        parts, numbers = self.static.parts(address), [*map(self._numbers, address.segments)]
        around, code = scope.context.all_places(scope.definition), None
        while True:
            for end, places in ((end, places) for end in range(1, len(parts) + 1) for places in around):
                targets = places.found(parts[:end], numbers)
                if targets:
                    place = places.place(parts[:end], code)
                    code, parts, numbers = place.code, parts[end:], numbers[end:]
                    break
            else:
                scope.refuse("nothing is declared at this address in some uses", address)
            if not parts:
                return code, targets
            definitions = {scope.trace.definitions[t] for t in targets if isinstance(t, Module)}
            if len(definitions) != 1:
                scope.refuse("what is declared on the way to this address is not the same in every use", address)
            around = scope.context.all_places(definitions.pop())

    def _numbers(self, segment: str | nodes.Expr | nodes.WordWithIndex) -> set[str]:
        """The numbers that an index in an address has in the uses; none for a word."""
        if isinstance(segment, str | nodes.WordWithIndex):
            return set()
        return {str(value) for value in self.static.statics(segment)}

    def _owned(self, node: nodes.ModuleDeclaration) -> tuple[ast.expr, list[Module | ModuleTensor]]:
        """The code of what a declaration makes, and what it is; what is merged is the base class."""
        if node.merges:
            return py("super().forward"), self.scope.trace.targets(node)
        return self.reach(node.address)

    def _tensor(self, expr: nodes.AddressReference) -> CodeValue:
        code, targets = self.reach(expr.address)
        if None in self.scope.seen(expr).statics and not isinstance(code, ast.Attribute):
            self.scope.refuse("this tensor is not there in every use", expr)
        types = {t.type.dtype for t in targets if isinstance(t, ModuleTensor)}
        if len(types) != 1:
            self.scope.refuse("this tensor is not of one type in every use", expr)
        return CodeValue(code, KIND[types.pop()], self.scope.rank(expr), op="weight", made=self._clock)

    # Applying

    def applied(self, node: nodes.Expr) -> CodeValue | MultipleOutputs:
        """An application, of what is declared or of a function or operation."""
        if isinstance(node, nodes.Rearrange):
            return self._rearranged(node)
        if isinstance(node, nodes.Einsum):
            return self.tensors.sum_products(node, [self.one(value) for value in node.values])
        assert isinstance(node, nodes.Apply | nodes.ModuleDeclaration)
        callees = self.scope.trace.callees(node)
        if not callees:
            self.scope.refuse("what is applied here is not known", node)
        definitions = [c for c in callees if isinstance(c, Definition)]
        if isinstance(node, nodes.ModuleDeclaration):
            code, targets = self._owned(node)
            declared = {self.scope.trace.definitions[t] for t in targets if isinstance(t, Module)}
            applied = [d for d in definitions if d in declared and d in self.scope.trace.uses]
            return self._definitions(self.elements.get(id(node), code), applied, node)
        if isinstance(node.callee, nodes.AddressReference):
            return self._definitions(self.reach(node.callee.address)[0], definitions, node)
        local = node.callee.name if isinstance(node.callee, nodes.Local) else ""
        is_passed = local in self.scope.env and not self.scope.settled(local)
        if len(callees) == 1 and not is_passed:
            (callee,) = callees
            if isinstance(callee, Op):
                return self._operation(callee, node)
            known = prebound_hyperparameters(self.scope.trace.bound_arguments(node, callee))
            code = self.static.code(node.callee) if known else name(self.scope.context.emitted(callee).name)
            return self._definitions(code, [callee], node)
        operations = [c for c in callees if isinstance(c, Op)]
        if operations:
            return self._passed(operations[0], definitions, node)
        return self._definitions(self.static.code(node.callee), definitions, node)

    def _passed(self, op: Op, definitions: Sequence[Definition], node: nodes.Apply) -> CodeValue:
        """A value applied that is an operation in some uses, and perhaps a definition in others."""
        code = self.static.code(node.callee)
        value = self._inputs(self.scope.trace.bound_arguments(node, op), {})[0]
        assert value is not None
        calls = [self._results(code, d, [value], node) for d in definitions]
        kind = REAL if value.kind == REAL else FREE
        if value.kind == INT:
            value = value._replace(code=py("x.to(dtype)", x=value.code, dtype=self.types.free_type()))
        called = apply(code, [value.code])
        if any(ast.dump(c.code) != ast.dump(called) or c.kinds != (kind,) for c in calls):
            self.scope.refuse("what is applied here is called in another way in other uses", node)
        return CodeValue(called, kind, self.scope.rank(node), made=self._clock)

    def _operation(self, op: Op, node: nodes.Apply) -> CodeValue | MultipleOutputs:
        bound = self.scope.trace.bound_arguments(node, op)
        settings = {word: self.static.code(item.value) for word, item in bound.hyperparameters.items()}
        values = self._inputs(bound, {})
        if op.scalar is not None and values and all(v is not None and not v.is_tensor for v in values):
            return self.static.number(node)
        return self.tensors.operate(op.name, values, settings, node)

    def _rearranged(self, node: nodes.Rearrange) -> CodeValue:
        value = self.one(node.value)
        sizes = {item.name: self.static.code(item.value) for item in node.sizes}
        try:
            code = rearranged(node, value.code, sizes, value.rank)
        except ValueError as problem:
            self.scope.refuse(str(problem), node)
        return CodeValue(code, value.kind, self.scope.rank(node), made=self._clock)

    def _inputs(self, bound: nodes.BoundArguments, known: dict[int, CodeValue]) -> list[CodeValue | None]:
        """The inputs of a use in declared order, None where absent; each argument is evaluated once."""
        values: list[CodeValue | None] = []
        for item in bound.inputs:
            if item is None:
                values.append(None)
                continue
            value = known[id(item)] if id(item) in known else self.one(item.value)
            known[id(item)] = value
            values.append(None if value.is_none else value)
        return values

    def _definitions(
        self, code: ast.expr, callees: Sequence[Definition], node: AppliedNode
    ) -> CodeValue | MultipleOutputs:
        """One of several definitions applied; the class decides where they are not all called in the same way."""
        known: dict[int, CodeValue] = {}
        results: list[Results] = []
        for callee in callees:
            values = self._inputs(self.scope.trace.bound_arguments(node, callee), known)
            results.append(self._results(code, callee, values, node))
        first = results[0]
        for other in results[1:]:
            if len(first.kinds) == len(other.kinds) == 1 and other.kinds != first.kinds:
                self.scope.refuse("the results of what is applied here have different element types", node)
            is_function = any(callee.kind == "fn" for callee in callees)
            if other.kinds != first.kinds or (is_function and ast.dump(other.code) != ast.dump(first.code)):
                self.scope.refuse("what is applied here is called in another way in other uses", node)
            same = tuple(a if a == b else None for a, b in zip(first.ranks, other.ranks, strict=True))
            first = first._replace(ranks=same)
        value = self._select_by_class(code, {c: r.code for c, r in zip(callees, results, strict=True)}, node)
        if len(first.kinds) > 1:
            return MultipleOutputs(value, first.kinds, first.ranks)
        kind = next(iter(first.kinds))
        if kind is None:
            return ABSENT_VALUE
        return CodeValue(value, kind, self.scope.rank(node), made=self._clock)

    def _select_by_class(self, code: ast.expr, calls: dict[Definition, ast.expr], node: AppliedNode) -> ast.expr:
        """The call of a module, where modules of different classes may be called in different ways."""
        classes: dict[str, list[Definition]] = {}
        for callee, call in calls.items():
            classes.setdefault(ast.dump(call), []).append(callee)
        *others, last = classes.values()
        if others and any(self.scope.context.bases(callee) for callee in calls):
            self.scope.refuse("what is applied here is called in another way in other uses", node)
        value = calls[last[0]]
        for callees in reversed(others):
            names = [name(self.scope.context.names[callee]) for callee in callees]
            test = py("isinstance(x, kinds)", x=code, kinds=names[0] if len(names) == 1 else sequence(names))
            value = ast.IfExp(test, calls[callees[0]], value)
        return value

    def _results(
        self, code: ast.expr, callee: Definition, values: Sequence[CodeValue | None], node: AppliedNode
    ) -> Results:
        """A definition applied to its inputs."""
        emitted = self.scope.context.emitted(callee)
        reals = {v.kind for v in values if v is not None and v.kind in (REAL, FREE)}
        is_free = callee.kind == "fn" and reals == {FREE}  # so is what it gives, then
        call = apply(code, *self._arguments(callee, emitted, values, is_free))
        if callee.kind == "fn":
            _, keywords = self.static.hyperparameters(callee, node)
            call.keywords += [ast.keyword(word, value) for word, value in keywords.items()]
        if "dtype" in emitted.needs:
            call.keywords.append(ast.keyword("dtype", self.types.free_type()))
        if "device" in emitted.needs:
            add_device(call, self.types.device())
        if "training" in emitted.needs:
            call.keywords.append(ast.keyword("training", self.types.training()))
        outputs = emitted.outputs
        present = [o for o in outputs if o.kind is not None]
        result = method(call, present[0].name) if emitted.record and len(present) == 1 else call
        element = _element_kind(callee, values, is_free)
        kinds = tuple(element if o.kind == ANY else FREE if is_free and o.kind == REAL else o.kind for o in outputs)
        ranks = tuple(o.rank for o in outputs)
        return Results(result, kinds, ranks)

    def _arguments(
        self, callee: Definition, emitted: EmittedDefinition, values: Sequence[CodeValue | None], is_free: bool
    ) -> tuple[list[ast.expr], dict[str, ast.expr]]:
        """The inputs of a use, by position up to the first that is left out or goes by name only.

        Reals that are free take the model's type, unless all are and the result shall be.
        """
        positional: list[ast.expr] = []
        named: dict[str, ast.expr] = {}
        by_name = False
        for value, entry, slot in zip(values, callee.inputs, emitted.inputs, strict=True):
            if slot is None:
                continue
            by_name = by_name or slot.by_name
            if value is None and slot.optional:
                by_name = True
                continue
            argument = literal(None)
            if value is not None:
                declared, kind = KIND[entry.type], slot.kind
                if declared == ANY:
                    declared = _element_kind(callee, values, is_free)
                    kind = declared if kind == ANY else kind
                argument = value.code if is_free and value.kind == FREE else self._given(value, kind, declared)
            if by_name:
                named[slot.name] = argument
            else:
                positional.append(argument)
        return positional, named

    def _given(self, value: CodeValue, kind: str, declared: str) -> ast.expr:
        """An argument in the type that an input is declared to have."""
        if value.kind == kind == STATIC:
            if declared != REAL or value.counts == REAL:
                return value.code
            if isinstance(value.code, ast.Constant) and isinstance(value.code.value, int):
                return literal(float(value.code.value))
            return py("float(x)", x=value.code)
        if not value.is_tensor:
            dtype = py(_DTYPES[kind]) if kind in _DTYPES else self.types.model_type()
            return add_device(
                apply(py("torch.full"), [sequence([]), value.code], {"dtype": dtype}), self.types.device()
            )
        return self.tensors.in_model_type(value).code if kind == REAL else value.code


def _element_kind(callee: Definition, values: Sequence[CodeValue | None], is_free: bool) -> str:
    """Return the kind of the values passed to the inputs of a function that are declared `any`."""
    passed = [v for v, entry in zip(values, callee.inputs, strict=True) if v is not None and entry.type == "any"]
    tensors = [v.kind for v in passed if v.is_tensor]
    kind = tensors[0] if tensors else passed[0].counts if passed else REAL
    return REAL if kind == FREE and not is_free else kind
