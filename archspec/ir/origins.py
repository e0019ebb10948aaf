"""The origins of values: computed from the inputs of a model, from its weights alone, or from numbers alone.

A value computed from weights alone (experts that are stacked, a matrix that is cast or scaled) is the same in every
forward pass: it belongs to the weights, is no activation, and its computation is no work of the pass. A product of
matrices is work of each pass wherever its factors are from, as modules compute it anew (projected tables of positions),
and its result is an activation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Literal, TypeAlias

from archspec.core.algebra import Polynomial, symbols
from archspec.ir.fold import ForwardResult, arguments, propagate_forward
from archspec.ir.module import Body, Call
from archspec.ir.ops import OPS
from archspec.ir.ops.check import is_list

Origin: TypeAlias = Literal["input", "numbers", "weights"]
"""The origin of a value. A value whose computation depends on the size of a dimension has the origin "input"."""

InputOrigins: TypeAlias = tuple[Origin, ...]
"""The origins of the inputs of a body; empty if all are "input"."""


class Origins:
    """Finder of the origins of values; each body is analysed once for each combination of origins of its inputs.

    `dimensions` are the names of dimensions in sizes; by default, every name is one.
    """

    def __init__(self, dimensions: Collection[str] | None = None) -> None:
        self._dimensions = None if dimensions is None else set(dimensions)
        self._find: Callable[[Body, InputOrigins], ForwardResult[Origin]] = cache(self._find_origins)

    def slots(self, body: Body, inputs: InputOrigins = ()) -> Sequence[Origin]:
        """Return the origins of all slots of a body."""
        return self._find(body, inputs).slots

    def inputs(self, call: Call, slots: Sequence[Origin]) -> InputOrigins:
        """Return the origins of the inputs of the body that a call applies, from the slots around the call."""
        return self._inputs(call, [slots[o] if isinstance(o, int) else "numbers" for _, o in call.inputs])

    def _inputs(self, call: Call, operands: Sequence[Origin]) -> InputOrigins:
        assert call.body is not None
        carried = call.body.loop.carried if call.body.loop is not None else 0  # carried values change
        changed: InputOrigins = ("input",) * carried
        origins = (*changed, *arguments(call, operands)[carried:])
        return origins if any(origin != "input" for origin in origins) else ()

    def _find_origins(self, body: Body, inputs: InputOrigins) -> ForwardResult[Origin]:
        if body.loop is not None and self._dimensions is not None:
            self._dimensions.add(body.loop.variable)

        def visit_op(call: Call, operands: list[Origin]) -> list[Origin]:
            present = [o for (_, operand), o in zip(call.inputs, operands, strict=True) if operand is not None]
            if OPS[call.type].trains:
                return operands[:1]
            if "input" in present or OPS[call.type].macs is not None or self._depends_on_sizes(call):
                return ["input"] * len(call.outputs)  # a product is work of each pass, also one of two weights
            return ["weights" if "weights" in present else "numbers"] * len(call.outputs)

        def visit_call(call: Call, operands: list[Origin]) -> list[Origin]:
            assert call.body is not None
            return self._find(call.body, self._inputs(call, operands)).outputs

        starts: InputOrigins = inputs or ("input",) * len(body.inputs)
        result = propagate_forward(body, starts, visit_op, visit_call, "numbers", self._of_number, lambda _: "weights")
        return result if body.loop is None else result._replace(outputs=["input"] * len(result.outputs))

    def _of_number(self, value: object) -> Origin:
        return "input" if self._mentions_dimension(value) else "numbers"

    def _depends_on_sizes(self, call: Call) -> bool:
        shapes = [type.shape for type in call.outputs if type is not None]
        operands = [operand.value for _, operand in call.inputs if operand is not None and not isinstance(operand, int)]
        return self._mentions_dimension((*shapes, *operands, *call.attributes.values()))

    def _mentions_dimension(self, value: object) -> bool:
        if is_list(value):
            return any(map(self._mentions_dimension, value))
        if not isinstance(value, Polynomial):
            return False
        return self._dimensions is None or not self._dimensions.isdisjoint(symbols(value))


def is_from_weights(call: Call, slots: Sequence[Origin]) -> bool:
    """Whether the results of an operation are computed from weights alone, in a body with slots of these origins."""
    return slots[call.first] == "weights"
