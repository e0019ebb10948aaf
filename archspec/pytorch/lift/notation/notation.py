"""The notation of operations and addresses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from archspec.ir.ops import OPS
from archspec.pytorch.lift.notation.names import KEYWORDS
from archspec.pytorch.values.values import Value

OPERATORS = {op.name: op.symbol for op in OPS.values() if op.symbol} | {"and": "and", "or": "or", "not": "not"}
PRECEDENCE = {
    "or": 1,
    "and": 2,
    "not": 3,
    "==": 4,
    "!=": 4,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "//": 6,
    "%": 6,
    "neg": 7,
    "**": 8,
}
PIPED_OPERATORS = ("+", "-", "*", "/")
LISTED = ("concat", "stack", "attention")
"""Functions whose tensors are on a par: none of them is piped."""

SETTINGS_OF = {
    "split_heads": ("count",),
    "repeat_heads": ("times",),
    "reshape": ("shape",),
    "expand": ("shape",),
    "arange": ("stop",),
    "full": ("shape", "value"),
    "split": ("sizes",),
    "table": ("values",),
    "alibi_slopes": ("heads",),
}
"""The hyperparameters that are given by position."""

SWITCHES = {"attention": {"causal": False, "window": None}}
"""The hyperparameters that some modules of a definition may do without, and the usual values that they then have."""

INPUTS = {"attention": ("q", "k", "v", "mask", "bias", "sinks")}
"""The names of the inputs of functions that can do without some of them: those after one that is missing are named."""

RESULTS = {
    "topk": ("values", "ids"),
    "llama3_scaling": ("cosines", "sines"),
    "yarn_scaling": ("cosines", "sines"),
    "lstm": ("output", "last", "cell"),
    "gru": ("output", "last"),
    "rnn": ("output", "last"),
}
"""Names for the results of what has several."""

LAYER_SETTINGS = {
    "Linear": ("in_features", "out_features"),
    "Embedding": ("count", "features"),
    "LayerNorm": ("features", "eps"),
    "RMSNorm": ("features", "eps"),
    "GroupNorm": ("groups", "channels", "eps"),
    "BatchNorm": ("features", "eps"),
    "Conv1d": ("in_channels", "out_channels", "kernel"),
    "Conv2d": ("in_channels", "out_channels", "kernel"),
    "ConvTranspose1d": ("in_channels", "out_channels", "kernel"),
    "ConvTranspose2d": ("in_channels", "out_channels", "kernel"),
}


def quote_address(address: str) -> str:
    """Return an address in the notation of the language."""
    text = ""
    for turn, word in enumerate(re.findall(r"[^.\[\]]+|\[[^\]]*\]", address)):
        if word.startswith("["):
            text += word
            continue
        first = turn == 0 and (word[0].isdigit() or word in KEYWORDS)
        shown = f'"{word}"' if first or not re.fullmatch(r"\w+", word) else word
        text += f".{shown}" if text else shown
    return text


def count_of_results(value: Value, parts: Sequence[Value]) -> int:
    """Return how many results a value has, some of which are used."""
    sizes = value.settings.get("sizes")
    if value.op == "split" and isinstance(sizes, Sequence):
        return len(sizes)
    if value.kind != "block" and value.op in RESULTS:
        return len(RESULTS[value.op])
    return 1 + max([part.integer("index") for part in parts])


def conditional_text(texts: Sequence[str], tests: Sequence[str]) -> str:
    """Return a conditional expression that selects the text of the first true test, or the last text; a single text if
    all are equal.
    """
    if len(set(texts)) == 1:
        return texts[0]
    return " else ".join([*[f"{text} if {test}" for text, test in zip(texts, tests, strict=False)], texts[-1]])
