"""Stored tensors that are no difference: computed buffers, and quantized weights in another form than in the spec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod

from archspec.core.addresses import join, last_segment, parent
from archspec.core.addresses.repeats import collapse_names
from archspec.core.resources import specs_root
from archspec.formats.checkpoints.computed import find_computed
from archspec.formats.checkpoints.elements import has_only_zeros
from archspec.formats.checkpoints.entries import Checkpoint, Entry
from archspec.formats.configs.family import read_layers
from archspec.ir.table import Table

_OUTPUT_FIRST_TYPES = ("GPTQ_", "AWQ_", "BNB_")
"""Types of quantized weights that are stored as [out, in], also in transposed linear layers."""


def find_surplus(checkpoint: Checkpoint, remaining: Iterable[Entry]) -> dict[str, str]:
    """Return descriptions of the remaining tensors that are no difference, by name.

    Old versions of AutoGPTQ store a bias of zeros for each weight of GPTQ, also if the layer has none.
    """
    remaining = list(remaining) if checkpoint.format != "gguf" else []
    gptq = {entry.name for entry in checkpoint.entries if entry.dtype.startswith("GPTQ_")}
    biases = [entry for entry in remaining if last_segment(entry.name) == "bias"]
    zeros = [e for e in biases if join(parent(e.name), "weight") in gptq and has_only_zeros(e)]
    surplus = dict.fromkeys([entry.name for entry in zeros], "bias of zeros of a weight of GPTQ")
    return surplus | find_computed(remaining)


def describe_surplus(descriptions: Mapping[str, str]) -> Iterator[str]:
    """Describe surplus tensors: the kind, and the names."""
    for fold, kind in collapse_names(descriptions.items()):
        yield f"not in the spec, ignored: {fold}, {kind}"


def fit_quantized(
    table: Table, checkpoint: Checkpoint, entries: dict[str, Entry]
) -> tuple[dict[str, Entry], list[str]]:
    """Bring quantized weights into the form of the spec; also return notes.

    Of some weights, only the number of elements is known, rounded up to pairs. Transposed linear layers are quantized
    as [out, in].
    """
    if not checkpoint.packed_entries:
        return entries, []
    types = {module.address: module.type for module in table.modules}
    kinds = read_layers(specs_root(), "LORA").kinds
    transposed = {address for address, type in types.items() if kinds.get(type) == "transposed"}
    fitted = dict(entries)
    changes: dict[str, str] = {}
    for tensor in table.tensors:
        entry = entries.get(tensor.name)
        if entry is None or entry.shape == tensor.shape:
            continue
        if entry.name in checkpoint.flat_names and entry.elements - prod(tensor.shape) in (0, 1):
            changes[entry.name] = "only element counts were compared"
        elif (
            tensor.layer in transposed
            and entry.dtype.startswith(_OUTPUT_FIRST_TYPES)
            and entry.shape == tensor.shape[::-1]
        ):
            changes[entry.name] = "quantized as [out, in], in the spec [in, out]"
        else:
            continue
        fitted[tensor.name] = entry._replace(shape=tensor.shape)
    return fitted, [f"{kind}: {fold}" for fold, kind in collapse_names(changes.items())]
