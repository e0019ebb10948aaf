"""Bytes of quantized weights as they are stored: the layouts of GPTQ, AWQ, bitsandbytes, fp8 and mxfp4.

`docs/costs.md` lists the tensors of each layout, and the tensors that are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeGuard, cast

from archspec.analysis.adapter.config import compile_pattern
from archspec.analysis.adapter.targets import BaseModule, all_linear, list_modules
from archspec.analysis.cost.dtypes import BITS, byte_count
from archspec.analysis.cost.memory import StoredBytes
from archspec.core.addresses import is_index, segments
from archspec.core.diagnostics import ArchError, make_error
from archspec.core.record import Record
from archspec.core.resources import specs_root
from archspec.formats.configs.family import read_layers
from archspec.ir.table import Quantization, Table


class _StoredSize(Record):
    """Bytes of a quantized matrix, and of its scales, zero points and indices."""

    weights: int
    scales: int


def stored_bytes(table: Table, quantization: Quantization) -> StoredBytes:
    """Compute the bytes of a model's weights as they are stored."""
    try:
        return _compute_stored(table, quantization)
    except ArchError as error:
        return StoredBytes(quantization.title, error.diagnostics[0].message)


def _compute_stored(table: Table, quantization: Quantization) -> StoredBytes:
    method = _METHODS.get(quantization.method)
    if method is None:
        raise make_error("unsupported", f"the layout of the method `{quantization.method:.40}` is not supported")
    if quantization.dtype not in BITS:
        raise make_error("unsupported", f"the type of the other weights is unknown: `{quantization.dtype:.40}`")
    sizes = method(table, quantization.fields)
    canonical = [tensor for tensor in table.tensors if tensor.tied_to is None]
    unquantized = sum(tensor.size for tensor in canonical if tensor.name not in sizes)
    return StoredBytes(
        quantization.title,
        "",
        table.params.total - unquantized,
        sum(size.weights for size in sizes.values()),
        sum(size.scales for size in sizes.values()),
        byte_count(unquantized, quantization.dtype),
        quantization.dtype,
    )


# Modules --------------------------------------------------------------------------------------------------------------


def _list_modules(table: Table) -> list[BaseModule]:
    """Return the modules of a model. Raises ArchError for transposed linear layers, whose layout is not supported."""
    names = {address: address for address in (*(m.address for m in table.modules), *(t.name for t in table.tensors))}
    modules = list_modules(table, names, read_layers(specs_root(), "LORA").kinds)
    if any(module.kind == "transposed" for module in modules):
        raise make_error("unsupported", "the layout of quantized transposed linear layers is not supported")
    return modules


def _stack_layers(table: Table) -> list[BaseModule]:
    """Return the linear layers in the numbered layers of a model, which GPTQ and AWQ convert."""
    linear = [module for module in _list_modules(table) if module.kind == "dense"]
    return [m for m in linear if any(map(is_index, segments(m.name))) and m.tensors[0].role != "head"]


def _all_linear_layers(table: Table, listed: object) -> list[BaseModule]:
    """Return all linear layers except the listed ones; without a list, except the output layer and tied layers."""
    modules = _list_modules(table)
    linear = [module for module in modules if module.kind == "dense"]
    if not _is_name_list(listed):
        tied = {name for t in table.tensors if t.tied_to is not None for name in (t.name, t.tied_to)}
        excluded = {name.removesuffix(".weight") for name in (*tied, table.tensors[-1].name)}
        converted = set(all_linear(modules, table.hyperparameters.get("vocab"))) - excluded
        return [module for module in linear if module.name in converted]
    return _convertible_modules(linear, listed)


def _convertible_modules(modules: Sequence[BaseModule], listed: Sequence[str]) -> list[BaseModule]:
    """Return the modules that `transformers` converts (`should_convert_module`)."""
    patterns = [compile_pattern(rf"(?:{name})(?:(?<=\.)|(?=\.|$))") for name in listed]
    is_listed = [any(p.match(m.name) for p in patterns) or m.name.endswith(tuple(listed)) for m in modules]
    return [module for module, is_excluded in zip(modules, is_listed, strict=True) if not is_excluded]


def _is_name_list(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast("list[object]", value))


# Layouts --------------------------------------------------------------------------------------------------------------


def _read_integer(fields: dict[str, object], name: str, default: int, supported: Collection[int] | None = None) -> int:
    value = fields.get(name, default)
    if (
        type(value) is not int
        or (supported is not None and value not in supported)
        or not -1 <= value <= 2**20
        or value == 0
    ):
        raise make_error("unsupported", f"unsupported value of `{name}`: {value!r:.40}")
    return value


def _packed_bytes(count: int, bits: int) -> int:
    """Return the bytes of numbers that are packed into 32-bit integers. Raises ArchError if there is a remainder."""
    if count * bits % 32:
        raise make_error("unsupported", f"{count:,} numbers of {bits} bits do not fill 32-bit integers")
    return count * bits // 8


def _gptq_sizes(table: Table, fields: dict[str, object]) -> dict[str, _StoredSize]:
    """Return the sizes of qweight, qzeros, scales and g_idx of every linear layer in the stack."""
    bits, group = _read_integer(fields, "bits", 4, (2, 3, 4, 8)), _read_integer(fields, "group_size", 128)
    if fields.get("dynamic") or fields.get("lm_head"):
        raise make_error("unsupported", "the configuration quantizes some layers differently (`dynamic`, `lm_head`)")
    listed = cast("list[object] | None", fields.get("modules_in_block_to_quantize"))
    modules = _stack_layers(table)
    if listed is not None:
        parts = [cast("list[str]", part if type(part) is list else [part]) for part in listed]
        ends = tuple([f".{name}" for part in parts for name in part])
        modules = [module for module in modules if module.name.endswith(ends)]
    elif table.active is not None:
        raise make_error("unsupported", "the configuration does not list the quantized layers of the experts")
    sizes: dict[str, _StoredSize] = {}
    for module in modules:
        inputs, outputs = module.features
        groups = 1 if group == -1 else -(-inputs // group)
        scales = groups * _packed_bytes(outputs, bits) + 2 * groups * outputs + 4 * inputs
        sizes[_weight_name(module)] = _StoredSize(_packed_bytes(inputs, bits) * outputs, scales)
    return sizes


def _awq_sizes(table: Table, fields: dict[str, object]) -> dict[str, _StoredSize]:
    """Return the sizes of qweight, qzeros and scales of every linear layer in the stack."""
    bits, group = _read_integer(fields, "bits", 4, (4,)), _read_integer(fields, "group_size", 128)
    if str(fields.get("version", "gemm")).lower() != "gemm":
        raise make_error("unsupported", "only the layout `gemm` of AWQ is supported")
    listed = fields.get("modules_to_not_convert")
    if table.active is not None and not listed:
        raise make_error(
            "unsupported", "the configuration does not list the layers of the experts that are not quantized"
        )
    modules = _stack_layers(table)
    if _is_name_list(listed):  # AutoAWQ matches these as substrings of module names
        modules = [module for module in modules if not any(name in module.name for name in listed)]
    sizes: dict[str, _StoredSize] = {}
    for module in modules:
        inputs, outputs = module.features
        groups = 1 if group == -1 else inputs // group
        zeros = groups * _packed_bytes(outputs, bits) if fields.get("zero_point", True) else 0
        sizes[_weight_name(module)] = _StoredSize(inputs * _packed_bytes(outputs, bits), zeros + 2 * groups * outputs)
    return sizes


def _bitsandbytes_sizes(table: Table, fields: dict[str, object]) -> dict[str, _StoredSize]:
    """Return the sizes of int8 weights with a scale per output, or of blocks of 64 4-bit weights with a scale each."""
    modules = _all_linear_layers(table, fields.get("llm_int8_skip_modules"))
    sizes: dict[str, _StoredSize] = {}
    is_nested = fields.get("bnb_4bit_use_double_quant", False)
    for module in modules:
        inputs, outputs = module.features
        count = inputs * outputs
        if fields.get("load_in_4bit") or fields.get("_load_in_4bit"):
            blocks = -(-count // 64)
            sizes[_weight_name(module)] = _StoredSize(
                -(-count // 2), blocks + 4 * -(-blocks // 256) if is_nested else 4 * blocks
            )
        else:
            sizes[_weight_name(module)] = _StoredSize(count, 4 * outputs)
    return sizes


def _fp8_sizes(table: Table, fields: dict[str, object]) -> dict[str, _StoredSize]:
    """Return the sizes of one byte per weight, and of float32 scales of blocks (weight_scale_inv)."""
    rows, columns = _read_block_size(fields.get("weight_block_size", [128, 128]))
    if fields.get("activation_scheme", "dynamic") != "dynamic" or fields.get("expert_dtype", "fp8") != "fp8":
        raise make_error("unsupported", "only dynamic scales of activations and experts in fp8 are supported")
    sizes: dict[str, _StoredSize] = {}
    for module in _all_linear_layers(table, fields.get("modules_to_not_convert")):
        inputs, outputs = module.features
        sizes[_weight_name(module)] = _StoredSize(inputs * outputs, 4 * -(-outputs // rows) * -(-inputs // columns))
    return sizes


def _read_block_size(value: object) -> tuple[int, int]:
    sizes = cast("list[int]", value if type(value) is list else [])
    if [type(size) for size in sizes] != [int, int] or min(sizes) < 1:
        raise make_error("unsupported", f"unsupported value of `weight_block_size`: {value!r:.40}")
    return sizes[0], sizes[1]


def _mxfp4_sizes(table: Table, fields: dict[str, object]) -> dict[str, _StoredSize]:
    """Return the sizes of experts in one tensor: 4 bits per weight (blocks), and one byte per 32 weights (scales)."""
    experts = [tensor for tensor in table.tensors if len(tensor.shape) == 3]
    if not experts or any(tensor.size % 32 for tensor in experts):
        raise make_error("unsupported", "mxfp4 is only supported for experts that are stored in one tensor")
    return {tensor.name: _StoredSize(tensor.size // 2, tensor.size // 32) for tensor in experts}


def _weight_name(module: BaseModule) -> str:
    return f"{module.name}.weight"


_METHODS: dict[str, Callable[[Table, dict[str, object]], dict[str, _StoredSize]]] = {
    "gptq": _gptq_sizes,
    "awq": _awq_sizes,
    "bitsandbytes": _bitsandbytes_sizes,
    "fp8": _fp8_sizes,
    "mxfp4": _mxfp4_sizes,
}
