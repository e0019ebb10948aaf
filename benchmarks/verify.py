"""`archspec verify` of a large checkpoint, cold, against a Python that reads its header with the standard library."""

from __future__ import annotations

import argparse
import json
import os
import struct
import sys
import tempfile

from cold import ROOT, run
from measure import report, verdict

import archspec

MODEL = "bert-large-uncased"
TARGET = 5.0
READ = """
import json, struct, sys
with open(sys.argv[1], "rb") as file:
    (length,) = struct.unpack("<Q", file.read(8))
    json.loads(file.read(length))
"""


def write(path: str) -> int:
    """Writes a safetensors file with the tensors of MODEL, their elements as a hole in it; their number."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    tensors = archspec.load(MODEL).tensors
    for tensor in tensors:
        start, end = end, end + 4 * tensor.size
        header[tensor.name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)
    return len(tensors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        count = write(path)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": os.path.join(folder, "cache")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        verify = [sys.executable, "-m", "archspec", "verify", MODEL, path]
        cases = {"header read": [sys.executable, "-c", READ, path], "verify": verify}
        cases["verify --format json"] = [*verify, "--format", "json"]
        run(verify, environment)  # fills the cache
        times: dict[str, list[float]] = {case: [] for case in cases}
        for _ in range(rounds):
            for case, command in cases.items():
                times[case].append(run(command, environment)[0])
        size = os.path.getsize(path)
    medians = {case: sorted(taken)[rounds // 2] for case, taken in times.items()}
    base = medians.pop("header read")
    rows = [["read the header, and no more", f"{base * 1000:.1f}", "1.0", ""]]
    for case, taken in medians.items():
        rows.append([case, f"{taken * 1000:.1f}", f"{taken / base:.1f}", verdict(taken / base, TARGET)])
    title = f"{MODEL}, {count} tensors in {size:,} bytes, medians of {rounds} interleaved runs"
    report(title, ["", "ms", "ratio", "target"], rows)


if __name__ == "__main__":
    main()
