"""Errors of operations that no spec can cause. The others are in `tests/golden/specs/operations.txt`."""

from math import nan as NAN
from typing import Any

import pytest

from archspec import Type
from archspec.core.algebra import symbol
from archspec.ir.ops import OPS, OpError

SEQ, N = symbol("seq"), symbol("n")
SYMBOLS = {"seq": SEQ, "n": N, "seq - 9": SEQ - 9}
DTYPES = {"r": "real", "i": "int", "b": "bool"}


def operands(text: str) -> list[Type | None]:
    """The types in a text such as `r2,3 i4 -`: reals [2, 3], integers [4] and an input that is not given."""
    found: list[Type | None] = []
    for word in text.split(" "):
        sizes = [SYMBOLS[size] if size in SYMBOLS else int(size) for size in word[1:].split(",") if size]
        found += [Type(tuple(sizes), DTYPES[word[0]]) if word != "-" else None] if word else []
    return found


REFUSED: list[tuple[str, str, dict[str, Any], str | None, str]] = [
    ("neg", "", {}, "x", "is missing its input `x`"),
    ("neg", "r2 r2", {}, None, "expects 1 tensors, found 2"),
    ("linear", "r2,3 - -", {}, "weight", "is missing its input `weight`"),
    ("concat", "", {'axis': 0}, "tensors", "is missing its input `tensors`"),
    ("pad", "r2", {'axis': 0, 'value': NAN}, "value", "expects a number as `value`, found the real nan"),
    ("full", "", {'shape': (2,), 'value': NAN},
     "value", "expects a number or a boolean as `value`, found the real nan"),
    ("full", "", {'shape': (2,), 'value': 2**63},
     "value", "expects a number or a boolean as `value`, found an integer that does not fit in 64 bits"),
    ("full", "", {'shape': (2**63,), 'value': 1},
     "shape", "expects an integer as `shape`, found an integer that does not fit in 64 bits"),
    ("sum", "r2", {}, "axis", "is missing its hyperparameter `axis`"),
    ("sum", "r2", {'axis': 2**63},
     "axis", "expects an integer as `axis`, found an integer that does not fit in 64 bits"),
    ("table", "", {}, "values", "is missing its hyperparameter `values`"),
    ("concat", "r4611686018427387904 r4611686018427387904", {'axis': 0},
     None, "produces a size that does not fit in 64 bits"),
    ("sum", "r2", {"axis": 2**63 - 1}, "axis", "cannot use axis 9223372036854775807: it is out of range for real [2]"),
    ("slice", "r5", {"axis": 0, "step": 1 - 2**63}, "step",
     "expects `step` to be at least 1, found -9223372036854775807"),
]  # fmt: skip


@pytest.mark.parametrize("name", dict.fromkeys(row[0] for row in REFUSED))
def test_operands_and_hyperparameters_are_refused(name: str) -> None:
    for given, settings, argument, message in [row[1:] for row in REFUSED if row[0] == name]:
        with pytest.raises(OpError) as found:
            OPS[name].rule(operands(given), settings)
        help = "use an axis from 0 to 0, or from -1 to -1 to count from the end" if "out of range" in message else None
        error, whole = found.value, f"`{OPS[name].symbol or name}` {message}"
        assert (error.message, error.argument, error.help) == (whole, argument, help)


ACCEPTED: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("split", "i2,3", {"sizes": (1, 2)}, ["i2,1", "i2,2"]),
    ("full", "", {"shape": (), "value": 2**63 - 1}, ["i"]),
]  # fmt: skip


def test_results_have_types() -> None:
    for name, given, settings, results in ACCEPTED:
        assert [*OPS[name].rule(operands(given), settings)] == [operands(text)[0] for text in results]
