"""Application of operators, operations, functions, layers and blocks to tensors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeGuard, cast

from archspec.compiler.elaborate.loop_index import operation_types
from archspec.compiler.elaborate.shapes import DimensionBindings
from archspec.compiler.evaluate.body_builder import BodyBuilder, constant_of, operand_of, type_of
from archspec.compiler.evaluate.hyperparameters import Evaluator, hyperparameter_values
from archspec.compiler.evaluate.partials import split_partial
from archspec.compiler.evaluate.program import CompileTarget, Frame, InputArgument, Program
from archspec.compiler.evaluate.values import (
    POISON,
    ModuleReference,
    MultipleOutputs,
    Partial,
    StaticError,
    Tensor,
    Value,
    describe,
    is_list,
    is_number,
    static_values,
    type_description,
)
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.built_ins import span_in_literal
from archspec.compiler.resolve.nodes import BoundArguments
from archspec.compiler.resolve.unit import Definition, is_numeric, operation_inputs
from archspec.core.algebra import Dim, Polynomial, product
from archspec.core.diagnostics import Note, Span, suggest
from archspec.core.record import Record
from archspec.ir.module import Body, Module, Operand, find_member
from archspec.ir.ops import OPERATORS, OPS, REQUIRED, Op, OpError
from archspec.ir.ops.check import check_size, format_type
from archspec.ir.ops.rearrange import ELLIPSIS, Groups, PatternAxis, pattern_steps
from archspec.language.syntax import tree
from archspec.language.syntax.tree import Located

MAX_NEIGHBOURS = 2000
"""The limit on the addresses that a misspelt one is compared with."""

BodyCompiler = Callable[[Program, CompileTarget, tuple[InputArgument, ...], Frame], Body | None]
"""Compile the body of a target for input types."""


class LastApplication(Record):
    """The last application of a definition in a body; `keys` are those of its inputs."""

    target: CompileTarget
    keys: list[Hashable]
    body: Body


class ApplicationInterpreter(Evaluator):
    """Interprets expressions as a body: tensors become slots, and applications become calls."""

    definition: Definition

    def __init__(self, program: Program, target: CompileTarget, body_of: BodyCompiler) -> None:
        definition = target.definition
        super().__init__(program, definition.unit, definition, dict(target.values))
        self.target = target
        self.module = target.module
        self.builder = BodyBuilder(definition.kind, definition.name, target.module, self.limits)
        self.header = DimensionBindings(self, definition)
        self._body_of = body_of
        self._last: LastApplication | None = None

    # Names

    def dimension(self, expr: nodes.Dimension) -> Value:
        if expr.key in self.env:
            return self.env[expr.key]
        return self.fault(
            "unbound-dimension",
            f"dimension `{expr.name}` has no size here",
            expr.at,
            help="use it in the shape of an input that is always given",
        )

    def leading(self, expr: nodes.LeadingDimensions) -> Value:
        return self.fault("wrong-kind", "`...` is only allowed in shapes", expr.at)

    def listing(self, expr: nodes.ListLiteral) -> Value:
        values: list[Value] = []
        for item in expr.items:
            if isinstance(item, nodes.LeadingDimensions):
                if self.header.leading is None:
                    return self.fault("unbound-dimension", "`...` is not bound by any input here", item.at)
                values += self.header.leading
                continue
            value = self.value(item)
            if isinstance(value, Tensor | MultipleOutputs | ModuleReference):
                message = f"expected numbers or names in this list, found {describe(value)}"
                return self.fault("wrong-kind", message, item.at)
            values.append(value)
        return POISON if POISON in values else self.bounded_list(tuple(values), expr)

    # Addresses

    def read(self, expr: nodes.AddressReference) -> Value:
        """Read a stored tensor."""
        value = self.declared(expr)
        if isinstance(value, ModuleReference):
            message = f"expected a value, found the {value.module.kind} `.{value.address}`"
            help = f"apply it, as in `.{value.address}(x)`"
            return self.fault("wrong-kind", message, expr.at, help=help)
        return value

    def declared(self, expr: nodes.AddressReference) -> Value:
        """Return the declaration at an address: a tensor to read, or a layer or block to apply."""
        address = self.address_text(expr.address)
        if address is None or self.module is None:
            return POISON
        found = find_member(self.module, address)
        if found is None:
            self.program.numbers.on_missing(self.module, address)
            if address in self.module.absent or "" in self.module.absent:
                return None
            if self.unit.broken & set(address.split(".")) or self.program.is_incomplete(self.module, address):
                return POISON
            if f".{address}" in self.definition.unknown:
                return POISON
            self.definition.unknown.add(f".{address}")
            near = suggest(address, list(self.module.members)[:MAX_NEIGHBOURS])
            return self.fault("unknown-address", f"nothing is declared at `.{address}`", expr.at, help=near)
        return ModuleReference(address, found) if isinstance(found, Module) else self.builder.read(address, found)

    # Operations

    def binary(self, expr: nodes.Binary) -> Value:
        if expr.operator in ("==", "!="):
            for read, other in ((expr.left, expr.right), (expr.right, expr.left)):
                if (
                    isinstance(read, nodes.AddressReference)
                    and isinstance(other, nodes.Literal)
                    and other.value is None
                ):
                    found = self.declared(read)
                    return POISON if found is POISON else (found is None) == (expr.operator == "==")
        return super().binary(expr)

    def operate(self, name: str, values: Sequence[Value], node: Located, operand_nodes: Sequence[Located]) -> Value:
        op = OPS[OPERATORS.get(name, name)]
        for value, operand_node in zip(values, operand_nodes, strict=True):
            if value is None:
                return self.fault("wrong-kind", f"`{name}` expects a tensor, found `none`", operand_node)
            if not isinstance(value, Tensor | int | float | Polynomial) and not is_bare_operation(value):
                help = "write `table([...])` for a tensor of the numbers in a list" if is_list(value) else None
                return self.fault(
                    "wrong-kind", f"`{name}` expects a tensor, found {describe(value)}", operand_node, help=help
                )
        names = [i.name for i in op.inputs]
        node_by_input = dict(zip(names, operand_nodes, strict=True))
        return self.apply_op(op, tuple(zip(names, values, strict=True)), {}, node, node_by_input.get)

    def apply_op(
        self,
        op: Op,
        inputs: tuple[tuple[str, Value], ...],
        attributes: dict[str, Value],
        at: Located,
        place: Callable[[str], Located | None],
    ) -> Value:
        """Apply an operation to tensors, numbers or `none`; `place` returns the node of an explicit argument."""
        if any(is_bare_operation(value) for _, value in inputs):
            inputs = tuple([(name, self._applied_alone(op, value, inputs, at, place)) for name, value in inputs])
            if any(value is POISON for _, value in inputs):
                return POISON
        try:
            types = [type_of(value) for _, value in inputs]
            outputs = operation_types(self.program, op, types, attributes, self.unit.span(at))
        except OpError as problem:
            where = place(problem.argument or "") or at
            made = self._made(inputs) if isinstance(at, tree.Step) else None
            if made is not None:
                note = Note(f"`{op.symbol or op.name}` is applied here", self.unit.span(at))
                self.program.error("dimension", problem.message, made, notes=(note,), help=problem.help)
                return POISON
            return self.fault("dimension", problem.message, where, help=problem.help)
        operands = tuple([(name, operand_of(value)) for name, value in inputs])
        return self.builder.emit("op", op.name, "", None, operands, attributes, outputs, self.unit.span(at))

    def _applied_alone(
        self,
        op: Op,
        operand: Value,
        inputs: tuple[tuple[str, Value], ...],
        at: Located,
        place: Callable[[str], Located | None],
    ) -> Value:
        """Return an operand, applied to a real tensor among the inputs if it is an operation that stands alone."""
        if not is_bare_operation(operand):
            return operand
        for _, value in inputs:
            if isinstance(value, Tensor) and value.type.dtype == "real":
                return self.apply_op(operand, ((operand.inputs[0].name, value),), {}, at, lambda _: None)
        where = next(place(name) for name, value in inputs if value is operand)
        word = operand.name
        message = f"no real tensor among the operands of `{op.symbol or op.name}` determines the type of `{word}`"
        return self.fault("wrong-kind", message, where or at, help=f"write `{word}(x)`, with a tensor of that type")

    def _made(self, inputs: tuple[tuple[str, Value], ...]) -> Span | None:
        """Return the location that made the size that two tensors differ in, if only one of them is computed."""
        tensors = [value for _, value in inputs if isinstance(value, Tensor)]
        if len(tensors) != 2:
            return None
        sizes = zip(*[reversed(tensor.type.shape) for tensor in tensors], strict=False)
        differing = [axis for axis, (a, b) in enumerate(sizes, 1) if a != b and 1 not in (a, b)]
        if not differing:
            return None
        makers = [self.builder.size_origin(t.slot, len(t.type.shape) - differing[0]) for t in tensors]
        return makers[0] if makers[1] is None else None

    # Applications

    def apply(self, expr: nodes.Apply) -> Value:
        more = self.bind_more(expr) if expr.arguments.undecided else None
        if more is not None:
            return more
        value = (
            self.declared(expr.callee) if isinstance(expr.callee, nodes.AddressReference) else self.value(expr.callee)
        )
        callee, partial = split_partial(value)
        if isinstance(callee, ModuleReference):
            return self._apply_module(callee.address, callee.module, expr)
        if isinstance(callee, Op):
            return self._apply_op(callee, expr)
        if is_numeric(callee):
            return self.call(callee, expr)
        if isinstance(callee, Definition) and callee.kind == "fn":
            return self._apply_function(callee, partial, expr)
        if callee is POISON:
            return POISON
        if isinstance(callee, Definition):
            help = f"declare it at an address: `name: {callee.name}(...)`"
            message = f"`{callee.name}` is a {callee.kind} and needs an address"
            return self.fault("wrong-kind", message, expr.callee.at, help=help)
        word = expr.callee.name if isinstance(expr.callee, nodes.Local) else ""
        help = f"rename `{word}`, which hides the operation `{word}`" if word in OPS else None
        return self.fault("wrong-kind", f"cannot apply {describe(callee)}", expr.callee.at, help=help)

    def own(self, expr: nodes.ModuleDeclaration) -> Value:
        if self.builder.body.kind == "loop":
            return POISON  # the first pass has refused what is declared in a loop over a dimension
        if expr.merges:
            module = self.module.merged.get(self.unit.span(expr.address.at)) if self.module is not None else None
            return POISON if module is None else self._apply_owned("", module, expr)
        address = self.address_text(expr.address)
        member = self.module.members.get(address) if address is not None and self.module is not None else None
        if address is None or member is None or not isinstance(member.target, Module):
            return POISON  # reported by the first pass
        if member.span != self.unit.span(expr.address.at):
            return POISON  # the address is declared twice, which was reported
        return self._apply_owned(address, member.target, expr)

    def _apply_owned(self, address: str, module: Module, expr: nodes.ModuleDeclaration) -> Value:
        definition = self.program.definitions.get(module)
        if definition is None:
            return POISON
        if expr.arguments.inputs is None and definition.takes.names:
            help = "pass its inputs in a second list: `address: Layer(hyper)(x)`"
            return self.fault("wrong-kind", "this declares without applying, so it has no value", expr.at, help=help)
        return self._apply_module(address, module, expr)

    def _apply_module(self, address: str, module: Module, expr: nodes.Apply | nodes.ModuleDeclaration) -> Value:
        if self.builder.body.kind == "loop":
            message = f"the {module.kind} `{module.type}` cannot be applied in a loop over a dimension"
            help = "apply it to the whole sequence outside the loop; in the loop, use functions and stored tensors"
            return self.fault("ownership", message, expr.at, help=help)
        definition = self.program.definitions.get(module)
        is_named = expr.arguments.bound is not None or isinstance(expr, nodes.Apply)
        _, partial = (None, None) if is_named else split_partial(self.value(expr.callee))
        bound = self.bind_arguments(expr, definition, partial) if definition is not None else None
        if definition is None or bound is None:
            return POISON
        return self._apply_definition(CompileTarget(definition, static_values(module), module), address, bound, expr.at)

    def _apply_function(self, callee: Definition, partial: Partial | None, expr: nodes.Apply) -> Value:
        bound = self.bind_arguments(expr, callee, partial)
        if bound is None:
            return POISON
        values = hyperparameter_values(self, callee, bound.hyperparameters, expr.arguments.forward, expr.at)
        if values is None:
            return POISON
        return self._apply_definition(CompileTarget(callee, values, None), "", bound, expr.at)

    def _apply_definition(self, target: CompileTarget, address: str, bound: BoundArguments, at: Located) -> Value:
        definition = target.definition
        values = self._inputs(definition.name, definition.takes.optional, bound)
        if values is None:
            return POISON
        given: list[InputArgument] = []
        operands: list[tuple[str, Operand]] = []
        for name, value in zip(bound.names, values, strict=True):
            if isinstance(value, Tensor):
                given.append(value.type)
                operands.append((name, value.slot))
            else:
                constant = None if value is None else constant_of(value)
                given.append(constant)
                operands.append((name, constant))
        keys = list(map(self.program.numbers.key, given))
        last = self._last  # usually the same target as in the previous application
        if last is not None and target.module is not None and last.target.module is target.module and last.keys == keys:
            body = last.body
        else:
            body = self._body_of(self.program, target, tuple(given), Frame(definition, self.unit, at, bound))
            if body is None:
                return POISON
            self._last = LastApplication(target, keys, body)
        kind, name, span = definition.kind, definition.name, self.unit.span(at)
        if target.module is not None and not address:
            return self.builder.splice(body, [operand for _, operand in operands if isinstance(operand, int)], span)
        return self.builder.emit(kind, name, address, body, tuple(operands), {}, body.results, span)

    def _apply_op(self, op: Op, expr: nodes.Apply) -> Value:
        bound = self.bind_arguments(expr, op)
        if bound is None:
            return POISON
        attributes: dict[str, Value] = {}
        failed = False
        for attribute in op.attributes:
            argument = bound.hyperparameters.get(attribute.name)
            if argument is None:
                if attribute.default is REQUIRED:
                    message = f"missing hyperparameter `{attribute.name}` in call to `{op.name}`"
                    names = ", ".join(f"`{a.name}`" for a in op.attributes)
                    self.fault("missing-argument", message, expr.at, help=f"expected hyperparameters: {names}")
                    failed = True
                attributes[attribute.name] = attribute.default
                continue
            value = self.value(argument.value)
            if isinstance(value, Tensor | MultipleOutputs | ModuleReference):
                message = (
                    f"hyperparameter `{attribute.name}` of `{op.name}` expects a constant, found {describe(value)}"
                )
                help = f"pass hyperparameters in the first list and tensors in the second: `{op.name}(...)(x)`"
                return self.fault("wrong-kind", message, argument.at, help=help)
            failed = failed or value is POISON
            attributes[attribute.name] = value
        values = self._inputs(op.name, operation_inputs(op).optional, bound, of_op=True)
        if values is None or failed:
            return POISON
        if op.scalar is not None and not attributes and all(map(is_number, values)):
            return self.scalar(op, values, expr.at)
        return self.apply_op(op, tuple(zip(bound.names, values, strict=True)), attributes, expr.at, bound.argument_node)

    def _inputs(
        self, callee: str, optional: frozenset[str], bound: BoundArguments, of_op: bool = False
    ) -> list[Value] | None:
        """Evaluate the inputs, among which an operation may have `lowest`; None after reporting a wrong one."""
        values: list[Value] = []
        failed = False
        for name, argument in zip(bound.names, bound.inputs, strict=True):
            if argument is None:
                values.append(None)
                continue
            value = self.value(argument.value)
            is_input = value.__class__ is Tensor or (of_op and is_bare_operation(value))
            if not is_input and not self._is_input(callee, name, value, argument.value.at, name in optional):
                failed = True
            values.append(value)
        return None if failed else values

    def _is_input(self, callee: str, name: str, value: Value, at: Located, optional: bool) -> bool:
        """Whether `value`, which is not a tensor, can be the input `name`; reports an error if not."""
        if value is POISON:
            return False
        if value is None:
            if not optional:
                self.fault("wrong-kind", f"input `{name}` of `{callee}` expects a tensor, found `none`", at)
            return optional
        if isinstance(value, int | float | Polynomial):
            return True
        if isinstance(value, MultipleOutputs):
            message = f"input `{name}` of `{callee}` expects one tensor, found {len(value.values)} outputs"
            self.fault("wrong-kind", message, at, help="assign them to names first: `a, b = ...`")
            return False
        message = f"input `{name}` of `{callee}` expects a tensor, found {describe(value)}"
        help = (
            "pass hyperparameters in the first list and tensors in the second"
            if type_description(value) != "value"
            else None
        )
        if is_bare_operation(value):
            help = f"write `{value.name}(x)`, with a tensor of the type that is meant"
        if is_list(value):
            help = "write `table([...])` for a tensor of the numbers in a list"
        self.fault("wrong-kind", message, at, help=help)
        return False


def is_bare_operation(value: Value) -> TypeGuard[Op]:
    """Whether a value is an operation that can be an operand without its input."""
    return isinstance(value, Op) and value.alone


ApplicationInterpreter.handlers = {
    **Evaluator.handlers,
    nodes.Dimension: ApplicationInterpreter.dimension,
    nodes.LeadingDimensions: ApplicationInterpreter.leading,
    nodes.ListLiteral: ApplicationInterpreter.listing,
    nodes.Binary: ApplicationInterpreter.binary,
    nodes.AddressReference: ApplicationInterpreter.read,
    nodes.Apply: ApplicationInterpreter.apply,
    nodes.ModuleDeclaration: ApplicationInterpreter.own,
}


# `rearrange` and `repeat` as primitive operations: reshape, transpose or permute, expand.

Sizes = dict[str, Dim]


def apply_pattern(walker: ApplicationInterpreter, expr: nodes.Rearrange) -> Value:
    """Apply a pattern to a tensor."""
    value = walker.value(expr.value)
    sizes = _explicit_sizes(walker, expr)
    if sizes is None or value is POISON:
        return POISON
    if not isinstance(value, Tensor):
        return walker.fault("wrong-kind", f"`{expr.word}` expects a tensor, found {describe(value)}", expr.value.at)
    shape, pattern = value.type.shape, expr.pattern
    others = [f"{ELLIPSIS}{i}" for i in range(len(shape) - len(pattern.left) + 1)]
    has_others = any(ELLIPSIS in group.names for group in pattern.left)
    if (not has_others and len(shape) != len(pattern.left)) or len(shape) < len(pattern.left) - 1:
        axes = len(pattern.left) - has_others
        least = "at least " if has_others else ""
        message = (
            f"`{expr.word}` expects {least}{axes} {'axis' if axes == 1 else 'axes'}, found {format_type(value.type)}"
        )
        left = pattern.text.partition("->")[0].rstrip()
        return walker.fault("dimension", message, span_in_literal(expr.literal, 0, len(left)))
    if not _infer(walker, expr, shape, others, sizes):
        return POISON
    return _emit_steps(walker, expr, value, *pattern.groups(others), sizes)


def _explicit_sizes(walker: ApplicationInterpreter, expr: nodes.Rearrange) -> Sizes | None:
    """Return the sizes that are given; None after reporting a wrong one."""
    sizes: Sizes = {}
    for item in expr.sizes:
        value = walker.value(item.value)
        if value is POISON:
            return None
        try:
            sizes[item.name] = check_size(value, item.name)
        except OpError as problem:
            walker.fault("dimension", f"`{expr.word}` {problem.message}", item.at, help=problem.help)
            return None
    return sizes


def _infer(
    walker: ApplicationInterpreter, expr: nodes.Rearrange, shape: tuple[Dim, ...], others: list[str], sizes: Sizes
) -> bool:
    """Add the sizes that follow from the shape of the tensor; False after reporting one that does not fit."""
    groups: list[PatternAxis | str] = []
    for group in expr.pattern.left:
        groups += others if group.names == (ELLIPSIS,) else [group]
    for group, size in zip(groups, shape, strict=True):
        if isinstance(group, str):
            sizes[group] = size
        elif not _infer_axis(walker, expr, group, size, sizes):
            return False
    return True


def _infer_axis(
    walker: ApplicationInterpreter, expr: nodes.Rearrange, group: PatternAxis, size: Dim, sizes: Sizes
) -> bool:
    given = [name for name in group.names if name in sizes]
    unknown = [name for name in group.names if name not in sizes]
    if unknown and not given:
        sizes[unknown[0]] = size
        return True
    numbers, span = walker.program.numbers, walker.unit.span(expr.at)
    place = span_in_literal(expr.literal, group.start, group.end)
    try:
        known = product([sizes[name] for name in given])
        if unknown and numbers.divides(known, size, span):
            sizes[unknown[0]] = cast("Dim", numbers.combine("//", size, known, span))
            return True
        if not unknown and numbers.are_equal(known, size, span):
            return True
    except (OverflowError, StaticError) as problem:
        walker.fault("dimension", f"`{expr.word}` cannot compute the sizes of this axis: {problem}", place)
        return False
    relation = "divisible by" if unknown else "equal to"
    is_symbolic = not (isinstance(known, int) and isinstance(size, int))
    text = expr.pattern.text_of(group)
    message = f"axis `{text}` of `{expr.word}` has size {size}, which is not {'known to be ' * is_symbolic}{relation} "
    values = ", ".join(f"{name} = {sizes[name]}" for name in given)
    walker.fault("dimension", f"{message}{known} ({values})" if values else f"{message}{known}", place)
    return False


def _emit_steps(
    walker: ApplicationInterpreter, expr: nodes.Rearrange, value: Tensor, left: Groups, right: Groups, sizes: Sizes
) -> Value:
    """Apply the steps of a pattern, without those that do nothing to these sizes."""
    plan = pattern_steps(left, right)
    try:
        split, merged, expanded, joined = (
            tuple([product([sizes[name] for name in group]) for group in groups])
            for groups in (plan.split, plan.merged, plan.expanded, plan.joined)
        )
        is_repeated = product(merged) != product(expanded)
    except OverflowError as problem:
        return walker.fault("dimension", f"`{expr.word}` makes sizes that are too large: {problem}", expr.at)
    operations: list[tuple[str, dict[str, Value]]] = []
    moved = [i for i, axis in enumerate(plan.order) if i != axis]
    if moved:
        turn: dict[str, Value] = {"order": plan.order}
        if len(moved) == 2:
            turn = {"a": moved[0], "b": moved[1]}
        operations.append(("reshape", {"shape": split}))
        operations.append(("transpose" if len(moved) == 2 else "permute", turn))
    if is_repeated:
        operations.append(("reshape", {"shape": merged}))
        operations.append(("expand", {"shape": expanded}))
    operations.append(("reshape", {"shape": joined}))
    made: Value = value
    for name, attributes in operations:
        if isinstance(made, Tensor) and attributes.get("shape") != made.type.shape:
            made = walker.apply_op(OPS[name], (("x", made),), attributes, expr.at, lambda _: None)
    return made
