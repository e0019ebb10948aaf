"""The report of `archspec cost --past`: the totals of a decoding step, and its cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archspec.core.reports.documents import Document
from archspec.core.reports.tables import Column, Row, View, columns
from archspec.core.reports.text import beside, flops, number, size

if TYPE_CHECKING:
    from archspec.analysis.cost.decoding import Decoding


def contents(decoding: Decoding) -> Document:
    """Return the entry of the document."""
    return {
        **decoding._asdict(),
        "cache": [part._asdict() for part in decoding.cache],
        "cache_bytes": decoding.cache_bytes,
        "bytes_per_flop": decoding.bytes_per_flop,
    }


def rows(decoding: Decoding) -> View:
    """Return the rows of the csv output: the parts of the cache."""
    return View(columns("kind", "layers", "positions", "values", "bytes"), [part._asdict() for part in decoding.cache])


def summary(decoding: Decoding, dtype: str) -> list[str]:
    """Describe the totals, one fact per line."""
    at_most = "at most " if decoding.weights_are_bound else ""
    read = decoding.weights + decoding.cache_bytes
    rate = decoding.bytes_per_flop
    batch = f"of each of {decoding.batch:,} sequences " if decoding.batch > 1 else ""
    lines = [
        f"one position {batch}after {number(decoding.past, 'position')} of `{decoding.dimension}`, whose keys, values "
        "and states are cached",
        f"{decoding.flops:,} FLOPs{beside(flops(decoding.flops))} in matrix products, 2 per multiply-accumulate (MAC)",
        *_describe_latent(decoding),
        f"{at_most}{decoding.weights:,} bytes{beside(size(decoding.weights))} of weights read, {dtype}",
        f"{decoding.cache_bytes:,} bytes{beside(size(decoding.cache_bytes))} of cache read, {decoding.cache_dtype}",
        f"{at_most}{read:,} bytes read in total"
        if rate is None
        else f"{at_most}{rate:.4g} bytes read per FLOP: {read:,} bytes in total",
    ]
    if decoding.weights_are_bound:
        lines.append("the sequences of a batch may choose different experts; the bound assumes that they do")
    return lines


def _describe_latent(decoding: Decoding) -> list[str]:
    """Describe how the step multiplies keys and values that are computed from cached latent vectors."""
    expanded, absorbed = decoding.expanded_flops, decoding.absorbed_flops
    if expanded is None:
        return []
    start = "latent attention: "
    if decoding.flops == expanded:
        used = "keys and values of all positions are expanded"
        if absorbed is None:
            return [f"{start}{used}; they are not linear in the cached values, so their matrices cannot be absorbed"]
        return [f"{start}{used}; absorbed in queries and results, {absorbed:,} FLOPs{beside(flops(absorbed))}"]
    where = "" if decoding.flops == absorbed else " where this takes less"
    used = f"the matrices of keys and values are absorbed in queries and results{where}"
    return [f"{start}{used}; expanded, {expanded:,} FLOPs{beside(flops(expanded))}"]


def cache(decoding: Decoding) -> View:
    """Return the table of the cache: one row for each kind of layer."""
    shown_columns = [
        Column("kind", "cache"),
        Column("layers", "layers"),
        Column("positions", "positions"),
        Column("values", "values per layer and position", drop=1),
        Column("bytes", "bytes"),
        Column("size", "", style="unit"),
    ]
    shown_rows: list[Row] = [
        {**part._asdict(), "kind": _KINDS[part.kind], "size": size(part.bytes)} for part in decoding.cache
    ]
    return View(shown_columns, shown_rows)


_KINDS = {
    "attention": "attention to all positions",
    "window": "attention to a window",
    "other sequence": "attention to another sequence",
    "convolution": "convolution",
    "state": "state",
}
