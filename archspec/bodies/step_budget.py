"""A limit on following values through bodies: a body is visited again for each context in which it is applied."""

from __future__ import annotations

from archspec.ir import Body
from archspec.source import fail

MOST_FOLLOWED = 5_000_000


class StepBudget:
    """Counts the calls that an analysis visits."""

    def __init__(self) -> None:
        self._left = MOST_FOLLOWED

    def spend(self, body: Body) -> None:
        """Count the calls of one body. Raises ArchError if the total exceeds the limit."""
        self._left -= len(body.calls)
        if self._left < 0:
            message = f"too many applications to follow values through: the limit is {MOST_FOLLOWED:,}"
            raise fail("budget", message)
