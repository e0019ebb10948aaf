"""`archspec compare` of two bundled models, cold, against a Python that does nothing."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile

from cold import ROOT, run
from measure import report, verdict

MODELS = ["bert-base-uncased", "albert-base-v2"]
TARGET = 6.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": os.path.join(folder, "cache")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        compare = [sys.executable, "-m", "archspec", "compare", *MODELS]
        cases = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "compare --format json": [*compare, "--format", "json"],
            "compare --depth 3 --format json": [*compare, "--depth", "3", "--format", "json"],
        }
        run(compare, environment)  # fills the cache
        times: dict[str, list[float]] = {case: [] for case in cases}
        for _ in range(rounds):
            for case, command in cases.items():
                times[case].append(run(command, environment)[0])
    medians = {case: sorted(taken)[rounds // 2] for case, taken in times.items()}
    base = medians.pop("python -c pass")
    rows = [["python -c pass", f"{base * 1000:.1f}", "1.0", ""]]
    for case, taken in medians.items():
        rows.append([case, f"{taken * 1000:.1f}", f"{taken / base:.1f}", verdict(taken / base, TARGET)])
    report(f"{' and '.join(MODELS)}, medians of {rounds} interleaved runs", ["", "ms", "ratio", "target"], rows)


if __name__ == "__main__":
    main()
