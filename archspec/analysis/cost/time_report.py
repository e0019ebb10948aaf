"""The report of `archspec cost --device`: the least time of the products and of the bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archspec.core.reports.documents import Document
from archspec.core.reports.tables import Column, Row, View
from archspec.core.reports.text import duration, flops, size

if TYPE_CHECKING:
    from archspec.analysis.cost.time import StepTime


def contents(time: StepTime) -> Document:
    """Return the entry of the document; times are in seconds."""
    return {
        **time._asdict(),
        "traffic": [entry._asdict() for entry in time.traffic],
        "compute_seconds": time.compute_seconds,
        "memory_seconds": time.memory_seconds,
        "seconds": time.seconds,
        "seconds_apart": time.seconds_apart,
        "limit": time.limit,
        "is_estimate": time.is_estimate,
    }


def time_view(time: StepTime) -> View:
    """Return the table of times: of the products, and of each kind of bytes."""
    peak, bandwidth = flops(time.peak), size(time.bandwidth)
    shown_rows: list[Row] = [
        {
            "to": f"products, {time.dtype}",
            "amount": time.flops,
            "unit": "FLOPs",
            "rate": peak and f"{peak}/s{_describe_part(time.utilization)}",
            "time": duration(time.compute_seconds),
            "kind": time.kind,
        }
    ]
    for entry in time.traffic:
        shown_rows.append(
            {
                "to": entry.name,
                "amount": entry.bytes,
                "unit": "bytes",
                "rate": bandwidth and f"{bandwidth}/s{_describe_part(time.bandwidth_utilization)}",
                "time": duration(time.seconds_to_move(entry.bytes)),
                "kind": entry.kind,
            }
        )
    shown_columns = [
        Column("to", f"time on {time.device}", fit="wrap"),
        Column("amount", "amount"),
        Column("unit", "", style="unit"),
        Column("rate", "rate", drop=2),
        Column("time", "time"),
        Column("kind", "", style="note", drop=1),
    ]
    return View(shown_columns, shown_rows)


def _describe_part(part: float) -> str:
    return f" x {part:g}" if part < 1 else ""


def summary(time: StepTime) -> list[str]:
    """Describe the total, one fact per line."""
    has_both = time.compute_seconds is not None and time.memory_seconds is not None
    reason = f" ({time.limit})" if has_both else ""
    parts = [("--utilization", time.utilization), ("--bandwidth-utilization", time.bandwidth_utilization)]
    stated = " and ".join([f"{option} {part:g}" for option, part in parts if part < 1])
    start = f"estimate with {stated}: a {time.step} takes" if stated else f"a {time.step} takes at least"
    lines = [f"{start} {duration(time.seconds)}{reason}"]
    if time.seconds_apart > time.seconds:
        lines[0] += f"; {duration(time.seconds_apart)} if tokens choose as many different experts as they can"
    if time.peak is None:
        other = "; tf32 is another type" if time.dtype == "float32" else ""
        lines.append(f"{time.device} has no peak for {time.dtype}{other}, so the products have no time")
    if time.bandwidth is None:
        lines.append(f"{time.device} has no bandwidth, so the bytes have no time")
    if time.step == "prefill":
        lines.append("the products after the last block are those of the last position only")
    return lines
