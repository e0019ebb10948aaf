"""Specs of every primitive operation in every way it can be written, made of `translated/operations.txt`."""

import re

from paths import DATA

INPUTS = {
    "r": "[batch, 3, 4]",
    "s": "[4]",
    "m": "[4, 3]",
    "w": "[2, 3, 3]",
    "v": "[2, 3]",
    "i": "int [batch, 3, 4]",
    "j": "int [4]",
    "h": "int [4, 3]",
    "b": "bool [batch, 3, 4]",
    "c": "bool [4]",
}
HYPERPARAMETERS = {
    "half": "0.5",
    "one": "1",
    "two": "2",
    "place": "1",
    "axes": "[-1]",
    "small": "0.01",
    "turned": "[2, 0, 1]",
    "pair": "[2, 3]",
    "pair2": "[2, 2]",
    "sixes": "[2, 6]",
    "flag": "true",
}


def operations() -> dict[str, list[tuple[str, str]]]:
    """By operation: the types of what comes out, and the expression."""
    found: dict[str, list[tuple[str, str]]] = {}
    lines = (DATA / "translated" / "operations.txt").read_text(encoding="utf-8").splitlines()
    op = ""
    for line in lines:
        if line.startswith("  "):
            outputs, _, expr = line.strip().partition(" = ")
            found[op].append((outputs, expr))
        elif line and not line.startswith("#"):
            op = line
            found[op] = []
    return found


def specs() -> dict[str, str]:
    """A text for each operation, of two models: its expressions are the outputs of a block, and of a function."""
    found: dict[str, str] = {}
    for op, typed in operations().items():
        one = [(outputs, expr) for outputs, expr in typed if not outputs.startswith("(")]
        if one:
            found[op] = _spec([expr for _, expr in one], f"({', '.join(outputs for outputs, _ in one)})")
        for outputs, expr in typed:
            if outputs.startswith("("):
                found[f"{op}: {expr}"] = _spec([expr], outputs)
    return found


def _spec(exprs: list[str], outputs: str) -> str:
    words = set(re.findall(r"\w+", " ".join(exprs)))
    hyper = [f"{name} = {value}" for name, value in HYPERPARAMETERS.items() if name in words]
    inputs = {name: shape for name, shape in INPUTS.items() if name in words}
    if "batch" in " ".join([*exprs, outputs]) and not any("batch" in shape for shape in inputs.values()):
        inputs["r"] = INPUTS["r"]
    inputs = inputs or {"s": INPUTS["s"]}
    given = ", ".join(f"{name} {shape}" for name, shape in inputs.items())
    both = f"({', '.join(hyper)})({given})\n   -> {outputs}"
    values = ", ".join(exprs)
    dims = "dim batch\n\n" if "batch" in both + values else ""
    called = f"function{'(..)' if hyper else ''}({', '.join(inputs)})"
    return f"""{dims}block Direct{both} {{
  return {values}
}}

fn function{both} {{
  return {values}
}}

block Through{both} {{
  return {called}
}}

model "direct" = Direct()
model "through" = Through()
"""
