"""How often each layer of a model is applied: a layer that is declared once may be used many times."""

from __future__ import annotations

from collections import Counter

from archspec.addresses import join
from archspec.ir import Body


def uses(body: Body) -> Counter[str]:
    """The number of applications of each layer and block, by address."""
    return _uses(body, {})


def _uses(body: Body, known: dict[Body, Counter[str]]) -> Counter[str]:
    """The applications in a body by relative address; `known` has those of bodies that were counted before."""
    found = known.get(body)
    if found is None:
        found = known[body] = Counter()
        for call in body.calls:
            if call.kind not in ("layer", "block"):
                continue
            found[call.address] += 1
            for inner, times in _uses(call.body, known).items() if call.body is not None else ():
                found[join(call.address, inner)] += times
    return found
