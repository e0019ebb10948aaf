"""A limit on following values through bodies: what surrounds a body may differ each time that it is applied."""

from __future__ import annotations

from archspec.ir import Body
from archspec.source import fail

MOST_FOLLOWED = 5_000_000


class Effort:
    """Counts the applications looked at in bodies, each body again for each way in which it is surrounded."""

    def __init__(self) -> None:
        self._left = MOST_FOLLOWED

    def spend(self, body: Body) -> None:
        """Counts those in one body. Raises ArchError where they are too many in all."""
        self._left -= len(body.calls)
        if self._left < 0:
            message = f"this model's values go through more than {MOST_FOLLOWED:,} applications in different ways"
            raise fail("budget", message)
