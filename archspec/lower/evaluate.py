"""Expressions over values that are known when a spec is compiled, and the binding of arguments to names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from archspec.lower.program import Program
from archspec.lower.units import Definition, Unit
from archspec.lower.values import (
    DYNAMIC,
    OPEN,
    POISON,
    StaticError,
    Tensor,
    accepts,
    arithmetic,
    bounded,
    describe,
    is_number,
    kind_of,
    negative,
)
from archspec.ops import OPS, Op
from archspec.source import Note, suggest
from archspec.syntax import tree

LONGEST_LIST = 10_000


class Evaluator:
    """Evaluates expressions among the names `env`, then those of `unit`, then the operations.

    What depends on tensors is DYNAMIC here; what could not be evaluated has been reported and is POISON.
    """

    handlers: ClassVar[dict[type, Callable[[Any, Any], Any]]]

    def __init__(self, program: Program, unit: Unit, definition: Definition | None, env: dict[str, Any]) -> None:
        self.program = program
        self.unit = unit
        self.definition = definition
        self.env = env

    def value(self, expr: tree.Expr) -> Any:
        return self.handlers[expr.__class__](self, expr)

    def fault(
        self,
        code: str,
        message: str,
        node: Any,
        *,
        notes: tuple[Note, ...] = (),
        help: str | None = None,
    ) -> Any:
        self.program.error(code, message, self.unit.span(node), notes=notes, help=help)
        return POISON

    # Expressions

    def _literal(self, expr: tree.Literal) -> Any:
        return expr.value

    def _name(self, expr: tree.Name) -> Any:
        name = expr.text
        if name in self.env:
            return self.env[name]
        binding = self.unit.names.get(name)
        if binding is not None:
            return binding.target if binding.target is not None else POISON
        if name in OPS:
            return OPS[name]
        if name in self.unit.dims:
            return self._unbound(expr)
        if not self.is_news(name):
            return POISON
        return self.fault("unknown-name", f"unknown name `{name}`", expr, help=self.nearest(name))

    def is_news(self, name: str, everywhere: bool = False) -> bool:
        """Whether an unknown name is to be reported: not where what failed would have bound it, and once a definition.

        `everywhere`: once a file, as for a dimension.
        """
        definition = self.definition
        if name in self.unit.broken or (definition is not None and definition.open):
            return False
        known = {(definition, name), (self.unit, name)} & self.program.unknown
        if definition is not None:
            self.program.unknown.add((self.unit if everywhere else definition, name))
        return not known

    def _unbound(self, expr: tree.Name) -> Any:
        return DYNAMIC

    def nearest(self, name: str) -> str | None:
        return suggest(name, [*self.env, *self.unit.names, *self.unit.dims, *OPS])

    def _listing(self, expr: tree.Listing) -> Any:
        values = tuple([self.value(item) for item in expr.items])
        for value in values:
            if value is POISON or value is DYNAMIC:
                return value
        return self.bounded_list(values, expr)

    def bounded_list(self, values: tuple[Any, ...], node: tree.Listing) -> Any:
        """A list, unless lists within lists make it too long."""
        parts = list(values)
        for count, part in enumerate(parts):
            if count >= LONGEST_LIST:
                return self.fault(
                    "budget", f"list too long: the limit is {LONGEST_LIST:,} items, inner lists included", node
                )
            if part.__class__ is tuple:
                parts += part[:LONGEST_LIST]
        return values

    def _ellipsis(self, expr: tree.Ellipsis_) -> Any:
        return DYNAMIC

    def _unary(self, expr: tree.Unary) -> Any:
        value = self.value(expr.operand)
        if value is POISON or value is DYNAMIC:
            return value
        if isinstance(value, Tensor):
            return self.operate("neg" if expr.operator == "-" else "not", (value,), expr, (expr.operand,))
        if expr.operator == "not":
            return (
                self.fault("wrong-kind", f"`not` expects a boolean, found {describe(value)}", expr.operand)
                if (value.__class__ is not bool)
                else not value
            )
        try:
            return negative(value)
        except StaticError as problem:
            return self.fault(problem.code, problem.message, expr, help=problem.help)

    def _binary(self, expr: tree.Binary) -> Any:
        operator = expr.operator
        left = self.value(expr.left)
        if operator == "and" or operator == "or":
            return self._logic(expr, left)
        right = self.value(expr.right)
        return self.combine(operator, left, right, expr, expr.left, expr.right)

    def combine(
        self, operator: str, left: Any, right: Any, node: Any, left_node: tree.Expr, right_node: tree.Expr
    ) -> Any:
        """`left operator right`, at compile time or as an operation."""
        if left is POISON or right is POISON:
            return POISON
        if left is DYNAMIC or right is DYNAMIC:
            return DYNAMIC
        if left.__class__ is Tensor or right.__class__ is Tensor:
            if operator in ("==", "!=") and (left is None or right is None):
                return operator == "!="
            return self.operate(operator, (left, right), node, (left_node, right_node))
        if isinstance(left, OPEN) or isinstance(right, OPEN):
            self.program.count_symbolic(self.unit.span(node))
            if self.program.opening is not None:
                return self.program.opening.combine(operator, left, right, self.unit.span(node))
        try:
            return arithmetic(operator, left, right)
        except StaticError as problem:
            return self.fault(problem.code, problem.message, node, help=problem.help)

    def _logic(self, expr: tree.Binary, left: Any) -> Any:
        if left.__class__ is bool and left == (expr.operator == "or"):
            return left
        right = self.value(expr.right)
        if left is POISON or right is POISON:
            return POISON
        if left is DYNAMIC or right is DYNAMIC:
            return DYNAMIC
        if left.__class__ is Tensor or right.__class__ is Tensor:
            return self.operate(expr.operator, (left, right), expr, (expr.left, expr.right))
        for value, node in ((left, expr.left), (right, expr.right)):
            if value.__class__ is not bool:
                message = f"`{expr.operator}` expects a boolean, found {describe(value)}"
                return self.fault("wrong-kind", message, node)
        return right

    def operate(self, name: str, values: Sequence[Any], node: Any, nodes: Sequence[tree.Expr]) -> Any:
        """An operator on tensors."""
        return DYNAMIC

    def index_text(self, index: Any) -> str | None:
        """An index as it stands in an address; None if it is none."""
        return str(index) if index.__class__ is int and index >= 0 else None

    def counts_down(self, first: int, last: int, loop: tree.Loop) -> bool:
        """Whether a loop ends before it begins, which is reported: no number of rounds is negative."""
        if last < first:
            help = "use an end (exclusive) that is at least the start"
            self.fault("wrong-kind", f"loop end {last} is below its start {first}", loop.last, help=help)
        return last < first

    def condition(self, expr: tree.Expr) -> Any:
        """True, False, DYNAMIC or POISON."""
        value = self.value(expr)
        if value.__class__ is bool or value is POISON or value is DYNAMIC:
            return value
        if isinstance(value, Tensor):
            return self.fault(
                "wrong-kind",
                "a condition cannot depend on the values of a tensor",
                expr,
                help="use `where(condition, a, b)`, or `x != none` to test whether an input is given",
            )
        help = "use `!= none` to test whether it is given" if value is not None else None
        return self.fault("wrong-kind", f"expected a boolean condition, found {describe(value)}", expr, help=help)

    def _conditional(self, expr: tree.Conditional) -> Any:
        condition = self.condition(expr.condition)
        if condition is True:
            return self.value(expr.value)
        if condition is False:
            return self.value(expr.otherwise) if expr.otherwise is not None else None
        return condition

    def _subscript(self, expr: tree.Subscript) -> Any:
        value, index = self.value(expr.value), self.value(expr.position)
        for part in (value, index):
            if part is POISON or part is DYNAMIC:
                return part
        if value.__class__ is not tuple:
            return self.fault("wrong-kind", f"expected a list to index, found {describe(value)}", expr.value)
        if index.__class__ is not int:
            return self.fault("wrong-kind", f"expected an integer index, found {describe(index)}", expr.position)
        if not -len(value) <= index < len(value):
            return self.fault(
                "wrong-kind", f"index {index} is out of range for a list of {len(value)} items", expr.position
            )
        return value[index]

    def _call(self, expr: tree.Call) -> Any:
        return self.static_call(expr)

    def static_call(self, expr: tree.Call) -> Any:
        """`min(a, b)` and the like on numbers, `len(list)`; DYNAMIC if it is something else."""
        callee = expr.callee
        if len(expr.lists) != 1 or not isinstance(callee, tree.Name):
            return DYNAMIC
        name = callee.text
        if name == "len" and self.is_builtin(name):
            return self._length(expr)
        target = self.value(callee)
        if not isinstance(target, Op) or target.scalar is None:
            return POISON if target is POISON else DYNAMIC
        if any(a.value is None or a.name for a in expr.lists[0].items):
            return DYNAMIC
        values = [self.value(a.value) for a in expr.lists[0].items if a.value is not None]
        if POISON in values:
            return POISON
        if not all(map(is_number, values)) or len(values) != len(target.inputs):
            return DYNAMIC
        return self.scalar(target, values, expr)

    def scalar(self, op: Op, values: Sequence[Any], node: Any) -> Any:
        """An operation on numbers."""
        assert op.scalar is not None
        if self.program.opening is not None and any(isinstance(value, OPEN) for value in values):
            return self.program.opening.scalar(op, values, self.unit.span(node))
        try:
            return bounded(op.scalar(*values))
        except StaticError as problem:
            return self.fault(problem.code, problem.message, node)
        except OverflowError as problem:
            return self.fault("budget", f"`{op.name}`: {problem}", node)
        except (ArithmeticError, ValueError, TypeError) as problem:
            return self.fault("arithmetic", f"`{op.name}` is undefined for these operands: {problem}", node)

    def is_builtin(self, name: str) -> bool:
        return name not in self.env and name not in self.unit.names

    def _length(self, expr: tree.Call) -> Any:
        items = expr.lists[0].items
        if len(items) != 1 or items[0].value is None or items[0].name:
            return self.fault("missing-argument", "`len` expects one list", expr)
        value = self.value(items[0].value)
        if value is POISON or value is DYNAMIC:
            return value
        if value.__class__ is not tuple:
            return self.fault("wrong-kind", f"`len` expects a list, found {describe(value)}", items[0].value)
        return len(value)

    def _dynamic(self, expr: Any) -> Any:
        return DYNAMIC

    # Arguments

    def match(
        self, callee: str, names: Sequence[str], arguments: tree.Arguments | None, what: str
    ) -> dict[str, tree.Argument] | None:
        """Which argument goes to which of `names`; None if that failed. The key ".." means: forward the rest."""
        found: dict[str, tree.Argument] = {}
        failed = False
        position = 0
        items = arguments.items if arguments else ()
        for item in items:
            name = item.name
            if name and name != ".." and name not in names:
                near = suggest(name, list(names)) or (f"available {what}s: {listed(names)}" if names else None)
                self.fault("unknown-argument", f"unknown {what} `{name}` in call to `{callee}`", item, help=near)
                failed = True
                continue
            if not name:
                if position >= len(names):
                    most = f"expected at most {len(names)}" if names else "expected none"
                    message = f"too many {what}s for `{callee}`: {most}, found {sum(not i.name for i in items)}"
                    hint = f"expected {what}s: {listed(names)}" if names else None
                    self.fault("surplus-argument", message, item, help=hint)
                    return None
                name = names[position]
                position += 1
            if name in found:
                first = Note("first specified here", self.unit.span(found[name]))
                self.fault("repeated-argument", f"{what} `{name}` is specified more than once", item, notes=(first,))
                failed = True
                continue
            found[name] = item
        return None if failed else found

    def hyperparameters(
        self,
        callee: Definition,
        arguments: tree.Arguments | None,
        node: Any,
        overrides: dict[str, Any] | None = None,
    ) -> dict[str, Any] | None:
        """The values of a definition's hyperparameters in a use; None if one is wrong, which has been reported.

        `overrides` go before what is written.
        """
        declared = callee.hyperparameters
        if callee.open:
            return None
        given = self.match(callee.name, tuple(declared), arguments, "hyperparameter")
        if given is None:
            return None
        forward = self.definition.hyperparameters if ".." in given and self.definition else {}
        values: dict[str, Any] = {}
        failed = False
        for name, parameter in declared.items():
            item = given.get(name)
            default = POISON
            if parameter.default is not None:
                default = self.default(callee, parameter.default, parameter.unit, values)
            if overrides and name in overrides:
                values[name] = overrides[name]
                continue
            if item is not None and item.value is not None:
                value = self.value(item.value)
            elif name in forward and name in self.env:
                item, value = given[".."], self.env[name]
            elif parameter.default is None:
                if not failed:
                    message = f"missing hyperparameter `{name}` in call to `{callee.name}`"
                    self.fault("missing-argument", message, node, help=f"expected hyperparameters: {listed(declared)}")
                failed = True
                values[name] = POISON
                continue
            else:
                value = default
            failed = not self.fits(callee, name, default, value, item) or failed
            values[name] = value
        return None if failed else values

    def fits(self, callee: Definition, name: str, default: Any, value: Any, item: tree.Argument | None) -> bool:
        """Whether `value` may be the hyperparameter `name`; says so if not."""
        if value is POISON:
            return False
        if item is None:
            return True
        if value is DYNAMIC or value.__class__ is Tensor:
            self.refuse_input(callee, item)
            return False
        if default is POISON or accepts(default, value):
            return True
        note = Note(f"the default is {describe(default)}", callee.hyperparameters[name].span)
        message = f"hyperparameter `{name}` of `{callee.name}` expects type {kind_of(default)}, found {describe(value)}"
        self.fault("wrong-kind", message, item, notes=(note,))
        return False

    def refuse_input(self, callee: Definition, item: tree.Argument) -> None:
        """Reports a tensor among hyperparameters."""
        message = f"a hyperparameter of `{callee.name}` cannot depend on an input"
        self.fault("wrong-kind", message, item, help="pass hyperparameters in the first list and tensors in the second")

    def default(self, callee: Definition, expr: tree.Expr, unit: Unit, values: dict[str, Any]) -> Any:
        """A hyperparameter's default, which may use those before it."""
        if isinstance(expr, tree.Literal):
            return expr.value
        return Evaluator(self.program, unit, callee, values).value(expr)


def listed(names: Sequence[str] | dict[str, Any]) -> str:
    """Names as a sentence lists them."""
    return ", ".join(f"`{n}`" for n in names)


Evaluator.handlers = {
    tree.Literal: Evaluator._literal,  # pyright: ignore[reportPrivateUsage]
    tree.Name: Evaluator._name,  # pyright: ignore[reportPrivateUsage]
    tree.Listing: Evaluator._listing,  # pyright: ignore[reportPrivateUsage]
    tree.Ellipsis_: Evaluator._ellipsis,  # pyright: ignore[reportPrivateUsage]
    tree.Unary: Evaluator._unary,  # pyright: ignore[reportPrivateUsage]
    tree.Binary: Evaluator._binary,  # pyright: ignore[reportPrivateUsage]
    tree.Conditional: Evaluator._conditional,  # pyright: ignore[reportPrivateUsage]
    tree.Subscript: Evaluator._subscript,  # pyright: ignore[reportPrivateUsage]
    tree.Call: Evaluator._call,  # pyright: ignore[reportPrivateUsage]
    tree.Own: Evaluator._dynamic,  # pyright: ignore[reportPrivateUsage]
    tree.Chain: Evaluator._dynamic,  # pyright: ignore[reportPrivateUsage]
    tree.Reference: Evaluator._dynamic,  # pyright: ignore[reportPrivateUsage]
}
