"""Sizes that are computed from those of inputs and may be 1, such as numbers of frames.

For each of these, `torch.export` makes a program for all other values, as one step may depend on it: a size of 1 is
repeated where the other operand has more, and squeezed. The values of other steps are the same for all sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from archspec.pytorch.calls.values import as_list
from archspec.pytorch.passes.programs import SymPyExpression, node_in, nodes_of, ranges_of, size_of, tensor_of

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import Node


def excludes_ones(program: ExportedProgram, guards: Iterable[SymPyExpression]) -> bool:
    """Whether a program with these relations may not be for sizes of 1 that are computed from others.

    A program with a largest size is not among these: another one would have that size in a relation.
    """
    if any(str(allowed.upper) != "int_oo" for allowed in ranges_of(program).values()):
        return False
    sympy: Any = import_module("torch.utils._sympy.value_ranges")
    ranges = {
        symbol: sympy.ValueRanges(max(2, allowed.lower), max(2, allowed.upper))
        for symbol, allowed in ranges_of(program).items()
    }
    return any(
        guard.is_Relational
        and guard.rel_op == "!="
        and guard.rhs == 1
        and not guard.lhs.is_Symbol
        and bool(sympy.bound_sympy(guard.lhs, ranges).lower <= 1)
        for guard in guards
    )


def allow_size_one() -> AbstractContextManager[None]:
    """Let PyTorch make no relations that leave out sizes of 1, of programs and of what they are decomposed to."""
    import torch.fx.experimental._config as settings

    return settings.patch(backed_size_oblivious=True)  # pyright: ignore


def generalize_to_size_one(export: Callable[[], ExportedProgram]) -> ExportedProgram | None:
    """Return a program that is also for such sizes; None if there is none.

    Sizes that are combined have to be equal then, which the program has as a relation.
    """
    try:
        with allow_size_one():
            program = export()
    except Exception:  # of any class, as it comes from the module
        return None
    return None if any(_may_squeeze(node) for node in nodes_of(program.graph)) else program


def _may_squeeze(node: Node) -> bool:
    """Whether a step drops an axis if its size is 1, which is not known."""
    if "squeeze" not in str(node.target) or "unsqueeze" in str(node.target):
        return False
    sizes = tensor_of(node_in(node.args[0])).shape
    axes: Sequence[object] = as_list(node.args[1]) if len(node.args) > 1 else range(len(sizes))
    return not all(isinstance(axis, int) and isinstance(size_of(sizes[axis]), int) for axis in axes)
