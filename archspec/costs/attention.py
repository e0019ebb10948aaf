"""Detection of attention's score and mix products from dataflow, independent of names.

A *score* product is a matmul whose result becomes the argument of a softmax; a *mix* product is a matmul that takes the
result of a softmax. Elementwise operations and moves that keep the shape (a scale, a mask, a bias) may come between
them. A matmul is a score only if a mix follows its softmax, so a final softmax over a vocabulary does not count.
(`Op.attention` in the record of an operation states its part.) What a loop over a dimension carries is not followed: it
may be different in the first and in the last iteration.

Bodies are shared, and attention may extend over several of them, so each is analysed once per `Context`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, reduce
from typing import NamedTuple

from archspec.bodies.fold import Folded, arguments, fold_back, fold_body, yielded
from archspec.bodies.step_budget import StepBudget
from archspec.ir import Body, Call, Operand, Type
from archspec.ops import OPS

MIXED, SCORED = 1, 2
"""Uses of a value: by a product, and by a softmax whose result a product uses."""


class Context(NamedTuple):
    """The context of a body, by position: which inputs hold a softmax's result, and which outputs become the argument
    of a matmul (`mixed`), or of a softmax whose result does (`scored`).
    """

    softmaxed: frozenset[int] = frozenset()
    mixed: frozenset[int] = frozenset()
    scored: frozenset[int] = frozenset()


class Traced(NamedTuple):
    """The facts of a `Context` for each slot of a body: whether it holds a softmax's result, and its uses."""

    softmaxed: Sequence[bool]
    uses: Sequence[int]

    def part(self, call: Call) -> str:
        """Return "score", "mix" or "" for an operation of the body."""
        if OPS[call.type].attention != "product":
            return ""
        if any(self.softmaxed[operand] for _, operand in call.inputs if isinstance(operand, int)):
            return "mix"
        return "score" if self.uses[call.first] & SCORED else ""

    def inside(self, call: Call) -> Context:
        """Return the context of the body that a call applies."""
        given = [isinstance(operand, int) and self.softmaxed[operand] for _, operand in call.inputs]
        uses = [(i, self.uses[slot]) for i, slot in yielded(call)]
        return Context(
            _marked(arguments(call, given)),
            frozenset([i for i, use in uses if use & MIXED]),
            frozenset([i for i, use in uses if use & SCORED]),
        )


class Tracer:
    """Finds the slots of bodies that take part in attention, once per context."""

    def __init__(self) -> None:
        self._budget = StepBudget()
        self._forward: Callable[[Body, frozenset[int]], Folded[bool]] = cache(self._softmaxed)
        self._backward: Callable[[Body, tuple[int, ...]], list[int]] = cache(self._uses)

    def trace(self, body: Body, context: Context) -> Traced:
        """Return the slots of a body that take part in attention. Raises ArchError if that takes too many steps."""
        self._budget.spend(body)
        uses = [MIXED * (i in context.mixed) | SCORED * (i in context.scored) for i in range(len(body.outputs))]
        return Traced(self._forward(body, context.softmaxed).slots, self._backward(body, tuple(uses)))

    def _softmaxed(self, body: Body, inputs: frozenset[int]) -> Folded[bool]:
        """Find the slots and outputs that hold a softmax's result."""

        def visit_op(call: Call, given: list[bool]) -> list[bool]:
            if OPS[call.type].attention == "weights":
                return [True] * len(call.outputs)
            passed = any(
                is_result and passes for is_result, passes in zip(given, _passes(call, body.types), strict=True)
            )
            return [passed] * len(call.outputs)

        def visit_call(call: Call, given: list[bool]) -> list[bool]:
            assert call.body is not None
            return self._forward(call.body, _marked(arguments(call, given))).outputs

        carried = _carried(body)
        start = [i in inputs and i >= carried for i in range(len(body.inputs))]
        found = fold_body(body, start, visit_op, visit_call, False, budget=self._budget)
        return found._replace(outputs=[flag and i >= carried for i, flag in enumerate(found.outputs)])

    def _uses(self, body: Body, outputs: tuple[int, ...]) -> list[int]:
        """Derive the uses of each slot from those of the outputs."""

        def visit_op(call: Call, results: list[int]) -> list[int]:
            part = OPS[call.type].attention
            if part == "product":
                return [MIXED] * len(call.inputs)
            if part == "weights":
                return [SCORED if results[0] & MIXED else 0] * len(call.inputs)
            use = reduce(int.__or__, results)
            return [use if passes else 0 for passes in _passes(call, body.types)]

        def visit_call(call: Call, results: list[int]) -> list[int]:
            assert call.body is not None
            slots = self._backward(call.body, tuple(results))
            inner = {name: slots[i] for i, (name, _) in enumerate(call.body.inputs)}  # inputs fill the first slots
            return [inner.get(name, 0) for name, _ in call.inputs]

        carried = _carried(body)
        followed = [use if i >= carried else 0 for i, use in enumerate(outputs)]
        found = fold_back(body, followed, visit_op, visit_call, 0, int.__or__, self._budget)
        found[:carried] = [0] * carried
        return found


def _carried(body: Body) -> int:
    """Return the number of inputs and outputs that iterations of a loop pass on: these are not followed."""
    return body.loop.carried if body.loop is not None else 0


def _marked(flags: Iterable[bool]) -> frozenset[int]:
    return frozenset([i for i, flag in enumerate(flags) if flag])


def _passes(call: Call, types: list[Type]) -> list[bool]:
    """Return the operands that an operation passes through, changed elementwise or moved."""
    group, result = OPS[call.type].group, call.outputs[0]
    if result is None or result.dtype != "real" or group not in ("Elementwise", "Shape"):
        return [False] * len(call.inputs)

    def passes(operand: Operand) -> bool:
        if not isinstance(operand, int) or types[operand].dtype != "real":
            return False
        return group == "Shape" or types[operand].shape == result.shape

    return [passes(operand) for _, operand in call.inputs]
