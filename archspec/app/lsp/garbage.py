"""Collection of garbage between checks, since a collection can take longer than a check."""

from __future__ import annotations

import asyncio
import gc

IDLE = 0.3
"""Seconds without a check after which garbage is collected."""

MAX_CHECKS = 50
"""The limit on checks between two collections."""


class Collector:
    """Decides when garbage is collected."""

    def __init__(self) -> None:
        self._checks = 0  # since the last collection
        self._planned: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Collect no garbage automatically, and never search the objects that there are now."""
        gc.disable()
        gc.freeze()

    def after_check(self) -> None:
        """Collect garbage soon, unless another check comes first."""
        self._checks += 1
        if self._planned is not None:
            self._planned.cancel()
        wait = IDLE if self._checks < MAX_CHECKS else 0
        self._planned = asyncio.get_running_loop().call_later(wait, self._collect)

    def _collect(self) -> None:
        gc.collect()
        self._checks = 0
