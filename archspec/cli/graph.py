"""`archspec graph SPEC`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from archspec.cli.files import write_text
from archspec.graph.dot import dot
from archspec.graph.mermaid import mermaid
from archspec.graph.nodelink import nodelink
from archspec.overrides import parse_overrides
from archspec.pipeline.compile import model_of
from archspec.reporting.documents import json
from archspec.source import Diagnostic, fail


def run(options: Namespace) -> int:
    """Write the graph of a model as DOT, Mermaid or JSON."""
    level = options.level or ("layer" if options.depth is None else "block")
    if options.depth is not None and level != "block":
        raise fail("usage", f"--depth cannot be combined with --level {level}", help="use `--level block`")

    def picture() -> tuple[str, Sequence[Diagnostic]]:
        model = model_of(options.spec, parse_overrides(options.settings))
        fold = options.to != "json" if options.fold is None else options.fold
        graph = model.graph(level, options.depth, fold=fold)
        if options.to == "json":
            return json(nodelink(graph)), model.warnings
        return (dot if options.to == "dot" else mermaid)(graph, model.name), model.warnings

    write_text(options, picture)
    return 0
