"""A search of a million designs of BERT: the time from the call on, and the memory of the process.

python benchmarks/search.py
"""

from __future__ import annotations

import resource
import sys
from time import perf_counter, process_time

import archspec

VARY = {"hidden": "64..1024:16", "layers": "1..24", "heads": [1, 2, 4, 8, 12, 16], "ffn": "256..8000:64"}
WHERE = ["params < 30M", "flops(batch=1, seq=128) < 4G"]
LIMIT_SECONDS, LIMIT_MIB = 1.5, 400


def main() -> int:
    archspec.search("bert-base-uncased", {"layers": "1..2"}, where=WHERE)  # imports, and the parsed library
    start, used = perf_counter(), process_time()
    found = archspec.search("bert-base-uncased", VARY, where=WHERE, best=["layers", "-params"])
    seconds, processor = perf_counter() - start, process_time() - used
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)
    print(f"{found.tally.designs:,} designs, {found.tally.answers:,} satisfying, {len(found.designs)} best")
    print(f"{seconds:.2f} s ({processor:.2f} s of the processor), {memory:.0f} MiB")
    return 0 if processor < LIMIT_SECONDS and memory < LIMIT_MIB else 1


if __name__ == "__main__":
    raise SystemExit(main())
