"""What a model costs: what `archspec cost` does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from archspec.costs.dimension_sizes import given_sizes
from archspec.model import Model
from archspec.source import fail, suggest

if TYPE_CHECKING:
    from archspec.costs.cost import Cost
    from archspec.costs.memory import Activations


def cost(
    model: Model | str | os.PathLike[str],
    /,
    batch: int | None = None,
    seq: int | None = None,
    *,
    dims: Mapping[str, int] | None = None,
    dtype: str = "float32",
    attention: str | None = None,
) -> Cost:
    """What a model costs: its work (multiply-accumulates, FLOPs, elementwise operations) and its memory in bytes.

    `model` is a compiled model, or what `archspec.load` takes. `batch` and `seq` are sizes for the dimensions of these
    names, `dims` for any; what depends on the others is an `Amount`, a formula that `str` writes out. `dtype` is the
    type of the weights: float64, float32, float16 or bfloat16. `attention` names a form of attention, "flash" or
    "math", for the memory of activations, which takes PyTorch. See `docs/costs.md` for what is counted.

    Raises ArchError for a dimension that the model does not have, a size that is not from 1 to 2^63 - 1 or that the
    model cannot run at, another dtype, and all that `archspec.load` does.
    """
    from archspec.costs.cost import cost_of, dimensions
    from archspec.costs.index_ranges import check_sizes, chosen
    from archspec.costs.memory import BYTES

    if isinstance(model, str | os.PathLike):
        from archspec.pipeline import load

        model = load(model)
    if dtype not in BYTES:
        raise fail("usage", f"`{dtype}` is no type of weights", help=suggest(dtype, [*BYTES]) or ", ".join(BYTES))
    values = chosen(model.name, dimensions(model.body.inputs), given_sizes(dims, batch, seq))
    check_sizes(model.body, values)
    found = cost_of(model.table, model.body, values, dtype)
    return found if attention is None else found._replace(activations=_activations(model, values, dtype, attention))


def _activations(model: Model, values: Mapping[str, int], dtype: str, attention: str) -> Activations:
    from archspec.costs.memory import ATTENTION, Activations
    from archspec.pytorch.activations import activation_bytes

    if attention not in ATTENTION:
        raise fail("usage", f"`{attention}` is no form of attention", help=f"its forms are {', '.join(ATTENTION)}")
    return Activations(attention, *activation_bytes(model, values, dtype, attention))
