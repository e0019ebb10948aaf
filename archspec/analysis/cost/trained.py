"""The parameters that are trained, and the blocks of a model."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache

from archspec.analysis.cost.dimension_sizes import is_integer
from archspec.core.addresses import ANY_INDEX, INDEX, join, last_segment, parent, prefixes
from archspec.core.diagnostics import make_error, suggest
from archspec.ir.table import Table


def find_gradients(table: Table, frozen: Collection[str], lora: Mapping[str, int]) -> tuple[dict[str, int], list[int]]:
    """Return the gradient of each parameter by name, and the number of trained parameters for each tensor.

    A gradient is 1 if it is needed and 0 if not; the negative rank of an adapter for a frozen weight that has one.
    `frozen` and `lora` are as for `training_flops`. Raises ArchError for a pattern without parameters.
    """
    tensors = table.tensors
    names = [tensor.name for tensor in tensors]
    exact = {*frozen}.intersection(names)  # may be many
    stopped = {tensor.tied_to or tensor.name for tensor in tensors if tensor.name in exact}
    for pattern in {*frozen} - exact:
        stopped |= {tensor.tied_to or tensor.name for tensor in tensors if _matches(pattern, tensor.name)}
        _check_matches(pattern, names, table)
    layers = {tensor.layer for tensor in tensors}
    by_layer = {pattern: rank for pattern, rank in lora.items() if pattern in layers}
    others = [(pattern, rank) for pattern, rank in lora.items() if pattern not in layers]
    for pattern, rank in lora.items():
        if pattern not in layers:
            _check_matches(pattern, [parent(name) for name in names], table)
        if not is_integer(rank, 1):
            raise make_error("usage", f"expected a rank from 1 for `{pattern}`, found {rank!r:.40}")
    gradients: dict[str, int] = {}
    trained: list[int] = []
    for tensor in tensors:
        is_trained = tensor.trainable and (tensor.tied_to or tensor.name) not in stopped and (bool(frozen) or not lora)
        ranks = [by_layer[tensor.layer]] if tensor.layer in by_layer else []
        ranks += [rank for pattern, rank in others if _matches(pattern, tensor.layer, ends=True)]
        has_adapter = bool(ranks) and len(tensor.shape) == 2
        gradients[tensor.name] = -ranks[0] if has_adapter else int(is_trained)
        trained.append(ranks[0] * sum(tensor.shape) if has_adapter else is_trained * tensor.params)
    return gradients, trained


def _matches(pattern: str, address: str, *, ends: bool = False) -> bool:
    """Whether segments of an address match a pattern, the last ones if it `ends` so; `*` stands for any index."""
    return _compile_pattern(pattern, ends).search(address) is not None


@cache
def _compile_pattern(pattern: str, ends: bool) -> re.Pattern[str]:
    parts = [r"\d+" if part == ANY_INDEX else re.escape(part) for part in pattern.strip(".").split(".")]
    return re.compile(r"(?:^|\.)" + r"\.".join(parts) + ("$" if ends else r"(?:\.|$)"))


def _check_matches(pattern: str, names: Sequence[str], table: Table) -> None:
    if not any(_matches(pattern, name) for name in names):
        segments = dict.fromkeys(part for name in names for part in name.split(".") if not part.isdigit())
        message = f"no parameter of {table.model} matches `{pattern:.80}`"
        raise make_error(
            "unknown-name",
            message,
            help=suggest(pattern, [*segments]) or "`archspec count --by tensor` lists the names",
        )


def block_addresses(table: Table) -> list[str]:
    """Return the outermost numbered modules, which engines take as blocks."""
    blocks: dict[str, None] = {}
    for module in table.modules:
        address = module.address
        if is_block(address) and not any(outer in blocks for outer in prefixes(parent(address))):
            blocks[address] = None
    return [*blocks]


def block_patterns(table: Table) -> tuple[str, ...]:
    """Return the patterns of the blocks of a model."""
    return tuple(dict.fromkeys(join(parent(address), ANY_INDEX) for address in block_addresses(table)))


def is_block(address: str) -> bool:
    """Return whether the module at an address is numbered."""
    return INDEX.fullmatch(last_segment(address)) is not None
