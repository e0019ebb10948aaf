"""`archspec.load_weights`: the elements of a checkpoint in a generated module."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from archspec.analysis.verify.naming import parse_rename
from archspec.analysis.verify.verify import Verification, compare, match_names
from archspec.core.addresses import parent
from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import ArchError, Diagnostic, Note, make_error, open_regular_file
from archspec.core.optional import import_torch
from archspec.formats.checkpoints.checkpoint import read
from archspec.formats.checkpoints.entries import BITS, Entry, damaged
from archspec.formats.checkpoints.torchfile import WRAPPERS
from archspec.ir.table import Buffer, ModuleRow, Params, Table, Tensor, Tensors

if TYPE_CHECKING:
    import torch
    from torch import nn


# The elements of a checkpoint as PyTorch tensors. Files that are read here have been checked by their headers.


def elements_of(entries: Mapping[str, Entry]) -> dict[str, torch.Tensor]:
    """Return the elements of entries, which may be of several files, on the CPU. Raises ArchError."""
    files: dict[str, dict[str, Entry]] = {}
    for name, entry in entries.items():
        files.setdefault(entry.file, {})[name] = entry
    found: dict[str, torch.Tensor] = {}
    for file, part in files.items():
        if not os.path.isfile(file):
            raise make_error("missing-file", f"{file} is not a local file", help="download the checkpoint first")
        is_torch_file = any(entry.storage for entry in part.values())
        found |= _of_torch_file(file, part) if is_torch_file else _of_safetensors(file, part)
    return {name: found[name] for name in entries}


def _of_safetensors(path: str, entries: Mapping[str, Entry]) -> dict[str, torch.Tensor]:
    import torch

    found: dict[str, torch.Tensor] = {}
    with open_regular_file(path, path) as file:
        begin = 8 + int.from_bytes(file.read(8), "little")
        for name, entry in entries.items():
            if BITS[entry.dtype] < 8:
                raise make_error(
                    "unsupported", f"`{entry.name}` is of type {entry.dtype}, which PyTorch packs differently"
                )
            data = bytearray(entry.bytes)
            file.seek(begin + entry.start)
            if file.readinto(data) != entry.bytes:
                raise damaged(path, f"file changed while it was read: `{entry.name}` is incomplete")
            dtype = getattr(torch, entry.dtype)
            flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
            found[name] = flat.reshape(entry.shape)
    return found


def _of_torch_file(path: str, entries: Mapping[str, Entry]) -> dict[str, torch.Tensor]:
    import torch

    try:
        root: object = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as problem:  # of any class
        raise damaged(path, f"PyTorch cannot load it: {problem.__class__.__name__}: {problem}") from None
    mappings = [root, *(cast("dict[str, object]", root).get(wrapper) for wrapper in WRAPPERS)]
    for mapping in (cast("dict[str, object]", each) for each in mappings if isinstance(each, dict)):
        found = {name: mapping.get(entry.name) for name, entry in entries.items()}
        tensors = {name: each for name, each in found.items() if isinstance(each, torch.Tensor)}
        if len(tensors) == len(entries):
            return tensors
    raise damaged(path, "PyTorch does not load the tensors that the file lists")


@check_arguments
def load_weights(
    module: nn.Module, checkpoint: str | os.PathLike[str], rename: Mapping[str, str] | None = None
) -> Verification:
    """Fill a generated module with the weights of a checkpoint, if that has exactly the tensors of the module.

    `checkpoint` and `rename` are as for `archspec.verify`, and so are the naming variants that are recognized. The
    elements are converted to the types of the module.

    Raises ArchError with the report of `archspec.verify` if anything differs, and if the checkpoint cannot be read; the
    module then has the weights that it had before.
    """
    import_torch()
    import torch

    stored: dict[str, torch.Tensor] = module.state_dict(keep_vars=True)
    if any(tensor.is_meta for tensor in stored.values()):
        help = "allocate them with `module.to_empty(device='cpu')`"
        raise make_error(
            "usage", "the tensors of the module are on the device `meta`, which stores no elements", help=help
        )
    table = _table_of(module, stored)
    renames = [parse_rename(old, new) for old, new in (rename or {}).items()]
    found = read(os.fspath(checkpoint))
    if found.format == "gguf":
        message = f"{found.label} is a GGUF file, whose conversion changes weights (the order of rows, norms)"
        raise make_error("unsupported", message, help="load the checkpoint from which it was converted")
    verification = compare(table, found, renames)
    if not verification.is_exact:
        raise _report(verification)
    entries = match_names(table, found, renames).entries
    _check_types(stored, entries)
    elements = elements_of(entries)
    _check_ties(table, elements)
    with torch.no_grad():
        for name, values in elements.items():
            stored[name].copy_(values)
    return verification


def _table_of(module: nn.Module, stored: Mapping[str, torch.Tensor]) -> Table:
    """Return the tensors of a module; what its classes are called gives the definition, and the role of norms."""
    parameters = dict(module.named_parameters(remove_duplicate=False))
    modules = cast("Iterable[tuple[str, object]]", module.named_modules())
    norms: set[str] = {name for name, inner in modules if "norm" in inner.__class__.__name__.lower()}
    firsts: dict[int, str] = {}
    tensors: list[Tensor] = []
    buffers: list[Buffer] = []
    buffer_ties: dict[str, str] = {}
    for name, tensor in stored.items():
        first, shape, layer = firsts.setdefault(id(tensor), name), tuple(tensor.shape), parent(name)
        if name in parameters:
            tied_to = first if first != name else None
            size, role = tensor.numel(), "norm" if layer in norms else None
            params = 0 if tied_to else size
            tensors.append(Tensor(name, shape, params, size, tensor.requires_grad, tied_to, role, layer, ""))
        else:
            buffers.append(Buffer(name, shape))
            if first != name:
                buffer_ties[name] = first
    total = sum(tensor.params for tensor in tensors)
    kind = module.__class__.__name__
    rows = (ModuleRow("", kind, "block"),)
    return Table(kind, {}, {}, Params(total, total, 0), Tensors(tensors), tuple(buffers), rows, buffer_ties)


def _report(found: Verification) -> ArchError:
    """Return the report of a verification as an error."""
    heading, *lines = [line for line in str(found).splitlines() if line]
    return make_error("bad-checkpoint", heading, notes=tuple([Note(line) for line in lines]), help="nothing was loaded")


def _check_types(stored: Mapping[str, torch.Tensor], entries: Mapping[str, Entry]) -> None:
    """Raise ArchError for integers where the module has real numbers, and the reverse."""

    import torch

    def kind(dtype: torch.dtype) -> str:
        return "boolean" if dtype == torch.bool else "real" if dtype.is_floating_point else "integer"

    wrong: list[Diagnostic] = []
    for name, entry in entries.items():
        dtype: torch.dtype | None = getattr(torch, entry.dtype, None)
        if dtype is None or dtype.is_complex or kind(dtype) != kind(stored[name].dtype):
            message = f"`{entry.name}` is {entry.dtype} in the checkpoint, but {stored[name].dtype} in the module"
            wrong.append(Diagnostic("bad-checkpoint", message))
    if wrong:
        raise ArchError(wrong)


def _check_ties(table: Table, elements: dict[str, torch.Tensor]) -> None:
    """Keep one name of each tensor. Raises ArchError if its names have different elements in the checkpoint."""
    ties = {tensor.name: tensor.tied_to for tensor in table.tensors if tensor.tied_to} | table.buffer_ties
    groups: dict[str, list[str]] = {}
    for name in elements:
        groups.setdefault(ties.get(name, name), []).append(name)
    for names in groups.values():
        for other in names[1:]:
            if not _are_equal(elements[names[0]], elements.pop(other)):
                message = f"`{names[0]}` and `{other}` are one tensor in the module, but differ in the checkpoint"
                raise make_error("bad-checkpoint", message, help="use a model that does not tie them")


def _are_equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    import torch

    return bool(one.dtype == other.dtype and torch.all((one == other) | (one.isnan() & other.isnan())))
