"""A plan of training: the bytes of one device by category, and when they are held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archspec.core.diagnostics import Diagnostic
from archspec.core.record import Record
from archspec.core.reports.results import Result

if TYPE_CHECKING:
    from archspec.formats.devices import Device


class PlanRow(Record):
    """The bytes of a category on the device with the most.

    `kind` is "exact", "at most" or "assumed" (a rule or default of an engine); `note` names it.
    """

    category: str
    bytes: int
    kind: str = "exact"
    note: str = ""


class Moment(Record):
    """A moment of a step, and what is held at it besides states."""

    name: str
    rows: tuple[PlanRow, ...]

    @property
    def total(self) -> int:
        return sum(row.bytes for row in self.rows)


class PlanGroup(Record):
    """States of a block, of all blocks with a pattern, or of a layer outside of blocks.

    `name` is its address, and `times` the number of blocks. Where an engine divides a buffer of all tensors, bytes
    are those of its part of the buffer.
    """

    name: str
    times: int
    tensors: int
    weights: int
    gradients: int
    master: int
    optimizer: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.master + self.optimizer


class PlanStage(Record):
    """A stage of a pipeline: its first block and their number, the microbatches alive at once, and bytes in total."""

    first: str
    blocks: int
    alive: int
    total: int


class Plan(Result):
    """The bytes of one device in training, the one with the most.

    `states` are held during the whole step, and `moments` have what is held in addition. `total` is the most of these.
    `smallest` are the states of the device with the least (None if it is not known). `groups` say where states are.
    `uncounted` names what is not in any figure. `settings` are those of the plan by name, `blocks` the patterns of the
    modules that engines take as blocks, and `by` is "block" if the report lists groups. `warnings` are those of the
    model, and `stages` those of a pipeline.
    """

    model: str
    device: Device
    settings: dict[str, int | str | bool | None]
    states: tuple[PlanRow, ...]
    moments: tuple[Moment, ...]
    smallest: int | None
    groups: tuple[PlanGroup, ...]
    blocks: tuple[str, ...]
    uncounted: tuple[str, ...] = ()
    has_activations: bool = False
    by: str = ""
    warnings: tuple[Diagnostic, ...] = ()
    stages: tuple[PlanStage, ...] = ()

    def __repr__(self) -> str:
        return f"<Plan of {self.model!r} on {self.device.name}: {self.total:,} of {self.device.memory:,} bytes>"

    def svg(self, theme: str = "light") -> str:
        """Return a picture as SVG, "light" or "dark": a bar for each moment against the memory of the device."""
        return self._module("picture").svg(self, theme)

    @property
    def peak(self) -> Moment:
        """The moment at which the most is held."""
        return max(self.moments, key=lambda moment: moment.total)

    @property
    def state_bytes(self) -> int:
        """The bytes of all states."""
        return sum(row.bytes for row in self.states)

    @property
    def total(self) -> int:
        """The bytes of states and of the peak."""
        return self.state_bytes + self.peak.total

    @property
    def exact(self) -> int:
        """The bytes of `total` that are exact: what the plan takes at least."""
        moments = [_sum_exact(moment.rows) for moment in self.moments]
        return _sum_exact(self.states) + max(moments)

    @property
    def fits(self) -> bool | None:
        """Whether the plan fits; None if what is counted does not tell."""
        if self.exact > self.device.memory:
            return False
        return True if self.has_activations and self.total <= self.device.memory else None

    @property
    def kind(self) -> str:
        """The kind of the total: "at least" if all of its rows are exact, as not everything is counted."""
        kinds = {row.kind for row in (*self.states, *self.peak.rows)}
        return next((kind for kind in ("assumed", "at most") if kind in kinds), "at least")


def _sum_exact(rows: Sequence[PlanRow]) -> int:
    return sum(row.bytes for row in rows if row.kind == "exact")
