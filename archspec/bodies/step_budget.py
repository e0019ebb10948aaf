"""A limit on following values through bodies: a body is visited again for each different context it is applied in."""

from __future__ import annotations

from archspec.ir import Body
from archspec.source import fail

MOST_FOLLOWED = 5_000_000


class StepBudget:
    """Counts the calls that an analysis visits."""

    def __init__(self) -> None:
        self._left = MOST_FOLLOWED

    def spend(self, body: Body) -> None:
        """Counts the calls of one body. Raises ArchError if there are too many in all."""
        self._left -= len(body.calls)
        if self._left < 0:
            message = f"this model's values go through more than {MOST_FOLLOWED:,} applications in different ways"
            raise fail("budget", message)
