"""The tensors of a plan: which are trained, in which type, and in which block."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import prod

from archspec.analysis.cost.trained import block_addresses, find_gradients
from archspec.analysis.plan.engines import PlannedTensor
from archspec.core.addresses import ANY_INDEX, join, parent, prefixes
from archspec.core.diagnostics import make_error
from archspec.ir.table import Table, Tensor

_ADAPTER = ".lora_"
"""What the names of the tensors of adapters contain, in `peft`."""


def plan_tensors(
    table: Table,
    dtype: str,
    frozen: Collection[str],
    lora: Mapping[str, int],
    kinds: Mapping[str, str],
    *,
    adapters_in_float32: bool,
) -> list[PlannedTensor]:
    """Return the tensors that a device would hold alone, with adapters; tied ones once.

    `frozen` and `lora` are as for `training_flops`, `kinds` those of layers by type. As `peft` does, adapters of
    weights of 16 bits are in float32 (`adapters_in_float32`). Raises ArchError for a pattern without parameters, and
    if nothing is trained.
    """
    blocks = {*block_addresses(table)}
    gradients = find_gradients(table, frozen, lora)[0] if frozen or lora else {}
    adapter_dtype = "float32" if adapters_in_float32 and dtype in ("float16", "bfloat16") else dtype
    planned: list[PlannedTensor] = []
    for tensor in table.tensors:
        block = next((address for address in prefixes(tensor.layer) if address in blocks), "")
        group = join(parent(block), ANY_INDEX) if block else tensor.layer or tensor.name
        gradient = gradients.get(tensor.name, int(tensor.trainable))
        if tensor.tied_to is None:
            own = adapter_dtype if _ADAPTER in tensor.name else dtype
            planned.append(PlannedTensor(tensor.name, tensor.shape, own, tensor.size, gradient > 0, block, group))
        if gradient < 0:
            for name, shape in _adapter_shapes(tensor, -gradient, kinds):
                planned.append(PlannedTensor(name, shape, adapter_dtype, prod(shape), True, block, group))
    if not any(tensor.is_trained for tensor in planned):
        raise make_error("usage", f"no parameter of {table.model} is trained", help="freeze less")
    return planned


def _adapter_shapes(tensor: Tensor, rank: int, kinds: Mapping[str, str]) -> list[tuple[str, tuple[int, ...]]]:
    """Return the tensors of an adapter of a matrix, by the kinds of layers."""
    outputs, inputs = tensor.shape if kinds.get(tensor.type) not in ("transposed", "embedding") else tensor.shape[::-1]
    return [(f"{tensor.layer}.lora_A.weight", (rank, inputs)), (f"{tensor.layer}.lora_B.weight", (outputs, rank))]
