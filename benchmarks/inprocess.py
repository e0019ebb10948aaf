"""Loading and drawing a big model, trees already parsed, against networkx building the same graph from ready lists."""

from __future__ import annotations

import argparse
import itertools

import networkx
from measure import medians, report, verdict

import archspec

MODEL = "bert-large-uncased"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=101)
    rounds = parser.parse_args().rounds

    ready = archspec.load(MODEL).graph()
    nodes = [(name, dict(data)) for name, data in ready.nodes(data=True)]
    edges = [(a, b, dict(data)) for a, b, data in ready.edges(data=True)]
    vocabulary = itertools.count(30_523)

    def from_lists() -> object:
        graph = networkx.DiGraph()
        graph.add_nodes_from(nodes)
        graph.add_edges_from(edges)
        return graph

    def first_use() -> object:
        return archspec.load(MODEL, vocab=next(vocabulary)).graph()

    def again() -> object:
        return archspec.load(MODEL).graph()

    def total_only() -> object:
        return archspec.load(MODEL, vocab=next(vocabulary)).params.total

    tasks = [from_lists, first_use, again, total_only]
    base, *times = medians(tasks, rounds)
    rows = [["networkx from lists", f"{base * 1e3:.2f}", "1.0", ""]]
    for label, taken, target in zip(
        ["load + graph, first use", "load + graph, after", "load, first use, without a graph"],
        times,
        [5.0, 3.0, None],
        strict=True,
    ):
        ratio = taken / base
        rows.append([label, f"{taken * 1e3:.2f}", f"{ratio:.1f}", verdict(ratio, target) if target else ""])
    size = f"{len(nodes)} nodes and {len(edges)} edges"
    report(f"{MODEL}, {size}, medians of {rounds} interleaved runs", ["", "ms", "ratio", "target"], rows)


if __name__ == "__main__":
    main()
