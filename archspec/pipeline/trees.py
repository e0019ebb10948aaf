"""Trees of sources, and the parser that makes them: kept between runs."""

from __future__ import annotations

import functools
from contextlib import suppress
from typing import TYPE_CHECKING

from archspec import cache
from archspec.source import Report, Source

if TYPE_CHECKING:
    from archspec.syntax import tree
    from archspec.syntax.machine import Machine


def parsed(source: Source, report: Report) -> tree.File:
    """The tree of a source; from the cache where the same text parsed without errors before."""
    from archspec.syntax import store

    stored = cache.read("tree", source.text)
    if stored is not None:
        try:
            return store.load(stored)
        except ValueError:
            pass
    from archspec.syntax.parse import parse

    before = len(report.diagnostics)
    file = parse(source, report, parser())
    if len(report.diagnostics) == before:
        cache.write("tree", source.text, store.dump(file))
    return file


@functools.cache
def parser() -> Machine:
    """The parser, from tables kept for this grammar, or from lark."""
    from archspec.resources import grammar_text
    from archspec.syntax.parse import parser_data, parser_from

    grammar = grammar_text()
    stored = cache.read("parser", grammar)
    if stored is not None:
        with suppress(ValueError):
            return parser_from(stored)
    data = parser_data()
    cache.write("parser", grammar, data)
    return parser_from(data)
