"""The number of applications of each layer of a model, which may be more than one per module."""

from __future__ import annotations

from collections import Counter
from functools import cache

from archspec.addresses import join
from archspec.ir import Body
from archspec.ops import OPS


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
    def found(body: Body) -> frozenset[str]:
        stored = {slot for _, slot in body.weights}
        types: set[str] = set()
        for call in body.calls:
            if call.body is not None:
                types |= found(call.body)
                continue
            given = dict(call.inputs)
            if any(given.get(entry.indexes) in stored for entry in OPS[call.type].inputs if entry.indexes):
                types.add(body.type)
        return frozenset(types)

    return found(body)
