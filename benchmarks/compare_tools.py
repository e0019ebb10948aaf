"""The figures of docs/comparison.md and README: parameters, multiply-accumulates, time and memory of archspec and of
other tools.

The page says which packages this needs. `--write` replaces the tables, `--only` is for some of them.
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

from other_tools import MODELS as CASES
from other_tools import SEQ, TOOLS, image_module, image_shape, is_text, version_of

import archspec

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "docs" / "comparison.md", ROOT / "README.md"]
MODELS = ["bert-base-uncased", "gpt2", "t5-small"]
WITH_DEFAULTS = ["BERT-base", "small Llama", "small Mixtral"]
LARGE = "llama-3.1-405b"

EXAMPLES = [
    ("torchinfo", "ResNet-152", "11.51 G", "resnet-152"),
    ("thop", "ResNet-50", "4.14 G", "resnet-50"),
    ("ptflops", "ResNet-50", "4.09 G", "resnet-50"),
    ("ptflops", "ViT-B/16", "16.86 G", "vit-base-patch16-224"),
    ("calflops", "AlexNet", "2.1426 G", None),
    ("calflops", "Chinese RoBERTa", "33.52 G, 11.17 G", {"model_type": "bert", "vocab_size": 21128}),
    ("fvcore", "a small network", "274,656", None),
    ("torchsummary", "VGG16", "138,357,544 parameters", None),
]
"""The example in the documentation of a tool: the model, the multiply-accumulates printed there, and a spec of the
model; None for one that is lifted.
"""

NOT_MACS = ("transformers", "torchsummary", "onnx")
"""Tools that report no multiply-accumulates."""

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


def figures(names: Sequence[str], left_out: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Return what each installed tool reports for each model."""
    found: dict[str, dict[str, Any]] = {}
    for tool in [tool for tool in TOOLS if tool not in left_out]:
        if version_of(tool) is None:
            print(f"{tool}: not installed", file=sys.stderr)
            continue
        command = [sys.executable, str(ROOT / "benchmarks" / "other_tools.py"), tool, *names]
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


def with_defaults() -> dict[str, str]:
    """Return the tables of multiply-accumulates with the attention and experts that `transformers` computes by default:
    of all tools, and of three in short.
    """
    ours: dict[str, int] = {}
    for name in WITH_DEFAULTS:
        case = CASES[name]
        config = {"model_type": case.config.removesuffix("Config").lower(), "architectures": [case.cls], **case.fields}
        ours[name] = archspec.cost(archspec.load(config), batch=1, seq=case.seq).work.macs
    reports = figures(WITH_DEFAULTS, NOT_MACS)
    rows = [["**archspec**", *(f"{ours[name]:,}" for name in WITH_DEFAULTS)]]
    short: list[list[str]] = [["archspec", *(f"**{ours[name]:,}**" for name in WITH_DEFAULTS)]]
    for tool, values in reports.items():
        label = LABELS.get(tool, f"{tool} {{}}").format(version_of(tool))
        cells = [_against(values[name].get("macs"), ours[name]) for name in WITH_DEFAULTS]
        rows.append([label, *cells])
        if tool in ("flop_counter", "fvcore", "thop"):
            short.append([label, *[cell.partition("(")[2].removesuffix(")") or cell for cell in cells]])
    head = ["", *WITH_DEFAULTS]
    return {"defaults": table(head, rows), "wrong": table(head, short)}


def examples() -> dict[str, str]:
    """Return the table of the authors' own examples: as printed by them, run here, and by archspec."""
    rows: list[list[str]] = []
    for tool, name, printed, spec in EXAMPLES:
        report = figures([name], [other for other in TOOLS if other != tool])
        if tool not in report:
            continue
        model = archspec.load(spec) if spec else archspec.loads(lifted(name))
        key = "parameters" if "parameters" in printed else "macs"
        work = archspec.cost(model, batch=1, seq=SEQ if is_text(name) else None).work
        ours = work.macs if key == "macs" else model.params.total
        label = LABELS.get(tool, f"{tool} {{}}").format(version_of(tool))
        rows.append([f"{label}: {name}", printed, _against(report[tool][name].get(key), ours), f"{ours:,}"])
    return {"examples": table(["", "in its documentation", "run here", "archspec"], rows)}


def lifted(name: str) -> str:
    """Return the spec of a model of images."""
    import torch

    return archspec.lift(image_module(name).eval(), (torch.zeros(2, *image_shape(name)),))


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
    """Return a page with other generated blocks, where it has them."""
    for name, block in blocks.items():
        pattern = rf"(<!-- {name} -->\n).*?(\n<!-- end -->)"
        page = re.sub(pattern, lambda match, block=block: match[1] + block + match[2], page, flags=re.DOTALL)
    return page


def counted() -> dict[str, str]:
    """Return the tables of parameters and multiply-accumulates."""
    parameters, macs, by_hand, tokens = formulas()
    reports = figures(MODELS)
    return {
        "parameters": counts(
            reports, "parameters", parameters, ("12 x layers x width^2 + vocabulary x width", by_hand)
        ),
        "macs": counts(reports, "macs", macs, ("parameters x tokens (half of the rule 2 N D)", tokens)),
    }


def timed() -> dict[str, str]:
    """Return the table of time and memory."""
    machine = f"Python {platform.python_version()}, PyTorch {version_of('flop_counter')}, {os.cpu_count()} cores."
    return {"speed": f"{speed()}\n\n{machine}"}


PARTS = {"counts": counted, "defaults": with_defaults, "examples": examples, "speed": timed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace the tables of docs/comparison.md and README.md")
    parser.add_argument("--only", choices=PARTS, help="one of the parts")
    options = parser.parse_args()
    for part, tables in PARTS.items():
        if options.only in (None, part):
            blocks = tables()
            print(*blocks.values(), sep="\n\n")
            for page in PAGES if options.write else ():
                page.write_text(replaced(page.read_text(encoding="utf-8"), blocks), encoding="utf-8")


if __name__ == "__main__":
    main()
