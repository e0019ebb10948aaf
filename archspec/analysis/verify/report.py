"""The report of `archspec verify`: its table and notes, and the JSON document."""

from __future__ import annotations

from collections import Counter

from archspec.analysis.verify.naming import NamingVariant
from archspec.analysis.verify.verify import Mismatch, StoredTotals, Verification
from archspec.core.reports.documents import Document, finite
from archspec.core.reports.page import Page
from archspec.core.reports.tables import Column, Row, View, columns
from archspec.core.reports.text import beside, number, size, title
from archspec.formats.checkpoints.entries import bits_per_element

MAX_ROWS = 1_000
"""Maximum number of rows of a table; csv, JSON and YAML contain all differences."""


def contents(verification: Verification) -> Document:
    """Return the document of the JSON and YAML output."""
    return {
        "format": 1,
        "model": verification.model,
        "overrides": finite(verification.overrides),
        "checkpoint": verification.checkpoint,
        "exact": verification.is_exact,
        "params": verification.params,
        "buffers": verification.buffers,
        "files": verification.files,
        "stored": verification.stored._asdict(),
        "dtypes": {dtype: part._asdict() for dtype, part in verification.dtypes.items()},
        "spellings": [spelling._asdict() for spelling in verification.spellings],
        "findings": [
            {**_row(finding), "names": list(finding.fold.names), "numbers": [*map(list, finding.fold.numbers)]}
            for finding in verification.findings
        ],
        "notes": list(verification.notes),
        "fits": list(verification.fits),
    }


def rows(verification: Verification) -> View:
    """Return the rows of the csv output: the differences."""
    keys = columns("kind", "name", "numbers", "tensors", "what", "spec", "checkpoint", "dtype", "other")
    return View(keys, [*map(_row, verification.findings)])


def page(verification: Verification, format: str = "table") -> Page:
    """Return the report: the differences, and the totals of the checkpoint."""
    heading, summary = _heading(verification), _summary(verification)
    if not verification.findings and format == "table":
        return Page("", [[heading, *summary]])
    shown_columns = [
        Column("kind", "difference"),
        Column("name", "tensor", fit="shorten"),
        Column("numbers", "*", fit="wrap"),
        Column("tensors", "tensors", drop=2),
        Column("spec", "in the spec"),
        Column("checkpoint", "in the checkpoint"),
        Column("remark", "", fit="wrap", drop=1),
    ]
    differences = [_row(finding) | {"remark": _remark(finding)} for finding in verification.findings[:MAX_ROWS]]
    return Page(heading, [View(shown_columns, differences), summary] if differences else [summary])


def _remark(finding: Mismatch) -> str:
    """Return a remark on a difference."""
    if finding.kind == "tied":
        return f"same tensor as {finding.other}"
    if finding.kind == "total_size":
        return f"the index specifies {int(finding.other or 0):,} bytes"
    return finding.dtype or (finding.what if finding.what == "buffer" else "")


def _row(finding: Mismatch) -> Row:
    return {
        "kind": finding.kind,
        "name": finding.fold.pattern,
        "numbers": finding.fold.ranges,
        "tensors": len(finding.fold.names),
        "what": finding.what,
        "spec": finding.spec,
        "checkpoint": finding.checkpoint,
        "dtype": finding.dtype,
        "other": finding.other,
    }


_KINDS = {
    "missing": "missing",
    "unexpected": "unexpected",
    "shape": "with a different shape",
    "tied": "tied differently",
}


def _heading(verification: Verification) -> str:
    model = title(verification.model, verification.overrides)
    if verification.is_exact:
        buffers = f", {number(verification.buffers, 'buffer')}" if verification.buffers else ""
        totals = f"{number(verification.stored.names, 'tensor')}, {verification.params:,} parameters{buffers}"
        return f"{verification.checkpoint} exactly matches {model}: {totals}"
    counts = Counter[str]()
    for finding in verification.findings:
        counts[finding.kind] += len(finding.fold.names)
    if set(counts) == {"unexpected"}:
        return f"{verification.checkpoint} contains all of {model} and {number(counts['unexpected'], 'tensor')} more"
    parts = [f"{number(counts[kind], 'tensor')} {words}" for kind, words in _KINDS.items() if counts[kind]]
    parts += ["wrong total size in the index"] if "total_size" in counts else []
    return f"{verification.checkpoint} does not match {model}: {', '.join(parts)}"


def _summary(verification: Verification) -> list[str]:
    """Return the totals, naming variants and other remarks, one per line."""
    stored = verification.stored
    lines = [*map(_describe_variant, verification.spellings), *verification.notes]
    bytes = f"{stored.bytes:,} bytes{beside(size(stored.bytes))}"
    if any(dtype.isupper() for dtype in verification.dtypes):
        bytes += bits_per_element(stored.bytes, stored.elements)
    names = f" with {stored.names:,} names" if stored.tensors < stored.names else ""
    files = f" in {verification.files:,} files" if verification.files > 1 else ""
    totals = f"{number(stored.tensors, 'tensor')}{names}, {stored.elements:,} elements, {bytes}{files}"
    lines.append(f"checkpoint: {totals}, {_describe_types(verification.dtypes)}")
    also = " (with the same overrides)" if verification.overrides else ""
    if len(verification.findings) > MAX_ROWS:
        lines.append(f"{len(verification.findings) - MAX_ROWS:,} more rows; use --format csv or json to show all")
    return lines + [f"the checkpoint matches {name} exactly{also}" for name in verification.fits]


def _describe_types(dtypes: dict[str, StoredTotals]) -> str:
    if len(dtypes) == 1:
        return f"all {next(iter(dtypes))}"
    return ", ".join(f"{dtype} {part.elements:,}" for dtype, part in dtypes.items()) or "no types"


def _describe_variant(spelling: NamingVariant) -> str:
    names = number(spelling.names, "name")
    if spelling.kind == "prefix":
        where = "checkpoint" if spelling.checkpoint else "spec"
        return f"prefix in the {where} only: `{spelling.checkpoint or spelling.spec}` ({names})"
    if spelling.kind == "norm":
        return f"`{spelling.checkpoint}` is read as `{spelling.spec}` in {names} of norms"
    if spelling.kind == "gguf":
        return f"the names of {spelling.checkpoint} are read as those of model type `{spelling.spec}` ({names})"
    if spelling.kind == "joined":
        parts = " and ".join(f"`{part}`" for part in spelling.checkpoint.split(", "))
        return f"{parts} are parts of `{spelling.spec}` ({names})"
    if spelling.kind in ("stacked", "transposed", "squeezed"):
        return f"`{spelling.checkpoint}` is `{spelling.spec}`, {spelling.kind} ({names})"
    if spelling.kind.startswith("from "):
        rows = spelling.kind.removeprefix("from ")
        return f"`{spelling.checkpoint}` is `{spelling.spec}` without its first {rows} rows ({names})"
    return f"`{spelling.checkpoint}` is read as `{spelling.spec}` in {names}"
