"""The first count of the largest bundled model, of ten times the layers of BERT-base, against that of BERT-base."""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import statistics
import sys
import tempfile

from cold import ROOT, run
from measure import report, verdict

SMALL, LARGE = "bert-base-uncased", "llama-3.1-405b"
TARGET = 1.5


def measure(rounds: int) -> list[tuple[str, float, float]]:
    """For each state of the cache the median processor times of the small and of the large model, in seconds."""
    cases = list(itertools.product(("empty cache", "new --set"), (SMALL, LARGE)))
    times: dict[tuple[str, str], list[float]] = {case: [] for case in cases}
    vocabulary = itertools.count(140_000)
    with tempfile.TemporaryDirectory() as folder:
        warm, empty = os.path.join(folder, "warm"), os.path.join(folder, "empty")
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for turn in range(-1, rounds):  # the first turn fills the warm cache, and is not counted
            for state, model in cases:
                command = [sys.executable, "-m", "archspec", "count", model, "--format", "json"]
                if state == "new --set":
                    command += ["--set", f"vocab={next(vocabulary)}"]
                else:
                    shutil.rmtree(empty, ignore_errors=True)
                taken = run(command, {**environment, "XDG_CACHE_HOME": warm if state == "new --set" else empty})
                if turn >= 0:
                    times[state, model].append(taken[1])
    medians = {case: statistics.median(taken) for case, taken in times.items()}
    return [(state, medians[state, SMALL], medians[state, LARGE]) for state in ("empty cache", "new --set")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    rows: list[list[str]] = []
    for state, small, large in measure(rounds):
        ratio = large / small
        rows.append([state, f"{small * 1000:.1f}", f"{large * 1000:.1f}", f"{ratio:.2f}", verdict(ratio, TARGET)])
    title = f"archspec count MODEL --format json, processor time, medians of {rounds} interleaved runs"
    report(title, ["", f"{SMALL}, ms", f"{LARGE}, ms", "ratio", "target"], rows)


if __name__ == "__main__":
    main()
