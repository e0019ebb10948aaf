"""The report of `archspec cost --training`: FLOPs of a step and of a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archspec.core.reports.documents import Document
from archspec.core.reports.tables import Column, Row, View, columns
from archspec.core.reports.text import beside, flops, number

if TYPE_CHECKING:
    from archspec.analysis.cost.training import StepFlops, Training

_PARTS = ("forward", "backward", "recompute", "model", "hardware")


def contents(training: Training) -> Document:
    """Return the entry of the document."""
    return {
        "checkpoint": training.checkpoint,
        "blocks": list(training.blocks),
        "trained": training.trained,
        "tokens": None if training.tokens is None else _format(training.tokens),
        "is_bound": training.is_bound,
        "full": _amounts(training.full),
        "half": _amounts(training.half),
    }


def rows(training: Training) -> View:
    """Return the rows of the csv output: one for each way of counting."""
    counted = [("full", training.full), ("half", training.half)]
    return View(columns("causal", *_PARTS), [{"causal": name, **_amounts(step)} for name, step in counted])


def flops_view(training: Training) -> View:
    """Return the table of FLOPs: of a step and of a token, with causal attention in full and as half."""
    steps = [("of a step", training.full), ("of a step, causal: half", training.half)]
    tokens, kind = training.tokens, "at most" if training.is_bound else "exact"
    if tokens is not None:
        steps += [(name.replace("a step", "a token"), step.divide(tokens)) for name, step in steps]
    if training.full == training.half:
        steps = steps[::2]
    has_recompute = training.checkpoint != "none"
    shown = [name for name in _PARTS if has_recompute or name not in ("recompute", "hardware")]
    titles = {"model": "model (MFU)", "hardware": "hardware (HFU)", "recompute": "computed again"}
    is_number = isinstance(training.full.hardware, int)
    shown_columns = [Column("to", "FLOPs")]
    shown_columns += [Column(name, titles.get(name, name), fit="" if is_number else "wrap") for name in shown]
    shown_rows: list[Row] = [{"to": name, **_amounts(step, ","), "kind": kind} for name, step in steps]
    return View([*shown_columns, Column("kind", "", style="note", drop=1)], shown_rows)


def summary(training: Training) -> list[str]:
    """Describe the figures, one fact per line."""
    full = training.full
    model = f"{full.model:,} FLOPs{beside(flops(full.model))} of the model in a step, forward and backward"
    lines = [
        f"{model}: 2 per multiply-accumulate (MAC) of matrix products",
        "MFU = steps per second * FLOPs of the model / FLOPs per second of all devices at their peak",
        f"{number(training.trained, 'trained parameter')}; every output of the model affects the loss",
    ]
    if training.blocks:
        again = f"{full.recompute:,} FLOPs{beside(flops(full.recompute))} are computed again"
        lines.insert(1, f"{again} in {', '.join(training.blocks)} (--checkpoint {training.checkpoint})")
    elif training.checkpoint != "none":
        lines.append("no numbered modules, so --checkpoint has no effect")
    if training.is_bound:
        lines.append("at most: the first or last iterations of a loop over a sequence take less backward")
    return lines


def _amounts(step: StepFlops, digits: str = "") -> dict[str, int | float | str]:
    return {name: _format(getattr(step, name), digits) for name in _PARTS}


def _format(amount: object, digits: str = "") -> int | float | str:
    return amount if isinstance(amount, int | float) else f"{amount:{digits}}"
