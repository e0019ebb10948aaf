"""Whole processes against a Python that does nothing: a count kept from before, one never asked for, the very first,
that of the model with the most tensors; and the list of all bundled models."""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import report, verdict

ROOT = Path(__file__).parent.parent
COUNT = ["count", "bert-base-uncased", "--format", "json"]
TARGETS = {
    "warm": 3.3,
    "new --set": 6.0,
    "empty cache": 10.0,
    "45,337 tensors": 45.0,
    "45,337 tensors, json": 45.0,
    "list": 6.0,
}


def run(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Wall and processor time of a process, in seconds."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment, cwd=tempfile.gettempdir())
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return wall, usage.ru_utime + usage.ru_stime


def measure(start: list[str], rounds: int) -> dict[str, tuple[float, float]]:
    """Median times of each case, and of bare Python (""); the command line begins with `start`."""
    cases = dict.fromkeys(["", *TARGETS])
    times: dict[str, list[tuple[float, float]]] = {case: [] for case in cases}
    with tempfile.TemporaryDirectory() as folder:
        warm, empty = os.path.join(folder, "warm"), os.path.join(folder, "empty")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": warm}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        vocabulary = itertools.count(30_523)
        for turn in range(-1, rounds):  # the first turn fills the warm cache, and is not counted
            for case in cases:
                command, env = start + COUNT, environment
                if case == "":
                    command = [sys.executable, "-c", "pass"]
                elif case == "new --set":
                    command = [*command, "--set", f"vocab={next(vocabulary)}"]
                elif case == "list":
                    command = [*start, "list"]
                elif case != "warm":
                    if case != "empty cache":
                        command = [*start, "count", "deepseek-v3", *(["--format", "json"] if "json" in case else [])]
                    shutil.rmtree(empty, ignore_errors=True)
                    env = {**environment, "XDG_CACHE_HOME": empty}
                taken = run(command, env)
                if turn >= 0:
                    times[case].append(taken)
    return {
        case: (statistics.median(wall for wall, _ in taken), statistics.median(cpu for _, cpu in taken))
        for case, taken in times.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    starts = {"python -m archspec": [sys.executable, "-m", "archspec"]}
    script = Path(sys.executable).parent / "archspec"
    if script.exists():
        starts["archspec"] = [str(script)]
    for name, start in starts.items():
        found = measure(start, rounds)
        wall, cpu = found.pop("")
        rows = [["python -c pass", f"{wall * 1000:.1f}", "1.0", "1.0", ""]]
        for case, (time_, processor) in found.items():
            ratio = time_ / wall
            times = [f"{time_ * 1000:.1f}", f"{ratio:.1f}", f"{processor / cpu:.1f}"]
            rows.append([case, *times, verdict(ratio, TARGETS[case])])
        title = f"{name} {' '.join(COUNT)}, medians of {rounds} interleaved runs"
        report(title, ["", "ms", "ratio", "of processor time", "target"], rows)


if __name__ == "__main__":
    main()
