"""Loops over a dimension: one iteration is compiled, as a body that stands for all of them."""

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
"""A value that an iteration collects, and the new axis."""


class Iteration:
    """One iteration of a loop over a dimension, while it is compiled.

    `collected` are values by name, with their axes (None for one with an error); `given` are the slots outside of those
    that have their values from there.
    """

    def __init__(self, outer: BodyBuilder, interpreter: ApplicationInterpreter) -> None:
        self.outer = outer
        self.builder = BodyBuilder("loop", "for", interpreter.module, interpreter.limits)
        self.collected: dict[str, CollectedTensor | None] = {}
        self.given: dict[int, int] = {}

    def take(self, env: dict[str, Value], carried: Collection[str]) -> None:
        """Give the tensors of `env` slots in the body; equal ones share a slot unless they are carried."""
        known: dict[int, Tensor] = {}
        for name, value in [*env.items()]:
            if not isinstance(value, Tensor):
                continue
            inner = known.get(value.slot) if name not in carried else None
            if inner is None:
                inner = self.builder.slot(value.type)
                self.builder.body.inputs.append((name, value.type))
                self.given[inner.slot] = value.slot
                if name not in carried:
                    known[value.slot] = inner
            env[name] = inner


def scan(
    interpreter: ApplicationInterpreter,
    loop: nodes.Loop,
    bounds: tuple[Dim, Dim],
    binds: Collection[str],
    run: Callable[[Iteration], None],
    collects: Collection[str] = (),
) -> bool:
    """Compile a loop over a dimension that binds or collects names; False after reporting an error.

    `run` interprets one iteration. What is bound before the loop is carried from one iteration to the next.
    """
    env, first, count = interpreter.env, bounds[0], bounds[1] - bounds[0]
    if not _are_valid(interpreter, loop, bounds, bool(collects)):
        return False
    before = dict(env)
    carried = [name for name in binds if isinstance(env.get(name), Tensor)]
    iteration = Iteration(interpreter.builder, interpreter)
    iteration.take(env, carried)
    inside = dict(env)
    name = _fresh_index_name(loop.variable, before, iteration.builder, interpreter.program.ranges)
    interpreter.program.ranges[name] = Range(first, bounds[1] - 1)
    env[loop.variable] = index(name)
    interpreter.builder = iteration.builder
    try:
        run(iteration)
    finally:
        interpreter.builder = iteration.outer
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
    if not _is_stable(interpreter, loop, before, inside, after, binds):
        return False
    changed = [name for name in carried if after[name] != inside[name]]
    _emit(interpreter, loop, iteration, changed, after, (name, first, count), collects)
    return True


def _refuse_empty(interpreter: ApplicationInterpreter, loop: nodes.Loop) -> Value:
    """Report a loop without iterations that collects."""
    help = "use an end (exclusive) that is above the start"
    message = "a loop that collects needs at least one iteration"
    return interpreter.fault("wrong-kind", message, loop.last.at, help=help)


def _are_valid(interpreter: ApplicationInterpreter, loop: nodes.Loop, bounds: tuple[Dim, Dim], collects: bool) -> bool:
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
        _refuse_empty(interpreter, loop)
        return False
    return True


def _fresh_index_name(
    variable: str, env: Mapping[str, Value], builder: BodyBuilder, ranges: Mapping[str, Range]
) -> str:
    """Return a name for an index that nothing in a body depends on."""
    taken = {name for value in env.values() for name in symbols_in(value)} | ranges.keys()
    taken.update(name for type in builder.body.types for size in type.shape for name in symbols(size))
    while variable in taken:
        variable += "_"
    return variable


def _is_stable(
    interpreter: ApplicationInterpreter,
    loop: nodes.Loop,
    before: Mapping[str, Value],
    inside: Mapping[str, Value],
    after: Mapping[str, Value],
    binds: Collection[str],
) -> bool:
    """Whether every value that is carried has the same type after an iteration; reports an error if not."""
    stable = True
    for name in binds:
        if name not in before:
            continue
        old, new = inside[name], after.get(name)
        if old is POISON or new is POISON:
            stable = False
        elif isinstance(old, Tensor) and isinstance(new, Tensor):
            stable = _has_type(interpreter, loop, name, old, new) and stable
        elif value_key(old) != value_key(new):
            help = "start with a tensor, such as `full([batch, n], 0.0)`: only tensors are carried"
            _report_change(interpreter, loop, name, old, new, "wrong-kind", help)
            stable = False
    return stable


def _has_type(interpreter: ApplicationInterpreter, loop: nodes.Loop, name: str, old: Tensor, new: Tensor) -> bool:
    if old.type == new.type:
        return True
    help = "make it the same: a loop over a dimension is compiled once for all iterations"
    _report_change(interpreter, loop, name, old, new, "dimension", help)
    return False


def _report_change(
    interpreter: ApplicationInterpreter, loop: nodes.Loop, name: str, old: Value, new: Value, code: str, help: str
) -> None:
    subject = "the piped value" if name == "_" else f"`{name}`"
    message = f"{subject} is {_described(old)} before the loop and {_described(new)} after an iteration"
    interpreter.fault(code, message, loop.at, help=help)


def _described(value: Value) -> str:
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
    collected = {name: found for name, found in iteration.collected.items() if found is not None}
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
    operands = _close(interpreter, iteration, carried)
    body.results = tuple([body.types[slot] for _, slot in body.outputs if isinstance(slot, int)])
    body.size = sum(call.body.size if call.body is not None else 1 for call in body.calls)
    types = list(body.results)
    for i, axis in enumerate(axes, len(carried)):
        result = types[i]
        assert result is not None
        types[i] = Type((*result.shape[:axis], count, *result.shape[axis:]), result.dtype)
    span, attributes = interpreter.unit.span(loop.at), dict[str, Value](iterations=count)
    value = iteration.outer.emit("loop", "for", "", body, operands, attributes, tuple(types), span)
    values = value.values if isinstance(value, MultipleOutputs) else (value,)
    env.update(zip([name for name, _ in results], values, strict=True))


def _close(
    interpreter: ApplicationInterpreter, iteration: Iteration, carried: list[str]
) -> tuple[tuple[str, Operand], ...]:
    """Make inputs of all that an iteration reads, what it carries first; return the operands of the loop."""
    body, reads = iteration.builder.body, iteration.builder.reads
    own = {name: slot for slot, (name, _) in enumerate(body.inputs)}
    names = {slot: name for name, slot in own.items()} | {tensor.slot: f".{name}" for name, tensor in reads.items()}
    used = _used(body) - {own[name] for name in carried}
    for name, tensor in reads.items():  # a stored tensor is read outside, once
        leaf = find_member(interpreter.module, name) if interpreter.module is not None else None
        if tensor.slot in used and isinstance(leaf, LocatedTensor):
            iteration.given[tensor.slot] = iteration.outer.read(name, leaf).slot
    inputs = [own[name] for name in carried] + [slot for slot in iteration.given if slot in used]
    _reorder(body, inputs, names)
    return tuple([(names[slot], iteration.given[slot]) for slot in inputs])


def _used(body: Body) -> set[int]:
    """Return the slots that calls and outputs use."""
    operands = [operand for call in body.calls for _, operand in call.inputs]
    return {operand for operand in (*operands, *[o for _, o in body.outputs]) if isinstance(operand, int)}


def _reorder(body: Body, inputs: list[int], names: Mapping[int, str]) -> None:
    """Make some slots the inputs of a body, in this order; other slots without a value are left out."""
    made: list[int] = [slot for call in body.calls for slot in _slots(call)]
    order = [*inputs, *made]
    moved = {slot: position for position, slot in enumerate(order)}
    types = [body.types[slot] for slot in order]

    def place(operand: Operand) -> Operand:
        return moved[operand] if isinstance(operand, int) else operand

    body.inputs = [(names[slot], body.types[slot]) for slot in inputs]
    body.weights = []
    body.types = types
    for call in body.calls:
        call.inputs = tuple([(name, place(operand)) for name, operand in call.inputs])
        call.first = moved.get(call.first, call.first)
    body.outputs = [(name, place(operand)) for name, operand in body.outputs]
    body.discarded = {moved[slot] for slot in body.discarded if slot in moved}
    body.module = None


def _slots(call: Call) -> range:
    return range(call.first, call.first + sum(type is not None for type in call.outputs))


# What an iteration may do ---------------------------------------------------------------------------------------------


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
    interpreter: ApplicationInterpreter, statement: nodes.For, parts: Sequence[CollectedTensor | None]
) -> Value:
    """Stack the values collected by the iterations along the new axis; return `none` if there are none."""
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return POISON
    first, last = interpreter.value(statement.loop.first), interpreter.value(statement.loop.last)
    if not found:
        return _refuse_empty(interpreter, statement.loop) if first == last else None
    if any(axis != found[0][1] for _, axis in found):
        return interpreter.fault("dimension", "`collect` expects the same axis in every iteration", statement.loop.at)
    at = statement.loop.at
    inputs = tuple([(f"tensors{turn}" if turn > 1 else "tensors", value) for turn, (value, _) in enumerate(found, 1)])
    (value, axis), attributes = found[0], dict[str, Value](axis=found[0][1])
    if isinstance(first, Polynomial) or isinstance(last, Polynomial):
        assert isinstance(first, int | Polynomial) and isinstance(last, int | Polynomial)
        count = last - first
        # The number of iterations is open, and these stand for all of them.
        shape, span = (*value.type.shape[:axis], count, *value.type.shape[axis:]), interpreter.unit.span(at)
        operands = tuple([(name, part.slot) for name, part in inputs])
        types = (Type(shape, value.type.dtype),)
        return interpreter.builder.emit("op", "stack", "", None, operands, attributes, types, span)
    return interpreter.apply_op(OPS["stack"], inputs, attributes, at, lambda _: None)
