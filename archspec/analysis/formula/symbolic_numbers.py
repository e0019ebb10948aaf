"""Arithmetic with open hyperparameters: a loop with an open iteration count is processed once for all iterations.

Facts about one iteration with a symbolic index hold for all iterations; carried values are proved by induction.
Comparisons of values are in `assumptions`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from archspec.analysis.formula.assumptions import Solver
from archspec.analysis.formula.restarts import Iterations, Segment, is_segment_index, linear_slope
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

MAX_PROBED_ITERATIONS = 2
"""Maximum number of iterations that are processed singly to determine the changes in each."""


class SymbolicArithmetic(StaticArithmetic):
    """Arithmetic with numbers and symbols, for which tensors have shapes but no number of elements.

    If the iterations of a loop are processed as one, a call in the loop represents the calls of all iterations.
    """

    counts_elements = False
    repeats = False

    def __init__(self, solver: Solver) -> None:
        super().__init__()
        self.solver = solver
        self._segments: dict[int, tuple[Segment, ...]] = {}  # the loops processed as one, by interpreter

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
        for size, minimum in sizes:
            self.solver.assume_minimum(size, minimum, span)
        return types

    def are_equal(self, left: Dim, right: Dim, span: Span) -> bool:
        are_equal = self.solver.prove("==", left - right)
        if are_equal is None:
            self.solver.assume("==", left, right, span)
        return are_equal is not False

    def index_text(self, index: Value) -> str | None:
        return self.solver.index_text(index) if isinstance(index, Polynomial) else super().index_text(index)

    def shape(
        self, walker: NumberEvaluator, sizes: tuple[Value, ...], written: nodes.ListLiteral
    ) -> tuple[tuple[Expression, ...], int] | None:
        shape: list[Expression] = []
        for value, item in zip(sizes, written.items, strict=True):
            if isinstance(value, Polynomial):
                with self.solver.assumptions_required():
                    self.solver.assume(">=", value, 1, walker.unit.span(item.at))
            elif not is_integer(value) or value < 1:
                report_wrong_size(walker, value, item)
                return None
            shape.append(value)
        return tuple(shape), 0

    def requires(self, walker: NumberEvaluator, condition: nodes.Expr) -> bool:
        """Whether a condition holds; undecided comparisons are assumed."""
        if isinstance(condition, nodes.Binary) and condition.operator == "and":
            return self.requires(walker, condition.left) and self.requires(walker, condition.right)
        if isinstance(condition, nodes.Binary) and condition.operator in COMPARISONS:
            left, right = walker.value(condition.left), walker.value(condition.right)
            symbolic = isinstance(left, Polynomial) or isinstance(right, Polynomial)
            if symbolic and isinstance(left, int | Polynomial) and isinstance(right, int | Polynomial):
                holds = self.solver.prove(condition.operator, left - right)
                if holds is None:
                    with self.solver.assumptions_required():
                        self.solver.assume(condition.operator, left, right, walker.unit.span(condition.at))
                return holds is not False
        return walker.condition(condition) is not False

    def is_dimension(self, value: Value) -> bool:
        if not isinstance(value, Polynomial):
            return False
        return not symbols(value) <= self.solver.state.point.keys() | {s.symbol for s in self.solver.active}

    # Loops

    def indices(self, walker: NumberEvaluator, loop: nodes.Loop, length: int) -> Iterable[Value] | None:
        iterations = self._iterations(walker, loop)
        return super().indices(walker, loop, length) if iterations is None else self._iter_indices(walker, iterations)

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
        """Return the iterations of a loop with an open iteration count; None for any other loop."""
        first, last = walker.value(loop.first), walker.value(loop.last)
        if not (isinstance(first, int | Polynomial) and isinstance(last, int | Polynomial)):
            return None
        if isinstance(first, int) and isinstance(last, int):
            return None
        depth = len(self._segments.get(id(walker), ()))
        key = (walker.definition, first, last, depth)
        return self.solver.iterations(key, loop.variable, first, last, walker.unit.span(loop.at), depth)

    @contextmanager
    def _segment_active(self, walker: NumberEvaluator, segment: Segment) -> Generator[None]:
        segments = self._segments.get(id(walker), ())
        self._segments[id(walker)] = (*segments, segment)
        self.solver.active.append(segment)
        calls = walker.builder.body.calls if isinstance(walker, ApplicationInterpreter) else []
        before = len(calls)
        yield
        for call in calls[before:]:
            self.solver.repeat(call, segment)
        self.solver.active.pop()
        self._segments[id(walker)] = segments

    def _iter_indices(self, walker: NumberEvaluator, iterations: Iterations) -> Iterator[Dim]:
        """Yield the indices of iterations that carry no values."""
        yield from iterations.head
        for segment in iterations.segments:
            with self._segment_active(walker, segment):
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
        """Run iterations that carry the names `carried`.

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
        steps = _find_steps(states[-2], base) if len(states) > 1 else {}
        is_proved = True
        for segment in iterations.segments:
            if steps:
                env.update(_advance_state(walker, base, steps, segment.position - iterations.start))
            before = report.errors
            env[loop.variable] = segment.position
            with self._segment_active(walker, segment):
                run()
            expected = _advance_state(walker, base, steps, segment.position + 1 - iterations.start)
            is_invariant = all(_invariant_part(env[name]) == _invariant_part(value) for name, value in expected.items())
            is_proved = is_invariant and report.errors == before
            if not is_proved:
                break
        if not is_proved:
            if base and len(iterations.head) < MAX_PROBED_ITERATIONS:
                self.solver.divide_loop(iterations.segments[0], prefix=1, probes=report.failed)
            if not report.failed:
                message = "a value carried by this loop is neither constant nor grows by a constant amount"
                self.solver.refuse(message, walker.unit.span(loop.at))
        elif steps:
            env.update(_advance_state(walker, base, steps, iterations.stop - iterations.start))
        for env[loop.variable] in iterations.tail:
            run()

    # Addresses

    def on_declared(self, walker: NumberEvaluator, module: Module, address: str, node: nodes.Address) -> None:
        """Check that every iteration declares at a different address."""
        segments = self._segments.get(id(walker), ())
        for segment in segments:
            if not any(_distinguishes(walker, index, segment) for index in node.indices()):
                message = f"cannot prove that this address differs in each iteration over `{segment.variable}`"
                self.solver.refuse(message, walker.unit.span(node.at))
        if segments:
            self.solver.enclosing_loops.setdefault(module, {})[address] = segments

    def on_merged(self, walker: NumberEvaluator, module: Module, merged: Module, node: nodes.Address) -> None:
        self.on_declared(walker, module, "", node)
        self.solver.enclosing_loops.setdefault(module, {}).update(self.solver.enclosing_loops.get(merged, {}))

    def on_tied(self, walker: NumberEvaluator, tie: nodes.Tie) -> None:
        """Check that every iteration ties a different address."""
        segments = self._segments.get(id(walker), ())
        if tie.loop is None or self._iterations(walker, tie.loop) is None:
            distinct = all(any(_distinguishes(walker, i, segment) for i in tie.alias.indices()) for segment in segments)
        else:
            variable = tie.loop.variable
            distinct = any(isinstance(i, nodes.Local) and i.name == variable for i in tie.alias.indices())
        if not distinct:
            message = "this loop has an open iteration count and ties the same tensor in every iteration"
            self.solver.refuse(message, walker.unit.span(tie.at))

    def finish(self, walker: NumberEvaluator, module: Module, ties: list[tuple[str, str]]) -> None:
        for address, member in module.members.items():
            for second_address, second in module.members.items() if "{" in address else ():
                if member.span != second.span and not self._are_disjoint(address.split("."), second_address.split(".")):
                    later = max(member.span, second.span, key=lambda span: span.start)
                    self.solver.refuse("this address may coincide with another one declared here", later)
        for pair in ties:
            for address in pair:
                if find_member(module, address) is None:
                    self.on_missing(module, address)

    def _are_disjoint(self, words: list[str], other_words: list[str]) -> bool:
        """Whether two addresses can be neither equal nor nested."""
        for word, other_word in zip(words, other_words, strict=False):
            if word == other_word:
                continue
            part, other_part = _strip_common_ends(word, other_word)
            if not (_is_index(part) and _is_index(other_part)):
                if _have_different_text(part, other_part):
                    return True
                continue
            first, second = self._index_interval(part), self._index_interval(other_part)
            if (
                first
                and second
                and (has_lower_bound(second[0] - first[1], 0) or has_lower_bound(first[0] - second[1], 0))
            ):
                return True
        return False

    def _index_interval(self, word: str) -> tuple[Dim, Dim] | None:
        return (int(word), int(word) + 1) if word.isdigit() else self.solver.intervals.get(word)

    def on_missing(self, module: Module, address: str) -> None:
        """Process iterations singly if an address refers to single iterations of a loop that is processed as one."""
        while (member := enclosing_member(module, address)) is not None:
            target = module.members[member].target
            if isinstance(target, ModuleTensor) or address == member:
                return
            module, address = target, relative(address, member)
        words = address.split(".")
        for member_address in module.members:
            parts = member_address.split(".")
            if len(parts) <= len(words):
                self._peel_iterations(self.solver.enclosing_loops.get(module, {}).get(member_address, ()), parts, words)

    def _peel_iterations(self, segments: tuple[Segment, ...], parts: list[str], words: list[str]) -> None:
        """Process the iterations up to `words` singly in the first loop in which they differ from `parts`."""
        pair = next((pair for pair in zip(parts, words, strict=False) if pair[0] != pair[1]), ("", ""))
        part, word = _strip_common_ends(*pair)
        for segment in segments:
            if segment.text == part:
                interval = self._index_interval(word)
                if interval is None:
                    continue
                begin = interval[0] if is_segment_index(word) else interval[1]
                singles = begin - segment.first
                if isinstance(singles, int):
                    self.solver.divide_loop(segment, prefix=singles)


def _strip_common_ends(word: str, other: str) -> tuple[str, str]:
    """Return two words of addresses without the text that both begin and end with; indices in braces stay whole."""
    prefix = _prefix_length(word.partition("{")[0], other.partition("{")[0])
    word, other = word[prefix:], other[prefix:]
    suffix = _prefix_length(word.rpartition("}")[2][::-1], other.rpartition("}")[2][::-1])
    return word[: len(word) - suffix], other[: len(other) - suffix]


def _prefix_length(text: str, other: str) -> int:
    return next((k for k, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))


def _have_different_text(word: str, other: str) -> bool:
    """Whether words of addresses differ regardless of the numbers in braces in them."""
    if "{" not in word + other:
        return True
    ends = [(a, b) for a, b in ((word[:1], other[:1]), (word[-1:], other[-1:])) if a and b]
    return any(a != b and not any(c.isdigit() or c in "{}" for c in a + b) for a, b in ends)


def _distinguishes(walker: NumberEvaluator, index: nodes.Expr, segment: Segment) -> bool:
    """Whether an index differs in every iteration and depends on no other changing value."""
    assert walker.definition is not None
    names = set(walk.local_names(index)) - walker.definition.hyperparameters.keys()
    value = walker.value(index)
    is_linear = names == {segment.variable} and _is_linear(index)
    return is_linear and isinstance(value, int | Polynomial) and bool(linear_slope(value, segment.symbol))


def _advance_state(
    walker: NumberEvaluator, base: dict[str, Value], steps: dict[str, tuple[Dim, ...]], times: Dim
) -> dict[str, Value]:
    """Return the state after `times` iterations, each of which adds `steps`."""
    moved = dict(base)
    for name, step in steps.items():
        value = base[name]
        sizes = tuple([size + increment * times for size, increment in zip(_sizes(value), step, strict=True)])
        if isinstance(value, Tensor):
            assert isinstance(walker, ApplicationInterpreter)
            moved[name] = walker.builder.slot(Type(sizes, value.type.dtype))
        else:
            (moved[name],) = sizes
    return moved


def _find_steps(earlier: dict[str, Value], later: dict[str, Value]) -> dict[str, tuple[Dim, ...]]:
    """Return the amounts that an iteration adds to carried sizes."""
    steps: dict[str, tuple[Dim, ...]] = {}
    for name, value in later.items():
        first, sizes = _sizes(earlier[name]), _sizes(value)
        is_comparable = isinstance(value, Tensor) == isinstance(earlier[name], Tensor) and len(first) == len(sizes)
        if is_comparable and first != sizes:
            steps[name] = tuple([b - a for a, b in zip(first, sizes, strict=True)])
    return steps


def _sizes(value: Value) -> tuple[Dim, ...]:
    """Return the sizes in a carried value that an iteration may change."""
    if isinstance(value, Tensor):
        return value.type.shape
    return (value,) if is_integer(value) or isinstance(value, Polynomial) else ()


def _invariant_part(value: Value) -> Hashable:
    """Return the part of a carried value that must stay the same: for tensors, their types."""
    if isinstance(value, Tensor):
        return (Tensor, value.type)
    if isinstance(value, MultipleOutputs):
        return (MultipleOutputs, *[_invariant_part(v) for v in value.values])
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
