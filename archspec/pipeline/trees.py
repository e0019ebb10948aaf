"""Trees of sources, kept within a process, and between runs."""

from __future__ import annotations

from archspec.core.diagnostics import Report, Source
from archspec.language.syntax import store, tree
from archspec.pipeline import cache

MAX_CACHED_CHARACTERS = 2**20
"""The number of characters of all texts whose trees are kept within a process."""

_trees: dict[str, tree.File] = {}


def parse_cached(source: Source, report: Report) -> tree.File:
    """Parse a source, or return the cached tree if the same text was parsed without errors before."""
    text = source.text
    file = _trees.pop(text, None) or _read_cached_tree(text)
    if file is None:
        from archspec.language.syntax.parse import parse

        before = len(report.diagnostics)
        file = parse(source, report)
        if len(report.diagnostics) > before:
            return file
        cache.write("tree", text, store.dump(file))
    _trees[text] = file  # the last one used
    while sum(map(len, _trees)) > MAX_CACHED_CHARACTERS:
        del _trees[next(iter(_trees))]
    return file


def _read_cached_tree(text: str) -> tree.File | None:
    """The tree from the cache."""
    stored = cache.read("tree", text)
    if stored is None:
        return None
    try:
        return store.load(stored)
    except ValueError:
        return None
