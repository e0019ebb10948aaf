"""Loops over a length in exported programs: two iterations stand for all.

`torch.export` runs `for i in range(n)` as often as the length of its example, so that the program is for that length
only. Here the loop runs twice, at indices that are symbols, and marks where its iterations begin and end.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast

from archspec.equivalence.calls.values import listed
from archspec.equivalence.lengths import namespaces

if TYPE_CHECKING:
    import torch
    from torch import nn

ITERATIONS = 2

_SCHEMAS = {
    "begun": "(SymInt count, int loop, int turn) -> SymInt",
    "ended": "(int loop) -> ()",
    "collected": "(Tensor first, Tensor second, int axis, SymInt count) -> Tensor",
    "carried": "(Tensor start, int place) -> Tensor",
    "looped": "(Tensor[] starts, Tensor[] carried, Tensor[] afters, Tensor[] collected, int[] axes, SymInt count) "
    "-> Tensor[]",
}
"""The marks of what was recorded: where an iteration begins, with its index, where a loop ends, and where the values of
all iterations become one. Then the operations of a loop: what an iteration takes from the one before, and the results.
"""


class Loops(Protocol):
    """What a module does while it is recorded."""

    has_any: bool
    """Whether it has loops over lengths."""


@contextmanager
def looping(module: nn.Module) -> Generator[Loops]:
    """Run the loops over lengths in the code of a module, and of the packages that its parts are from, only twice."""
    mode = _mode()()
    packages = {type(part).__module__.partition(".")[0] for part in module.modules()} - {"torch"}
    found = [vars(code) for name, code in [*sys.modules.items()] if name.partition(".")[0] in packages]
    changed = {id(names): names for names in (*found, *namespaces(module)) if "range" not in names}
    with ExitStack() as stack:
        stack.enter_context(mode)
        for names in changed.values():
            names["range"] = mode.range
            stack.callback(names.pop, "range")
        yield mode


def mark_of(node: Any) -> str:
    """Return the name of an operation that is defined here; empty for any other node of a program."""
    namespace, _, name = getattr(getattr(node.target, "_schema", None), "name", "").partition("::")
    return name if namespace == "archspec" and name in _SCHEMAS else ""


@cache
def operations() -> Any:
    """Return the operations, which have shapes but cannot be run."""
    from importlib import import_module

    torch: Any = import_module("torch")
    library = torch.library.Library("archspec", "FRAGMENT")
    _LIBRARIES.append(library)
    for name, schema in _SCHEMAS.items():
        library.define(name + schema)

    def begun(count: Any, loop: int, turn: int) -> Any:
        return torch.library.get_ctx().new_dynamic_size(min=0)

    def collected(first: Any, second: Any, axis: int, count: Any) -> Any:
        return first.new_empty((*first.shape[:axis], count, *first.shape[axis:]))

    torch.library.register_fake("archspec::begun", begun, lib=library)
    torch.library.register_fake("archspec::ended", lambda loop: None, lib=library)  # pyright: ignore[reportUnknownLambdaType]
    torch.library.register_fake("archspec::collected", collected, lib=library)
    for name in ("begun", "ended"):
        torch.fx.node.has_side_effect(getattr(torch.ops.archspec, name).default)
    return torch.ops.archspec


_LIBRARIES: list[Any] = []
"""Definitions of operations, which last as long as these."""


class _Loop:
    """A loop: its number, how many iterations it has, and which of the two is running."""

    def __init__(self, number: int, count: Any) -> None:
        self.number = number
        self.count = count
        self.turn: int | None = None


@cache
def _mode() -> Any:
    import torch
    from torch.overrides import TorchFunctionMode

    joining: tuple[Callable[..., Any], ...] = (torch.stack, torch.cat, torch.concat, torch.concatenate)

    class Looping(TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.has_any = False
            self._loops: list[_Loop] = []
            self._made: dict[int, tuple[torch.Tensor, _Loop, int]] = {}

        def range(self, *bounds: Any) -> Any:
            """Return the indices of a loop."""
            if not any(_is_symbol(bound) for bound in bounds):
                return builtins.range(*bounds)
            self.has_any = True
            given = slice(*bounds)
            start, stop, step = given.start or 0, given.stop, int(given.step or 1)
            distance = stop - start if step > 0 else start - stop
            count = distance if abs(step) == 1 else (distance + abs(step) - 1) // abs(step)
            return self._indices(start, step, count)

        def _indices(self, start: Any, step: int, count: Any) -> Iterator[Any]:
            loop = _Loop(len(self._loops), count)
            self._loops.append(loop)
            for turn in builtins.range(ITERATIONS):
                index = operations().begun(count, loop.number, turn)
                torch._check(index < count)  # pyright: ignore
                loop.turn = turn
                yield start + step * index
            loop.turn = None
            operations().ended(loop.number)

        def __torch_function__(
            self,
            func: Callable[..., Any],
            types: Sequence[type],
            args: Sequence[Any] = (),
            kwargs: Mapping[str, Any] | None = None,
        ) -> Any:
            named = kwargs or {}
            if not self.has_any:
                return func(*args, **named)
            if func in joining and args:
                found = self._collected(args[0])
                if found is not None:
                    axis = named.get("dim", named.get("axis", args[1] if len(args) > 1 else 0))
                    return self._joined(*found, axis, func is torch.stack)
            if getattr(func, "__name__", "") == "__setitem__" and any(map(_is_symbol, listed(args[1]))):
                place = _selected(args[0], listed(args[1]))
                return place.copy_(args[2]) if isinstance(args[2], torch.Tensor) else place.fill_(args[2])
            result = func(*args, **named)
            self._note(result)
            return result

        def _note(self, result: Any) -> None:
            """Note in which iteration a tensor is made."""
            running = [loop for loop in self._loops if loop.turn is not None]
            if running and isinstance(result, torch.Tensor):
                assert running[-1].turn is not None
                self._made[id(result)] = result, running[-1], running[-1].turn
            elif running and isinstance(result, list | tuple):
                for item in result:  # pyright: ignore
                    self._note(item)

        def _collected(self, tensors: Any) -> tuple[Any, Any, _Loop] | None:
            """Return the tensors of two iterations, and their loop, if that is over; None for any others.

            The first one may be from before the loop, if the next iteration has replaced it.
            """
            found = listed(tensors)
            if len(found) != ITERATIONS:
                return None
            first, second = [self._made.get(id(tensor)) for tensor in found]
            if second is None or second[1].turn is not None:
                return None
            loop, turn = second[1:]
            is_inside = first is not None and first[1] is loop
            alike = (first is not None and first[2] == 0 and turn == 1) if is_inside else turn == 0
            return (found[0], found[1], loop) if alike else None

        def _joined(self, first: torch.Tensor, second: torch.Tensor, loop: _Loop, axis: int, is_new: bool) -> Any:
            """Return the tensors of all iterations along an axis, which is a new one or one of theirs."""
            axis %= first.dim() + is_new
            found = operations().collected(first, second, axis, loop.count)
            return found if is_new else found.flatten(axis, axis + 1)

    return Looping


def _selected(tensor: torch.Tensor, index: Sequence[Any]) -> torch.Tensor:
    """Return the part of a tensor that is changed at an index with symbols, which PyTorch does not take."""
    rest = [item for item in index if item is not Ellipsis]
    axis = 0
    for item in index:
        if item is Ellipsis:
            axis += tensor.dim() - (len(rest) - axis)
        elif item == slice(None):
            axis += 1
        else:
            tensor = tensor.select(axis, item)
    return tensor


def _is_symbol(item: Any) -> bool:
    """Whether an integer is a symbol, or made of symbols."""
    import torch

    return isinstance(item, torch.SymInt) and not cast("Any", item).node.expr.is_Integer
