"""The figures of docs/comparison.md: parameters, multiply-accumulates, time and memory of archspec and of other tools.

The page says which packages this needs. `--write` replaces the tables of the page.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from other_tools import SEQ, TOOLS, version_of

import archspec

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "comparison.md"
MODELS = ["bert-base-uncased", "gpt2", "t5-small"]
LARGE = "llama-3.1-405b"

LABELS = {
    "transformers": "`num_parameters()` of `transformers` {}, meta device",
    "flop_counter": "`torch.utils.flop_counter` {}",
    "onnx": "initializers of an exported graph, onnx {}",
}


PEAK = """
import atexit, sys
def peak():
    with open("/proc/self/status") as status:
        print(status.read().split("VmHWM:")[1].split()[0], file=sys.stderr)
atexit.register(peak)
"""
"""Prints the peak memory of a process in KiB; `wait4` adds that of the process that started it."""

COMMAND = "from archspec.app.cli import main; main({!r}.split())"
BUILD = "import other_tools; print(other_tools.module({!r}, {!r}).num_parameters())"


def measured(program: str, cache: str) -> tuple[float, float]:
    """Return the processor time of a Python program in seconds, and its peak memory in MiB."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'benchmarks'}", "XDG_CACHE_HOME": cache}
    command = [sys.executable, "-c", PEAK + program]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, cwd=cache, text=True
    )
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(errors)
    return usage.ru_utime + usage.ru_stime, int(errors.split()[-1]) / 1024


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rules = ["---", *("--:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rules, *rows))


def figures() -> dict[str, dict[str, Any]]:
    """Return what each installed tool reports for each model."""
    found: dict[str, dict[str, Any]] = {}
    for tool in TOOLS:
        if version_of(tool) is None:
            print(f"{tool}: not installed", file=sys.stderr)
            continue
        command = [sys.executable, str(ROOT / "benchmarks" / "other_tools.py"), tool, *MODELS]
        out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
        found[tool] = json.loads(out)
        print(tool, found[tool], file=sys.stderr)
    return found


def counts(
    found: dict[str, dict[str, Any]], key: str, ours: dict[str, int], formula: tuple[str, dict[str, int]]
) -> str:
    """Return the table of the parameters or multiply-accumulates of all tools."""
    rows = [["**archspec**", *(f"{ours[name]:,}" for name in MODELS)]]
    for tool, models in found.items():
        values = [models[name].get(key) for name in MODELS]
        label = LABELS.get(tool, f"{tool} {{}}").format(version_of(tool))
        if any(value is not None for value in values):
            cells = [_against(value, ours[name]) for value, name in zip(values, MODELS, strict=True)]
            rows.append([label, *cells])
        elif key == "parameters" and all("error" in models[name] for name in MODELS):
            rows.append([label, *("error" for _ in MODELS)])
    rows.append([formula[0], *(_against(formula[1][name], ours[name]) for name in MODELS)])
    return table(["", *(f"`{name}`" for name in MODELS)], rows)


def _against(value: float | None, ours: int) -> str:
    if value is None:
        return "error"
    return f"{round(value):,}" + ("" if value == ours else f" ({(value - ours) / ours:+.2%})".replace("%", " %"))


def formulas() -> tuple[dict[str, int], dict[str, int], dict[str, int], dict[str, int]]:
    """Return parameters and multiply-accumulates: those of archspec, and those of hand formulas."""
    parameters, macs, by_hand, tokens = {}, {}, {}, {}
    for name in MODELS:
        model = archspec.load(name)
        dims = {"target": SEQ} if name == "t5-small" else {}
        parameters[name] = model.params.total
        macs[name] = archspec.cost(model, batch=1, seq=SEQ, dims=dims).work.macs
        sizes = {name: value for name, value in model.hyperparameters.items() if isinstance(value, int)}
        width, layers = sizes["hidden"], sizes["layers"] + sizes.get("decoder_layers", 0)
        by_hand[name] = 12 * layers * width**2 + sizes["vocab"] * width
        tokens[name] = model.params.total * SEQ
    return parameters, macs, by_hand, tokens


def speed() -> str:
    """Return the table of processor time and memory."""
    with tempfile.TemporaryDirectory() as cache:
        tasks = [
            ("`python -c pass`", "pass"),
            ("`archspec count bert-base-uncased`, first run", COMMAND.format("count bert-base-uncased")),
            ("the same again", COMMAND.format("count bert-base-uncased")),
            ("`archspec cost bert-base-uncased`", COMMAND.format("cost bert-base-uncased")),
            (f"`archspec count {LARGE}`, first run", COMMAND.format(f"count {LARGE}")),
            ("`transformers`, BERT-base, meta device", BUILD.format("bert-base-uncased", "meta")),
            ("`transformers`, BERT-base, CPU", BUILD.format("bert-base-uncased", "cpu")),
            ("`transformers`, Llama 3.1 405B, meta device", BUILD.format(LARGE, "meta")),
        ]
        rows: list[list[str]] = []
        for label, program in tasks:
            seconds, memory = measured(program, cache)
            rows.append([label, f"{seconds:.2f} s", f"{memory:,.0f} MiB"])
    return table(["process", "processor time", "peak memory"], rows)


def replaced(page: str, blocks: dict[str, str]) -> str:
    """Return a page with other generated blocks."""
    for name, block in blocks.items():
        pattern = rf"(<!-- {name} -->\n).*?(\n<!-- end -->)"
        page, number = re.subn(pattern, lambda match, block=block: match[1] + block + match[2], page, flags=re.DOTALL)
        assert number == 1, name
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace the tables of docs/comparison.md")
    write = parser.parse_args().write
    parameters, macs, by_hand, tokens = formulas()
    times = speed()
    found = figures()
    machine = f"Python {platform.python_version()}, PyTorch {version_of('flop_counter')}, {os.cpu_count()} cores."
    blocks = {
        "parameters": counts(found, "parameters", parameters, ("12 x layers x width^2 + vocabulary x width", by_hand)),
        "macs": counts(found, "macs", macs, ("parameters x tokens (half of the rule 2 N D)", tokens)),
        "speed": f"{times}\n\n{machine}",
    }
    if write:
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), blocks), encoding="utf-8")
    else:
        print(*blocks.values(), sep="\n\n")


if __name__ == "__main__":
    main()
