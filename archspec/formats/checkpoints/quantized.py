"""Recognition of quantized weights that libraries store in several tensors: one logical tensor for each weight.

Only names, element types and shapes are used, and the shapes that bitsandbytes and compressed-tensors store as data.
Sources: QuantLinear of AutoGPTQ and GPTQModel; `awq/modules/linear/` of AutoAWQ; `Linear8bitLt`, `Linear4bit` and
`QuantState.as_dict` of bitsandbytes; `integrations/` of `transformers` (`mxfp4.py`, `finegrained_fp8.py`,
`fbgemm_fp8.py`, `compressed_tensors.py`); `gpt_oss/torch/weights.py` of gpt-oss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from struct import unpack
from typing import NamedTuple, cast

from archspec.core.addresses import join, last_segment, parent
from archspec.core.addresses.repeats import collapse_names
from archspec.core.diagnostics import ArchError
from archspec.core.reports.text import listed, number
from archspec.formats.checkpoints.elements import read_elements
from archspec.formats.checkpoints.entries import Checkpoint, Entry, is_size
from archspec.formats.checkpoints.safetensors import parse_json

_Stored = Mapping[str, Entry]
_Shape = tuple[int, ...]
_Layouts = set[tuple[str, _Shape, int]]
"""Fitting layouts: method, logical shape and bits."""


class _QuantizedWeight(NamedTuple):
    """A quantized weight: its logical name and shape, type and method, and the other tensors that belong to it.

    `is_flat` means that only the number of elements is known.
    """

    name: str
    shape: _Shape
    dtype: str
    method: str
    others: tuple[Entry, ...]
    is_flat: bool = False


class _LayoutMismatch(NamedTuple):
    """Tensors with the names of a layout, but other shapes."""

    layout: str
    reason: str


def unpack_quantized(checkpoint: Checkpoint) -> Checkpoint:
    """Replace the tensors of each quantized weight by one of its logical size, and add notes about them."""
    if checkpoint.format == "gguf":
        return checkpoint
    stored = {entry.name: entry for entry in checkpoint.entries}
    weights: dict[str, _QuantizedWeight] = {}
    mismatches: list[tuple[str, _LayoutMismatch]] = []
    for entry in checkpoint.entries:
        weight = _recognize(entry, stored)
        if isinstance(weight, _QuantizedWeight) and weight.name != entry.name and weight.name in stored:
            weight = _LayoutMismatch(weight.method, f"`{last_segment(weight.name)}` is stored, too")
        if isinstance(weight, _QuantizedWeight):
            weights[entry.name] = weight
        elif weight is not None:
            mismatches.append((entry.name, weight))
    notes = (*checkpoint.notes, *_describe(weights), *_describe_mismatches(mismatches))
    if not weights:
        return checkpoint._replace(notes=notes)
    others = {other.name for weight in weights.values() for other in weight.others}
    counted: set[tuple[object, ...]] = set()
    entries: list[Entry] = []
    for entry in checkpoint.entries:
        if entry.name in weights:
            entries.append(_build_logical(entry, weights[entry.name], counted))
        elif entry.name not in others:
            entries.append(entry)
    flat = frozenset([weight.name for weight in weights.values() if weight.is_flat])
    return checkpoint._replace(entries=tuple(entries), notes=notes, packed_entries=checkpoint.entries, flat_names=flat)


def _build_logical(entry: Entry, weight: _QuantizedWeight, counted: set[tuple[object, ...]]) -> Entry:
    """Return the logical tensor; the bytes of a tensor that several weights share are `counted` once."""
    bytes = entry.bytes
    for other in weight.others:
        if other.storage_key not in counted:
            counted.add(other.storage_key)
            bytes += other.bytes
    return entry._replace(name=weight.name, shape=weight.shape, dtype=weight.dtype, bytes=bytes, strides=None)


def _describe_mismatches(mismatches: Sequence[tuple[str, _LayoutMismatch]]) -> list[str]:
    notes: list[str] = []
    for fold, (layout, reason) in collapse_names(mismatches):
        notes.append(f"counted as stored: {fold} has a name as in {layout}, but {reason}")
    return notes


def _describe(weights: Mapping[str, _QuantizedWeight]) -> list[str]:
    """Describe the weights of each method."""
    methods: dict[str, list[str]] = {}
    for name, weight in weights.items():
        methods.setdefault(weight.method, []).append(name)
    notes: list[str] = []
    for method, names in methods.items():
        parts = dict.fromkeys(last_segment(part) for n in names for part in (n, *(o.name for o in weights[n].others)))
        tensors = listed([f"`{part}`" for part in parts])
        count = number(len(names), "tensor")
        notes.append(f"quantized ({method}): {count} counted at logical size, stored as {tensors}")
        if flat := sum(weights[name].is_flat for name in names):
            notes.append(f"the shapes of {number(flat, 'quantized tensor')} cannot be read, only element counts")
    return notes


# Recognition ----------------------------------------------------------------------------------------------------------


def _recognize(entry: Entry, stored: _Stored) -> _QuantizedWeight | _LayoutMismatch | None:
    """Return the weight whose largest tensor is `entry`, if its layout is known."""
    name, layer, last = entry.name, parent(entry.name), last_segment(entry.name)
    if last == "qweight":
        return _recognize_integers(entry, layer, stored)
    if f"{name}.absmax" in stored:
        return _recognize_4bit(entry, stored)
    if last == "weight" and entry.dtype == "int8" and (scales := stored.get(join(layer, "SCB"))) is not None:
        if scales.shape != entry.shape[:1]:
            return _LayoutMismatch("bitsandbytes", "the shapes of `weight` and `SCB` do not fit")
        others = _siblings(stored, layer, "SCB", "weight_format")
        return _QuantizedWeight(name, entry.shape, "BNB_INT8", "bitsandbytes, 8 bits", others)
    if last == "blocks" or last.endswith("_blocks"):
        return _recognize_blocks(entry, stored)
    if last == "weight_packed" and entry.dtype == "int32":
        return _recognize_packed(entry, layer, stored)
    if entry.dtype.startswith("float8") or entry.dtype in ("int8", "uint8", "float4_e2m1fn"):
        return _recognize_scaled(entry, layer, last, stored)
    return None


def _siblings(stored: _Stored, layer: str, *names: str) -> tuple[Entry, ...]:
    start = f"{layer}." if layer else ""
    return tuple([stored[start + name] for name in names if start + name in stored])


def _is_real(entry: Entry | None) -> bool:
    return entry is not None and entry.dtype.startswith(("float", "bfloat"))


def _recognize_integers(entry: Entry, layer: str, stored: _Stored) -> _QuantizedWeight | _LayoutMismatch | None:
    """Recognize integers that GPTQ and AWQ pack into larger ones."""
    scales, zeros, group_index = (stored.get(join(layer, name)) for name in ("scales", "qzeros", "g_idx"))
    if scales is None:
        return None
    layouts: _Layouts = set()
    if len(entry.shape) == 2 and len(scales.shape) == 2 and _is_real(scales) and entry.elements and scales.elements:
        layouts = _fit_gptq(entry, scales, zeros, group_index)
        if group_index is None:
            layouts |= _fit_awq(entry, scales, zeros)
    if len(layouts) != 1:
        reason = "the shapes fit several layouts" if layouts else "the shapes fit no layout"
        return _LayoutMismatch("GPTQ or AWQ", reason)
    ((method, shape, bits),) = layouts
    others = _siblings(stored, layer, "qzeros", "scales", "g_idx")
    others += _siblings(stored, parent(layer), "act.scales") if method == "AWQ" else ()
    return _QuantizedWeight(join(layer, "weight"), shape, f"{method}_{bits}", f"{method}, {bits} bits", others)


def _fit_gptq(entry: Entry, scales: Entry, zeros: Entry | None, group_index: Entry | None) -> _Layouts:
    """Return the fitting layout: qweight [n b / 32, m], qzeros [groups, m b / 32], scales [groups, m], g_idx [n]."""
    (rows, columns), (groups, outputs) = entry.shape, scales.shape
    layouts: _Layouts = set()
    if entry.dtype != "int32" or columns != outputs or (group_index is None and zeros is None):
        return layouts
    for bits in range(2, 9):
        inputs, remainder = divmod(rows * 32, bits)
        is_index_fit = group_index is None or group_index.shape == (inputs,)
        is_zeros_fit = zeros is None or (outputs * bits % 32 == 0 and zeros.shape == (groups, outputs * bits // 32))
        if not remainder and groups <= inputs and is_index_fit and is_zeros_fit:
            layouts.add(("GPTQ", (outputs, inputs), bits))
    return layouts


def _fit_awq(entry: Entry, scales: Entry, zeros: Entry | None) -> _Layouts:
    """Return the fitting layouts of 4 bits: `gemm`, `gemv`, `gemv_fast`, `marlin`."""
    (rows, columns), (scale_rows, scale_columns) = entry.shape, scales.shape
    shapes: set[_Shape] = set()
    if entry.dtype == "int32":
        is_gemm = 8 * columns == scale_columns and scale_rows < rows and rows % scale_rows == 0
        if is_gemm and (zeros is None or zeros.shape == (scale_rows, columns)):
            shapes.add((scale_columns, rows))
        if zeros is not None and rows == scale_rows and zeros.shape == (rows, scale_columns / 8):
            shapes.add((rows, 8 * columns))
        if zeros is None and columns == 2 * scale_columns and 16 * rows % scale_rows == 0:
            shapes.add((scale_columns, 16 * rows))
    elif entry.dtype == "int16" and zeros is not None and zeros.shape == scales.shape and 4 * rows == scale_columns:
        shapes.add((scale_columns, columns))
    return {("AWQ", shape, 4) for shape in shapes}


_STATE = "quant_state.bitsandbytes__"
_MAX_STATE_BYTES = 1 << 16


def _recognize_4bit(entry: Entry, stored: _Stored) -> _QuantizedWeight | _LayoutMismatch | None:
    """Recognize 4-bit numbers of bitsandbytes, two in a byte; a JSON object that is stored as bytes has the shape."""
    name = entry.name
    type = next((type for type in ("nf4", "fp4") if f"{name}.{_STATE}{type}" in stored), "")
    parts = ("absmax", "quant_map", "nested_absmax", "nested_quant_map", f"{_STATE}{type}")
    others = _siblings(stored, name, *parts)
    title = f"bitsandbytes, {type or '4 bits'}"
    shape = _read_shape(stored[f"{name}.{_STATE}{type}"]) if type else None
    elements = 2 * entry.bytes if shape is None else prod(shape)
    blocks = stored[f"{name}.absmax"].elements
    is_fit = any(-(-elements // size) == blocks for size in (32, 64, 128, 256, 512, 1024, 2048, 4096))
    if not is_fit or -(-elements // 2) != entry.bytes:
        return _LayoutMismatch("bitsandbytes", "the sizes of the weight and `absmax` do not fit")
    return _QuantizedWeight(name, shape or (elements,), f"BNB_{type.upper() or '4'}", title, others, shape is None)


def _read_shape(entry: Entry) -> _Shape | None:
    """Return the shape in a quantization state of bitsandbytes; None if it cannot be read."""
    data = read_elements(entry) if entry.bytes <= _MAX_STATE_BYTES else None
    if data is None:
        return None
    try:
        shape = parse_json(data, entry.name, "the quantization state").get("shape")
    except ArchError:
        return None
    sizes = cast("list[object]", shape) if isinstance(shape, list) else []
    return tuple([size for size in sizes if is_size(size)]) if sizes and all(map(is_size, sizes)) else None


def _recognize_blocks(entry: Entry, stored: _Stored) -> _QuantizedWeight | _LayoutMismatch | None:
    """Recognize MXFP4 of gpt-oss: blocks [..., outputs, groups, 16] of pairs, and scales [..., outputs, groups].

    `transformers` names them NAME_blocks, and transposes the experts of NAME; OpenAI names them NAME.blocks.
    """
    name = entry.name.removesuffix("blocks")
    scales = stored.get(f"{name}scales")
    if scales is None or (entry.dtype, scales.dtype) != ("uint8", "uint8"):
        return None
    if len(entry.shape) < 3 or entry.shape[-1] != 16 or entry.shape[:-1] != scales.shape:
        return _LayoutMismatch("MXFP4", "the shapes of blocks and scales do not fit")
    *experts, outputs, groups, _ = entry.shape
    shape = (*experts, outputs, groups * 32)
    if name.endswith("_") and experts:
        shape = (*experts, groups * 32, outputs)
    return _QuantizedWeight(name[:-1], shape, "MXFP4", "MXFP4", (scales,))


def _recognize_packed(entry: Entry, layer: str, stored: _Stored) -> _QuantizedWeight | _LayoutMismatch | None:
    """Recognize integers of compressed-tensors, which stores the shape as two integers."""
    shape = stored.get(join(layer, "weight_shape"))
    scales = stored.get(join(layer, "weight_scale"))
    if shape is None or scales is None:
        return None
    data = read_elements(shape) if shape.shape == (2,) and shape.dtype in ("int64", "int32") else None
    if data is None:
        return _LayoutMismatch("compressed-tensors", "`weight_shape` cannot be read")
    outputs, inputs = unpack("<2Q" if shape.dtype == "int64" else "<2I", data)
    if not any(entry.shape in _packed_shapes(outputs, inputs, bits) for bits in range(2, 9)):
        return _LayoutMismatch("compressed-tensors", "the size is not that of the shape in `weight_shape`")
    parts = ("weight_scale", "weight_shape", "weight_zero_point", "weight_g_idx", "input_scale", "input_zero_point")
    others = _siblings(stored, layer, *parts)
    method = "compressed-tensors, packed integers"
    return _QuantizedWeight(join(layer, "weight"), (outputs, inputs), "PACKED_INT", method, others)


def _packed_shapes(outputs: int, inputs: int, bits: int) -> set[_Shape]:
    """Return the shapes of rows in which integers fill the words, or only whole integers are in a word."""
    return {(outputs, -(-inputs * bits // 32)), (outputs, -(-inputs // (32 // bits)))}


_SCALES = ("_scale_inv", "_scale", "_scale_2", "_global_scale", "_input_scale", "_activation_scale", "_zero_point")
"""Ends of the names of scales, after the name of a weight."""

_LAYER_SCALES = (
    *("scale", "qscale_weight", "input_scale", "activation_scale", "input_scale_ub", "input_global_scale"),
    *("qscale_act", "input_zero_point", "k_scale", "v_scale", "output_scale"),
)
"""Names of scales of the `weight` of a layer, of its inputs, and of its outputs."""

_CACHE_SCALES = ("q_scale", "k_scale", "v_scale")
"""Names of scales of queries and of cached keys and values, in the module that contains the layer."""


def _recognize_scaled(
    entry: Entry, layer: str, last: str, stored: _Stored
) -> _QuantizedWeight | _LayoutMismatch | None:
    """Recognize numbers of 8 bits, or of 4 bits in pairs, beside which their scales are stored."""
    base = entry.name.removesuffix("_packed") if last == "weight_packed" else entry.name
    others = tuple([stored[base + end] for end in _SCALES if base + end in stored])
    if last in ("weight", "weight_packed"):
        others += _siblings(stored, layer, *_LAYER_SCALES) + _siblings(stored, parent(layer), *_CACHE_SCALES)
    names = (f"{base}_scale_inv", f"{base}_scale", join(layer, "scale"), join(layer, "qscale_weight"))
    scales = next((other for other in others if other.name in names), None)
    if scales is None and not (others and entry.dtype.startswith("float8")):
        return None
    dtype, shape = entry.dtype.upper().replace("FLOAT", "FP").replace("FN", ""), entry.shape
    if scales is not None and (paired := _paired_type(entry, scales)):
        dtype, shape = paired, (*shape[:-1], 2 * shape[-1])
    elif entry.dtype == "uint8" or (entry.dtype == "int8" and not _is_real(scales)):
        return None
    elif scales is not None and not _is_grid(scales.shape, shape):
        return _LayoutMismatch(f"{dtype} with scales", "the shapes do not fit")
    return _QuantizedWeight(base, shape, dtype, f"{dtype.replace('_', ' ')} with scales", others)


def _paired_type(entry: Entry, scales: Entry) -> str:
    """Return the type of numbers of 4 bits of which a byte has two: a scale belongs to 32 (MXFP4) or 16 (NVFP4)."""
    if entry.dtype not in ("int8", "uint8") or not scales.shape or scales.shape[:-1] != entry.shape[:-1]:
        return ""
    if scales.dtype in ("uint8", "float8_e8m0fnu") and scales.shape[-1] * 16 == entry.shape[-1]:
        return "MXFP4"
    return "NVFP4" if scales.dtype == "float8_e4m3fn" and scales.shape[-1] * 8 == entry.shape[-1] else ""


def _is_grid(scales: _Shape, weight: _Shape) -> bool:
    """Whether there is one scale, one for each row, or one for each block."""
    if prod(scales) == 1 or prod(scales) == prod(weight[:1]) or scales == weight[: len(scales)]:
        return True
    return len(scales) == len(weight) and all(size <= full for size, full in zip(scales, weight, strict=True))
