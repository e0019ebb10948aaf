"""Compare the families of one model type with the classes of `transformers`: `python -m tests.family TYPE`.

Random small configurations, written by `save_pretrained`: the same tensors and buffers under the same names, also in
published files; the same outputs and gradients in float64. Then each class with its default configuration.
`--record` writes what everyday tests compare without `transformers`.
"""

import argparse
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")
sys.path.insert(0, str(Path(__file__).parent / "support"))

import pytest
from drawn_configs import Drawn, transformers, with_parts
from families import mapping
from live import Pair, compare_defaults, compare_published
from recorded_families import write_record

import archspec

MOST = 3
"""Failures after which the rest is not tried."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.family", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("type", help="model type of a configuration")
    parser.add_argument("--count", type=int, default=25, help="how many random configurations (25)")
    parser.add_argument("--seed", type=int, help="this one alone, with its configuration")
    parser.add_argument("--only", metavar="CLASS", help="of this class alone")
    parser.add_argument("--record", action="store_true", help="write the record of the type")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    start, failures = time.time(), 0
    default, varied = fields_of(transformers.AutoConfig.for_model(options.type)), set[str]()
    seeds = range(options.count) if options.seed is None else [options.seed]
    tries = [(f"configuration {seed}", lambda seed=seed: try_one(options, seed, default, varied)) for seed in seeds]
    family = mapping(options.type)
    classes = [name for name in family.architectures if hasattr(transformers, name)]
    chosen = classes if options.only is None else [options.only]
    if options.seed is None:
        tries += [(f"defaults of {name}", lambda name=name: compare_defaults(options.type, name)) for name in chosen]
    done = 0
    for name, attempt in tries:
        if failures == MOST:
            break
        try:
            attempt()
            done += 1
        except Exception as error:
            failures += 1
            print(f"{options.type}, {name}: {reason(error)}")
    constant = sorted(name for name in default if "sets" in family.fields.get(name, {}) and name not in varied)
    if constant and options.seed is None and not failures:
        print(f"{options.type}: never varied: {', '.join(constant)}")
    if options.seed is None and not failures:
        tests = [str(Path(__file__).parent / "formats" / f"test_config{each}_internals.py") for each in ("s", "_files")]
        failures = int(pytest.main(["-qq", "--tb=short", "-n", "0", "-W", "ignore", "-k", f"[{options.type}", *tests]))
    if options.record and not failures:
        write_record(options.type)
    print(f"{options.type}: {done} of {len(tries)} equal ({', '.join(chosen)}), {time.time() - start:.0f} s")
    return 1 if failures else 0


def fields_of(config: Any) -> dict[str, Any]:
    """The fields of a configuration, those of nested ones with their beginnings."""
    parts = with_parts(config)
    return {f"{part}{name}": value for part, nested in parts for name, value in nested.to_dict().items()}


def try_one(options: argparse.Namespace, seed: int, default: dict[str, Any], varied: set[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        drawn = Drawn(options.type, seed, Path(folder), options.only)
        if options.seed is not None:
            print(Path(drawn.path).read_text())
        varied |= {name for name, value in fields_of(drawn.config).items() if value != default.get(name)}
        pair = Pair(drawn, seed)
        pair.compare()
        compare_published(pair)


def reason(error: Exception) -> str:
    if isinstance(error, archspec.ArchError) or (isinstance(error, AssertionError) and str(error)):
        return str(error).partition("\nassert ")[0]
    lines = traceback.format_exception(error)
    return f"{type(error).__name__}: {str(error)[:1500]}\n{''.join(lines[-3:])[:1500]}"


if __name__ == "__main__":
    sys.exit(main())
