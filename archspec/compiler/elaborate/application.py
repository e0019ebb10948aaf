"""Application of operators, operations, functions, layers and blocks to tensors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeGuard

from archspec.compiler.elaborate.loop_index import operation_types
from archspec.compiler.elaborate.shapes import DimensionBindings, format_shape
from archspec.compiler.evaluate.body_builder import BodyBuilder, constant_of, operand_of, type_of
from archspec.compiler.evaluate.hyperparameters import Evaluator, hyperparameter_values
from archspec.compiler.evaluate.partials import split_partial
from archspec.compiler.evaluate.program import CompileTarget, Frame, InputArgument, Program
from archspec.compiler.evaluate.values import (
    POISON,
    ModuleReference,
    MultipleOutputs,
    Partial,
    Tensor,
    Value,
    describe,
    is_list,
    is_number,
    static_values,
    type_description,
)
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.nodes import BoundArguments
from archspec.compiler.resolve.unit import Definition, is_numeric, operation_inputs
from archspec.core.algebra import Polynomial
from archspec.core.diagnostics import Note, Span, suggest
from archspec.core.record import Record
from archspec.ir.module import Body, Module, Operand, find_member
from archspec.ir.ops import OPERATORS, OPS, REQUIRED, Op, OpError
from archspec.language.syntax import tree
from archspec.language.syntax.tree import Located

MAX_SUGGESTION_CANDIDATES = 2000
"""Maximum number of addresses that an unknown address is compared with."""

BodyCompiler = Callable[[Program, CompileTarget, tuple[InputArgument, ...], Frame], Body | None]
"""A function that compiles the body of a target for input types."""


class LastApplication(Record):
    """The last application of a definition in a body, with the cache keys of its inputs."""

    target: CompileTarget
    keys: list[Hashable]
    body: Body


class ApplicationInterpreter(Evaluator):
    """Interprets expressions as a body: tensors become slots, and applications become calls."""

    definition: Definition

    def __init__(self, program: Program, target: CompileTarget, compile_body: BodyCompiler) -> None:
        definition = target.definition
        super().__init__(program, definition.unit, definition, dict(target.values))
        self.target = target
        self.module = target.module
        self.builder = BodyBuilder(definition.kind, definition.name, target.module, definition.span, self.limits)
        self.header = DimensionBindings(self, definition)
        self._compile_body = compile_body
        self._last: LastApplication | None = None

    # Names

    def dimension(self, expr: nodes.Dimension) -> Value:
        if expr.key in self.env:
            return self.env[expr.key]
        return self.fault(
            "unbound-dimension",
            f"dimension `{expr.name}` has no size here",
            expr.at,
            help="use it in the shape of a required input",
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
        value = self.find_declaration(expr)
        if isinstance(value, ModuleReference):
            message = f"expected a value, found the {value.module.kind} `.{value.address}`"
            help = f"apply it, as in `.{value.address}(x)`"
            return self.fault("wrong-kind", message, expr.at, help=help)
        return value

    def find_declaration(self, expr: nodes.AddressReference) -> Value:
        """Return the declaration at an address: a tensor to read, or a layer or block to apply."""
        address = self.address_text(expr.address)
        if address is None or self.module is None:
            return POISON
        member = find_member(self.module, address)
        if member is None:
            self.program.numbers.on_missing(self.module, address)
            if address in self.module.absent or "" in self.module.absent:
                return None
            if self.unit.broken & set(address.split(".")) or self.program.is_incomplete(self.module, address):
                return POISON
            if f".{address}" in self.definition.unknown:
                return POISON
            self.definition.unknown.add(f".{address}")
            suggestion = suggest(address, list(self.module.members)[:MAX_SUGGESTION_CANDIDATES])
            return self.fault("unknown-address", f"nothing is declared at `.{address}`", expr.at, help=suggestion)
        return ModuleReference(address, member) if isinstance(member, Module) else self.builder.read(address, member)

    # Operations

    def binary(self, expr: nodes.Binary) -> Value:
        if expr.operator in ("==", "!="):
            for operand, constant in ((expr.left, expr.right), (expr.right, expr.left)):
                if (
                    isinstance(operand, nodes.AddressReference)
                    and isinstance(constant, nodes.Literal)
                    and constant.value is None
                ):
                    value = self.find_declaration(operand)
                    return POISON if value is POISON else (value is None) == (expr.operator == "==")
        return super().binary(expr)

    def operate(self, name: str, values: Sequence[Value], node: Located, operand_nodes: Sequence[Located]) -> Value:
        op = OPS[OPERATORS.get(name, name)]
        for value, location in zip(values, operand_nodes, strict=True):
            if value is None:
                return self.fault("wrong-kind", f"`{name}` expects a tensor, found `none`", location)
            if not isinstance(value, Tensor | int | float | Polynomial) and not is_bare_operation(value):
                help = "write `table([...])` for a tensor of the numbers in a list" if is_list(value) else None
                return self.fault(
                    "wrong-kind", f"`{name}` expects a tensor, found {describe(value)}", location, help=help
                )
        names = [i.name for i in op.inputs]
        location_by_name = dict(zip(names, operand_nodes, strict=True))
        return self.apply_op(op, tuple(zip(names, values, strict=True)), {}, node, location_by_name.get)

    def apply_op(
        self,
        op: Op,
        inputs: tuple[tuple[str, Value], ...],
        attributes: dict[str, Value],
        location: Located,
        argument_node: Callable[[str], Located | None],
    ) -> Value:
        """Apply an operation to tensors, numbers or `none`; `argument_node` locates an explicit argument."""
        if any(is_bare_operation(value) for _, value in inputs):
            inputs = tuple(
                [
                    (name, self._apply_bare_operation(op, value, inputs, location, argument_node))
                    for name, value in inputs
                ]
            )
            if any(value is POISON for _, value in inputs):
                return POISON
        try:
            types = [type_of(value) for _, value in inputs]
            outputs = operation_types(self.program, op, types, attributes, self.unit.span(location))
        except OpError as error:
            argument = argument_node(error.argument or "") or location
            origin = self._size_origin(inputs) if isinstance(location, tree.Step) else None
            if origin is not None:
                note = Note(f"`{op.symbol or op.name}` is applied here", self.unit.span(location))
                residual = inputs[-1][1]
                help = error.help
                if op.symbol == "+" and isinstance(residual, Tensor):
                    help = f"a residual connection keeps the shape: return {format_shape(residual.type.shape)} here"
                self.program.error("dimension", error.message, origin, notes=(note,), help=help)
                return POISON
            return self.fault("dimension", error.message, argument, help=error.help)
        operands = tuple([(name, operand_of(value)) for name, value in inputs])
        return self.builder.emit("op", op.name, "", None, operands, attributes, outputs, self.unit.span(location))

    def _apply_bare_operation(
        self,
        op: Op,
        operand: Value,
        inputs: tuple[tuple[str, Value], ...],
        location: Located,
        argument_node: Callable[[str], Located | None],
    ) -> Value:
        """Return an operand; a bare operation is applied to the first real tensor among the inputs."""
        if not is_bare_operation(operand):
            return operand
        for _, value in inputs:
            if isinstance(value, Tensor) and value.type.dtype == "real":
                return self.apply_op(operand, ((operand.inputs[0].name, value),), {}, location, lambda _: None)
        argument = next(argument_node(name) for name, value in inputs if value is operand)
        operation = operand.name
        message = f"no real tensor among the operands of `{op.symbol or op.name}` determines the type of `{operation}`"
        return self.fault(
            "wrong-kind", message, argument or location, help=f"write `{operation}(x)`, with a tensor of that type"
        )

    def _size_origin(self, inputs: tuple[tuple[str, Value], ...]) -> Span | None:
        """Return the location that computed the size in which two tensors differ, if only one size is computed."""
        tensors = [value for _, value in inputs if isinstance(value, Tensor)]
        if len(tensors) != 2:
            return None
        sizes = zip(*[reversed(tensor.type.shape) for tensor in tensors], strict=False)
        differing = [axis for axis, (a, b) in enumerate(sizes, 1) if a != b and 1 not in (a, b)]
        if not differing:
            return None
        origins = [self.builder.size_origin(tensor.slot, len(tensor.type.shape) - differing[0]) for tensor in tensors]
        return origins[0] if origins[1] is None else None

    # Applications

    def apply(self, expr: nodes.Apply) -> Value:
        more = self.bind_more(expr) if expr.arguments.undecided else None
        if more is not None:
            return more
        value = (
            self.find_declaration(expr.callee)
            if isinstance(expr.callee, nodes.AddressReference)
            else self.value(expr.callee)
        )
        callee, partial = split_partial(value)
        if isinstance(callee, ModuleReference):
            return self._apply_module(callee.address, callee.module, expr)
        if isinstance(callee, Op):
            return self._apply_operation(callee, expr)
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
        name = expr.callee.name if isinstance(expr.callee, nodes.Local) else ""
        help = f"rename `{name}`, which hides the operation `{name}`" if name in OPS else None
        return self.fault("wrong-kind", f"cannot apply {describe(callee)}", expr.callee.at, help=help)

    def own(self, expr: nodes.ModuleDeclaration) -> Value:
        if self.builder.body.kind == "loop":
            return POISON  # the first pass reports declarations in a loop over a dimension
        if expr.merges:
            module = self.module.merged.get(self.unit.span(expr.address.at)) if self.module is not None else None
            return POISON if module is None else self._apply_declaration("", module, expr)
        address = self.address_text(expr.address)
        member = self.module.members.get(address) if address is not None and self.module is not None else None
        if address is None or member is None or not isinstance(member.target, Module):
            return POISON  # reported by the first pass
        if member.span != self.unit.span(expr.address.at):
            return POISON  # the address is declared twice, which was reported
        return self._apply_declaration(address, member.target, expr)

    def _apply_declaration(self, address: str, module: Module, expr: nodes.ModuleDeclaration) -> Value:
        definition = self.program.definitions.get(module)
        if definition is None:
            return POISON
        if expr.arguments.inputs is None and definition.takes.names:
            help = "pass its inputs in a second list: `address: Layer(hyper)(x)`"
            return self.fault("wrong-kind", "a declaration that is not applied has no value", expr.at, help=help)
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
        callee = self.specialize(expr, callee, partial, values)
        return self._apply_definition(CompileTarget(callee, values, None), "", bound, expr.at)

    def _apply_definition(self, target: CompileTarget, address: str, bound: BoundArguments, location: Located) -> Value:
        definition = target.definition
        values = self._evaluate_inputs(definition.name, definition.takes.optional, bound)
        if values is None:
            return POISON
        arguments: list[InputArgument] = []
        operands: list[tuple[str, Operand]] = []
        for name, value in zip(bound.names, values, strict=True):
            if isinstance(value, Tensor):
                arguments.append(value.type)
                operands.append((name, value.slot))
            else:
                constant = None if value is None else constant_of(value)
                arguments.append(constant)
                operands.append((name, constant))
        keys = list(map(self.program.numbers.key, arguments))
        last = self._last  # consecutive applications often have the same target
        if last is not None and target.module is not None and last.target.module is target.module and last.keys == keys:
            body = last.body
        else:
            body = self._compile_body(
                self.program, target, tuple(arguments), Frame(definition, self.unit, location, bound)
            )
            if body is None:
                return POISON
            self._last = LastApplication(target, keys, body)
        kind, name, span = definition.kind, definition.name, self.unit.span(location)
        if target.module is not None and not address:
            return self.builder.splice(body, [operand for _, operand in operands if isinstance(operand, int)], span)
        return self.builder.emit(kind, name, address, body, tuple(operands), {}, body.results, span)

    def _apply_operation(self, op: Op, expr: nodes.Apply) -> Value:
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
        values = self._evaluate_inputs(op.name, operation_inputs(op).optional, bound, allow_bare=True)
        if values is None or failed:
            return POISON
        if op.scalar is not None and not attributes and all(map(is_number, values)):
            return self.scalar(op, values, expr.at)
        return self.apply_op(op, tuple(zip(bound.names, values, strict=True)), attributes, expr.at, bound.argument_node)

    def _evaluate_inputs(
        self, callee: str, optional: frozenset[str], bound: BoundArguments, allow_bare: bool = False
    ) -> list[Value] | None:
        """Evaluate the inputs of a call; None after reporting an invalid one.

        `allow_bare` accepts an operation without its input, such as `lowest`.
        """
        values: list[Value] = []
        failed = False
        for name, argument in zip(bound.names, bound.inputs, strict=True):
            if argument is None:
                values.append(None)
                continue
            value = self.value(argument.value)
            is_input = value.__class__ is Tensor or (allow_bare and is_bare_operation(value))
            if not is_input and not self._check_input(callee, name, value, argument.value.at, name in optional):
                failed = True
            values.append(value)
        return None if failed else values

    def _check_input(self, callee: str, name: str, value: Value, location: Located, optional: bool) -> bool:
        """Check a value that is not a tensor as the input `name`; False after reporting an error."""
        if value is POISON:
            return False
        if value is None:
            if not optional:
                self.fault("wrong-kind", f"input `{name}` of `{callee}` expects a tensor, found `none`", location)
            return optional
        if isinstance(value, int | float | Polynomial):
            return True
        if isinstance(value, MultipleOutputs):
            message = f"input `{name}` of `{callee}` expects one tensor, found {len(value.values)} outputs"
            self.fault("wrong-kind", message, location, help="assign them to names first: `a, b = ...`")
            return False
        message = f"input `{name}` of `{callee}` expects a tensor, found {describe(value)}"
        help = (
            "pass hyperparameters in the first list and tensors in the second"
            if type_description(value) != "value"
            else None
        )
        if is_bare_operation(value):
            help = f"write `{value.name}(x)`, with a tensor of the intended type"
        if is_list(value):
            help = "write `table([...])` for a tensor of the numbers in a list"
        self.fault("wrong-kind", message, location, help=help)
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
