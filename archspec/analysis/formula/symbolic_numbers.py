"""Computation with open hyperparameters: a loop with an open number of iterations is processed once for all of them.

Facts about one iteration with a symbolic index hold for all iterations; values passed from one to the next are proved
by induction. See `assumptions` for the values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from archspec.analysis.formula.assumptions import Solver
from archspec.analysis.formula.restarts import Iterations, Segment, is_of_loop, slope_of
from archspec.compiler.elaborate.application import ApplicationInterpreter
from archspec.compiler.evaluate.numbers import NumberEvaluator, StaticArithmetic, report_wrong_size
from archspec.compiler.evaluate.values import (
    COMPARISONS,
    SYMBOLIC_TYPES,
    MultipleOutputs,
    Tensor,
    Value,
    is_integer,
    value_key,
)
from archspec.compiler.resolve import nodes, walk
from archspec.core.addresses import relative
from archspec.core.algebra import Dim, Expression, Polynomial, has_lower_bound, symbols
from archspec.core.diagnostics import Span
from archspec.ir.module import Module, ModuleTensor, Type, enclosing_member, find_member
from archspec.ir.ops import Op
from archspec.ir.ops.check import collect_undecided_sizes

MAX_PROBED = 2
"""The number of iterations that are processed singly to determine what an iteration changes."""


class SymbolicArithmetic(StaticArithmetic):
    """Computes with numbers and symbols. Tensors have shapes, but no number of elements.

    A call in a loop that is processed as one stands for those of all its iterations.
    """

    counts_elements = False
    repeats = False

    def __init__(self, solver: Solver) -> None:
        super().__init__()
        self.solver = solver
        self._around: dict[int, tuple[Segment, ...]] = {}  # the loops processed as one, by interpreter

    # Values

    def combine(self, operator: str, left: Value, right: Value, span: Span) -> Value:
        return self.solver.combine(operator, left, right, span)

    def scalar(self, op: Op, values: list[Value], span: Span) -> Value:
        if any(isinstance(value, SYMBOLIC_TYPES) for value in values):
            return self.solver.scalar(op, values, span)
        return super().scalar(op, values, span)

    def outputs(
        self, op: Op, inputs: Sequence[Type | None], attributes: Mapping[str, Value], span: Span
    ) -> tuple[Type, ...]:
        with collect_undecided_sizes() as sizes:
            types = op.rule(inputs, attributes)
        for size, least in sizes:
            self.solver.assume_least(size, least, span)
        return types

    def are_equal(self, left: Dim, right: Dim, span: Span) -> bool:
        known = self.solver.known("==", left - right)
        if known is None:
            self.solver.assume("==", left, right, span)
        return known is not False

    def index_text(self, index: Value) -> str | None:
        return self.solver.index_text(index) if isinstance(index, Polynomial) else super().index_text(index)

    def shape(
        self, walker: NumberEvaluator, sizes: tuple[Value, ...], written: nodes.ListLiteral
    ) -> tuple[tuple[Expression, ...], int] | None:
        found: list[Expression] = []
        for value, item in zip(sizes, written.items, strict=True):
            if isinstance(value, Polynomial):
                with self.solver.requiring():
                    self.solver.assume(">=", value, 1, walker.unit.span(item.at))
            elif not is_integer(value) or value < 1:
                report_wrong_size(walker, value, item)
                return None
            found.append(value)
        return tuple(found), 0

    def requires(self, walker: NumberEvaluator, condition: nodes.Expr) -> bool:
        """Whether a condition holds; the unknown part is assumed."""
        if isinstance(condition, nodes.Binary) and condition.operator == "and":
            return self.requires(walker, condition.left) and self.requires(walker, condition.right)
        if isinstance(condition, nodes.Binary) and condition.operator in COMPARISONS:
            left, right = walker.value(condition.left), walker.value(condition.right)
            symbolic = isinstance(left, Polynomial) or isinstance(right, Polynomial)
            if symbolic and isinstance(left, int | Polynomial) and isinstance(right, int | Polynomial):
                known = self.solver.known(condition.operator, left - right)
                if known is None:
                    with self.solver.requiring():
                        self.solver.assume(condition.operator, left, right, walker.unit.span(condition.at))
                return known is not False
        return walker.condition(condition) is not False

    def is_dimension(self, value: Value) -> bool:
        if not isinstance(value, Polynomial):
            return False
        return not symbols(value) <= self.solver.state.point.keys() | {s.symbol for s in self.solver.active}

    # Loops

    def indices(self, walker: NumberEvaluator, loop: nodes.Loop, length: int) -> Iterable[Value] | None:
        iterations = self._iterations(walker, loop)
        return super().indices(walker, loop, length) if iterations is None else self._one_by_one(walker, iterations)

    def iterate(
        self,
        walker: NumberEvaluator,
        loop: nodes.Loop,
        names: Collection[str],
        run: Callable[[], object],
        length: int,
        after_each: Callable[[dict[str, Value], dict[str, Value]], None] | None = None,
    ) -> bool:
        iterations = self._iterations(walker, loop)
        if iterations is None:
            return super().iterate(walker, loop, names, run, length, after_each)
        carried = sorted(name for name in names if name in walker.env)
        fresh = [name for name in names if name not in carried]

        def run_anew() -> None:
            for name in fresh:
                walker.env.pop(name, None)
            run()

        self._induct(walker, loop, iterations, carried, run_anew)
        return True

    def _iterations(self, walker: NumberEvaluator, loop: nodes.Loop) -> Iterations | None:
        """Return the iterations of a loop with an open number of them; None for any other."""
        first, last = walker.value(loop.first), walker.value(loop.last)
        if not (isinstance(first, int | Polynomial) and isinstance(last, int | Polynomial)):
            return None
        if isinstance(first, int) and isinstance(last, int):
            return None
        depth = len(self._around.get(id(walker), ()))
        key = (walker.definition, first, last, depth)
        return self.solver.iterations(key, loop.variable, first, last, walker.unit.span(loop.at), depth)

    @contextmanager
    def _inside(self, walker: NumberEvaluator, segment: Segment) -> Generator[None]:
        around = self._around.get(id(walker), ())
        self._around[id(walker)] = (*around, segment)
        self.solver.active.append(segment)
        calls = walker.builder.body.calls if isinstance(walker, ApplicationInterpreter) else []
        before = len(calls)
        yield
        for call in calls[before:]:
            self.solver.repeat(call, segment)
        self.solver.active.pop()
        self._around[id(walker)] = around

    def _one_by_one(self, walker: NumberEvaluator, iterations: Iterations) -> Iterator[Dim]:
        """Yield the indices of iterations that pass no values on."""
        yield from iterations.head
        for segment in iterations.segments:
            with self._inside(walker, segment):
                yield segment.position
        yield from iterations.tail

    def _induct(
        self,
        walker: NumberEvaluator,
        loop: nodes.Loop,
        iterations: Iterations,
        carried: list[str],
        run: Callable[[], object],
    ) -> None:
        """Run iterations that pass on the names `carried`.

        Each value must be constant or grow by the same amount in every iteration, as determined from the first ones.
        """
        env, report = walker.env, self.solver.program.report

        def state() -> dict[str, Value]:
            return {name: env[name] for name in carried}

        states = [state()]
        for env[loop.variable] in iterations.head:
            run()
            states.append(state())
        base = states[-1]
        steps = _steps(states[-2], base) if len(states) > 1 else {}
        proved = True
        for segment in iterations.segments:
            if steps:
                env.update(_moved(walker, base, steps, segment.position - iterations.start))
            before = report.errors
            env[loop.variable] = segment.position
            with self._inside(walker, segment):
                run()
            wanted = _moved(walker, base, steps, segment.position + 1 - iterations.start)
            kept = all(_form(env[name]) == _form(value) for name, value in wanted.items())
            proved = kept and report.errors == before
            if not proved:
                break
        if not proved:
            if base and len(iterations.head) < MAX_PROBED:
                self.solver.divide_loop(iterations.segments[0], prefix=1, probes=report.failed)
            if not report.failed:
                message = "a value carried by this loop is neither constant nor grows by a constant amount"
                self.solver.refuse(message, walker.unit.span(loop.at))
        elif steps:
            env.update(_moved(walker, base, steps, iterations.stop - iterations.start))
        for env[loop.variable] in iterations.tail:
            run()

    # Addresses

    def on_declared(self, walker: NumberEvaluator, module: Module, address: str, node: nodes.Address) -> None:
        """Check that every iteration declares at a different address."""
        around = self._around.get(id(walker), ())
        for segment in around:
            if not any(_distinguishes(walker, index, segment) for index in node.indices()):
                message = f"cannot prove that this address differs in each iteration over `{segment.variable}`"
                self.solver.refuse(message, walker.unit.span(node.at))
        if around:
            self.solver.around.setdefault(module, {})[address] = around

    def on_merged(self, walker: NumberEvaluator, module: Module, merged: Module, node: nodes.Address) -> None:
        self.on_declared(walker, module, "", node)
        self.solver.around.setdefault(module, {}).update(self.solver.around.get(merged, {}))

    def on_tied(self, walker: NumberEvaluator, tie: nodes.Tie) -> None:
        """Check that every iteration ties a different address."""
        around = self._around.get(id(walker), ())
        if tie.loop is None or self._iterations(walker, tie.loop) is None:
            distinct = all(any(_distinguishes(walker, i, segment) for i in tie.alias.indices()) for segment in around)
        else:
            variable = tie.loop.variable
            distinct = any(isinstance(i, nodes.Local) and i.name == variable for i in tie.alias.indices())
        if not distinct:
            message = "this loop has an open iteration count and ties the same tensor in every iteration"
            self.solver.refuse(message, walker.unit.span(tie.at))

    def finish(self, walker: NumberEvaluator, module: Module, ties: list[tuple[str, str]]) -> None:
        for address, member in module.members.items():
            for other, second in module.members.items() if "{" in address else ():
                if member.span != second.span and not self._apart(address.split("."), other.split(".")):
                    later = max(member.span, second.span, key=lambda span: span.start)
                    self.solver.refuse("this address may coincide with another one declared here", later)
        for pair in ties:
            for address in pair:
                if find_member(module, address) is None:
                    self.on_missing(module, address)

    def _apart(self, words: list[str], others: list[str]) -> bool:
        """Whether two addresses can neither be equal nor be inside each other."""
        for word, other in zip(words, others, strict=False):
            if word == other:
                continue
            if not (_is_index(word) and _is_index(other)):
                return True
            one, two = self._interval(word), self._interval(other)
            if one and two and (has_lower_bound(two[0] - one[1], 0) or has_lower_bound(one[0] - two[1], 0)):
                return True
        return False

    def _interval(self, word: str) -> tuple[Dim, Dim] | None:
        return (int(word), int(word) + 1) if word.isdigit() else self.solver.intervals.get(word)

    def on_missing(self, module: Module, address: str) -> None:
        """Process iterations singly if an address refers to single iterations of a loop that is processed as one."""
        while (member := enclosing_member(module, address)) is not None:
            target = module.members[member].target
            if isinstance(target, ModuleTensor) or address == member:
                return
            module, address = target, relative(address, member)
        words = address.split(".")
        for own in module.members:
            parts = own.split(".")
            if len(parts) <= len(words):
                self._take_out(self.solver.around.get(module, {}).get(own, ()), parts, words)

    def _take_out(self, around: tuple[Segment, ...], parts: list[str], words: list[str]) -> None:
        """Process the iterations up to `words` singly in the first loop in which they differ from `parts`."""
        part, word = next(((p, w) for p, w in zip(parts, words, strict=False) if p != w), ("", ""))
        for segment in around:
            if segment.text == part:
                interval = self._interval(word)
                if interval is None:
                    continue
                begin = interval[0] if is_of_loop(word) else interval[1]
                singles = begin - segment.first
                if isinstance(singles, int):
                    self.solver.divide_loop(segment, prefix=singles)


def _distinguishes(walker: NumberEvaluator, index: nodes.Expr, segment: Segment) -> bool:
    """Whether an index differs in every iteration and depends on nothing else that changes."""
    assert walker.definition is not None
    names = set(walk.local_names(index)) - walker.definition.hyperparameters.keys()
    value = walker.value(index)
    is_linear = names == {segment.variable} and _is_linear(index)
    return is_linear and isinstance(value, int | Polynomial) and bool(slope_of(value, segment.symbol))


def _moved(
    walker: NumberEvaluator, base: dict[str, Value], steps: dict[str, tuple[Dim, ...]], times: Dim
) -> dict[str, Value]:
    """Return the state after `times` iterations, each of which adds `steps`."""
    moved = dict(base)
    for name, step in steps.items():
        value = base[name]
        sizes = tuple([size + by * times for size, by in zip(_sizes(value), step, strict=True)])
        if isinstance(value, Tensor):
            assert isinstance(walker, ApplicationInterpreter)
            moved[name] = walker.builder.slot(Type(sizes, value.type.dtype))
        else:
            (moved[name],) = sizes
    return moved


def _steps(before: dict[str, Value], after: dict[str, Value]) -> dict[str, tuple[Dim, ...]]:
    """Return the amounts that an iteration adds to the sizes that it passes on."""
    steps: dict[str, tuple[Dim, ...]] = {}
    for name, value in after.items():
        first, sizes = _sizes(before[name]), _sizes(value)
        alike = isinstance(value, Tensor) == isinstance(before[name], Tensor) and len(first) == len(sizes)
        if alike and first != sizes:
            steps[name] = tuple([b - a for a, b in zip(first, sizes, strict=True)])
    return steps


def _sizes(value: Value) -> tuple[Dim, ...]:
    """Return the sizes in a passed value that an iteration may change."""
    if isinstance(value, Tensor):
        return value.type.shape
    return (value,) if is_integer(value) or isinstance(value, Polynomial) else ()


def _form(value: Value) -> Hashable:
    """Return the part of a passed value that must stay the same: for tensors, their types."""
    if isinstance(value, Tensor):
        return (Tensor, value.type)
    if isinstance(value, MultipleOutputs):
        return (MultipleOutputs, *[_form(v) for v in value.values])
    return value_key(value)


def _is_linear(expr: nodes.Expr) -> bool:
    """Whether an expression consists only of names, numbers, `+`, `-` and `*`."""
    match expr:
        case nodes.Local() | nodes.Literal():
            return True
        case nodes.Binary(operator="+" | "-" | "*"):
            return _is_linear(expr.left) and _is_linear(expr.right)
        case _:
            return False


def _is_index(word: str) -> bool:
    return word.isdigit() or word.startswith("{")
