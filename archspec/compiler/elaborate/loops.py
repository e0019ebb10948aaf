"""Loops over a dimension: one iteration is compiled, as a body that represents all iterations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from archspec.compiler.elaborate.application import ApplicationInterpreter
from archspec.compiler.elaborate.loop_index import indices_in, symbols_in
from archspec.compiler.elaborate.shapes import format_shape
from archspec.compiler.evaluate.body_builder import BodyBuilder
from archspec.compiler.evaluate.program import Range
from archspec.compiler.evaluate.values import POISON, MultipleOutputs, Tensor, Value, describe, is_integer, value_key
from archspec.compiler.resolve import nodes
from archspec.core.algebra import Dim, Polynomial, has_lower_bound, index, symbols
from archspec.ir.module import Body, Call, LocatedTensor, Loop, Operand, Type, find_member
from archspec.ir.ops import OPS
from archspec.ir.ops.check import MAX_DIMENSIONS

CollectedTensor: TypeAlias = tuple[Tensor, int]
"""A value that an iteration collects, and the index of the new axis."""


class Iteration:
    """One iteration of a loop over a dimension, while it is compiled.

    `collected` has values by name, with their axes (None after an error). `enclosing_slots` maps a slot of the body to
    the slot of the enclosing body that provides its value.
    """

    def __init__(self, enclosing: BodyBuilder, interpreter: ApplicationInterpreter) -> None:
        self.enclosing = enclosing
        self.builder = BodyBuilder("loop", "for", interpreter.module, None, interpreter.limits)
        self.collected: dict[str, CollectedTensor | None] = {}
        self.enclosing_slots: dict[int, int] = {}

    def bind_inputs(self, env: dict[str, Value], carried: Collection[str]) -> None:
        """Replace the tensors of `env` by inputs of the body; equal tensors share a slot unless they are carried."""
        shared: dict[int, Tensor] = {}
        for name, value in [*env.items()]:
            if not isinstance(value, Tensor):
                continue
            tensor = shared.get(value.slot) if name not in carried else None
            if tensor is None:
                tensor = self.builder.slot(value.type)
                self.builder.body.inputs.append((name, value.type))
                self.enclosing_slots[tensor.slot] = value.slot
                if name not in carried:
                    shared[value.slot] = tensor
            env[name] = tensor


def compile_loop(
    interpreter: ApplicationInterpreter,
    loop: nodes.Loop,
    bounds: tuple[Dim, Dim],
    binds: Collection[str],
    run: Callable[[Iteration], None],
    collects: Collection[str] = (),
) -> bool:
    """Compile a loop over a dimension that binds or collects names; False after reporting an error.

    `run` interprets one iteration. Tensors that are bound before the loop are carried from one iteration to the next.
    """
    env, first, count = interpreter.env, bounds[0], bounds[1] - bounds[0]
    if not _check_bounds(interpreter, loop, bounds, bool(collects)):
        return False
    before = dict(env)
    carried = [name for name in binds if isinstance(env.get(name), Tensor)]
    iteration = Iteration(interpreter.builder, interpreter)
    iteration.bind_inputs(env, carried)
    inside = dict(env)
    name = _unused_index_name(loop.variable, before, iteration.builder, interpreter.program.ranges)
    interpreter.program.ranges[name] = Range(first, bounds[1] - 1)
    env[loop.variable] = index(name)
    interpreter.builder = iteration.builder
    try:
        run(iteration)
    finally:
        interpreter.builder = iteration.enclosing
        del interpreter.program.ranges[name]
    after = dict(env)
    env.clear()
    env.update(before)
    if not collects and not any(name in before for name in binds):
        help = "assign to a name from before the loop, or collect a value: `name = collect(axis = 1)(value)`"
        message = "this loop neither carries nor collects a value"
        if not interpreter.program.report.errors:
            interpreter.fault("discarded-value", message, loop.at, help=help)
        return False
    if not _check_carried(interpreter, loop, before, inside, after, binds):
        return False
    changed = [name for name in carried if after[name] != inside[name]]
    _emit(interpreter, loop, iteration, changed, after, (name, first, count), collects)
    return True


def _report_empty(interpreter: ApplicationInterpreter, loop: nodes.Loop) -> Value:
    """Report a loop without iterations that collects."""
    help = "use an end (exclusive) that is above the start"
    message = "a loop that collects needs at least one iteration"
    return interpreter.fault("wrong-kind", message, loop.last.at, help=help)


def _check_bounds(
    interpreter: ApplicationInterpreter, loop: nodes.Loop, bounds: tuple[Dim, Dim], collects: bool
) -> bool:
    """Check the bounds of a loop over a dimension; False after reporting an error."""
    (first, last), numbers = bounds, interpreter.program.numbers
    count = last - first
    for bound, part in zip(bounds, (loop.first, loop.last), strict=True):
        if indices_in(bound, interpreter.program.ranges):
            message = "the bounds of a loop cannot depend on the index of a loop over a dimension"
            interpreter.fault("wrong-kind", message, part.at)
            return False
    if any(isinstance(bound, Polynomial) for bound in bounds):
        numbers.on_loop_bounds(bounds)
    if numbers.counts_elements and not has_lower_bound(count, 0):
        help = "start the loop at 0 or 1"
        message = f"the number of iterations may be negative: it is {count}"
        if isinstance(count, int):
            message, help = f"loop end {last} is below its start {first}", "use an end that is at least the start"
        interpreter.fault("wrong-kind", message, loop.last.at, help=help)
        return False
    if collects and isinstance(count, int) and count < 1:
        _report_empty(interpreter, loop)
        return False
    return True


def _unused_index_name(
    variable: str, env: Mapping[str, Value], builder: BodyBuilder, ranges: Mapping[str, Range]
) -> str:
    """Return a name for an index that does not occur in a body."""
    reserved = {name for value in env.values() for name in symbols_in(value)} | ranges.keys()
    reserved.update(name for type in builder.body.types for size in type.shape for name in symbols(size))
    while variable in reserved:
        variable += "_"
    return variable


def _check_carried(
    interpreter: ApplicationInterpreter,
    loop: nodes.Loop,
    before: Mapping[str, Value],
    inside: Mapping[str, Value],
    after: Mapping[str, Value],
    binds: Collection[str],
) -> bool:
    """Check that each carried value has the same type after an iteration; False after reporting an error."""
    stable = True
    for name in binds:
        if name not in before:
            continue
        old, new = inside[name], after.get(name)
        if old is POISON or new is POISON:
            stable = False
        elif isinstance(old, Tensor) and isinstance(new, Tensor):
            stable = _check_carried_type(interpreter, loop, name, old, new) and stable
        elif value_key(old) != value_key(new):
            help = "start with a tensor, such as `full([batch, n], 0.0)`: only tensors are carried"
            _report_change(interpreter, loop, name, old, new, "wrong-kind", help)
            stable = False
    return stable


def _check_carried_type(
    interpreter: ApplicationInterpreter, loop: nodes.Loop, name: str, old: Tensor, new: Tensor
) -> bool:
    if old.type == new.type:
        return True
    help = "keep the type unchanged: a loop over a dimension is compiled once for all iterations"
    _report_change(interpreter, loop, name, old, new, "dimension", help)
    return False


def _report_change(
    interpreter: ApplicationInterpreter, loop: nodes.Loop, name: str, old: Value, new: Value, code: str, help: str
) -> None:
    subject = "the piped value" if name == "_" else f"`{name}`"
    message = f"{subject} is {_describe_carried(old)} before the loop and {_describe_carried(new)} after an iteration"
    interpreter.fault(code, message, loop.at, help=help)


def _describe_carried(value: Value) -> str:
    if isinstance(value, Tensor):
        return f"{value.type.dtype} {format_shape(value.type.shape)}"
    return describe(value)


def _emit(
    interpreter: ApplicationInterpreter,
    loop: nodes.Loop,
    iteration: Iteration,
    carried: list[str],
    after: Mapping[str, Value],
    indexed: tuple[str, Dim, Dim],
    collects: Collection[str],
) -> None:
    """Add the call of a loop, and bind the names that it carries and collects."""
    env, body, count = interpreter.env, iteration.builder.body, indexed[2]
    collected = {name: part for name, part in iteration.collected.items() if part is not None}
    failed = {name for name in collects if after.get(name) is POISON} | iteration.collected.keys() - collected.keys()
    if failed:
        env.update(dict.fromkeys((*carried, *collects), POISON))
        return
    env.update(dict.fromkeys(collects, None))
    if not carried and not collected:
        return
    results = [(name, after[name]) for name in carried] + [(name, tensor) for name, (tensor, _) in collected.items()]
    body.outputs = [(name, value.slot) for name, value in results if isinstance(value, Tensor)]
    axes = tuple([axis for _, axis in collected.values()])
    body.loop = Loop(*indexed, len(carried), axes)
    operands = _close_body(interpreter, iteration, carried)
    body.results = tuple([body.types[slot] for _, slot in body.outputs if isinstance(slot, int)])
    body.size = sum(call.body.size if call.body is not None else 1 for call in body.calls)
    types = list(body.results)
    for i, axis in enumerate(axes, len(carried)):
        result = types[i]
        assert result is not None
        types[i] = Type((*result.shape[:axis], count, *result.shape[axis:]), result.dtype)
    span, attributes = interpreter.unit.span(loop.at), dict[str, Value](iterations=count)
    value = iteration.enclosing.emit("loop", "for", "", body, operands, attributes, tuple(types), span)
    values = value.values if isinstance(value, MultipleOutputs) else (value,)
    env.update(zip([name for name, _ in results], values, strict=True))


def _close_body(
    interpreter: ApplicationInterpreter, iteration: Iteration, carried: list[str]
) -> tuple[tuple[str, Operand], ...]:
    """Make every value that an iteration reads an input, carried values first; return the operands of the loop."""
    body, reads = iteration.builder.body, iteration.builder.reads
    own = {name: slot for slot, (name, _) in enumerate(body.inputs)}
    names = {slot: name for name, slot in own.items()} | {tensor.slot: f".{name}" for name, tensor in reads.items()}
    used = _used_slots(body) - {own[name] for name in carried}
    for name, tensor in reads.items():  # a stored tensor is read once, in the enclosing body
        leaf = find_member(interpreter.module, name) if interpreter.module is not None else None
        if tensor.slot in used and isinstance(leaf, LocatedTensor):
            iteration.enclosing_slots[tensor.slot] = iteration.enclosing.read(name, leaf).slot
    inputs = [own[name] for name in carried] + [slot for slot in iteration.enclosing_slots if slot in used]
    _reorder(body, inputs, names)
    return tuple([(names[slot], iteration.enclosing_slots[slot]) for slot in inputs])


def _used_slots(body: Body) -> set[int]:
    """Return the slots that calls and outputs use."""
    operands = [operand for call in body.calls for _, operand in call.inputs]
    return {operand for operand in (*operands, *[o for _, o in body.outputs]) if isinstance(operand, int)}


def _reorder(body: Body, inputs: list[int], names: Mapping[int, str]) -> None:
    """Make `inputs` the inputs of a body, in this order; remove other slots that no call computes."""
    computed: list[int] = [slot for call in body.calls for slot in _result_slots(call)]
    order = [*inputs, *computed]
    moved = {slot: position for position, slot in enumerate(order)}
    types = [body.types[slot] for slot in order]

    def reorder_operand(operand: Operand) -> Operand:
        return moved[operand] if isinstance(operand, int) else operand

    body.inputs = [(names[slot], body.types[slot]) for slot in inputs]
    body.weights = []
    body.types = types
    for call in body.calls:
        call.inputs = tuple([(name, reorder_operand(operand)) for name, operand in call.inputs])
        call.first = moved.get(call.first, call.first)
    body.outputs = [(name, reorder_operand(operand)) for name, operand in body.outputs]
    body.discarded = {moved[slot] for slot in body.discarded if slot in moved}
    body.module = None


def _result_slots(call: Call) -> range:
    return range(call.first, call.first + sum(type is not None for type in call.outputs))


# Collected values -----------------------------------------------------------------------------------------------------


def collect_value(interpreter: ApplicationInterpreter, expr: nodes.Collect) -> CollectedTensor | None:
    """Return the value that an iteration collects, and the new axis; None after reporting an error."""
    value, axis = interpreter.value(expr.value), interpreter.value(expr.axis)
    if value is POISON or axis is POISON:
        return None
    if not isinstance(value, Tensor):
        interpreter.fault("wrong-kind", f"`collect` expects a tensor, found {describe(value)}", expr.value.at)
        return None
    rank = len(value.type.shape)
    if not is_integer(axis) or not -rank - 1 <= axis <= rank:
        axes = f"{rank} {'axis' if rank == 1 else 'axes'}"
        message = f"`collect` expects an axis from {-rank - 1} to {rank} for {axes}, found {describe(axis)}"
        interpreter.fault("dimension", message, expr.axis.at)
        return None
    if rank == MAX_DIMENSIONS:
        message = f"`collect` makes a tensor with too many axes: the limit is {MAX_DIMENSIONS}"
        interpreter.fault("dimension", message, expr.value.at)
        return None
    return value, int(axis) % (rank + 1)


def stack_collected(
    interpreter: ApplicationInterpreter, statement: nodes.For, parts: Sequence[CollectedTensor | None], iterations: int
) -> Value:
    """Stack the values collected by the iterations along the new axis; return `none` if there are none."""
    collected = [part for part in parts if part is not None]
    if len(collected) < len(parts):
        return POISON
    first, last = interpreter.value(statement.loop.first), interpreter.value(statement.loop.last)
    if not collected:
        return _report_empty(interpreter, statement.loop) if first == last else None
    if any(axis != collected[0][1] for _, axis in collected):
        return interpreter.fault("dimension", "`collect` expects the same axis in every iteration", statement.loop.at)
    location = statement.loop.at
    inputs = tuple(
        [(f"tensors{number}" if number > 1 else "tensors", value) for number, (value, _) in enumerate(collected, 1)]
    )
    (value, axis), attributes = collected[0], dict[str, Value](axis=collected[0][1])
    if isinstance(first, Polynomial) or isinstance(last, Polynomial):
        assert isinstance(first, int | Polynomial) and isinstance(last, int | Polynomial)
        if len(parts) != iterations:
            message = "cannot count the iterations that collect a value while their number is open"
            return interpreter.fault("no-formula", message, location)
        count = last - first
        # The iteration count is open: these values represent those of all iterations.
        shape, span = (*value.type.shape[:axis], count, *value.type.shape[axis:]), interpreter.unit.span(location)
        operands = tuple([(name, part.slot) for name, part in inputs])
        types = (Type(shape, value.type.dtype),)
        return interpreter.builder.emit("op", "stack", "", None, operands, attributes, types, span)
    return interpreter.apply_op(OPS["stack"], inputs, attributes, location, lambda _: None)
