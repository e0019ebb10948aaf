"""Pictures: a whole process against a Python that does nothing, and everything open of a large model."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from cold import run
from measure import report

import archspec
from archspec.drawing.api import picture

ROOT = Path(__file__).parent.parent
LARGEST = "llama-3.1-405b"
CASES = {
    "SVG of bert-base-uncased": ["graph", "bert-base-uncased", "--to", "svg"],
    "the same with operations": ["graph", "bert-base-uncased", "--to", "svg", "--level", "op"],
    "DOT of bert-base-uncased": ["graph", "bert-base-uncased", "--to", "dot"],
    "figure of bert-base-uncased": ["figure", "bert-base-uncased"],
}
FIGURE_TARGET = 1.5
"""The most time of a figure, in times of an SVG."""

TARGET, LARGEST_TARGET = 10.0, 2.0


def processes(rounds: int) -> dict[str, float]:
    """Return the median time of each case, and of bare Python (""), in seconds."""
    times: dict[str, list[float]] = {case: [] for case in ("", *CASES)}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for turn in range(-1, rounds):  # the first turn fills the cache, and is not counted
            for case, taken in times.items():
                start = [sys.executable, "-m", "archspec", *CASES[case]] if case else []
                wall, _ = run(start or [sys.executable, "-c", "pass"], environment)
                if turn >= 0:
                    taken.append(wall)
    return {case: statistics.median(taken) for case, taken in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    found = processes(rounds)
    bare = found.pop("")
    rows = [["python -c pass", f"{bare * 1000:.1f} ms", "1.0", ""]]
    svg, *_, figure = found.values()
    for i, (case, taken) in enumerate(found.items()):
        kept = "" if i else f"<= {TARGET:g}: {'yes' if taken / bare <= TARGET else 'NO'}"
        if i == len(found) - 1:
            kept = f"<= {FIGURE_TARGET:g} SVG: {'yes' if figure / svg <= FIGURE_TARGET else 'NO'}"
        rows.append([case, f"{taken * 1000:.1f} ms", f"{taken / bare:.1f}", kept])
    model = archspec.load(LARGEST)
    for name, fold in ((f"{LARGEST}, everything open", True), ("the same with --no-fold", False)):
        start = time.perf_counter()
        picture(model, "op", fold=fold)
        taken = time.perf_counter() - start
        kept = f"< {LARGEST_TARGET:g} s: {'yes' if taken < LARGEST_TARGET else 'NO'}" if fold else ""
        rows.append([name, f"{taken * 1000:.0f} ms", "", kept])
    report("pictures", ["", "time", "against Python", "target"], rows)


if __name__ == "__main__":
    main()
