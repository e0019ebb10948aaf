"""Evaluation of the hyperparameters of a definition in one use, and of overrides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archspec.compiler.evaluate.interpreter import Interpreter
from archspec.compiler.evaluate.partials import fits_default
from archspec.compiler.evaluate.program import Frame, Program, RequirementError
from archspec.compiler.evaluate.values import (
    DYNAMIC,
    POISON,
    Tensor,
    Value,
    accepts,
    describe,
    is_list,
    type_description,
)
from archspec.compiler.literals import expression
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.callees import join_names, report_tensor_argument
from archspec.compiler.resolve.definition import resolve_definition
from archspec.compiler.resolve.expressions import Expressions
from archspec.compiler.resolve.nodes import Argument
from archspec.compiler.resolve.scope import Scope
from archspec.compiler.resolve.unit import Binding, Definition, Unit, is_numeric
from archspec.compiler.resolve.walk import iter_expressions
from archspec.core.algebra import Polynomial
from archspec.core.diagnostics import Source, Span, suggest
from archspec.ir.ops import OPS, Op
from archspec.ir.table import PlainValue
from archspec.language.syntax import tree
from archspec.language.syntax.tree import Located


def hyperparameter_values(
    interpreter: Interpreter,
    callee: Definition,
    arguments: Mapping[str, Argument],
    forward: tree.Argument | None,
    node: Located,
    overrides: Mapping[str, Value] | None = None,
) -> dict[str, Value] | None:
    """Evaluate the hyperparameters of a definition in a use; None after reporting an error.

    `overrides` take precedence over the arguments.
    """
    if callee.open:
        return None
    forwarded = (
        interpreter.definition.hyperparameters if forward is not None and interpreter.definition is not None else {}
    )
    values: dict[str, Value] = {}
    failed = False
    for name, parameter in callee.hyperparameters.items():
        argument = arguments.get(name)
        default = POISON
        if parameter.default is not None:
            default = _evaluate_default(interpreter, callee, name, values)
        if overrides and name in overrides:
            values[name] = overrides[name]
            continue
        argument_node = argument.at if argument is not None else None
        if argument is not None:
            value = interpreter.value(argument.value)
        elif name in forwarded and name in interpreter.env:
            argument_node, value = forward, interpreter.env[name]
        elif parameter.default is None:
            if not failed:
                message = f"missing hyperparameter `{name}` in call to `{callee.name}`"
                help = f"expected hyperparameters: {join_names(callee.hyperparameters)}"
                interpreter.fault("missing-argument", message, node, help=help)
            failed = True
            values[name] = POISON
            continue
        else:
            value = default
        fits = _fits_hyperparameter(interpreter, callee, name, default, value, argument_node)
        failed = failed or not fits
        values[name] = value if fits else POISON
    return None if failed else values


def _fits_hyperparameter(
    interpreter: Interpreter, callee: Definition, name: str, default: Value, value: Value, node: Located | None
) -> bool:
    """Whether `value` may be the hyperparameter `name`; reports an error if not."""
    if value is POISON:
        return False
    if node is None:
        return True
    if value is DYNAMIC and is_numeric(callee):
        return True  # it may be the size of an input, which is not yet known
    if value is DYNAMIC or value.__class__ is Tensor:
        report_tensor_argument(callee.name, node, interpreter.fault)
        return False
    return fits_default(interpreter, callee, name, default, value, node)


def _evaluate_default(interpreter: Interpreter, callee: Definition, name: str, values: dict[str, Value]) -> Value:
    """Evaluate the default of a hyperparameter, which may use the preceding hyperparameters."""
    parameter = callee.hyperparameters[name]
    if isinstance(parameter.default, tree.Literal):
        return parameter.default.value
    program, key = interpreter.program, (callee, name)
    expr = resolve_definition(parameter.origin, program.report).defaults[name]
    if key in program.defaults:
        message = f"the default of `{name}` of `{callee.name}` depends on itself"
        program.error("definition-cycle", message, parameter.span)
        return POISON
    program.defaults.add(key)
    value = Evaluator(program, parameter.unit, callee, values).value(expr)
    program.defaults.discard(key)
    is_open = any(item is DYNAMIC for item in values.values())
    if value is DYNAMIC and not is_open and not any(isinstance(e, nodes.Invalid) for e in iter_expressions(expr)):
        message = f"the default of `{name}` of `{callee.name}` is not a compile-time constant"
        help = "use numbers, names, functions of numbers, and the hyperparameters before it"
        program.error("wrong-kind", message, parameter.span, help=help)
        return POISON
    return value


class Evaluator(Interpreter):
    """Evaluator of compile-time constants, including calls of functions of numbers."""

    def apply(self, expr: nodes.Apply) -> Value:
        if isinstance(expr.callee, nodes.AddressReference):
            return super().apply(expr)
        callee = self.value(expr.callee)
        if callee is POISON or callee is DYNAMIC:
            return callee
        return self.call(callee, expr) if is_numeric(callee) else super().apply(expr)

    def call(self, callee: Definition, expr: nodes.Apply) -> Value:
        """Call a function of numbers."""
        bound = self.bind_arguments(expr, callee)
        if bound is None:
            return POISON
        values = hyperparameter_values(self, callee, bound.hyperparameters, expr.arguments.forward, expr.at)
        if values is None:
            return POISON
        if any(value is DYNAMIC for value in values.values()):
            return DYNAMIC
        program, frames = self.program, self.program.frames
        if any(frame.definition is callee for frame in frames):
            names = [frame.definition.name for frame in frames]
            cycle = " -> ".join([*names[names.index(callee.name) :], callee.name])
            return self.fault("definition-cycle", f"`{callee.name}` calls itself: {cycle}", expr.at)
        frames.append(Frame(callee, self.unit, expr.at, bound))
        self.limits.count_call(callee.node.end - callee.node.start, len(frames), callee.span)
        value = _FunctionEvaluator(program, callee.unit, callee, values).run()
        frames.pop()
        return program.numbers.on_return(value, tuple(values.values()))


class _FunctionEvaluator(Evaluator):
    """Evaluator of one call of a function of numbers; errors are located at the call."""

    definition: Definition
    result: Value = DYNAMIC
    blames_caller = True

    def run(self) -> Value:
        form = resolve_definition(self.definition, self.program.report)
        try:
            self.visit(form.body)
        except RequirementError:
            return POISON
        if self.result is not DYNAMIC or form.broken or not form.returns:
            return POISON if self.result is DYNAMIC else self.result
        message = f"`{self.definition.name}` does not return a value here"
        return self.fault("missing-return", message, self.definition.node.name, help="add a `return` statement")

    # Statements

    def visit_assign(self, statement: nodes.Assign) -> None:
        value = self.value(statement.value)
        if len(statement.targets) > 1 and value is not POISON:
            message = f"cannot assign one value to {len(statement.targets)} names"
            value = self.fault("output", message, statement.value.at, help="assign the items of a list one by one")
        self.env.update(dict.fromkeys(statement.targets, value))

    def visit_return(self, statement: nodes.Return) -> bool:
        if len(statement.values) == 1:
            self.result = self.value(statement.values[0])
            return self.result is not DYNAMIC
        message = f"a function of numbers returns one value, found {len(statement.values)}"
        self.result = self.fault("output", message, statement.at, help="return a list: `return [a, b]`")
        return True

    def visit_if(self, statement: nodes.If) -> bool:
        condition = self.condition(statement.condition)
        if condition.__class__ is not bool:
            self.result = POISON
            return True
        ends = self.visit(statement.body if condition else statement.otherwise)
        for name in statement.binds:
            self.env.setdefault(name, None)
        return ends

    def visit_for(self, statement: nodes.For) -> bool:
        length = statement.at.end - statement.at.start
        done = self.program.numbers.iterate(
            self, statement.loop, statement.binds, lambda: self.visit(statement.body), length
        )
        if not done:
            self.result = POISON
        self.env.pop(statement.loop.variable, None)
        return self.result is not DYNAMIC

    # Expressions

    def dimension(self, expr: nodes.Dimension) -> Value:
        help = f"make it a hyperparameter of `{self.definition.name}`, and pass the size"
        return self.fault("unbound-dimension", f"dimension `{expr.name}` has no size here", expr.at, help=help)

    def apply(self, expr: nodes.Apply) -> Value:
        value = super().apply(expr)
        return self.tensor(expr) if value is DYNAMIC else value

    def tensor(self, expr: nodes.Expr) -> Value:
        """Report an expression that can only be a tensor."""
        message = f"`{self.definition.name}` declares no outputs, so it cannot compute tensors"
        help = "declare its outputs, as in `-> [n]`, or use numbers only"
        return self.fault("wrong-kind", message, expr.at, help=help)


Evaluator.handlers = {**Interpreter.handlers, nodes.Apply: Evaluator.apply}
_FunctionEvaluator.handlers = {
    **Evaluator.handlers,
    nodes.Dimension: _FunctionEvaluator.dimension,
    nodes.Apply: _FunctionEvaluator.apply,
    **dict.fromkeys(
        (nodes.Chain, nodes.AddressReference, nodes.ModuleDeclaration, nodes.LeadingDimensions),
        _FunctionEvaluator.tensor,
    ),
}


def convert_override(
    program: Program, unit: Unit, name: str, default: Value, override: PlainValue | Polynomial
) -> Value:
    """Convert an override of a hyperparameter to a static value; POISON after reporting an error.

    A name is a definition, an operation or a string; `Name(n = 4)` is a definition with hyperparameters bound. In
    a list it is one if the default is a list with definitions.
    """
    value = _resolve_words(program, unit, name, default, _lists_to_tuples(override))
    if value is not POISON and not accepts(default, value):
        message = f"hyperparameter `{name}` expects type {type_description(default)}, found {describe(value)}"
        program.report.error("wrong-kind", message)
        return POISON
    return value


def _resolve_words(program: Program, unit: Unit, name: str, default: Value, value: Value) -> Value:
    """Convert names in an override to definitions and operations; POISON after reporting an error."""
    if is_list(value) and is_list(default):
        defaults = [item for item in default if is_list(item) or _is_definition(item)]
        if not defaults:
            return value
        items = tuple([_resolve_words(program, unit, name, defaults[0], item) for item in value])
        return POISON if any(item is POISON for item in items) else items
    if not isinstance(value, str) or isinstance(default, str):
        return value
    word, parenthesis, _ = value.partition("(")
    target = _resolve_word(program, unit, word.strip(), is_definition=_is_definition(default))
    if target is None:
        return value
    return _evaluate_partial(program, unit, name, value) if parenthesis and target is not POISON else target


def _is_definition(value: Value) -> bool:
    return type_description(value) in ("layer", "block", "function")


def _resolve_word(program: Program, unit: Unit, word: str, is_definition: bool) -> Value:
    """Resolve a word to a definition or operation; None for a string, POISON after reporting an unknown definition."""
    binding = unit.names.get(word)
    target = binding.target if binding else OPS.get(word)
    if target is None and is_definition:
        target = unit.override_names.get(word)
        if target is None:
            near = suggest(word, [*unit.names, *OPS, *unit.override_names])
            program.report.error("unknown-name", f"unknown name `{word}` in {unit.source.label}", help=near)
            return POISON
    return target


def _evaluate_partial(program: Program, unit: Unit, name: str, text: str) -> Value:
    """Evaluate a definition with hyperparameters bound; the names of `unit` are in scope."""
    source = Source(f"--set {name}", text)
    expr = expression(source, program.report)
    if expr is None:
        return POISON
    file = Unit(source, unit.tree, None, None)
    targets: dict[str, Definition | Op] = unit.override_names
    file.names = {word: Binding(target, Span(source, 0, 0), True) for word, target in targets.items()} | unit.names
    return Evaluator(program, file, None, {}).value(Expressions(Scope(file, None, program.report)).resolve(expr))


def _lists_to_tuples(value: PlainValue | Polynomial) -> Value:
    """Convert lists in a Python value to tuples."""
    return value if isinstance(value, str) or not isinstance(value, Sequence) else tuple(map(_lists_to_tuples, value))
