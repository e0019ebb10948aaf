"""`archspec.cost`: the work and memory of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from archspec.analysis.cost.cost import Cost, compute_cost
from archspec.analysis.cost.dimension_sizes import merge_sizes
from archspec.analysis.cost.memory import ATTENTION, BITS, FLOATS, Activations
from archspec.core.algebra import MAX_SIZE
from archspec.core.diagnostics import make_error, suggest
from archspec.ir.index_ranges import check_sizes, dimensions, validate_sizes
from archspec.ir.module import Body
from archspec.ir.structure.attention import AttentionTracer
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model, ModelLike, get_compilation

if TYPE_CHECKING:
    from archspec.analysis.cost.decoding import Decoding


def cost(
    model: ModelLike,
    /,
    batch: int | None = None,
    seq: int | None = None,
    *,
    dims: Mapping[str, int] | None = None,
    dtype: str = "float32",
    past: int | None = None,
    cache_dtype: str | None = None,
    attention: str | None = None,
    causal_half: bool = False,
    depth: int | None = None,
) -> Cost:
    """Compute the cost of a model: work (multiply-accumulates, FLOPs, elementwise operations) and memory in bytes.

    `model` is a Model or an argument of `archspec.load`. `batch` and `seq` are the sizes of the dimensions of these
    names, `dims` has sizes of any dimensions by name. A value that depends on other dimensions is a `Polynomial`: a
    formula, which `str` formats. `dtype` is the type of the weights: float64, float32, float16, bfloat16, fp8, int8 or
    int4. `past` adds the cost of a decoding step after `past` positions, with a cache of type `cache_dtype` (default:
    the type of the weights, or bfloat16 if they are quantized). `attention` is "flash" or "math": it adds the memory of
    activations with this implementation of attention, which requires PyTorch. With `causal_half`, the products of
    causal attention count as half. `depth` limits the nesting of the modules in the rows of the result, for example in
    `to_frame()`. `docs/costs.md` describes the counting rules.

    Raises ArchError for a dimension that the model does not have, a size that is not from 1 to 2^63 - 1 or that the
    model cannot run with, an unknown dtype, a `past` or `depth` that is no integer from 0, and the errors of
    `archspec.load`.
    """
    _check_dtype(dtype)
    _check_dtype(dtype if cache_dtype is None else cache_dtype)
    if depth is not None and not _is_integer(depth, 0):
        raise make_error("usage", f"expected a depth from 0, found {depth!r:.40}")
    compiled = as_model(model)
    body = get_compilation(compiled).body
    values = valid_sizes(compiled, merge_sizes(dims, batch, seq))
    table, tracer = get_compilation(compiled).table, AttentionTracer()
    result = compute_cost(table, body, values, dtype, causal_half, tracer).replace(depth=depth)
    quantization = get_compilation(compiled).unit.quantization
    if quantization is not None:
        from archspec.analysis.cost.quantized import stored_bytes  # imported late: few models are quantized

        result = result.replace(stored=stored_bytes(result.table, quantization))
    if past is not None:
        cache = cache_dtype or (dtype if dtype in FLOATS else "bfloat16")
        result = result.replace(decoding=_compute_decoding(body, values, past, dtype, cache, tracer))
    return (
        result
        if attention is None
        else result.replace(activations=_compute_activations(compiled, values, dtype, attention))
    )


def valid_sizes(model: Model, sizes: Mapping[str, int]) -> dict[str, int]:
    """Check sizes of dimensions. Raises ArchError as `cost` does."""
    body = get_compilation(model).body
    values = validate_sizes(model.name, dimensions(body.inputs), sizes)
    check_sizes(body, values)
    return values


def _check_dtype(name: object) -> None:
    if not isinstance(name, str) or name not in BITS:
        help = suggest(str(name), [*BITS]) or ", ".join(BITS)
        raise make_error("usage", f"unknown dtype `{name!s:.40}`", help=help)


def _is_integer(value: object, minimum: int) -> bool:
    """Whether an argument is an integer from a minimum on; callers may pass any object."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= minimum


def _compute_decoding(
    body: Body, values: Mapping[str, int], past: int, dtype: str, cache_dtype: str, tracer: AttentionTracer
) -> Decoding:
    from archspec.analysis.cost.decoding import compute_decoding  # imported late: few calls need it

    if not _is_integer(past, 0) or past >= MAX_SIZE:
        raise make_error("usage", f"expected a number of past positions from 0 to 2^63 - 2, found {past!r:.40}")
    return compute_decoding(body, values, past, dtype, cache_dtype, tracer)


def _compute_activations(model: Model, values: Mapping[str, int], dtype: str, attention: str) -> Activations:
    from archspec.pytorch.run.activations import activation_bytes  # imported late: PyTorch is optional and slow

    if dtype not in FLOATS:
        raise make_error("usage", f"models are not trained with weights of type {dtype}", help="omit --attention")
    if attention not in ATTENTION:
        raise make_error(
            "usage", f"unknown attention implementation `{attention}`", help=f"use {' or '.join(ATTENTION)}"
        )
    return Activations(attention, *activation_bytes(model, values, dtype, attention))
