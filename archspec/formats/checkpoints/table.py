"""The table of a checkpoint: its tensors, as in the table of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from archspec.core.addresses import is_index, last_segment, parent, prefixes, segments
from archspec.core.addresses.repeats import collapse_names
from archspec.core.reports.text import beside, number, size
from archspec.formats.checkpoints.checkpoint import read
from archspec.formats.checkpoints.computed import find_computed
from archspec.formats.checkpoints.entries import Entry, bits_per_element
from archspec.ir.table import Buffer, ModuleRow, Params, Table, Tensor, Tensors

STATISTICS = ("running_mean", "running_var")
"""The buffers of batch normalization in PyTorch."""

ROTARY = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
"""The tensors that conversions to GGUF compute from a configuration."""


def buffer_names(entries: Sequence[Entry], computed: Iterable[str]) -> frozenset[str]:
    """Return the names of the tensors treated as buffers.

    These are integers, booleans, statistics, rotary factors, and the `computed` tensors that old versions store.
    """
    names = {entry.name for entry in entries}
    return frozenset(computed) | frozenset(
        entry.name
        for entry in entries
        if entry.dtype.startswith(("bool", "int", "uint"))
        or entry.name in ROTARY
        or (
            last_segment(entry.name) in STATISTICS
            and all(f"{parent(entry.name)}.{statistic}" in names for statistic in STATISTICS)
        )
    )


def load_checkpoint_table(path: str) -> Table:
    """Load the tensors of the checkpoint at `path` as a table. Raises ArchError.

    Types, roles and hyperparameters are not known. Tensors with the same elements are one tensor.
    """
    checkpoint = read(path)
    entries = _sort_numerically(checkpoint.entries)
    computed = find_computed(entries)
    buffers = buffer_names(entries, computed)
    tensors: list[Tensor] = []
    firsts: dict[tuple[object, ...], str] = {}
    for entry in entries:
        if entry.name not in buffers:
            first = firsts.setdefault(entry.storage_key, entry.name)
            tied_to = first if first != entry.name else None
            params = 0 if tied_to else entry.elements
            layer = parent(entry.name)
            tensors.append(Tensor(entry.name, entry.shape, params, entry.elements, True, tied_to, None, layer, ""))
    total = sum(tensor.params for tensor in tensors)
    buffer_rows = tuple(Buffer(entry.name, entry.shape) for entry in entries if entry.name in buffers)
    notes = [*_describe_counting(entries, buffers, computed), *checkpoint.notes]
    if checkpoint.format == "gguf" or checkpoint.packed_entries:
        notes.append(_describe_storage(entries))
    return Table(
        checkpoint.label,
        {},
        {},
        Params(total, total, 0),
        Tensors(tensors),
        buffer_rows,
        _infer_modules(tensors),
        {},
        notes=tuple(notes),
    )


def _sort_numerically(entries: Sequence[Entry]) -> list[Entry]:
    """Sort by names, with numbers as numbers: safetensors files put 10 before 2. Other files have their own order."""
    if any(entry.storage for entry in entries):
        return list(entries)
    return sorted(entries, key=lambda entry: [(int(s), "") if is_index(s) else (-1, s) for s in segments(entry.name)])


def _infer_modules(tensors: Iterable[Tensor]) -> tuple[ModuleRow, ...]:
    """Return the modules: layers own tensors, and blocks enclose layers."""
    layers = dict.fromkeys(tensor.layer for tensor in tensors)
    blocks = dict.fromkeys(address for layer in layers if layer for address in ("", *prefixes(layer)))
    addresses = {"": None, **blocks, **layers}
    return tuple(ModuleRow(address, "", "layer" if address in layers and address else "block") for address in addresses)


def _describe_counting(entries: Sequence[Entry], buffers: frozenset[str], computed: Mapping[str, str]) -> list[str]:
    """Return notes on which tensors are counted, since a checkpoint does not mark parameters."""
    notes = ["a checkpoint: every real tensor is counted, as it does not specify which are parameters"]
    elements: dict[str, int] = {}
    for entry in entries:
        if entry.name in buffers:
            elements[entry.dtype] = elements.get(entry.dtype, 0) + entry.elements
    if elements:
        tensors = ", ".join(f"{dtype} {number(count, 'element')}" for dtype, count in elements.items())
        others = "rotary factors" if buffers.intersection(ROTARY) else "running statistics"
        others = f", {others} and computed tensors" if computed else f" and {others}"
        notes.append(f"not counted, as integers{others} are treated as buffers: {tensors}")
    notes += [f"computed: {fold}, {kind}" for fold, kind in collapse_names(computed.items())]
    return notes


def _describe_storage(entries: Sequence[Entry]) -> str:
    """Describe the sizes of a file with quantized tensors."""
    bytes, elements = sum(entry.bytes for entry in entries), sum(entry.elements for entry in entries)
    types: dict[str, int] = {}
    for entry in entries:
        types[entry.dtype] = types.get(entry.dtype, 0) + entry.elements
    tensors = ", ".join(f"{dtype} {number(count, 'element')}" for dtype, count in types.items())
    return f"stored in {bytes:,} bytes{beside(size(bytes))}{bits_per_element(bytes, elements)}: {tensors}"
