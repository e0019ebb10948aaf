"""Checks of branches that no model of a file reaches: errors for all values of names and inputs."""

from __future__ import annotations

from archspec.compiler.elaborate.application import is_bare_operation
from archspec.compiler.elaborate.bodies import pluralize
from archspec.compiler.evaluate.interpreter import MEMBERSHIP, Interpreter
from archspec.compiler.evaluate.program import Program
from archspec.compiler.evaluate.values import (
    DYNAMIC,
    POISON,
    Partial,
    Value,
    accepts,
    describe,
    is_integer,
    is_number,
    type_description,
)
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.definition import ResolvedDefinition, resolve_definition
from archspec.compiler.resolve.unit import Definition, Unit, operation_inputs
from archspec.core.diagnostics import Note
from archspec.ir.ops import Op
from archspec.language.syntax import tree

_COMPARED = ("==", "!=", "and", "or", *MEMBERSHIP)


def check_unreached_branches(program: Program, unit: Unit) -> None:
    """Check the definitions of a file whose models have no errors: every error is in a branch that no model reaches.

    A file without such errors is checked once per program.
    """
    if unit in program.untaken:
        return
    for binding in unit.names.values():
        definition = binding.target
        if not binding.imported and isinstance(definition, Definition):
            form = resolve_definition(definition, program.report)
            if not form.broken:
                _BranchCheck(program, unit, definition, {}).check(form)
    if not program.report.failed:
        program.untaken.add(unit)


class _BranchCheck(Interpreter):
    """Evaluates every branch; names and tensors are DYNAMIC."""

    definition: Definition

    def check(self, form: ResolvedDefinition) -> None:
        self._output_count = len(form.outputs)
        self.visit(form.body)

    # Statements

    def visit_declare(self, statement: nodes.Declare) -> None:
        for declaration in statement.declares:
            if isinstance(declaration.what, nodes.ModuleDeclaration):
                self.value(declaration.what)

    def visit_require(self, statement: nodes.Require) -> None:
        self.condition(statement.condition)

    def visit_if(self, statement: nodes.If) -> None:
        self.condition(statement.condition)
        super().visit_if(statement)

    def visit_for(self, statement: nodes.For) -> None:
        self._check_bounds(statement.loop)
        super().visit_for(statement)

    def visit_assign(self, statement: nodes.Assign) -> None:
        count = count_outputs(statement.value)
        if self.value(statement.value) is not POISON and count is not None and count != len(statement.targets):
            message = f"cannot assign {pluralize(count, 'output')} to {pluralize(len(statement.targets), 'name')}"
            self.fault("output", message, statement.value.at)

    def visit_return(self, statement: nodes.Return) -> None:
        values = [self.value(value) for value in statement.values]
        for value, expr in zip(values, statement.values, strict=True) if self._output_count else ():
            if _is_not_tensor(value):
                self.fault("wrong-kind", f"expected a tensor as output, found {describe(value)}", expr.at)
        count = len(values) if len(values) > 1 else count_outputs(statement.values[0])
        if POISON not in values and self._output_count and count is not None and count != self._output_count:
            declared = pluralize(self._output_count, "output")
            self.fault("output", f"`{self.definition.name}` declares {declared} but returns {count}", statement.at)

    def _check_bounds(self, loop: nodes.Loop) -> None:
        for bound in (loop.first, loop.last):
            value = self.value(bound)
            if value is not DYNAMIC and value is not POISON and not is_integer(value):
                self.fault("wrong-kind", f"expected an integer loop bound, found {describe(value)}", bound.at)

    # Expressions

    def binary(self, expr: nodes.Binary) -> Value:
        left, right = self.value(expr.left), self.value(expr.right)
        if expr.operator not in _COMPARED and (left is DYNAMIC or right is DYNAMIC):
            for value, part in ((left, expr.left), (right, expr.right)):
                if value is None or _is_not_tensor(value):
                    return self._report_operand(expr.operator, value, part)
        if expr.operator in ("and", "or"):
            return DYNAMIC
        return self.combine(expr.operator, left, right, expr.at, expr.left.at, expr.right.at)

    def _report_operand(self, operator: str, value: Value, part: nodes.Expr) -> Value:
        return self.fault("wrong-kind", f"`{operator}` expects a tensor or number, found {describe(value)}", part.at)

    def conditional(self, expr: nodes.Conditional) -> Value:
        self.condition(expr.condition)
        self.value(expr.value)
        if expr.otherwise is not None:
            self.value(expr.otherwise)
        return DYNAMIC

    def chain(self, expr: nodes.Chain) -> Value:
        enclosing_piped, self._piped = self._piped, self.value(expr.head)
        for step in expr.steps:
            if step.loop is not None:
                self._check_bounds(step.loop)
            if step.condition is not None:
                self.condition(step.condition)
            for value in (step.value, step.otherwise):
                operand = self.value(value) if value is not None else None
                if value is not None and step.operator and _is_not_tensor(operand):
                    self._report_operand(step.operator, operand, value)
            self._piped = DYNAMIC
        self._piped = enclosing_piped
        return DYNAMIC

    _piped: Value = DYNAMIC

    def piped(self, expr: nodes.PipedValue) -> Value:
        return self._piped

    # Applications

    def apply(self, expr: nodes.Apply) -> Value:
        callee = self.value(expr.callee)
        if callee is not DYNAMIC and callee is not POISON and not isinstance(callee, Op | Definition | Partial):
            return self.fault("wrong-kind", f"cannot apply {describe(callee)}", expr.callee.at)
        return self._check_arguments(expr, callee)

    def partial(self, expr: nodes.Partial) -> Value:
        for argument in expr.arguments:
            self.value(argument.value)
        return DYNAMIC

    def own(self, expr: nodes.ModuleDeclaration) -> Value:
        return self._check_arguments(expr, self.value(expr.callee))

    def _check_arguments(self, expr: nodes.Apply | nodes.ModuleDeclaration, callee: Value) -> Value:
        bound = expr.arguments.bound
        if bound is None or not isinstance(callee, Op | Definition):
            for argument in expr.arguments.every():
                self.value(argument.value)
            return DYNAMIC
        for name, argument in bound.hyperparameters.items():
            self._check_hyperparameter(callee, name, argument)
        takes = callee.takes if isinstance(callee, Definition) else operation_inputs(callee)
        for name, argument in zip(bound.names, bound.inputs, strict=True):
            if argument is not None:
                self._check_input(callee.name, name, argument, name in takes.optional)
        return DYNAMIC

    def _check_hyperparameter(self, callee: Op | Definition, name: str, argument: nodes.Argument) -> None:
        value = self.value(argument.value)
        declared = callee.hyperparameters[name] if isinstance(callee, Definition) else None
        if declared is None or not isinstance(declared.default, tree.Literal):
            return
        default = declared.default.value
        if not accepts(default, value):
            message = f"hyperparameter `{name}` of `{callee.name}` expects type {type_description(default)}, found "
            notes = (Note(f"the default is {describe(default)}", declared.span),)
            self.fault("wrong-kind", message + describe(value), argument.at, notes=notes)

    def _check_input(self, callee: str, name: str, argument: nodes.Argument, optional: bool) -> None:
        value, outputs = self.value(argument.value), count_outputs(argument.value)
        if outputs is not None and outputs > 1:
            message = f"input `{name}` of `{callee}` expects one tensor, found {outputs} outputs"
            help = "assign them to names first: `a, b = ...`"
            self.fault("wrong-kind", message, argument.value.at, help=help)
        elif (value is None and not optional) or _is_not_tensor(value):
            message = f"input `{name}` of `{callee}` expects a tensor, found {describe(value)}"
            self.fault("wrong-kind", message, argument.value.at)


_BranchCheck.handlers = {
    **Interpreter.handlers,
    nodes.Local: Interpreter.dynamic,
    nodes.Dimension: Interpreter.dynamic,
    nodes.PipedValue: _BranchCheck.piped,
    nodes.Binary: _BranchCheck.binary,
    nodes.Conditional: _BranchCheck.conditional,
    nodes.Chain: _BranchCheck.chain,
    nodes.Apply: _BranchCheck.apply,
    nodes.Partial: _BranchCheck.partial,
    nodes.ModuleDeclaration: _BranchCheck.own,
}


def _is_not_tensor(value: Value) -> bool:
    """Whether a value is known and cannot be a tensor: no number, boolean or bare operation, and not `none`."""
    is_unknown = value is DYNAMIC or value is POISON or value is None
    return not (is_unknown or is_number(value) or isinstance(value, bool) or is_bare_operation(value))


def count_outputs(expr: nodes.Expr) -> int | None:
    """Return the number of outputs of an expression; None if the number depends on values."""
    match expr:
        case nodes.Binary() | nodes.Unary() | nodes.Literal() | nodes.AddressReference() | nodes.Dimension():
            return 1
        case nodes.Apply(callee=nodes.Global(target=Op() as op)):
            return None if op.has_several and ... in op.dtypes else len(op.dtypes)
        case nodes.Apply(callee=nodes.Global(target=Definition(kind="fn") as function)):
            return len(function.node.outputs) or None
        case nodes.ModuleDeclaration(callee=nodes.Global(target=Definition() as target)) if (
            expr.arguments.inputs is not None
        ):
            return len(target.node.outputs) or None
        case nodes.Chain() if expr.steps[-1].condition is None and expr.steps[-1].loop is None:
            return 1 if expr.steps[-1].operator else count_outputs(expr.steps[-1].value)
        case _:
            return None
