"""Whether a model fits a device: bytes of its weights and cache, the longest context, the largest batch.

`docs/fit.md` defines every number, and says which are exact, bounds or assumptions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from archspec.analysis.cost.decoding import CacheRule
from archspec.core.algebra import MAX_SIZE
from archspec.core.record import Record
from archspec.core.reports.results import Result
from archspec.formats.devices import Device

if TYPE_CHECKING:
    from archspec.analysis.cost.time import StepTime
    from archspec.ir.table import PlainValue

MAX_CONTEXT = MAX_SIZE // 4
"""A context that is longer than all windows, and that a cache which grows never reaches."""

MAX_BATCH = 2**40


class MemoryLine(Record):
    """An amount of memory of each device: what it is, its bytes, and their kind.

    `kind` is "exact", "at least", "at most" or "assumed"; `note` is the reason for another kind than "exact", or a
    remark.
    """

    name: str
    bytes: int
    kind: str
    note: str = ""


class CacheSizes(Record):
    """The cache of a model along `dimension`: how its parts grow, and the longest context of its position table.

    `positions` is None for a model without a table of positions.
    """

    dimension: str
    dtype: str
    rules: tuple[CacheRule, ...]
    positions: int | None

    def bytes(self, batch: int, context: int) -> int:
        """Return the bytes for `batch` sequences of `context` positions each."""
        return sum([rule.bytes(batch, context, self.dtype) for rule in self.rules])

    def longest_context(self, available: int, batch: int) -> int | None:
        """Return the longest context whose cache has at most `available` bytes; None if every context has.

        The result is 0 if no context fits, and at most `positions`.
        """
        limit = MAX_CONTEXT if self.positions is None else self.positions
        longest = largest_number(0, limit, lambda context: self.bytes(batch, context) <= available)
        return None if longest == MAX_CONTEXT else longest

    def largest_batch(self, available: int, context: int) -> int:
        """Return the largest batch whose cache has at most `available` bytes, up to MAX_BATCH."""
        return largest_number(0, MAX_BATCH, lambda batch: self.bytes(batch, context) <= available)


def largest_number(low: int, limit: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to `limit` that fits; `low` is known to. A number fits if a larger one does."""
    high = limit + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


class Fit(Result):
    """The memory of a model on each of `devices` devices, and what would fit.

    The model is divided among `tensor` devices; `batch` is that of each group of them. `context` is the number of
    cached positions of each sequence: the requested one, or else the longest that fits; None if the cache does not
    grow, or if not even the weights fit. `lines` add up to `total`, and `left_out` are bounds that are not added.

    `longest_context` and `largest_batch` (at `context`) are 0 if nothing fits; `longest_context` is None if the memory
    does not limit it. `limit` is "memory", "positions" (of the model's table) or "" (nothing). `time` is that of a
    decoding step of one device after `context`, at least.
    """

    model: str
    overrides: dict[str, PlainValue]
    device: Device
    devices: int
    tensor: int
    divided: dict[str, tuple[PlainValue, PlainValue]]
    dtype: str
    cache: CacheSizes
    batch: int
    context: int | None
    fraction: float
    lines: tuple[MemoryLine, ...]
    left_out: tuple[MemoryLine, ...]
    longest_context: int | None
    largest_batch: int
    notes: tuple[str, ...] = ()
    time: StepTime | None = None

    def __repr__(self) -> str:
        verdict = "fits" if self.fits else "does not fit"
        return f"<Fit of {self.model!r} on {self.devices} x {self.device.name}: {verdict}, {self.total:,} bytes>"

    @property
    def total(self) -> int:
        """The bytes of all lines."""
        return sum([line.bytes for line in self.lines])

    @property
    def usable(self) -> int:
        """The bytes of a device that the model may use: its memory times `fraction`, rounded down."""
        return int(self.device.memory * self.fraction)

    @property
    def fits(self) -> bool:
        """Whether the total is at most the usable memory, with at least one cached position."""
        return self.total <= self.usable and self.context != 0

    @property
    def missing(self) -> int:
        """The bytes by which the total exceeds the usable memory; negative if it fits."""
        return self.total - self.usable

    @property
    def limit(self) -> str:
        """The limit of the longest context: "memory", "positions" or ""."""
        if self.longest_context is None:
            return ""
        return "positions" if self.longest_context == self.cache.positions else "memory"
