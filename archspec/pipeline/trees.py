"""Trees of sources, kept between runs."""

from __future__ import annotations

from archspec import cache
from archspec.source import Report, Source
from archspec.syntax import store, tree


def parsed(source: Source, report: Report) -> tree.File:
    """The tree of a source; from the cache where the same text parsed without errors before."""
    stored = cache.read("tree", source.text)
    if stored is not None:
        try:
            return store.load(stored)
        except ValueError:
            pass
    from archspec.syntax.parse import parse

    before = len(report.diagnostics)
    file = parse(source, report)
    if len(report.diagnostics) == before:
        cache.write("tree", source.text, store.dump(file))
    return file
