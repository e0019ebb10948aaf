"""`archspec.cost`: the work and memory of a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from archspec.analysis.cost.cost import Cost, compute_cost
from archspec.analysis.cost.dimension_sizes import is_integer, merge_sizes, options_for_sizes
from archspec.analysis.cost.dtypes import ATTENTION, CHECKPOINTS, FLOATS, check_choice, check_dtype
from archspec.analysis.cost.memory import Activations, KeptForBackward
from archspec.analysis.cost.time import Rates, StepTime, check_rates, decoding_time, forward_time, training_time
from archspec.core.algebra import MAX_SIZE, substitute
from archspec.core.diagnostics import make_error
from archspec.formats.devices import Device, load_device
from archspec.ir.index_ranges import check_sizes, dimensions, validate_sizes
from archspec.ir.module import Body
from archspec.ir.structure.attention import AttentionTracer
from archspec.ir.structure.placed import placed_rows
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model, ModelLike, get_compilation

if TYPE_CHECKING:
    import os

    from archspec.analysis.cost.decoding import Decoding
    from archspec.analysis.cost.training import Training


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
    training: bool = False,
    frozen: Collection[str] = (),
    lora: Mapping[str, int] | None = None,
    checkpoint: str = "none",
    device: str | os.PathLike[str] | Device | None = None,
    utilization: float = 1.0,
    bandwidth_utilization: float = 1.0,
) -> Cost:
    """Compute the cost of a model: work (multiply-accumulates, FLOPs, elementwise operations) and memory in bytes.

    `model` is a Model or an argument of `archspec.load`. `batch` and `seq` are the sizes of the dimensions of these
    names, `dims` has sizes of any dimensions by name. A value that depends on other dimensions is a `Polynomial`: a
    formula, which `str` formats. `dtype` is the type of the weights: float64, float32, float16, bfloat16, fp8, int8 or
    int4. `past` adds the cost of a decoding step after `past` positions, with a cache of type `cache_dtype` (default:
    the type of the weights, or bfloat16 if they are quantized). `attention` is "flash" or "math": it adds the memory of
    activations with this implementation of attention, which requires PyTorch. With `causal_half`, the products of
    causal attention count as half. `depth` limits the nesting of the modules in the rows of the result, for example in
    `to_frame()`. `training` adds the FLOPs of a training step: `frozen`, `lora` and `checkpoint` are as for
    `training_flops`. `device` is a Device, the name of one or the path of a file that describes one: it adds the least
    `time` of the decoding step, of the training step or, without these, of the forward pass, which needs the sizes of
    all dimensions. `utilization` and `bandwidth_utilization` are the parts of the peak and of the bandwidth that are
    reached, above 0 and at most 1. `docs/costs.md` describes the counting rules.

    Raises ArchError for a dimension that the model does not have, a size that is not from 1 to 2^63 - 1 or that the
    model cannot run with, an unknown dtype or device, a `past` or `depth` that is no integer from 0, and the errors of
    `archspec.load`.
    """
    rates = None if device is None else check_rates(load_device(device), utilization, bandwidth_utilization)
    check_dtype(dtype)
    check_dtype(dtype if cache_dtype is None else cache_dtype)
    if depth is not None and not is_integer(depth, 0):
        raise make_error("usage", f"expected a depth from 0, found {depth!r:.40}")
    compiled = as_model(model)
    body = get_compilation(compiled).body
    values = valid_sizes(compiled, merge_sizes(dims, batch, seq))
    table, tracer = get_compilation(compiled).table, AttentionTracer()
    placed = tuple([substitute(number, values) for number in placed_rows(body)])
    result = compute_cost(table, body, values, dtype, causal_half, tracer).replace(depth=depth, placed=placed)
    quantization = get_compilation(compiled).unit.quantization
    if quantization is not None:
        from archspec.analysis.cost.quantized import stored_bytes  # imported late: few models are quantized

        result = result.replace(stored=stored_bytes(result.table, quantization))
    cache = cache_dtype or (dtype if dtype in FLOATS else "bfloat16")
    if past is not None:
        result = result.replace(decoding=_compute_decoding(body, values, past, dtype, cache, tracer))
    if training:
        step = check_and_compute_training(compiled, values, tracer, frozen, lora or {}, checkpoint, rates is not None)
        result = result.replace(training=step)
    elif frozen or lora or checkpoint != "none":
        message = "frozen parameters, adapters and checkpointing have no effect without a training step"
        raise make_error("usage", message, help="add `--training`, or `training=True` in Python")
    if rates is not None:
        result = result.replace(time=_compute_time(result, body, values, dtype, cache, tracer, rates))
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


def _decoding():  # the type of the module, which has no name
    from archspec.analysis.cost import decoding  # imported late: few calls need it

    return decoding


def _compute_decoding(
    body: Body, values: Mapping[str, int], past: int, dtype: str, cache_dtype: str, tracer: AttentionTracer
) -> Decoding:
    if not is_integer(past, 0) or past >= MAX_SIZE:
        raise make_error("usage", f"expected a number of past positions from 0 to 2^63 - 2, found {past!r:.40}")
    return _decoding().compute_decoding(body, values, past, dtype, cache_dtype, tracer)


def _compute_time(
    cost: Cost,
    body: Body,
    values: Mapping[str, int],
    dtype: str,
    cache_dtype: str,
    tracer: AttentionTracer,
    rates: Rates,
) -> StepTime:
    """Compute the least time of the step, or of the forward pass, of which a cost is."""
    if cost.decoding is not None:
        return decoding_time(cost.decoding, dtype, cost.stored, rates)
    missing = [name for name in cost.dims if name not in values]
    if missing:
        names = ", ".join([f"`{name}`" for name in missing])
        message = f"a time needs sizes of the dimensions {names}"
        raise make_error("usage", message, help=f"use {options_for_sizes(missing)}")
    training = cost.training
    prefill = _decoding().compute_prefill(body, values, cache_dtype, tracer) if training is None else None
    forward = forward_time(cost.table, body, values, tracer, dtype, cost.stored, prefill, rates)
    return forward if training is None else training_time(training, cost.table, dtype, forward, rates)


def check_and_compute_training(
    model: Model,
    values: Mapping[str, int],
    tracer: AttentionTracer,
    frozen: Collection[str],
    lora: Mapping[str, int],
    checkpoint: str,
    for_time: bool = False,
) -> Training:
    """Compute the FLOPs of a training step; `values` are valid sizes. Raises ArchError as `training_flops` does."""
    from archspec.analysis.cost.training import compute_training  # imported late: few calls need it

    check_choice(checkpoint, CHECKPOINTS, "checkpointing")
    table, body = get_compilation(model).table, get_compilation(model).body
    return compute_training(
        table, body, values, tracer, frozen=frozen, lora=lora, checkpoint=checkpoint, for_time=for_time
    )


def _activations():  # the type of the module, which has no name
    from archspec.pytorch.run import activations  # imported late: PyTorch is optional and slow

    return activations


def _compute_activations(model: Model, values: Mapping[str, int], dtype: str, attention: str) -> Activations:
    if dtype not in FLOATS:
        raise make_error("usage", f"models are not trained with weights of type {dtype}", help="omit --attention")
    check_choice(attention, ATTENTION, "attention implementation")
    return Activations(attention, *_activations().activation_bytes(model, values, dtype, attention))


def compute_kept(
    model: Model,
    values: Mapping[str, int],
    dtype: str,
    attention: str,
    checkpointed: Collection[str],
    policy: str,
    frozen: Collection[str],
    stages: Sequence[Sequence[str]],
) -> list[KeptForBackward]:
    """Return the bytes that a forward pass keeps in each stage; `values` are all sizes. Raises ArchError as `cost`."""
    return _activations().bytes_kept_for_backward(model, values, dtype, attention, checkpointed, policy, frozen, stages)
