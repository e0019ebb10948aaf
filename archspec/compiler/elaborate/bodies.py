"""The second pass: the body of a definition, with the type of every value."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence

from archspec.compiler.elaborate.application import ApplicationInterpreter
from archspec.compiler.elaborate.body_checks import ResidualCheck, find_unused
from archspec.compiler.elaborate.einsum import apply_equation
from archspec.compiler.elaborate.loop_index import indices_in
from archspec.compiler.elaborate.loops import CollectedTensor, Iteration, collect_value, compile_loop, stack_collected
from archspec.compiler.elaborate.rearrange import apply_pattern
from archspec.compiler.elaborate.repeats import StepIterations
from archspec.compiler.elaborate.shapes import OutputExpression, format_shape
from archspec.compiler.evaluate.body_builder import number_type
from archspec.compiler.evaluate.program import CompileTarget, Frame, InputArgument, Program, RequirementError
from archspec.compiler.evaluate.values import POISON, MultipleOutputs, Tensor, Value, describe, is_list
from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.definition import ResolvedDefinition, resolve_definition
from archspec.compiler.resolve.nodes import TypedEntry
from archspec.compiler.resolve.unit import Definition
from archspec.core.algebra import Dim, Polynomial
from archspec.core.diagnostics import Note
from archspec.ir.module import Body, Constant, Type
from archspec.ir.ops import OPS
from archspec.language.syntax.tree import Located


def compile_body(
    program: Program, target: CompileTarget, arguments: tuple[InputArgument, ...], frame: Frame | None = None
) -> Body | None:
    """Return the body of a definition for input types, the same object for equal types; None after reporting errors.

    `frame` is the use that requires the body.
    """
    if target.module in program.refused:
        return None
    key = (target.owner, *map(program.numbers.key, arguments), *_index_ranges(program, target, arguments))
    if key in program.bodies:
        return program.bodies[key]
    frames = program.frames
    if frame is not None:
        if any(f.definition is target.definition for f in frames):
            names = [f.definition.name for f in frames]
            cycle = " -> ".join([*names[names.index(target.definition.name) :], target.definition.name])
            program.error("definition-cycle", f"`{target.definition.name}` applies itself: {cycle}", frame.span)
            return None
        frames.append(frame)
    program.count_instance(target.definition, target.definition.span)
    body = BodyInterpreter(program, target).run(arguments)
    program.bodies[key] = body
    program.cached_objects += 1 if body is None else len(body.calls) + 1
    if frame is not None:
        frames.pop()
    return body


def _index_ranges(program: Program, target: CompileTarget, arguments: tuple[InputArgument, ...]) -> list[Hashable]:
    """Return the ranges of the loop indices on which the arguments of a use depend."""
    if not program.ranges:
        return []
    values = (*target.values.values(), *[argument.value for argument in arguments if isinstance(argument, Constant)])
    names = frozenset[str]().union(*[indices_in(value, program.ranges) for value in values])
    return [(name, program.ranges[name]) for name in sorted(names)]


def _common_element_type(form: ResolvedDefinition, arguments: tuple[InputArgument, ...]) -> str:
    """Return the element type of the inputs that are declared `any`, from the first tensor or else number."""
    passed = [a for entry, a in zip(form.inputs, arguments, strict=True) if entry.dtype == "any" and a is not None]
    tensors = [a for a in passed if not isinstance(a, Constant)]
    if tensors:
        return tensors[0].dtype
    return number_type(passed[0].value).dtype if passed and isinstance(passed[0], Constant) else "real"


class BodyInterpreter(ApplicationInterpreter):
    """Interprets a definition as one body, statement by statement."""

    def __init__(self, program: Program, target: CompileTarget) -> None:
        super().__init__(program, target, compile_body)
        self.results: tuple[Value, ...] | None = None
        self._inputs: dict[str, Value] = {}
        self._element_type = "real"
        self.collect: Callable[[str, CollectedTensor | None], None] | None = None

    def run(self, arguments: tuple[InputArgument, ...]) -> Body | None:
        form = resolve_definition(self.definition, self.program.report)
        if not self._bind_inputs(form, arguments):
            return None
        try:
            self.visit(form.body)
        except RequirementError:
            return None
        if self.results is None:
            if form.returns and not form.broken:
                message = f"`{self.definition.name}` does not return a value"
                self.fault("missing-return", message, self.definition.node.name, help="add a `return` statement")
            return None
        if not self._check_outputs([self._resolve_any(entry) for entry in form.outputs]):
            return None
        body = self.builder.body
        body.results = tuple([body.types[o] if isinstance(o, int) else None for _, o in body.outputs])
        body.size = sum([c.body.size if c.body is not None else 1 for c in body.calls])
        self.limits.check_operations(body.size, self.definition.span)
        if self.module is not None:
            # In a loop with an open iteration count, carried values are not connected: every slot counts as used.
            discarded = body.discarded if self.program.numbers.counts_elements else range(len(body.types))
            body.unused = find_unused(self.module, body, discarded)
            self.limits.check_unused(len(body.unused), self.definition.span)
        if self.observer is not None:
            self.observer.on_body(self.target, arguments, body)
        return body

    # Inputs and outputs

    def _bind_inputs(self, form: ResolvedDefinition, arguments: tuple[InputArgument, ...]) -> bool:
        """Bind the inputs and the dimensions in their shapes; False after reporting a mismatch."""
        is_valid = True
        self._element_type = _common_element_type(form, arguments)
        for declared, argument in zip(form.inputs, arguments, strict=True):
            entry = self._resolve_any(declared)
            if argument is None:
                self.env[entry.name] = None
            elif isinstance(argument, Constant):
                real = entry.dtype == "real" and not isinstance(argument.value, bool)
                self.env[entry.name] = (
                    1.0 * argument.value if real and isinstance(argument.value, int) else argument.value
                )
                is_valid = self.header.match(entry, Type(()) if real else number_type(argument.value)) and is_valid
            else:
                self.env[entry.name] = self.builder.slot(argument)
                self.builder.body.inputs.append((entry.name, argument))
                is_valid = self.header.match(entry, argument) and is_valid
        self._inputs = {entry.name: self.env[entry.name] for entry in form.inputs}
        return is_valid

    def _resolve_any(self, entry: TypedEntry) -> TypedEntry:
        """Return an entry of this use, in which `any` elements are of one type."""
        return entry.replace(dtype=self._element_type) if entry.dtype == "any" else entry

    def _check_outputs(self, declared: Sequence[TypedEntry]) -> bool:
        """Check the results against the declared outputs; False after reporting an error."""
        assert self.results is not None
        if POISON in self.results:
            return False
        if declared and len(declared) != len(self.results):
            outputs = f"declares {pluralize(len(declared), 'output')} but returns {len(self.results)}"
            self.fault("output", f"`{self.definition.name}` {outputs}", self._return.at)
            return False
        self.env.update(self._inputs)  # sizes may depend on which are present, and the body may have bound their names
        is_valid = True
        locations = [value.at for value in self._return.values]
        if len(locations) != len(self.results):  # one call returns all outputs
            locations *= len(self.results)
        for i, (value, location) in enumerate(zip(self.results, locations, strict=True)):
            name = declared[i].name if declared else ""
            if value is None:
                is_valid = (
                    not declared or declared[i].optional or self._report_absent_output(declared[i], location)
                ) and is_valid
                self.builder.body.outputs.append((name, None))
            elif isinstance(value, Tensor):
                if declared:
                    is_valid = (
                        self.header.match(declared[i], value.type, OutputExpression(location, self.builder, value.slot))
                        and is_valid
                    )
                self.builder.body.outputs.append((name, value.slot))
            else:
                self.fault("wrong-kind", f"expected a tensor as output, found {describe(value)}", location)
                is_valid = False
        return is_valid

    def _report_absent_output(self, output: nodes.TypedEntry, location: Located) -> bool:
        """Report an output that is `none` but not declared as optional."""
        name = f"output `{output.name}`" if output.name else "an output"
        help = "write `?` after its shape to declare that it may be absent"
        note = Note("declared here", self.unit.span(output.at))
        self.fault("output", f"{name} of `{self.definition.name}` is `none` here", location, notes=(note,), help=help)
        return False

    # Statements

    def visit_return(self, statement: nodes.Return) -> bool:
        self._return = statement
        self.results = tuple([self.value(value) for value in statement.values])
        if len(self.results) == 1 and isinstance(self.results[0], MultipleOutputs):
            self.results = self.results[0].values
        return True

    def visit_assign(self, statement: nodes.Assign) -> None:
        if isinstance(statement.value, nodes.Collect):
            self._collect(statement.targets[0], statement.value)
            return
        value = self.value(statement.value)
        targets = statement.targets
        values: Sequence[Value] = value.values if isinstance(value, MultipleOutputs) else (value,)
        if value is POISON:
            values = [POISON] * len(targets)
        elif len(values) != len(targets):
            message = f"cannot assign {pluralize(len(values), 'output')} to {pluralize(len(targets), 'name')}"
            help = None
            if len(values) > 1:
                help = f"write `{', '.join(['_'] * len(values))} = ...`, with names for the outputs that you use"
            self.fault("output", message, statement.value.at, help=help)
            values = [POISON] * len(targets)
        for target, item in zip(targets, values, strict=True):
            if target != "_":
                self.env[target] = item
            elif isinstance(item, Tensor):
                self.builder.body.discarded.add(item.slot)

    def _collect(self, name: str, expr: nodes.Collect) -> None:
        collected = collect_value(self, expr)
        if self.collect is not None:
            self.collect(name, collected)
        if self.observer is not None and collected is not None:
            self.observer.on_value(expr, collected[0])

    def visit_if(self, statement: nodes.If) -> bool:
        condition = self.condition(statement.condition)
        if condition.__class__ is bool:
            self.visit(statement.body if condition else statement.otherwise)
        is_known = condition.__class__ is bool and not statement.broken
        for name in statement.binds:
            self.env.setdefault(name, None if is_known else POISON)
        return self.results is not None

    def visit_for(self, statement: nodes.For) -> None:
        bounds = self._symbolic_bounds(statement.loop, bool(statement.collects) and not statement.selects)
        if bounds is not None:
            run = self._iteration_interpreter(lambda: self.visit(statement.body))
            declares = any(walk.declarations(statement.body))  # reported by the first pass
            if declares or not compile_loop(self, statement.loop, bounds, statement.binds, run, statement.collects):
                self.env.update(dict.fromkeys(statement.binds, POISON))
            return
        check = ResidualCheck(self, statement.loop.at)
        length = statement.at.end - statement.at.start
        parts: dict[str, list[CollectedTensor | None]] = {name: [] for name in statement.collects}

        def collect(name: str, part: CollectedTensor | None) -> None:
            parts[name].append(part)

        iterations = 0

        def run_iteration() -> None:
            nonlocal iterations
            iterations += 1
            self.visit(statement.body)

        enclosing_collect, self.collect = self.collect, collect
        done = self.program.numbers.iterate(
            self, statement.loop, statement.binds, run_iteration, length, check.add_iteration
        )
        self.collect = enclosing_collect
        if done:
            check.report()
            self.env.update(
                {name: stack_collected(self, statement, values, iterations) for name, values in parts.items()}
            )
        else:
            self.env.update(dict.fromkeys((*statement.binds, *statement.collects), POISON))
        self.env.pop(statement.loop.variable, None)

    def _symbolic_bounds(self, loop: nodes.Loop, collects: bool = False) -> tuple[Dim, Dim] | None:
        """Return the bounds of a loop that is compiled as one iteration; None if each iteration is compiled."""
        bounds = self.value(loop.first), self.value(loop.last)
        first, last = bounds
        if not isinstance(first, int | Polynomial) or not isinstance(last, int | Polynomial):
            return None
        if isinstance(first, bool) or isinstance(last, bool):
            return None
        return (first, last) if collects or any(map(self.program.numbers.is_dimension, bounds)) else None

    def _iteration_interpreter(self, run: Callable[[], object]) -> Callable[[Iteration], None]:
        """Return a function that interprets an iteration of a loop over a dimension."""

        def interpret(iteration: Iteration) -> None:
            enclosing_collect, self.collect = self.collect, iteration.collected.__setitem__
            run()
            self.collect = enclosing_collect

        return interpret

    # Chains

    def chain(self, expr: nodes.Chain) -> Value:
        piped = self.value(expr.head)
        enclosing_piped = self.env.get("_")
        for step in expr.steps:
            if piped is not POISON:
                piped = self._evaluate_step(step, piped)
            elif step.operator and step.loop is None:
                self.value(step.value)  # only for its errors
        if enclosing_piped is None:
            self.env.pop("_", None)
        else:
            self.env["_"] = enclosing_piped
        return piped

    def _evaluate_step(self, step: nodes.Step, piped: Value) -> Value:
        if step.loop is None:
            return self._evaluate_step_once(step, piped)
        self.env["_"] = piped
        bounds = self._symbolic_bounds(step.loop)
        if bounds is not None:
            interpret_step = self._iteration_interpreter(
                lambda: self.env.update(_=self._evaluate_step_once(step, self.env["_"]))
            )
            return self.env["_"] if compile_loop(self, step.loop, bounds, ("_",), interpret_step) else POISON
        check = ResidualCheck(self, step.value.at)
        iterations = StepIterations(self, step, self._evaluate_step_once)

        def run() -> None:
            if self.env["_"] is not POISON:
                self.env["_"] = iterations.value(self.env["_"])

        def check_iteration(before: dict[str, Value], after: dict[str, Value]) -> None:
            check.add_iteration({"": before["_"]}, {"": after["_"]})

        length = step.at.end - step.at.start
        done = self.program.numbers.iterate(self, step.loop, ("_",), run, length, check_iteration)
        if done:
            check.report()
        self.env.pop(step.loop.variable, None)
        return self.env["_"] if done else POISON

    def _evaluate_step_once(self, step: nodes.Step, piped: Value) -> Value:
        value = self._step_value(step, piped)
        if self.observer is not None:
            self.observer.on_value(step, value)
        return value

    def _step_value(self, step: nodes.Step, piped: Value) -> Value:
        value = step.value
        if step.condition is not None:
            condition = self.condition(step.condition)
            if condition is False:
                if step.otherwise is None:
                    return piped
                value = step.otherwise
            elif condition is not True:
                return POISON
        if isinstance(piped, MultipleOutputs):
            return self._report_several_outputs(step, len(piped.values))
        if piped is None:
            return self.fault("wrong-kind", "the piped value is `none` here", step.at)
        self.env["_"] = piped
        if step.operator:
            return self.combine(step.operator, piped, self.value(value), step.at, value.at, value.at)
        return self.handlers[value.__class__](self, value)

    def _report_several_outputs(self, step: nodes.Step, outputs: int) -> Value:
        """Report a step that follows a step with several outputs."""
        call = self.builder.body.calls[-1]
        op = OPS.get(call.type) if call.kind == "op" else None
        output_names = re.findall(r"(\w+): ", op.result) if op is not None else []
        names = ", ".join(output_names if len(output_names) == outputs else "abcdefgh"[:outputs])
        message = f"expected one output to pipe into this step, found {outputs}"
        notes = (Note(f"`{call.type}` has {outputs} outputs", call.span),)
        help = f"end the chain there and name the outputs: `{names} = ...`"
        return self.fault("wrong-kind", message, step.at, notes=notes, help=help)


BodyInterpreter.handlers = {
    **ApplicationInterpreter.handlers,
    nodes.Chain: BodyInterpreter.chain,
    nodes.Rearrange: apply_pattern,
    nodes.Einsum: apply_equation,
}


def compile_constant(
    program: Program, definition: Definition, env: dict[str, Value], expr: nodes.Expr, type: Type
) -> Body | None:
    """Compile the body that computes a constant tensor, and check its shape."""
    interpreter = BodyInterpreter(program, CompileTarget(definition, env, None))
    body = interpreter.builder.body
    body.kind, body.type = "fn", "value"
    value = interpreter.value(expr)
    if isinstance(value, int | float) and isinstance(value, bool) == (type.dtype == "bool"):
        constant = float(value) if type.dtype == "real" else value
        attributes: dict[str, Value] = {"shape": type.shape, "value": constant}
        value = interpreter.apply_op(OPS["full"], (), attributes, expr.at, lambda _: None)
    if is_list(value):
        listed = _convert_to_reals(value) if type.dtype == "real" else value
        value = interpreter.apply_op(OPS["table"], (), {"values": listed}, expr.at, lambda _: None)
    if value is POISON:
        return None
    if not isinstance(value, Tensor) or value.type != type:
        actual = (
            f"{value.type.dtype} {format_shape(value.type.shape)}" if isinstance(value, Tensor) else describe(value)
        )
        message = f"expected a value of type {type.dtype} {format_shape(type.shape)}, found {actual}"
        interpreter.fault("dimension", message, expr.at)
        return None
    body.outputs.append(("", value.slot))
    return body


def _convert_to_reals(value: Value) -> Value:
    """Return a list with its integers converted to reals."""
    if is_list(value):
        return tuple([_convert_to_reals(item) for item in value])
    return 1.0 * value if isinstance(value, int) and not isinstance(value, bool) else value


def pluralize(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
