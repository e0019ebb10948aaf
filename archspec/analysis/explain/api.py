"""`archspec.explain`: the counting conventions that give a published number."""

from __future__ import annotations

from archspec.analysis.explain.explain import Explanation, explainer_of
from archspec.analysis.explain.numbers import read_number
from archspec.core.diagnostics import make_error
from archspec.ir.table import PlainValue
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import ModelLike


def explain(model: ModelLike, number: str | int, /, **overrides: PlainValue) -> Explanation:
    """Find the counting conventions under which a model has a published number of parameters.

    `model` is a Model, or what `archspec.load` takes, with its `overrides`. `number` is exact (`108808704`,
    "108,808,704") or rounded ("110M", "0.34B", "about 110 million"); a rounded number is interpreted at each number of
    significant digits that it may have.

    Raises ArchError if `number` is not a number (`usage`), and as `archspec.load` does.
    """
    text = str(number)
    try:
        read = read_number(text)
        if text.strip().endswith("%"):
            raise ValueError(f"`{text.strip():.60}` is a percentage, not a parameter count")
    except ValueError as problem:
        help = "write it as 108808704, 108,808,704, 110M, 0.34B or `about 110 million`"
        raise make_error("usage", str(problem), help=help) from None
    return explainer_of(as_model(model, overrides)).explain(read)
