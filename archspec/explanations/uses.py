"""How often each layer of a model is applied: what is owned once may be used many times."""

from __future__ import annotations

from collections import Counter

from archspec.addresses import join
from archspec.ir import Body


def uses(body: Body) -> Counter[str]:
    """The number of applications of each layer and block, by address."""
    return _Walk().counted(body)


class _Walk:
    """Counts every body once, however often it is stamped."""

    def __init__(self) -> None:
        self.known: dict[int, Counter[str]] = {}

    def counted(self, body: Body) -> Counter[str]:
        """The applications in a body, by relative address."""
        found = self.known.get(id(body))
        if found is None:
            found = self.known[id(body)] = Counter()
            for call in body.calls:
                if call.kind not in ("layer", "block"):
                    continue
                found[call.address] += 1
                for inner, times in self.counted(call.body).items() if call.body is not None else ():
                    found[join(call.address, inner)] += times
        return found
