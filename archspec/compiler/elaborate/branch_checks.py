"""Checks of the code that no model of a file reaches: whatever is wrong for all values of names and inputs."""

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
    """Check the definitions of a file whose models have no errors, so that the only errors are in untaken branches.

    A file without any is checked once for a program.
    """
    if unit in program.untaken:
        return
    for binding in unit.names.values():
        definition = binding.target
        if not binding.imported and isinstance(definition, Definition):
            form = resolve_definition(definition, program.report)
            if not form.broken:
                _Untaken(program, unit, definition, {}).definition_of(form)
    if not program.report.failed:
        program.untaken.add(unit)


class _Untaken(Interpreter):
    """Evaluates every branch; the value of a name or tensor is DYNAMIC."""

    definition: Definition

    def definition_of(self, form: ResolvedDefinition) -> None:
        self._declared = len(form.outputs)
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
        self._loop(statement.loop)
        super().visit_for(statement)

    def visit_assign(self, statement: nodes.Assign) -> None:
        found = outputs_of(statement.value)
        if self.value(statement.value) is not POISON and found is not None and found != len(statement.targets):
            message = f"cannot assign {pluralize(found, 'output')} to {pluralize(len(statement.targets), 'name')}"
            self.fault("output", message, statement.value.at)

    def visit_return(self, statement: nodes.Return) -> None:
        values = [self.value(value) for value in statement.values]
        for value, expr in zip(values, statement.values, strict=True) if self._declared else ():
            if _is_no_tensor(value):
                self.fault("wrong-kind", f"expected a tensor as output, found {describe(value)}", expr.at)
        found = len(values) if len(values) > 1 else outputs_of(statement.values[0])
        if POISON not in values and self._declared and found is not None and found != self._declared:
            declared = pluralize(self._declared, "output")
            self.fault("output", f"`{self.definition.name}` declares {declared} but returns {found}", statement.at)

    def _loop(self, loop: nodes.Loop) -> None:
        for bound in (loop.first, loop.last):
            value = self.value(bound)
            if value is not DYNAMIC and value is not POISON and not is_integer(value):
                self.fault("wrong-kind", f"expected an integer loop bound, found {describe(value)}", bound.at)

    # Expressions

    def binary(self, expr: nodes.Binary) -> Value:
        left, right = self.value(expr.left), self.value(expr.right)
        if expr.operator not in _COMPARED and (left is DYNAMIC or right is DYNAMIC):
            for value, part in ((left, expr.left), (right, expr.right)):
                if value is None or _is_no_tensor(value):
                    return self._no_tensor(expr.operator, value, part)
        if expr.operator in ("and", "or"):
            return DYNAMIC
        return self.combine(expr.operator, left, right, expr.at, expr.left.at, expr.right.at)

    def _no_tensor(self, operator: str, value: Value, part: nodes.Expr) -> Value:
        return self.fault("wrong-kind", f"`{operator}` expects a tensor or number, found {describe(value)}", part.at)

    def conditional(self, expr: nodes.Conditional) -> Value:
        self.condition(expr.condition)
        self.value(expr.value)
        if expr.otherwise is not None:
            self.value(expr.otherwise)
        return DYNAMIC

    def chain(self, expr: nodes.Chain) -> Value:
        outer, self._piped = self._piped, self.value(expr.head)
        for step in expr.steps:
            if step.loop is not None:
                self._loop(step.loop)
            if step.condition is not None:
                self.condition(step.condition)
            for value in (step.value, step.otherwise):
                found = self.value(value) if value is not None else None
                if value is not None and step.operator and _is_no_tensor(found):
                    self._no_tensor(step.operator, found, value)
            self._piped = DYNAMIC
        self._piped = outer
        return DYNAMIC

    _piped: Value = DYNAMIC

    def piped(self, expr: nodes.PipedValue) -> Value:
        return self._piped

    # Applications

    def apply(self, expr: nodes.Apply) -> Value:
        callee = self.value(expr.callee)
        if callee is not DYNAMIC and callee is not POISON and not isinstance(callee, Op | Definition | Partial):
            return self.fault("wrong-kind", f"cannot apply {describe(callee)}", expr.callee.at)
        return self._applied(expr, callee)

    def partial(self, expr: nodes.Partial) -> Value:
        for argument in expr.arguments:
            self.value(argument.value)
        return DYNAMIC

    def own(self, expr: nodes.ModuleDeclaration) -> Value:
        return self._applied(expr, self.value(expr.callee))

    def _applied(self, expr: nodes.Apply | nodes.ModuleDeclaration, callee: Value) -> Value:
        bound = expr.arguments.bound
        if bound is None or not isinstance(callee, Op | Definition):
            for argument in expr.arguments.every():
                self.value(argument.value)
            return DYNAMIC
        for name, argument in bound.hyperparameters.items():
            self._hyperparameter(callee, name, argument)
        takes = callee.takes if isinstance(callee, Definition) else operation_inputs(callee)
        for name, argument in zip(bound.names, bound.inputs, strict=True):
            if argument is not None:
                self._input(callee.name, name, argument, name in takes.optional)
        return DYNAMIC

    def _hyperparameter(self, callee: Op | Definition, name: str, argument: nodes.Argument) -> None:
        value = self.value(argument.value)
        declared = callee.hyperparameters[name] if isinstance(callee, Definition) else None
        if declared is None or not isinstance(declared.default, tree.Literal):
            return
        default = declared.default.value
        if not accepts(default, value):
            message = f"hyperparameter `{name}` of `{callee.name}` expects type {type_description(default)}, found "
            notes = (Note(f"the default is {describe(default)}", declared.span),)
            self.fault("wrong-kind", message + describe(value), argument.at, notes=notes)

    def _input(self, callee: str, name: str, argument: nodes.Argument, optional: bool) -> None:
        value, outputs = self.value(argument.value), outputs_of(argument.value)
        if outputs is not None and outputs > 1:
            message = f"input `{name}` of `{callee}` expects one tensor, found {outputs} outputs"
            help = "assign them to names first: `a, b = ...`"
            self.fault("wrong-kind", message, argument.value.at, help=help)
        elif (value is None and not optional) or _is_no_tensor(value):
            message = f"input `{name}` of `{callee}` expects a tensor, found {describe(value)}"
            self.fault("wrong-kind", message, argument.value.at)


_Untaken.handlers = {
    **Interpreter.handlers,
    nodes.Local: Interpreter.dynamic,
    nodes.Dimension: Interpreter.dynamic,
    nodes.PipedValue: _Untaken.piped,
    nodes.Binary: _Untaken.binary,
    nodes.Conditional: _Untaken.conditional,
    nodes.Chain: _Untaken.chain,
    nodes.Apply: _Untaken.apply,
    nodes.Partial: _Untaken.partial,
    nodes.ModuleDeclaration: _Untaken.own,
}


def _is_no_tensor(value: Value) -> bool:
    """Whether a value is known, and neither a tensor nor something that stands for one, nor `none`."""
    is_unknown = value is DYNAMIC or value is POISON or value is None
    return not (is_unknown or is_number(value) or isinstance(value, bool) or is_bare_operation(value))


def outputs_of(expr: nodes.Expr) -> int | None:
    """Return the number of outputs of an expression; None if it depends on values."""
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
            return 1 if expr.steps[-1].operator else outputs_of(expr.steps[-1].value)
        case _:
            return None
