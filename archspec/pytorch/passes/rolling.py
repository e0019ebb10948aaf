"""Loops in exported programs: the two iterations that were recorded (`iterations.py`) become one of any number.

They are a loop if they only differ in the index, and in values of the first one that the second one has in the place
of values from before: these are carried.

    # before                                      # after
    t = begun(n, 0, 0); a = state + x[:, t]       t = begun(n, 0, 0); before = carried(state, 0)
    t = begun(n, 0, 1); b = a + x[:, t]           a = before + x[:, t]
    ended(0); b * 2                               looped([state], [before], [a], [], [], n)[0] * 2

The models of `iterations.py` need it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple, NoReturn, cast

from archspec.pytorch.passes.iterations import ITERATIONS, loop_mark, operations
from archspec.pytorch.passes.programs import formula_of, is_node, node_in, nodes_of, tensor_of, tensors_of
from archspec.pytorch.values.arguments import UntranslatableError, as_list, operation_name

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import Graph, Node
    from torch.fx.node import Argument

LOOPED = "archspec_looped"
"""The key in the `meta` of nodes that are computed in each iteration of a loop."""


def roll_loops(program: ExportedProgram) -> bool:
    """Rewrite the loops of a program; whether it has any.

    Raises Untranslatable if what was recorded is no loop of the language.
    """
    found: dict[object, list[Node]] = {}
    for node in nodes_of(program.graph):
        if loop_mark(node) in ("begun", "ended"):
            found.setdefault(node.args[1 if loop_mark(node) == "begun" else 0], []).append(node)
    for marks in found.values():
        if len(marks) != ITERATIONS + 1:
            raise UntranslatableError("it breaks out of a loop over a length")
        _Loop(program.graph, marks).roll()
    return bool(found)


class _Joined(NamedTuple):
    """A node for the values of all iterations along an axis, and the node of its value in one of them."""

    node: Node
    value: Node
    axis: int


class _Loop:
    """The nodes of a loop. `first` and `second` are those of its iterations that compute tensors."""

    def __init__(self, graph: Graph, marks: Sequence[Node]) -> None:
        self.graph = graph
        self.marks = marks
        nodes = nodes_of(graph)
        begin, middle, end = [nodes.index(mark) for mark in marks]
        self.inside = nodes[begin : end + 1]
        if any(loop_mark(node) in ("begun", "ended") and node not in marks for node in self.inside):
            raise UntranslatableError("it has nested loops over a length")
        self.first = [node for node in nodes[begin:middle] if tensors_of(node)]
        self.second = [node for node in nodes[middle:end] if tensors_of(node)]
        self.pairs = dict(zip(self.first, self.second, strict=False))
        self.carried: dict[tuple[Node, Node], Node] = {}
        """The nodes of what is carried, by what there is before the loop, and what the first iteration computes."""
        self.whole: Node | None = None

    def roll(self) -> None:
        """Rewrite the two iterations as one."""
        if len(self.first) != len(self.second):
            _refuse()
        for node, other in self.pairs.items():
            if node.target != other.target or [*node.kwargs] != [*other.kwargs]:
                _refuse()
            node.args = tuple([self._matched(*pair) for pair in zip_longest(node.args, other.args)])
            node.kwargs = {key: self._matched(value, other.kwargs[key]) for key, value in node.kwargs.items()}
            node.meta[LOOPED] = True
        self._end()
        self._erase()

    def _matched(self, item: Argument, other: object) -> Argument:
        """Return an argument in the first iteration, with carried values in it, given the one of the second."""
        if isinstance(item, list | tuple):
            pairs = zip_longest(cast("Sequence[Argument]", item), as_list(other))
            return [self._matched(*pair) for pair in pairs]
        if not is_node(item) or not tensors_of(item):
            if self._at_second(item) != _size(other):
                _refuse()
            return item
        if other is self.pairs.get(item, item):
            return item
        if item in self.pairs or not is_node(other) or other not in self.pairs:
            _refuse()
        return self._carried(item, other)

    def _at_second(self, item: object) -> object:
        """Return a size in the first iteration as it is in the second one."""
        index, other, formula = [formula_of(_value(part)) for part in (*self.marks[:2], item)]
        if formula is None or index is None or other is None:
            return _size(item)
        return formula.xreplace({index: other})

    def _carried(self, start: Node, after: Node) -> Node:
        """Return the node of what an iteration takes from the one before."""
        if (start, after) not in self.carried:
            a, b = tensor_of(start), tensor_of(after)
            if tuple(a.shape) != tuple(b.shape) or a.dtype != b.dtype:
                raise UntranslatableError("it has a loop over a length in which values change their shape or type")
            with self.graph.inserting_after(self.marks[0]):
                node = self._made(operations().carried, (start, len(self.carried)), a, after)
            node.meta[LOOPED] = True
            self.carried[start, after] = node
        return self.carried[start, after]

    def _made(self, target: Callable[..., object], args: tuple[Argument, ...], value: object, like: Node) -> Node:
        node = self.graph.call_function(target, args)
        node.meta |= {key: item for key, item in like.meta.items() if key != LOOPED} | {"val": value}
        return node

    def _end(self) -> None:
        """Put the results of the loop where the second iteration ends."""
        joined = [*self._filled(), *self._listed()]
        starts, afters = [start for start, _ in self.carried], [after for _, after in self.carried]
        for place, (start, node) in enumerate(zip(starts, self.carried.values(), strict=True)):
            node.args = (start, place)
        results = [self.pairs[after] for after in afters] + [made.node for made in joined]
        values = [node.meta["val"] for node in results]
        collected, axes = [made.value for made in joined], [made.axis for made in joined]
        count = self.marks[0].args[0]
        with self.graph.inserting_before(self.marks[2]):
            given = starts, [*self.carried.values()], afters, collected, axes, count
            self.whole = self._made(operations().looped, given, values, self.marks[2])
            parts = [
                self._made(operator.getitem, (self.whole, turn), node.meta["val"], node)
                for turn, node in enumerate(results)
            ]
        own = {*self.second, *results[len(afters) :]}
        for node, part in zip(results, parts, strict=True):
            _replace(node, part, [user for user in node.users if user not in own])
        for made in joined:
            if loop_mark(made.node) == "collected":
                self.graph.erase_node(made.node)

    def _listed(self) -> list[_Joined]:
        """Return the values of iterations that are put in lists."""
        users = dict.fromkeys([user for node in self.first for user in node.users if loop_mark(user) == "collected"])
        found: list[_Joined] = []
        for node in users:
            value = self._value_of(node_in(node.args[0]), node_in(node.args[1]))
            if value is not None:
                found.append(_Joined(node, value, cast("int", node.args[2])))
        return found

    def _filled(self) -> list[_Joined]:
        """Return the values of iterations that are put in the place of all elements of a tensor along an axis.

        The elements before the loop have no effect.
        """
        found: list[_Joined] = []
        for (start, after), node in [*self.carried.items()]:
            if self._fills(node, after):
                axis = cast("int", after.args[2]) % tensor_of(node).dim()
                found.append(_Joined(self.pairs[after], node_in(after.args[1]), axis))
                node.replace_all_uses_with(start)
                after.replace_all_uses_with(start)
                for erased in (after, node):
                    self.graph.erase_node(erased)
                self.first.remove(after)
                del self.carried[start, after], self.pairs[after]
        return found

    def _fills(self, node: Node, after: Node) -> bool:
        """Whether an iteration only replaces the element of a carried tensor at the index."""
        if operation_name(after) != "select_scatter" or after.args[0] is not node:
            return False
        place = after.args[2:]
        size = node.meta["val"].shape[place[0]]
        others = [user for user in node.users if user is not after]
        return (
            _size(place[1]) == _size(self.marks[0])
            and _size(size) == _size(self.marks[0].args[0])
            and all(user in self.second for user in after.users)
            and all(
                operation_name(user) == "copy" and user.args[1] is not read for read in others for user in read.users
            )
        )

    def _value_of(self, first: Node, second: Node) -> Node | None:
        """Return the node that has the values of all iterations, given the first two; None if there is none."""
        return first if self.pairs.get(first) is second else self.carried.get((first, second))

    def _erase(self) -> None:
        """Remove the marks and the second iteration."""
        for node, other in self.pairs.items():
            _replace(other, node, [user for user in other.users if not tensors_of(user)])
        inside = {*self.inside, self.whole}
        if any(tensors_of(user) and user not in inside for node in self.first for user in node.users):
            _refuse()
        after = self.inside[self.inside.index(self.marks[1]) :]
        for node in reversed(after):
            if "assert" in str(node.target) or not node.users:
                self.graph.erase_node(node)
        if any(node.users for node in self.second):
            _refuse()


def _replace(node: Node, other: Node, users: Sequence[Node]) -> None:
    for user in users:
        user.replace_input_with(node, other)


def _value(item: object) -> object:
    return item.meta.get("val") if is_node(item) else item


def _size(item: object) -> object:
    """Return a number as a formula, and anything else that is no tensor as it is."""
    formula = formula_of(_value(item))
    return _value(item) if formula is None else formula


def _refuse() -> NoReturn:
    raise UntranslatableError("a loop over a length computes something different in each iteration")
