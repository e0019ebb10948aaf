"""The report of `archspec fit`: the memory of a device by line, what would fit, and the JSON document."""

from __future__ import annotations

from archspec.analysis.cost import time_report
from archspec.analysis.fit.fit import MAX_BATCH, Fit
from archspec.core.reports.documents import Document, finite
from archspec.core.reports.page import Page
from archspec.core.reports.tables import Column, Row, View, columns
from archspec.core.reports.text import beside, number, size, title


def contents(fit: Fit) -> Document:
    """Return the document of the JSON and YAML output."""
    return {
        "format": 1,
        "model": fit.model,
        "overrides": finite(fit.overrides),
        "device": fit.device._asdict(),
        "devices": fit.devices,
        "tensor": fit.tensor,
        "divided": {name: list(values) for name, values in fit.divided.items()},
        "dtype": fit.dtype,
        "cache_dtype": fit.cache.dtype,
        "batch": fit.batch,
        "context": fit.context,
        "fraction": fit.fraction,
        "lines": [line._asdict() for line in fit.lines],
        "total": fit.total,
        "usable": fit.usable,
        "fits": fit.fits,
        "longest_context": fit.longest_context,
        "limit": fit.limit,
        "positions": fit.cache.positions,
        "largest_batch": fit.largest_batch,
        "left_out": [line._asdict() for line in fit.left_out],
        "notes": list(fit.notes),
        "time": None if fit.time is None else time_report.contents(fit.time),
    }


def rows(fit: Fit) -> View:
    """Return the rows of the csv output."""
    return View(columns("name", "bytes", "kind", "note"), [line._asdict() for line in fit.lines])


def page(fit: Fit, format: str = "table") -> Page:
    """Return the report."""
    plan = f", tensor parallelism of {fit.tensor}" if fit.tensor > 1 else ""
    heading = f"{title(fit.model, fit.overrides)} on {fit.devices} x {fit.device.name}{plan}: {_verdict(fit)}"
    return Page(heading, [_memory(fit), _possibilities(fit), [*_time(fit), *_left_out(fit), *_plan(fit), *fit.notes]])


def _kind(fit: Fit) -> str:
    """Return the kind of the total."""
    kinds = {line.kind for line in fit.lines} - {"exact"}
    return "exact" if not kinds else kinds.pop() if len(kinds) == 1 else "with bounds and assumptions"


def _verdict(fit: Fit) -> str:
    """Say whether the model fits, as far as the kinds of the lines allow."""
    kinds = {line.kind for line in fit.lines}
    if not fit.fits:
        return "may not fit, the total is an upper bound" if "at most" in kinds else "does not fit"
    if "at least" in kinds:
        return "may fit, the total is a lower bound"
    return "weights and cache fit" if fit.left_out else "fits"


def _memory(fit: Fit) -> View:
    """Return the table of the memory of a device."""
    shown_rows: list[Row] = [
        _row(line.name, line.bytes, f"{line.kind}; {line.note}" if line.note else line.kind) for line in fit.lines
    ]
    shown_rows += [
        _row("total", fit.total, _kind(fit)),
        _row(
            f"usable: {100 * fit.fraction:g} % of {fit.device.memory:,}",
            fit.usable,
            f"assumed; --fraction {fit.fraction:g}",
        ),
        _row("missing" if fit.missing > 0 else "free", abs(fit.missing), ""),
    ]
    first = "bytes of each device" if fit.devices > 1 else "bytes"
    shown_columns = [
        Column("name", first),
        Column("bytes", ""),
        Column("size", "", style="unit"),
        Column("kind", "kind", fit="wrap"),
    ]
    return View(shown_columns, shown_rows)


def _row(name: str, bytes: int, kind: str) -> Row:
    return {"name": name, "bytes": bytes, "size": size(bytes), "kind": kind}


def _possibilities(fit: Fit) -> list[str]:
    """Describe the longest context, the largest batch, and a narrower cache."""
    lines = [_longest(fit)]
    if fit.context:
        at_most = "at most " if any(line.kind == "at least" for line in fit.lines) else ""
        many = "not limited" if fit.largest_batch >= MAX_BATCH else f"{at_most}{fit.largest_batch:,}"
        text = many if fit.largest_batch else "none, not even batch 1"
        lines.append(f"largest batch with context {fit.context:,}: {text}")
    if not fit.fits and fit.context and fit.cache.dtype not in ("fp8", "int8", "int4"):
        narrow = fit.cache._replace(dtype="fp8").bytes(fit.batch, fit.context)
        total = fit.total - fit.cache.bytes(fit.batch, fit.context) + narrow
        verdict = "fits" if total <= fit.usable else "does not fit either"
        lines.append(f"with --cache-dtype fp8: {total:,} bytes{beside(size(total))}, which {verdict}")
    return lines


def _longest(fit: Fit) -> str:
    start = f"longest context with batch {fit.batch:,}: "
    if fit.longest_context is None:
        return f"{start}not limited, because the cache does not grow"
    if not fit.longest_context:
        return f"{start}none: the weights and one position do not fit"
    positions = fit.cache.positions
    limits = {"memory": "memory", "positions": "the model's table of positions"}
    table = "; no table of positions in the spec limits it" if positions is None else ""
    at_most = "at most " if any(line.kind == "at least" for line in fit.lines) and fit.limit == "memory" else ""
    return f"{start}{at_most}{fit.longest_context:,}, limited by {limits[fit.limit]}{table}"


def _time(fit: Fit) -> list[str]:
    """Describe the least time of a step, without the missing peak of a type."""
    return [] if fit.time is None else time_report.summary(fit.time)[:1]


def _left_out(fit: Fit) -> list[str]:
    """Describe what the total leaves out."""
    bounds = [f"{line.name} ({line.kind} {size(line.bytes) or f'{line.bytes} B'})" for line in fit.left_out]
    return [f"not counted: {', '.join([*bounds, 'the memory of the framework and its kernels'])}"]


def _plan(fit: Fit) -> list[str]:
    """Describe how the model is divided."""
    if fit.tensor == 1:
        return []
    parts = ", ".join(f"{name} = {part}" for name, (_, part) in fit.divided.items())
    lines = [f"each device has {parts}; norms, routers and all other parameters are whole"]
    if fit.devices > fit.tensor:
        lines.append(f"{number(fit.devices // fit.tensor, 'replica')} of the model, with the batch for each")
    return lines
