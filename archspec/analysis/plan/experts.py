"""Expert parallelism: each device has some of the experts of each layer, and all other tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from archspec.analysis.plan.engines import PlannedTensor
from archspec.core.addresses import is_index, relative, segments
from archspec.core.diagnostics import make_error
from archspec.ir.table import Table


def divide_experts(table: Table, tensors: Sequence[PlannedTensor], expert: int, ranks: int) -> list[PlannedTensor]:
    """Return the tensors of the first device, which has the most experts; their data is divided among `ranks`.

    Raises ArchError (`bad-plan`) for a model whose experts are not known.
    """
    choices = [] if table.active is None else table.active.by_tensor()
    available = {t.name: choice[1] for t, choice in zip(table.tensors, choices, strict=bool(choices)) if choice}
    if not available:
        message = f"expert parallelism of {table.model} is unknown: no experts are chosen for a token"
        raise make_error("bad-plan", message, help="remove --expert")
    if expert > max(available.values()):
        message = f"expert parallelism of {expert} leaves devices without any of {max(available.values())} experts"
        raise make_error("bad-plan", message, help="use fewer devices for the experts of a layer")
    divided: list[PlannedTensor] = []
    for tensor in tensors:
        number = available.get(tensor.name)
        if number is None:
            divided.append(tensor)
            continue
        own = -(-number // expert)
        inner = [int(part) for part in segments(relative(tensor.name, tensor.block)) if is_index(part)]
        if inner:
            if inner[-1] < own:
                divided.append(tensor._replace(ranks=ranks))
        elif tensor.shape and tensor.shape[0] % number == 0:
            shape = (tensor.shape[0] // number * own, *tensor.shape[1:])
            divided.append(tensor._replace(shape=shape, size=prod(shape), ranks=ranks))
        else:
            raise make_error("unsupported", f"the experts of `{tensor.name}` are not on its first axis")
    return divided
