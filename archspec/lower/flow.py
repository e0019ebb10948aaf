"""The second pass: what a definition computes, with the type of every value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from archspec.ir import Body, Constant, Module, Type
from archspec.lower import calls
from archspec.lower.building import Building
from archspec.lower.idle import find_idle
from archspec.lower.operands import count, number_type, report_require
from archspec.lower.plan import assigned
from archspec.lower.program import Frame, Program, Refused
from archspec.lower.residual import warn_without_residual
from archspec.lower.shapes import shape_text
from archspec.lower.units import Definition
from archspec.lower.values import (
    DYNAMIC,
    POISON,
    Several,
    Tensor,
    describe,
    key_of,
)
from archspec.ops import OPS
from archspec.syntax import tree

if TYPE_CHECKING:
    from archspec.lower.own import Owner

Given = Type | Constant | None
"""What an input of a definition is given: a tensor's type, a number, or nothing."""


class Target(NamedTuple):
    """What is applied: a definition with hyperparameters, and the module if it owns something."""

    definition: Definition
    values: dict[str, Any]
    module: Module | None


class Applied(NamedTuple):
    """The last application of a definition in a body."""

    target: Target
    given: list[Given]
    body: Body


def body_of(program: Program, target: Target, given: tuple[Given, ...], frame: Frame | None = None) -> Body | None:
    """The body of a definition for input types; the same object for the same types. None if it has errors.

    `frame` is the use that asks for it.
    """
    owner: Any = target.module
    if owner in program.refused:
        return None
    if owner is None:
        owner = (target.definition, *[key_of(v) for v in target.values.values()])
    key = (owner, *[(Constant, key_of(g.value)) if isinstance(g, Constant) else g for g in given])
    if key in program.bodies:
        return program.bodies[key]
    frames = program.frames
    if frame is not None:
        if any(f.definition is target.definition for f in frames):
            names = [f.definition.name for f in frames]
            circle = " -> ".join([*names[names.index(target.definition.name) :], target.definition.name])
            program.error("definition-cycle", f"`{target.definition.name}` applies itself: {circle}", frame.span)
            return None
        frames.append(frame)
    program.count_instance(target.definition, target.definition.span)
    body = flow_of(program, target).run(given)
    program.bodies[key] = body
    program.kept += 1 if body is None else len(body.calls) + 1
    if frame is not None:
        frames.pop()
    return body


def flow_of(program: Program, target: Target) -> Flow:
    """What works out a body of `target`."""
    return (program.flow or Flow)(program, target)


class Flow(Building):
    """Works out one body, statement by statement."""

    def __init__(self, program: Program, target: Target) -> None:
        super().__init__(program, target.definition, target.values, target.module)
        self.applied: dict[str, list[Body]] = {}
        self.results: tuple[Any, ...] | None = None
        self.last: Applied | None = None

    def run(self, given: tuple[Given, ...]) -> Body | None:
        assert self.definition is not None
        node = self.definition.node
        if not self._take(given):
            return None
        try:
            self.execute(node.body)
        except Refused:
            return None
        if self.results is None:
            if not self._is_broken(node) and self.is_news("return"):
                message = f"`{self.definition.name}` does not return a value"
                self.fault("missing-return", message, node.name, help="add a `return` statement")
            return None
        if not self._give(node):
            return None
        body = self.body
        body.results = tuple([body.types[o] if isinstance(o, int) else None for _, o in body.outputs])
        body.size = sum(c.body.size if c.body is not None else 1 for c in body.calls)
        self.program.check_operations(body.size, self.definition.span)
        if self.module is not None:
            body.idle = find_idle(self.module, self.applied, self.reads)
            self.program.check_idle(len(body.idle), self.definition.span)
        return body

    def _is_broken(self, node: tree.Definition | tree.If) -> bool:
        return any(node.start <= b.start < node.end for b in self.unit.tree.broken)

    def _take(self, given: tuple[Given, ...]) -> bool:
        """Binds the inputs and the dimensions in their shapes."""
        assert self.definition is not None
        fits = True
        for entry, item in zip(self.definition.node.inputs, given, strict=True):
            if item is None:
                self.env[entry.name] = None
            elif isinstance(item, Constant):
                real = not entry.type and not isinstance(item.value, bool)
                self.env[entry.name] = float(item.value) if real and isinstance(item.value, int) else item.value
                fits = self.header.match(entry, Type(()) if real else number_type(item.value)) and fits
            else:
                self.env[entry.name] = self.slot(item)
                self.body.inputs.append((entry.name, item))
                fits = self.header.match(entry, item) and fits
        return fits

    def _give(self, node: tree.Definition) -> bool:
        """Checks the results against the declared outputs."""
        assert self.results is not None and self.definition is not None
        declared = node.outputs
        if declared and len(declared) != len(self.results):
            message = (
                f"`{self.definition.name}` declares {count(len(declared), 'output')} but returns {len(self.results)}"
            )
            self.fault("output", message, self._return)
            return False
        fits = True
        for i, (value, expr) in enumerate(zip(self.results, self._return.values, strict=True)):
            name = declared[i].name if declared else ""
            if value is None:
                self.body.outputs.append((name, None))
            elif isinstance(value, Tensor):
                fits = (not declared or self.header.match(declared[i], value.type, expr)) and fits
                self.body.outputs.append((name, value.slot))
            else:
                if value is not POISON:
                    self.fault("wrong-kind", f"expected a tensor as output, found {describe(value)}", expr)
                fits = False
        return fits

    def _applied(self, expr: tree.Call) -> Any:
        return calls.call(self, expr)

    def _own(self, expr: tree.Own) -> Any:
        return calls.own(self, expr, None)

    def _chain(self, expr: tree.Chain) -> Any:
        stream = self.value(expr.head)
        outer = self.env.get("_")
        for step in expr.steps:
            if stream is not POISON:
                stream = self._step(step, stream)
            elif step.operator and step.loop is None:
                self.value(step.value)  # what is wrong in it is said all the same
        if outer is None:
            self.env.pop("_", None)
        else:
            self.env["_"] = outer
        return stream

    def _step(self, step: tree.Step, stream: Any) -> Any:
        if step.loop is None:
            return self.step_once(step, stream)
        bounds = self.bounds(step.loop, step.end - step.start)
        if bounds is None:
            return POISON
        before, first = len(self.body.calls), stream
        index = step.loop.variable
        for i in range(*bounds):
            self.env[index] = i
            stream = self.step_once(step, stream)
            if stream is POISON:
                break
            if i == bounds[0] and bounds[1] - bounds[0] > 1:
                warn_without_residual(self, before, {"": first}, {"": stream}, step.value)
        self.env.pop(index, None)
        return stream

    def step_once(self, step: tree.Step, stream: Any) -> Any:
        value = step.value
        if step.condition is not None:
            condition = self.condition(step.condition)
            if condition is False:
                if step.otherwise is None:
                    return stream
                value = step.otherwise
            elif condition is not True:
                return POISON
        if isinstance(stream, Several):
            return self.fault(
                "wrong-kind", f"expected one output to pipe into this step, found {len(stream.values)}", step
            )
        if stream is None:
            return self.fault("wrong-kind", "the piped value is `none` here", step)
        self.env["_"] = stream
        if step.operator:
            return self.combine(step.operator, stream, self.value(value), step, value, value)
        return calls.apply_step(self, value, stream)

    # Statements

    def execute(self, statements: tuple[tree.Statement, ...]) -> None:
        for statement in statements:
            match statement:
                case tree.Bind():
                    self._bind(statement)
                case tree.Return():
                    self._return = statement
                    self.results = tuple([self.value(v) for v in statement.values])
                    if len(self.results) == 1 and isinstance(self.results[0], Several):
                        self.results = self._spread(statement, self.results[0])
                    return
                case tree.For():
                    self._for(statement)
                case tree.If():
                    self._if(statement)
                    if self.results is not None:
                        return
                case tree.Require():
                    self.require(statement)
                case _:
                    pass  # ownership, which the first pass settled

    def require(self, node: tree.Require) -> None:
        if self.condition(node.condition) is False:
            report_require(self, node)
            raise Refused

    def _spread(self, statement: tree.Return, several: Several) -> tuple[Any, ...]:
        self._return = statement._replace(values=statement.values * len(several.values))
        return several.values

    def _bind(self, statement: tree.Bind) -> None:
        value = self.value(statement.value)
        targets = statement.targets
        values: Sequence[Any] = value.values if isinstance(value, Several) else (value,)
        if value is POISON:
            values = [POISON] * len(targets)
        elif len(values) != len(targets):
            message = f"cannot assign {count(len(values), 'output')} to {count(len(targets), 'name')}"
            help = (
                f"write `{', '.join(['_'] * len(values))} = ...`, with names for the outputs that you use"
                if len(values) > 1
                else None
            )
            self.fault("output", message, statement.value, help=help)
            values = [POISON] * len(targets)
        for target, item in zip(targets, values, strict=True):
            if target.text != "_":
                twice = (self.definition, target.text) in self.program.unknown
                self.env[target.text] = POISON if twice else item

    def _if(self, statement: tree.If) -> None:
        condition = self.condition(statement.condition)
        names = set(assigned((statement,)))
        if condition.__class__ is bool:
            self.execute(statement.body if condition else statement.otherwise)
        known = condition.__class__ is bool and not self._is_broken(statement)
        for name in names:
            self.env.setdefault(name, None if known else POISON)

    def _for(self, statement: tree.For) -> None:
        bounds = self.bounds(statement.loop, statement.end - statement.start)
        names = set(assigned(statement.body))
        if bounds is None:
            self.env.update(dict.fromkeys(names, POISON))
            return
        before = len(self.body.calls)
        carried = {n: self.env[n] for n in names if n in self.env}
        for i in range(*bounds):
            for name in names - carried.keys():  # what is bound in a round is the round's own
                self.env.pop(name, None)
            self.env[statement.loop.variable] = i
            self.execute(statement.body)
            if i == bounds[0] and bounds[1] - bounds[0] > 1:
                after = {n: self.env[n] for n in carried}
                warn_without_residual(self, before, carried, after, statement.loop)
        self.env.pop(statement.loop.variable, None)

    def bounds(self, loop: tree.Loop, length: int) -> tuple[int, int] | None:
        """First and last (exclusive) of a loop over `length` characters; None if that was reported."""
        first, last = self.value(loop.first), self.value(loop.last)
        for value, node in ((first, loop.first), (last, loop.last)):
            if value is not POISON and value.__class__ is not int:
                self.fault("wrong-kind", f"expected an integer loop bound, found {describe(value)}", node)
                return None
        if first is POISON or last is POISON or self.counts_down(first, last, loop):
            return None
        self.program.count_work((last - first) * length, self.unit.span(loop))
        return first, last


Flow.handlers = {
    **Building.handlers,
    tree.Call: Flow._applied,  # pyright: ignore[reportPrivateUsage]
    tree.Own: Flow._own,  # pyright: ignore[reportPrivateUsage]
    tree.Chain: Flow._chain,  # pyright: ignore[reportPrivateUsage]
}


def constant_body(program: Program, owner: Owner, node: tree.Param, type: Type) -> Body | None:
    """The body that computes a constant table, checked to have the shape declared."""
    assert owner.definition is not None and node.value is not None
    flow = flow_of(program, Target(owner.definition, {}, None))
    flow.body.kind, flow.body.type = "fn", "value"
    flow.env = {k: v for k, v in owner.env.items() if v is not DYNAMIC}
    value = flow.value(node.value)
    if isinstance(value, int | float) and isinstance(value, bool) == (type.dtype == "bool"):
        constant = float(value) if type.dtype == "real" else value
        attributes = {"shape": type.shape, "value": constant}
        value = flow.apply_op(OPS["full"], (), attributes, node.value, lambda _: node.value)
    if value is POISON:
        return None
    if not isinstance(value, Tensor) or value.type != type:
        got = f"{value.type.dtype} {shape_text(value.type.shape)}" if isinstance(value, Tensor) else describe(value)
        message = f"expected a value of type {type.dtype} {shape_text(type.shape)}, found {got}"
        owner.fault("dimension", message, node.value)
        return None
    flow.body.outputs.append(("", value.slot))
    return flow.body
