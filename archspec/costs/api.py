"""`archspec.cost`: the work and memory of a model."""

from __future__ import annotations

from collections.abc import Mapping

from archspec.costs.cost import Cost, cost_of, dimensions
from archspec.costs.dimension_sizes import given_sizes
from archspec.costs.index_ranges import check_sizes, chosen
from archspec.costs.memory import ATTENTION, BYTES, Activations
from archspec.model import Model, ModelLike, internals
from archspec.pipeline.compile import model_of
from archspec.source import fail, suggest


def cost(
    model: ModelLike,
    /,
    batch: int | None = None,
    seq: int | None = None,
    *,
    dims: Mapping[str, int] | None = None,
    dtype: str = "float32",
    attention: str | None = None,
    causal_half: bool = False,
    depth: int | None = None,
) -> Cost:
    """Compute the cost of a model: work (multiply-accumulates, FLOPs, elementwise operations) and memory in bytes.

    `model` is a Model, or what `archspec.load` takes. `batch` and `seq` are the sizes of the dimensions of these names,
    `dims` those of any dimensions. A value that depends on other dimensions is a `Polynomial`: a formula, which `str`
    formats. `dtype` is the type of the weights: float64, float32, float16 or bfloat16. `attention` is "flash" or
    "math": it adds the memory of activations with that implementation of attention, which requires PyTorch. With
    `causal_half`, the products of causal attention count as half. `depth`
    limits the nesting of the modules in the rows of the result, for example in `to_frame()`.
    `docs/costs.md` describes the counting rules.

    Raises ArchError for a dimension that the model does not have, a size that is not from 1 to 2^63 - 1 or that the
    model cannot run with, an unknown dtype, and as `archspec.load` does.
    """
    if dtype not in BYTES:
        raise fail("usage", f"unknown dtype `{dtype}`", help=suggest(dtype, [*BYTES]) or ", ".join(BYTES))
    compiled = model_of(model)
    body = internals(compiled).body
    values = valid_sizes(compiled, given_sizes(dims, batch, seq))
    found = cost_of(internals(compiled).table, body, values, dtype, causal_half).replace(depth=depth)
    return found if attention is None else found.replace(activations=_activations(compiled, values, dtype, attention))


def valid_sizes(model: Model, given: Mapping[str, int]) -> dict[str, int]:
    """Check sizes of dimensions. Raises ArchError as `cost` does."""
    body = internals(model).body
    values = chosen(model.name, dimensions(body.inputs), given)
    check_sizes(body, values)
    return values


def _activations(model: Model, values: Mapping[str, int], dtype: str, attention: str) -> Activations:
    from archspec.pytorch.activations import activation_bytes  # optional, and slow to import

    if attention not in ATTENTION:
        raise fail("usage", f"unknown attention implementation `{attention}`", help=f"use {' or '.join(ATTENTION)}")
    return Activations(attention, *activation_bytes(model, values, dtype, attention))
