"""Loops over a length in exported programs: two iterations stand for all.

`torch.export` runs `for i in range(n)` as often as the length of its example, so that the program is for that length
only. Here the loop runs twice, at indices that are symbols, and marks where its iterations begin and end.

    # before: the module               # after: the program
    for t in range(x.shape[1]):        t = begun(n, 0, 0); state = state + select(x, 1, t)
        state = state + x[:, t]        t = begun(n, 0, 1); state = state + select(x, 1, t); ended(0)

Recurrences that are written in Python need it, such as those of state-space models.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, cast

from archspec.pytorch.passes.intercepting import Function, intercept_mode
from archspec.pytorch.passes.known_numbers import namespaces
from archspec.pytorch.passes.own_operations import NAMESPACE, define_operation, new_size
from archspec.pytorch.passes.programs import formula_of, nodes_of, schema_of
from archspec.pytorch.values.arguments import as_list, is_list

if TYPE_CHECKING:
    from torch import SymInt, Tensor, nn
    from torch.fx import Graph, Node

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


@contextmanager
def trace_loops(module: nn.Module) -> Generator[Loops]:
    """Run the loops over lengths in the code of a module, and of the packages that its parts are from, only twice."""
    loops = Loops()
    packages = {type(part).__module__.partition(".")[0] for part in module.modules()} - {"torch"}
    found = [vars(code) for name, code in [*sys.modules.items()] if name.partition(".")[0] in packages]
    changed = {id(names): names for names in (*found, *namespaces(module)) if "range" not in names}
    with ExitStack() as stack:
        stack.enter_context(intercept_mode(loops.call))
        for names in changed.values():
            names["range"] = loops.range
            stack.callback(names.pop, "range")
        yield loops


def loop_mark(node: Node) -> str:
    """Return the name of an operation that is defined here; empty for any other node of a program."""
    schema = schema_of(node)
    namespace, _, name = (schema.name if schema is not None else "").partition("::")
    return name if namespace == NAMESPACE and name in _SCHEMAS else ""


def eliminate_dead_nodes(graph: Graph) -> None:
    """Erase the nodes whose results nothing uses, except in loops, where all iterations have the same nodes."""
    inside: set[Node] = set()
    is_inside = False
    for node in nodes_of(graph):
        is_inside = loop_mark(node) == "begun" or (is_inside and loop_mark(node) != "ended")
        if is_inside:
            inside.add(node)
    graph.eliminate_dead_code(lambda node: node in inside or node.is_impure())


class Operations(NamedTuple):
    """The operations, in the order of their schemas."""

    begun: Callable[[int | SymInt, int, int], SymInt]
    ended: Callable[[int], None]
    collected: Callable[[Tensor, Tensor, int, int | SymInt], Tensor]
    carried: Callable[[Tensor, int], Tensor]
    looped: Callable[..., list[Tensor]]


@cache
def operations() -> Operations:
    """Return the operations."""
    from torch.fx.node import has_side_effect

    def begun(count: int | SymInt, loop: int, turn: int) -> SymInt:
        return new_size()

    def ended(loop: int) -> None:
        pass

    def collected(first: Tensor, second: Tensor, axis: int, count: int | SymInt) -> Tensor:
        return first.new_empty((*first.shape[:axis], count, *first.shape[axis:]))

    shapes = {"begun": begun, "ended": ended, "collected": collected}
    found = Operations(*[define_operation(name + schema, shapes.get(name)) for name, schema in _SCHEMAS.items()])
    has_side_effect(found.begun)
    has_side_effect(found.ended)
    return found


class _Loop:
    """A loop: its number, how many iterations it has, and which of the two is running."""

    def __init__(self, number: int, count: int | SymInt) -> None:
        self.number = number
        self.count = count
        self.turn: int | None = None


class Loops:
    """The loops over lengths of a module that runs, and in which iterations its tensors are made."""

    def __init__(self) -> None:
        self.has_any = False
        """Whether there are any."""
        self._loops: list[_Loop] = []
        self._made: dict[int, tuple[Tensor, _Loop, int]] = {}

    def range(self, *bounds: int | SymInt) -> Iterable[int | SymInt]:
        """Return the indices of a loop."""
        if not any(_is_symbol(bound) for bound in bounds):
            return builtins.range(*bounds)
        self.has_any = True
        given = slice(*bounds)
        start, stop, step = given.start or 0, given.stop, int(given.step or 1)
        distance = stop - start if step > 0 else start - stop
        count = distance if abs(step) == 1 else cast("SymInt", (distance + abs(step) - 1) // abs(step))
        return self._indices(start, step, count)

    def _indices(self, start: int | SymInt, step: int, count: int | SymInt) -> Iterator[int | SymInt]:
        import torch

        loop = _Loop(len(self._loops), count)
        self._loops.append(loop)
        for turn in builtins.range(ITERATIONS):
            index = operations().begun(count, loop.number, turn)
            torch._check(index < count)  # pyright: ignore
            loop.turn = turn
            yield start + step * index
        loop.turn = None
        operations().ended(loop.number)

    def call(self, func: Function, args: Sequence[object], named: Mapping[str, object]) -> object:
        """Call a function of PyTorch. What joins the tensors of iterations joins those of all."""
        import torch

        if not self.has_any:
            return func(*args, **named)
        if func in (torch.stack, torch.cat, torch.concat, torch.concatenate) and args:
            found = self._collected(args[0])
            axis = named.get("dim", named.get("axis", args[1] if len(args) > 1 else 0))
            if found is not None and isinstance(axis, int):
                return self._joined(*found, axis, func is torch.stack)
        if getattr(func, "__name__", "") == "__setitem__" and any(map(_is_symbol, as_list(args[1]))):
            place, value = _selected(cast("Tensor", args[0]), as_list(args[1])), args[2]
            return place.copy_(value) if isinstance(value, torch.Tensor) else place.fill_(cast("float", value))
        result = func(*args, **named)
        self._note(result)
        return result

    def _note(self, result: object) -> None:
        """Note in which iteration a tensor is made."""
        import torch

        running = [loop for loop in self._loops if loop.turn is not None]
        if running and isinstance(result, torch.Tensor):
            assert running[-1].turn is not None
            self._made[id(result)] = result, running[-1], running[-1].turn
        elif running and is_list(result):
            for item in result:
                self._note(item)

    def _collected(self, tensors: object) -> tuple[Tensor, Tensor, _Loop] | None:
        """Return the tensors of two iterations, and their loop, if that is over; None for any others.

        The first one may be from before the loop, if the next iteration has replaced it.
        """
        import torch

        found = as_list(tensors)
        if len(found) != ITERATIONS:
            return None
        first, second = [self._made.get(id(tensor)) for tensor in found]
        if second is None or second[1].turn is not None or not isinstance(found[0], torch.Tensor):
            return None
        loop, turn = second[1:]
        is_inside = first is not None and first[1] is loop
        alike = (first is not None and first[2] == 0 and turn == 1) if is_inside else turn == 0
        return (found[0], second[0], loop) if alike else None

    def _joined(self, first: Tensor, second: Tensor, loop: _Loop, axis: int, is_new: bool) -> Tensor:
        """Return the tensors of all iterations along an axis, which is a new one or one of theirs."""
        axis %= first.dim() + is_new
        found = operations().collected(first, second, axis, loop.count)
        return found if is_new else found.flatten(axis, axis + 1)


def _selected(tensor: Tensor, index: Sequence[object]) -> Tensor:
    """Return the part of a tensor that is changed at an index with symbols, which PyTorch does not take."""
    axis = 0
    for place, item in enumerate(index):
        if item is Ellipsis:
            axis = tensor.dim() - (len(index) - place - 1)
        elif item == slice(None):
            axis += 1
        else:
            tensor = tensor.select(axis, cast("SymInt", item))
    return tensor


def _is_symbol(item: object) -> bool:
    """Whether an integer is a symbol, or made of symbols."""
    import torch

    formula = formula_of(item)
    return isinstance(item, torch.SymInt) and formula is not None and not formula.is_Integer
