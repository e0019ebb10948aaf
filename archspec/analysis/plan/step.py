"""A training step: how it is run, and the bytes that it holds besides states."""

from __future__ import annotations

from archspec.analysis.plan.plan import PlanRow
from archspec.analysis.plan.stages import Stage
from archspec.core.diagnostics import make_error
from archspec.core.record import Record


class Step(Record):
    """Rows of a step: what is `saved` for backward, what is `recomputed` backward, and the `loss`.

    `uncounted` says what could not be counted; `has_activations` is whether activations were.
    """

    saved: tuple[PlanRow, ...] = ()
    recomputed: tuple[PlanRow, ...] = ()
    loss: tuple[PlanRow, ...] = ()
    uncounted: tuple[str, ...] = ()
    has_activations: bool = False


class StepOptions(Record):
    """How a step is run: the type of its computation, attention, checkpointing, frozen parameters, and the loss.

    `uncounted` is why activations are not counted, if they are not. `stages` are those of a pipeline.
    """

    dtype: str
    attention: str
    checkpoint: str
    frozen: frozenset[str]
    fused_loss: bool
    uncounted: str
    stages: tuple[Stage, ...] = ()


def parse_checkpoint(checkpoint: str) -> tuple[int, str]:
    """Return of how many blocks one is checkpointed (0 for none), and whose results are saved. Raises ArchError."""
    if checkpoint in ("none", "blocks"):
        return int(checkpoint == "blocks"), ""
    name, _, value = checkpoint.partition("=")
    if name == "selective" and value in POLICIES:
        return 1, value
    if name != "every" or not value.isdecimal() or not 1 <= int(value[:10]) < 10**9:
        help = f"use none, blocks, every=K or {' or '.join(f'selective={policy}' for policy in POLICIES)}"
        raise make_error("usage", f"unknown checkpointing `{checkpoint:.40}`", help=help)
    return int(value), ""


POLICIES = ("matmul", "attention")
"""Operations whose results selective checkpointing saves."""
