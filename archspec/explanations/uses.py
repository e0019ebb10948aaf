"""The number of applications of each layer of a model, which may be more than one per module."""

from __future__ import annotations

from collections import Counter
from functools import cache

from archspec.addresses import join
from archspec.ir import Body


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
