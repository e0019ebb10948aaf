"""Where a published number comes from: what `archspec explain` and its Python function share."""

from __future__ import annotations

import os
from typing import Any

from archspec.explanations.explain import Explanation
from archspec.explanations.explain import explain as explained
from archspec.explanations.family import family_of
from archspec.explanations.numbers import read_number
from archspec.explanations.uses import uses
from archspec.pipeline import written
from archspec.source import fail


def explain(spec: str | os.PathLike[str], number: str | int, /, **overrides: Any) -> Explanation:
    """Which ways of counting a model's parameters give a number.

    `spec` and `overrides` are as for `archspec.load`. `number` is exact (`108808704`, "108,808,704") or rounded
    ("110M", "0.34B", "about 110 million"); a rounded one is read at each number of significant digits it may have.

    Raises ArchError if it is no number (`usage`), there is no such model, or anything is wrong with the spec.
    """
    return explain_spec(written(spec), str(number), overrides)


def explain_spec(spec: str, number: str, overrides: dict[str, Any]) -> Explanation:
    """As `explain`, with the overrides in a dictionary."""
    try:
        read = read_number(number)
        if number.strip().endswith("%"):
            raise ValueError(f"`{number.strip():.60}` is a share, not a number of parameters")
    except ValueError as problem:
        help = "as in 108808704, 108,808,704, 110M, 0.34B, `about 110 million`"
        raise fail("usage", str(problem), help=help) from None
    model, relatives = family_of(spec, overrides)
    return explained(model.table, read, relatives, uses(model.body))
