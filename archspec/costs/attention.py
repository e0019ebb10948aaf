"""Attention's two products, found by what they are made of, whatever it is that they are called.

A *score* product is a matmul whose result becomes the argument of a softmax; a *mix* product is a matmul that takes a
softmax's result. Between them there may be elementwise operations and moves that keep the shape of what passes
through (a scale, a mask, a bias). A matmul is a score only if a mix follows its softmax, so that a last softmax over a
vocabulary makes none.

Bodies are shared, and attention may be spread over several, so each is looked at for what surrounds it: a `Context`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from archspec.bodies.step_budget import Effort
from archspec.ir import Body, Call, Type
from archspec.ops import OPS


class Context(NamedTuple):
    """What surrounds a body: which of its inputs hold a softmax's result, which of its outputs go on into a matmul
    (`mixed`), and which into a softmax whose result does (`scored`). Inputs and outputs that are there count from 0.
    """

    softmaxed: frozenset[int] = frozenset()
    mixed: frozenset[int] = frozenset()
    scored: frozenset[int] = frozenset()


class Traced(NamedTuple):
    """The slots of a body that a `Context` speaks of."""

    softmaxed: frozenset[int]
    mixed: frozenset[int]
    scored: frozenset[int]

    def part(self, call: Call) -> str:
        """ "score", "mix" or "" for an operation of the body."""
        if call.type != "matmul":
            return ""
        if any(operand in self.softmaxed for _, operand in call.inputs):
            return "mix"
        return "score" if call.first in self.scored else ""

    def inside(self, call: Call) -> Context:
        """What surrounds the body that a call applies."""
        yielded = range(call.first, call.first + sum(type is not None for type in call.outputs))
        return Context(
            _positions(given(call), self.softmaxed),
            _positions(yielded, self.mixed),
            _positions(yielded, self.scored),
        )


class Tracer:
    """Finds the slots that have to do with attention. What it found for a body in a context it keeps."""

    def __init__(self) -> None:
        self._effort = Effort()
        self._results: dict[tuple[Body, frozenset[int]], frozenset[int]] = {}
        self._ways: dict[tuple[Body, frozenset[int], frozenset[int]], tuple[frozenset[int], frozenset[int]]] = {}

    def trace(self, body: Body, context: Context) -> Traced:
        """The slots of a body that have to do with attention. Raises ArchError where that takes too much work."""
        self._effort.spend(body)
        outputs = [slot for _, slot in body.outputs if isinstance(slot, int)]
        mixed = frozenset([outputs[i] for i in context.mixed])
        scored = frozenset([outputs[i] for i in context.scored])
        return Traced(self._softmaxed(body, context.softmaxed), *self._wanted(body, mixed, scored))

    def _softmaxed(self, body: Body, inputs: frozenset[int]) -> frozenset[int]:
        """The slots that hold a softmax's result. An input is in the slot of its number."""
        known = self._results.get((body, inputs))
        if known is not None:
            return known
        self._effort.spend(body)
        found = set(inputs)
        for call in body.calls:
            if call.body is not None:
                inner = self._softmaxed(call.body, _positions(given(call), found))
                outputs = [slot for _, slot in call.body.outputs if isinstance(slot, int)]
                found.update([call.first + i for i, slot in enumerate(outputs) if slot in inner])
            elif call.type == "softmax":
                found.add(call.first)
            elif any(slot in found for slot in _passing(call, body.types)):
                found.update(range(call.first, call.first + len(call.outputs)))
        result = self._results[body, inputs] = frozenset(found)
        return result

    def _wanted(
        self, body: Body, mixed: frozenset[int], scored: frozenset[int]
    ) -> tuple[frozenset[int], frozenset[int]]:
        """The slots that go on into a matmul, and into a softmax whose result does, where these outputs do."""
        known = self._ways.get((body, mixed, scored))
        if known is not None:
            return known
        self._effort.spend(body)
        mixes, scores = set(mixed), set(scored)
        for call in reversed(body.calls):
            taken = given(call)
            if call.body is not None:
                outputs = [slot for _, slot in call.body.outputs if isinstance(slot, int)]
                into_mixes = frozenset([slot for i, slot in enumerate(outputs) if call.first + i in mixes])
                into_scores = frozenset([slot for i, slot in enumerate(outputs) if call.first + i in scores])
                inner_mixes, inner_scores = self._wanted(call.body, into_mixes, into_scores)
                mixes.update([slot for i, slot in enumerate(taken) if i in inner_mixes])
                scores.update([slot for i, slot in enumerate(taken) if i in inner_scores])
            elif call.type == "matmul":
                mixes.update(taken)
            elif call.type == "softmax":
                if call.first in mixes:
                    scores.update(taken)
            else:
                results = range(call.first, call.first + len(call.outputs))
                passing = _passing(call, body.types)
                if any(slot in mixes for slot in results):
                    mixes.update(passing)
                if any(slot in scores for slot in results):
                    scores.update(passing)
        result = self._ways[body, mixed, scored] = frozenset(mixes), frozenset(scores)
        return result


def given(call: Call) -> list[int]:
    """The slots that a call takes, without numbers and what is absent: they fill the first slots of its body."""
    return [operand for _, operand in call.inputs if isinstance(operand, int)]


def _passing(call: Call, types: list[Type]) -> list[int]:
    """The operands that an operation hands on, changed element by element or moved."""
    group, result = OPS[call.type].group, call.outputs[0]
    if result is None or result.dtype != "real" or group not in ("Elementwise", "Shape"):
        return []
    return [
        slot
        for slot in given(call)
        if types[slot].dtype == "real" and (group == "Shape" or types[slot].shape == result.shape)
    ]


def _positions(slots: Iterable[int], marked: set[int] | frozenset[int]) -> frozenset[int]:
    return frozenset([i for i, slot in enumerate(slots) if slot in marked])
