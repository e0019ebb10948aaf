"""The number of applications of each layer of a model, which may be more than one per module."""

from __future__ import annotations

from collections import Counter
from functools import cache

from archspec.core.addresses import join
from archspec.ir.module import Body
from archspec.ir.ops import OPS


def uses(body: Body) -> Counter[str]:
    """Count the applications of each layer and block, by address."""

    @cache
    def counted(body: Body) -> Counter[str]:
        found: Counter[str] = Counter()
        for call in body.calls:
            if call.address and call.body is not None:
                found[call.address] += 1
                found.update({join(call.address, inner): times for inner, times in counted(call.body).items()})
        return found

    return counted(body)


def table_types(body: Body) -> frozenset[str]:
    """The definitions that look rows up in a tensor of their own: those of embedding tables."""

    @cache
    def found(body: Body, definition: str, given: frozenset[int]) -> frozenset[str]:
        """Find those in the body of a definition, or of a loop in it whose inputs `given` are stored."""
        stored = {slot for _, slot in body.weights} | given
        types: set[str] = set()
        for call in body.calls:
            if call.body is None:
                operands = dict(call.inputs)
                indexed = [name for entry in OPS[call.type].inputs for name in entry.indexes.split()]
                if any(operands.get(name) in stored for name in indexed):
                    types.add(definition)
            elif call.body.loop is None:
                types |= found(call.body, call.body.type, frozenset[int]())
            else:
                inside = frozenset([i for i, (_, operand) in enumerate(call.inputs) if operand in stored])
                types |= found(call.body, definition, inside)
        return frozenset(types)

    return found(body, body.type, frozenset[int]())
