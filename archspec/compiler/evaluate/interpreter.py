"""Evaluation of resolved expressions, shared by both passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, cast

from archspec.compiler.evaluate.limits import Limits
from archspec.compiler.evaluate.partials import bind_partially, binds_hyperparameters, match_partial
from archspec.compiler.evaluate.program import Program, RequirementError
from archspec.compiler.evaluate.values import (
    DYNAMIC,
    POISON,
    SYMBOLIC_TYPES,
    MultipleOutputs,
    Partial,
    StaticError,
    Tensor,
    Value,
    arithmetic,
    describe,
    is_integer,
    is_list,
    is_number,
    negate,
    show,
    value_key,
)
from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.nodes import BoundArguments
from archspec.compiler.resolve.unit import Definition, Unit
from archspec.compiler.resolve.walk import Visitor
from archspec.core.diagnostics import Note, suggest
from archspec.ir.ops import Op
from archspec.language.syntax.tree import Located

MAX_LIST_LENGTH = 10_000
MEMBERSHIP = ("in", "not in")


class Interpreter(Visitor):
    """Evaluator of the expressions and statements of a definition of `unit`, with the values of names in `env`.

    A value that depends on tensors is DYNAMIC; one with a reported error is POISON.
    """

    handlers: ClassVar[dict[type, Callable[..., Value]]]
    blames_caller: ClassVar[bool] = False
    """Whether errors are located at the use of the definition rather than inside the definition."""

    def __init__(self, program: Program, unit: Unit, definition: Definition | None, env: dict[str, Value]) -> None:
        self.program = program
        self.observer = program.observer
        self.unit = unit
        self.definition = definition
        self.env = env

    @property
    def limits(self) -> Limits:
        return self.program.limits

    def value(self, expr: nodes.Expr) -> Value:
        value = self.handlers[expr.__class__](self, expr)
        if self.observer is not None:
            self.observer.on_value(expr, value)
        return value

    def fault(
        self,
        code: str,
        message: str,
        node: Located,
        *,
        notes: tuple[Note, ...] = (),
        help: str | None = None,
        first: Located | None = None,
    ) -> Value:
        """Report an error at a node of the syntax tree; `first` locates the first specification of the same thing."""
        if first is not None:
            notes = (*notes, Note("first specified here", self.unit.span(first)))
        span = self.unit.span(node)
        self.program.error(code, message, span, notes=notes, help=help, caller=self.blames_caller)
        return POISON

    # Names

    def literal(self, expr: nodes.Literal) -> Value:
        return expr.value

    def bound_hyperparameter(self, expr: nodes.BoundHyperparameter) -> Value:
        return cast("Value", expr.value)

    def local(self, expr: nodes.Local) -> Value:
        name = expr.name
        if name in self.env:
            return self.env[name]
        near = suggest(name, [*self.env, *self.unit.names])
        return self.fault("unknown-name", f"unknown name `{name}`", expr.at, help=near)

    def dimension(self, expr: nodes.Dimension) -> Value:
        return self.env.get(expr.key, DYNAMIC)

    def global_name(self, expr: nodes.Global) -> Value:
        return expr.target

    def piped(self, expr: nodes.PipedValue) -> Value:
        return self.env.get("_", DYNAMIC)

    def invalid(self, expr: nodes.Invalid) -> Value:
        return POISON

    def dynamic(self, expr: nodes.Expr) -> Value:
        return DYNAMIC

    # Lists

    def listing(self, expr: nodes.ListLiteral) -> Value:
        values = tuple([self.value(item) for item in expr.items])
        for value in values:
            if value is POISON or value is DYNAMIC:
                return value
        return self.bounded_list(values, expr)

    def bounded_list(self, values: tuple[Value, ...], expr: nodes.ListLiteral) -> Value:
        """Return a list; report an error if it is too long, including nested lists."""
        parts = list(values)
        for count, part in enumerate(parts):
            if count >= MAX_LIST_LENGTH:
                message = f"list too long: the limit is {MAX_LIST_LENGTH:,} items, inner lists included"
                return self.fault("budget", message, expr.at)
            if is_list(part):
                parts += part[:MAX_LIST_LENGTH]
        return values

    def length(self, expr: nodes.Length) -> Value:
        value = self.value(expr.value)
        if value is POISON or value is DYNAMIC:
            return value
        if not is_list(value):
            return self.fault("wrong-kind", f"`len` expects a list, found {describe(value)}", expr.value.at)
        return self.program.numbers.length(value)

    def subscript(self, expr: nodes.Subscript) -> Value:
        value, index = self.value(expr.value), self.value(expr.position)
        for part in (value, index):
            if part is POISON or part is DYNAMIC:
                return part
        if not is_list(value):
            help = None
            if isinstance(value, Tensor):
                help = "use `slice(axis, start, stop)(x)` to take part of an axis, and `reshape` to drop it"
            message = f"expected a list to index, found {describe(value)}"
            return self.fault("wrong-kind", message, expr.value.at, help=help)
        if not is_integer(index):
            return self.fault("wrong-kind", f"expected an integer index, found {describe(index)}", expr.position.at)
        if not -len(value) <= index < len(value):
            message = f"index {index} is out of range for a list of {len(value)} items"
            return self.fault("wrong-kind", message, expr.position.at)
        return self.program.numbers.item(value, index)

    # Operators

    def unary(self, expr: nodes.Unary) -> Value:
        value = self.value(expr.operand)
        if value is POISON or value is DYNAMIC:
            return value
        if isinstance(value, Tensor):
            return self.operate("neg" if expr.operator == "-" else "not", (value,), expr.at, (expr.operand.at,))
        if expr.operator == "not":
            if value.__class__ is not bool:
                message = f"`not` expects a boolean, found {describe(value)}"
                return self.fault("wrong-kind", message, expr.operand.at)
            return not value
        try:
            return negate(value)
        except StaticError as error:
            return self.fault(error.code, error.message, expr.at, help=error.help)

    def binary(self, expr: nodes.Binary) -> Value:
        operator = expr.operator
        left = self.value(expr.left)
        if operator == "and" or operator == "or":
            return self._logic(expr, left)
        right = self.value(expr.right)
        return self.combine(operator, left, right, expr.at, expr.left.at, expr.right.at)

    def combine(
        self, operator: str, left: Value, right: Value, node: Located, left_node: Located, right_node: Located
    ) -> Value:
        """Evaluate `left operator right`, at compile time or as an operation."""
        if left is POISON or right is POISON:
            return POISON
        if left is DYNAMIC or right is DYNAMIC:
            return DYNAMIC
        if operator in MEMBERSHIP:
            return self._membership(operator, left, right, node, left_node, right_node)
        if left.__class__ is Tensor or right.__class__ is Tensor:
            if operator in ("==", "!=") and (left is None or right is None):
                return operator == "!="
            return self.operate(operator, (left, right), node, (left_node, right_node))
        for value, operand in ((left, left_node), (right, right_node)):
            if isinstance(value, MultipleOutputs):
                help = "assign them to names first: `a, b = ...`"
                message = f"`{operator}` expects one value, found {len(value.values)} outputs"
                return self.fault("wrong-kind", message, operand, help=help)
        try:
            if isinstance(left, SYMBOLIC_TYPES) or isinstance(right, SYMBOLIC_TYPES):
                span = self.unit.span(node)
                self.limits.count_symbolic(span)
                return self.program.numbers.combine(operator, left, right, span)
            return arithmetic(operator, left, right)
        except StaticError as error:
            return self.fault(error.code, error.message, node, help=error.help)

    def _membership(
        self, operator: str, item: Value, values: Value, node: Located, item_node: Located, values_node: Located
    ) -> Value:
        """Evaluate `item in values`, or `item not in values`."""
        if isinstance(item, Tensor | MultipleOutputs):
            help = "compare a tensor with each item: `x == 2 or x == 5`"
            message = f"`{operator}` expects a compile-time constant on its left, found {describe(item)}"
            return self.fault("wrong-kind", message, item_node, help=help)
        if not is_list(values):
            message = f"`{operator}` expects a list on its right, found {describe(values)}"
            return self.fault("wrong-kind", message, values_node)
        results = [self.combine("==", item, value, node, item_node, values_node) for value in values]
        return POISON if POISON in results else (True in results) == (operator == "in")

    def _logic(self, expr: nodes.Binary, left: Value) -> Value:
        if left.__class__ is bool and left == (expr.operator == "or"):
            return left
        right = self.value(expr.right)
        if left is POISON or right is POISON:
            return POISON
        if left is DYNAMIC or right is DYNAMIC:
            return DYNAMIC
        if left.__class__ is Tensor or right.__class__ is Tensor:
            return self.operate(expr.operator, (left, right), expr.at, (expr.left.at, expr.right.at))
        for value, part in ((left, expr.left), (right, expr.right)):
            if value.__class__ is not bool:
                message = f"`{expr.operator}` expects a boolean, found {describe(value)}"
                return self.fault("wrong-kind", message, part.at)
        return right

    def operate(self, name: str, values: Sequence[Value], node: Located, operand_nodes: Sequence[Located]) -> Value:
        """Apply an operator to tensors."""
        return DYNAMIC

    # Decisions

    def condition(self, expr: nodes.Expr) -> Value:
        """Evaluate a condition to True, False, DYNAMIC or POISON."""
        value = self.value(expr)
        if value.__class__ is bool or value is POISON or value is DYNAMIC:
            return value
        if isinstance(value, Tensor):
            message = "a condition cannot depend on the values of a tensor"
            help = "use `where(condition, a, b)`, or `x != none` to test whether an input is given"
            return self.fault("wrong-kind", message, expr.at, help=help)
        help = "use `!= none` to test whether it is given" if value is not None else None
        return self.fault("wrong-kind", f"expected a boolean condition, found {describe(value)}", expr.at, help=help)

    def conditional(self, expr: nodes.Conditional) -> Value:
        condition = self.condition(expr.condition)
        if condition is True:
            return self.value(expr.value)
        if condition is False:
            return self.value(expr.otherwise) if expr.otherwise is not None else None
        return condition

    def count_iterations(self, number: int, length: int, loop: nodes.Loop) -> None:
        """Count the iterations of a loop over `length` characters against the limits."""
        self.limits.count_text(number * length, self.unit.span(loop.at))

    def visit_require(self, statement: nodes.Require) -> None:
        """Report an unmet `require` with the values of its names. Raises RequirementError."""
        if self.program.numbers.requires(self, statement.condition):
            return
        names = dict.fromkeys(walk.local_names(statement.condition))
        values_by_name = {name: self.env.get(name, DYNAMIC) for name in names}
        shown = [(name.removeprefix("dim "), value) for name, value in values_by_name.items() if value is not DYNAMIC]
        values = ", ".join(f"{name} = {show(value)}" for name, value in shown)
        message = statement.message or "requirement not met"
        span = self.unit.span(statement.condition.at)
        self.program.error("require", f"{message} ({values})" if values else message, span, caller=True)
        raise RequirementError

    # Addresses

    def address_text(self, address: nodes.Address) -> str | None:
        """Return an address with its indices evaluated; None after reporting an error."""
        if address.fixed is not None:
            return address.fixed
        if address.variable is not None:
            number = self.env.get(address.variable)
            if isinstance(number, int) and number.__class__ is int and number >= 0:
                return f"{address.before}{number}{address.after}"
        words: list[str] = []
        for segment in address.segments:
            texts: list[str] = []
            for part in segment.parts if isinstance(segment, nodes.WordWithIndex) else (segment,):
                text = part if isinstance(part, str) else self._index_text(part)
                if text is None:
                    return None
                texts.append(text)
            words.append("".join(texts))
        return ".".join(words)

    def _index_text(self, expr: nodes.Expr) -> str | None:
        """Return the text of an index in an address; None after reporting an error."""
        index = self.value(expr)
        if index is POISON:
            return None
        text = self.program.numbers.index_text(index)
        if text is None:
            what = describe(index) if index is not DYNAMIC else "a value that depends on an input"
            self.fault("wrong-kind", f"expected a non-negative integer as address index, found {what}", expr.at)
        return text

    # Applications

    def apply(self, expr: nodes.Apply) -> Value:
        """Evaluate an operation such as `min(a, b)` on numbers; DYNAMIC for other operands."""
        arguments = expr.arguments
        partial = self.bind_more(expr) if arguments.undecided else None
        if partial is not None:
            return partial
        if arguments.hyperparameters or arguments.forward or arguments.inputs is None:
            return DYNAMIC
        target = self.value(expr.callee)
        if not isinstance(target, Op) or target.scalar is None:
            return POISON if target is POISON else DYNAMIC
        bound = self._match_arguments(expr, target, None)
        if bound is None:
            return POISON
        values = [self.value(argument.value) if argument is not None else None for argument in bound.inputs]
        if POISON in values:
            return POISON
        if not all(map(is_number, values)):
            return DYNAMIC
        return self.scalar(target, values, expr.at)

    def partial(self, expr: nodes.Partial) -> Value:
        """Bind hyperparameters of a definition."""
        return bind_partially(self, self.value(expr.callee), expr.arguments, expr.at)

    def bind_more(self, expr: nodes.Apply) -> Value | None:
        """Bind hyperparameters of a definition that is a value; None if the arguments are its inputs."""
        callee = self.value(expr.callee)
        if not binds_hyperparameters(self, callee, expr.arguments):
            return None
        return bind_partially(self, callee, expr.arguments.inputs or (), expr.at)

    def scalar(self, op: Op, values: list[Value], node: Located) -> Value:
        """Apply an operation to numbers."""
        try:
            return self.program.numbers.scalar(op, values, self.unit.span(node))
        except StaticError as error:
            return self.fault(error.code, error.message, node)

    def bind_arguments(
        self, expr: nodes.Apply | nodes.ModuleDeclaration, callee: Definition | Op, partial: Partial | None = None
    ) -> BoundArguments | None:
        """Match the arguments of an application to the names of its callee; None after reporting an error.

        `partial` is the callee if it has hyperparameters bound.
        """
        bound = self._match_arguments(expr, callee, partial)
        if self.observer is not None and bound is not None:
            self.observer.on_applied(self.definition, expr, callee, bound)
        return bound

    def specialize(
        self,
        expr: nodes.Apply | nodes.ModuleDeclaration,
        callee: Definition,
        partial: Partial | None,
        values: dict[str, Value],
    ) -> Definition:
        """Return the copy of a callee for its hyperparameters, and report its application; itself without copies."""
        copy = self.program.specialize(callee, values)
        if copy is not callee:
            self.bind_arguments(expr, copy, partial)
        return copy

    def _match_arguments(
        self, expr: nodes.Apply | nodes.ModuleDeclaration, callee: Definition | Op, partial: Partial | None
    ) -> BoundArguments | None:
        if expr.arguments.bound is not None:
            return expr.arguments.bound
        key = (id(expr), id(callee), value_key(partial))
        cached = self.program.bound.get(key)
        if cached is None:
            cached = self.program.bound[key] = (expr, callee, match_partial(self, expr, callee, partial))
        return cached[2]


Interpreter.handlers = {
    nodes.Literal: Interpreter.literal,
    nodes.Local: Interpreter.local,
    nodes.Dimension: Interpreter.dimension,
    nodes.Global: Interpreter.global_name,
    nodes.PipedValue: Interpreter.piped,
    nodes.LeadingDimensions: Interpreter.dynamic,
    nodes.ListLiteral: Interpreter.listing,
    nodes.Unary: Interpreter.unary,
    nodes.Binary: Interpreter.binary,
    nodes.Conditional: Interpreter.conditional,
    nodes.Subscript: Interpreter.subscript,
    nodes.Length: Interpreter.length,
    nodes.AddressReference: Interpreter.dynamic,
    nodes.Apply: Interpreter.apply,
    nodes.Rearrange: Interpreter.dynamic,
    nodes.Einsum: Interpreter.dynamic,
    nodes.Partial: Interpreter.partial,
    nodes.BoundHyperparameter: Interpreter.bound_hyperparameter,
    nodes.ModuleDeclaration: Interpreter.dynamic,
    nodes.Chain: Interpreter.dynamic,
    nodes.Collect: Interpreter.dynamic,
    nodes.Invalid: Interpreter.invalid,
}
