"""Pipeline stages: consecutive blocks on each device, and how many microbatches are alive at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from archspec.analysis.cost.dimension_sizes import is_integer
from archspec.analysis.cost.trained import block_addresses, block_patterns
from archspec.analysis.plan.engines import PlannedTensor
from archspec.core.addresses import ANY_INDEX, join, parent, prefixes
from archspec.core.diagnostics import make_error
from archspec.core.record import Record
from archspec.ir.table import Table


class Stage(Record):
    """A stage: its blocks, and the number of microbatches of which activations are alive at once."""

    blocks: tuple[str, ...]
    alive: int


def divide_blocks(
    table: Table, pipeline: int | Sequence[int], microbatches: int, schedule: str, weights: Mapping[str, int]
) -> list[Stage]:
    """Return the stages of a pipeline: the numbers of blocks stated, or a division that balances `weights`.

    `weights` are by block; "" is what the last stage computes after the blocks. Raises ArchError (`bad-plan`).
    """
    blocks = block_addresses(table)
    if len(block_patterns(table)) != 1:
        message = f"{table.model} has no single stack of blocks, which the stages of a pipeline divide"
        raise make_error("bad-plan", message, help="remove --pipeline")
    if isinstance(pipeline, int):
        sizes = _balance([weights[block] for block in blocks], weights[""], pipeline)
    else:
        sizes = pipeline
    if not all(is_integer(size, 1) for size in sizes) or sum(sizes) != len(blocks):
        numbers = ", ".join(map(str, sizes))
        message = f"stages of {numbers:.80} blocks do not divide the {len(blocks)} blocks of {table.model}"
        raise make_error("bad-plan", message, help=f"state numbers from 1 whose sum is {len(blocks)}")
    bounds = [0, *accumulate(sizes)]
    number = len(sizes)
    alive = [microbatches if schedule == "gpipe" else min(microbatches, number - i) for i in range(number)]
    return [Stage(tuple(blocks[i:j]), most) for (i, j), most in zip(pairwise(bounds), alive, strict=True)]


def _balance(weights: Sequence[int], last: int, number: int) -> list[int]:
    """Return the numbers of blocks of stages of which the heaviest is as light as possible."""
    if number > len(weights):
        message = f"{number} stages are more than the {len(weights)} blocks"
        raise make_error("bad-plan", message, help=f"use at most --pipeline {len(weights)}")
    totals = [0, *accumulate(weights)]
    best: list[tuple[int, list[int]]] = [(total, [i]) for i, total in enumerate(totals)]
    for stage in range(1, number):
        extra = last if stage == number - 1 else 0
        following: list[tuple[int, list[int]]] = [(0, [])] * len(totals)
        for stop in range(stage + 1, len(totals)):
            following[stop] = min(
                (max(best[start][0], totals[stop] - totals[start] + extra), [*best[start][1], stop - start])
                for start in range(stage, stop)
            )
        best = following
    return best[-1][1]


def tensors_of_stages(
    table: Table, tensors: Sequence[PlannedTensor], stages: Sequence[Stage]
) -> list[list[PlannedTensor]]:
    """Return the tensors of each stage; the first also has those before the blocks, the last those after them.

    A tensor that is tied to one of another stage is there a second time.
    """
    place = {block: i for i, stage in enumerate(stages) for block in stage.blocks}
    homes: dict[str, int] = {}
    has_begun = False
    for tensor in table.tensors:
        block = next((address for address in prefixes(tensor.layer) if address in place), "")
        has_begun = has_begun or bool(block)
        homes[tensor.name] = place[block] if block else (len(stages) - 1) * has_begun
    result: list[list[PlannedTensor]] = [[] for _ in stages]
    for tensor in tensors:  # also those of adapters, which are in blocks or beside a tensor of the table
        home = place[tensor.block] if tensor.block else homes.get(tensor.name, homes.get(f"{tensor.group}.weight", 0))
        homes[tensor.name] = home
        result[home].append(tensor)
    originals = {tensor.name: tensor for tensor in tensors}
    copied: set[tuple[str, int]] = set()
    for alias in table.tensors:
        original = originals.get(alias.tied_to or "")
        home = homes[alias.name]
        if original is None or homes[original.name] == home or (original.name, home) in copied:
            continue
        copied.add((original.name, home))
        block = next((address for address in prefixes(alias.layer) if address in place), "")
        group = join(parent(block), ANY_INDEX) if block else alias.layer
        result[home].append(original._replace(name=alias.name, block=block, group=group))
    return result
