"""The count of every bundled model, as a whole process, against that of BERT-base."""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile

from cold import ROOT, run
from measure import report, verdict

import archspec

SMALL = "bert-base-uncased"
TARGET = 1.5
SLOWEST = 5
STATES = "run before", "empty cache"


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """For each state of the cache the median processor time of each model, in seconds."""
    models = archspec.models()
    times: dict[str, dict[str, list[float]]] = {state: {model: [] for model in models} for state in STATES}
    with tempfile.TemporaryDirectory() as folder:
        warm, empty = os.path.join(folder, "warm"), os.path.join(folder, "empty")
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for turn in range(-1, rounds):  # the first turn fills the warm cache, and is not counted
            for model in models:
                for state, cache in zip(STATES, (warm, empty), strict=True):
                    shutil.rmtree(empty, ignore_errors=True)
                    command = [sys.executable, "-m", "archspec", "count", model]
                    taken = run(command, {**environment, "XDG_CACHE_HOME": cache})
                    if turn >= 0:
                        times[state][model].append(taken[1])
    return {state: {m: statistics.median(taken) for m, taken in found.items()} for state, found in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    rows: list[list[str]] = []
    for state, found in measure(rounds).items():
        for model in [SMALL, *sorted(found, key=found.__getitem__, reverse=True)[:SLOWEST]]:
            ratio = found[model] / found[SMALL]
            rows.append([state, model, f"{found[model] * 1000:.1f}", f"{ratio:.2f}", verdict(ratio, TARGET)])
    title = f"archspec count MODEL, processor time, the {SLOWEST} slowest, medians of {rounds} interleaved runs"
    report(title, ["", "", "ms", "ratio", "target"], rows)


if __name__ == "__main__":
    main()
