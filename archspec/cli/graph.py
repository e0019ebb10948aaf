"""`archspec graph SPEC`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from archspec.cli.files import write_text
from archspec.graph.dot import dot
from archspec.graph.exchange import gexf_text, graphml_text
from archspec.graph.mermaid import mermaid
from archspec.graph.nodelink import nodelink
from archspec.overrides import parse_overrides
from archspec.pipeline.compile import model_of
from archspec.reporting.documents import json
from archspec.source import Diagnostic, fail

if TYPE_CHECKING:
    from archspec.graph.network import Graph

PICTURES = {"dot": dot, "mermaid": mermaid}
DATA: dict[str, Callable[[Graph], str]] = {
    "json": lambda graph: json(nodelink(graph)),
    "graphml": graphml_text,
    "gexf": gexf_text,
}


def run(options: Namespace) -> int:
    """Write the graph of a model as a picture or as data."""
    level = options.level or ("layer" if options.depth is None else "block")
    if options.depth is not None and level != "block":
        raise fail("usage", f"--depth cannot be combined with --level {level}", help="use `--level block`")

    def picture() -> tuple[str, Sequence[Diagnostic]]:
        model = model_of(options.spec, parse_overrides(options.settings))
        fold = options.to in PICTURES if options.fold is None else options.fold
        graph = model.graph(level, options.depth, fold=fold)
        text = PICTURES[options.to](graph, model.name) if options.to in PICTURES else DATA[options.to](graph)
        return text, model.warnings

    write_text(options, picture)
    return 0
