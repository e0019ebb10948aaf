"""Deep stacks: the time a node takes must not grow with their number, nor that of a loop iteration without a graph."""

from __future__ import annotations

import argparse
import itertools

from measure import medians, report

import archspec
from archspec.pipeline.model import get_compilation

MODEL = "bert-base-uncased"
LAYERS = [12, 1_200, 12_000]
MOST_MICROSECONDS = 10.0
FLAT = 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    vocabulary = itertools.count(30_523)

    def fresh(layers: int) -> archspec.Model:
        return archspec.load(MODEL, layers=layers, vocab=next(vocabulary))

    archspec.load(MODEL)  # the trees
    totals = medians([lambda n=n: fresh(n).params.total for n in LAYERS], rounds)
    tables = medians([lambda n=n: get_compilation(fresh(n)).table for n in LAYERS], rounds)
    graphs = medians([lambda n=n: fresh(n).graph() for n in LAYERS], rounds)

    counts = {n: len(fresh(n).graph()) for n in LAYERS}
    each = [taken / counts[n] * 1e6 for n, taken in zip(LAYERS, graphs, strict=True)]
    rows = []
    for n, graph, table, total, node in zip(LAYERS, graphs, tables, totals, each, strict=True):
        beyond = (total - totals[0]) / (n - LAYERS[0]) * 1e6 if n > LAYERS[0] else 0.0
        rows.append(
            [
                f"{n:,}",
                f"{graph * 1e3:.1f}",
                f"{node:.2f}",
                f"{node / each[0]:.2f}",
                f"{table * 1e3:.1f}",
                f"{total * 1e3:.2f}",
                f"{total / n * 1e6:.2f}",
                f"{beyond:.2f}" if beyond else "",
            ]
        )
    head = ["layers", "graph ms", "us a node", "ratio", "table ms", "total ms", "us a layer", "us a further layer"]
    report(f"{MODEL} with other numbers of layers, first use, medians of {rounds} interleaved runs", head, rows)
    flat = "kept" if max(each) < FLAT * each[0] else "MISSED"
    last = totals[-1] / LAYERS[-1] * 1e6
    fast = "kept" if last <= MOST_MICROSECONDS else "MISSED"
    print(f"  time a node at most {FLAT:g} times that of the least stack: {flat}")
    print(f"  total of the greatest stack at most {MOST_MICROSECONDS:g} us a loop iteration: {fast}")


if __name__ == "__main__":
    main()
