"""Places where a condition is true, in exported programs: `torch.where(experts == i)`, and what is selected there.

The tokens that chose an expert are a number of rows that depends on the data. If each token can be there only once, as
the experts that it chose are all different, then they are the rows that a mask selects, and what else is selected for
each of them is a sum over its choices, of which the condition is true for one.

    # before                                # after
    token, choice = where(chosen == 2)      mask = any(chosen == 2, 1)
    rows = x[token]                         rows = x[mask]
    shares[token, choice]                   sum(where((chosen == 2).unsqueeze(-1), shares, 0), [1])[mask]

Mixtures of experts need it (mistral-inference).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from archspec.pytorch.passes.programs import IDENTITY_OPERATIONS, VIEWS, add_node, is_node, node_in, nodes_of, tensor_of
from archspec.pytorch.values.arguments import UntranslatableError, as_list, operation_name

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import Graph, Node

_RELATIONS = (operator.ge, operator.le, operator.gt, operator.lt)


class _Matches(NamedTuple):
    """A condition, the nodes that have the place of each match along its axes, and the axis with one match at most."""

    condition: Node
    places: dict[Node, int]
    single: int | None


def rewrite_condition_indices(program: ExportedProgram) -> None:
    """Rewrite selections at the indices of true conditions (`torch.where`, `nonzero`) as masks.

    Raises Untranslatable if it does anything else with these places.
    """
    for node in nodes_of(program.graph):
        if operation_name(node) in ("where", "nonzero_numpy") and len(node.args) == 1:
            _Selecting(program.graph, _matches(node)).replace()
            for item in [*node.users, node]:
                _erase(program.graph, item)


def _matches(node: Node) -> _Matches:
    condition = node.args[0]
    assert is_node(condition)
    places: dict[Node, int] = {}
    for user in node.users:
        place = user.args[1] if user.target is operator.getitem else None
        if not isinstance(place, int):
            raise _refused()
        places[user] = place
    rank = tensor_of(condition).dim()
    single = _single_axis(condition)
    if single is None and rank > 1:
        raise UntranslatableError("it selects rows where a condition is true, which can be several times for one row")
    return _Matches(condition, places, single if rank > 1 else None)


def _refused() -> UntranslatableError:
    return UntranslatableError("it computes with the indices at which a condition is true")


def _single_axis(condition: Node) -> int | None:
    """Return the axis along which a condition is true at most once: that of different indices, compared to a number."""
    import torch

    name, source = operation_name(condition), condition.args[0] if condition.args else None
    if not is_node(source):
        return None
    rank = tensor_of(condition).dim()
    if name in ("t", "numpy_T"):
        axis = _single_axis(source)
        return None if axis is None else rank - 1 - axis
    if condition.target is torch.ops.aten.eq.Scalar:
        return rank - 1 if are_different(source) else None
    if tensor_of(condition).shape[-1] == 1:
        return rank - 1
    return None


def are_different(node: Node, axis: int = -1) -> bool:
    """Whether the numbers along an axis are different: indices of the largest, in any order."""
    import torch

    axis %= tensor_of(node).dim()
    source = node.args[0] if node.args else None
    if not is_node(source):
        return False
    if operation_name(node) in IDENTITY_OPERATIONS:
        return tensor_of(node).dtype in (torch.int32, torch.int64) and are_different(source, axis)
    if node.target is not operator.getitem:
        before = _axis_before(node, source, axis)
        return before is not None and are_different(source, before)
    axes: dict[object, int] = {torch.ops.aten.topk.default: 2, torch.ops.aten.sort.default: 1}
    if source.target not in axes:
        return False
    place, whole = axes[source.target], source.args[0]
    sorted_along = source.args[place] if len(source.args) > place else source.kwargs.get("dim", -1)
    if sorted_along not in (axis, axis - tensor_of(node).dim()):
        return False
    return bool(node.args[1] == 1) or (is_node(whole) and are_different(whole, axis))


def _axis_before(node: Node, source: Node, axis: int) -> int | None:
    """Return the axis of a source that an axis of its view is; None if it is none, or not a view."""
    import torch

    shape, whole = tensor_of(node).shape, tensor_of(source).shape
    if node.target is torch.ops.aten.unsqueeze.default:
        axes: list[int | None] = [*range(len(whole))]
        axes.insert(cast("int", node.args[1]) % len(shape), None)
        return axes[axis]
    if node.target is torch.ops.aten.expand.default:
        before = axis - len(shape) + len(whole)
        return before if before >= 0 and shape[axis] == whole[before] else None
    is_last = axis == len(shape) - 1 and operation_name(node) in VIEWS and shape[-1] == whole[-1]
    return len(whole) - 1 if is_last else None


class _Selecting:
    """Writes what is selected at places as what a mask selects."""

    def __init__(self, graph: Graph, matches: _Matches) -> None:
        self.graph = graph
        self.matches = matches
        rank = tensor_of(matches.condition).dim()
        self.rows = [axis for axis in range(rank) if axis != matches.single]
        self._mask: Node | None = None

    def replace(self) -> None:
        """Replace all uses of the places."""
        users = dict.fromkeys([user for place in self.matches.places for user in place.users])
        for user in sorted(users, key=nodes_of(self.graph).index):
            name = operation_name(user)
            if name == "index":
                self._select(user)
            elif name in ("index_put", "index_add"):
                self._put(user)
            elif name != "sym_size":
                raise _refused()

    def _axes(self, indices: object) -> list[int]:
        """Return the axes of the condition that indices are the places along."""
        found = as_list(indices)
        axes = [self.matches.places.get(item, -1) if is_node(item) else -1 for item in found]
        if [axis for axis in axes if axis != self.matches.single] != self.rows:
            raise _refused()
        return axes

    def _check_sizes(self, x: Node, axes: Sequence[int]) -> None:
        """Refuse tensors whose first axes are not those of the condition, such as tables with a row for each place."""
        sizes = tensor_of(self.matches.condition).shape
        if [*tensor_of(x).shape[: len(axes)]] != [sizes[axis] for axis in axes]:
            raise _refused()

    def _select(self, node: Node) -> None:
        """Select rows by the mask; of several for each, the one where the condition is true."""
        source = node.args[0]
        assert is_node(source)
        axes = self._axes(node.args[1])
        self._check_sizes(source, axes)
        with self.graph.inserting_before(node):
            if len(axes) > len(self.rows):
                source = self._of_match(node, source, axes)
            node.args = (source, [self.mask()])

    def _of_match(self, node: Node, source: Node, axes: Sequence[int]) -> Node:
        """Return the sum of what is there along the axis with one match at most, and of 0 elsewhere."""
        import torch

        aten = torch.ops.aten
        new, condition = partial(add_node, self.graph, like=node), self.matches.condition
        if [*axes] != [*range(len(axes))]:
            condition = new(aten.permute.default, condition, [*axes])
        while tensor_of(condition).dim() < tensor_of(source).dim():
            condition = new(aten.unsqueeze.default, condition, -1)
        zero = new(aten.zeros_like.default, source)
        chosen = new(aten.where.self, condition, source, zero)
        return new(aten.sum.dim_IntList, chosen, [axes.index(self.matches.single or 0)])

    def _put(self, node: Node) -> None:
        """Put rows where the mask is true, or add them to those there."""
        import torch

        aten = torch.ops.aten
        is_added = operation_name(node) == "index_add"
        args = (*node.args, *node.kwargs.values())
        if is_added and len(args) == 4 and args[1] == 0:
            x, indices, value, is_sum = args[0], [args[2]], args[3], True
        elif not is_added and len(args) in (3, 4):
            x, indices, value, is_sum = *args[:3], args[3:] == (True,)
        else:
            raise _refused()
        x, value, axes = node_in(x), node_in(value), self._axes(indices)
        if len(axes) > len(self.rows):
            raise _refused()
        self._check_sizes(x, axes)
        with self.graph.inserting_before(node):
            mask = self.mask()
            if is_sum:
                rows = add_node(self.graph, aten.index.Tensor, x, [mask], like=node, found=tensor_of(value))
                value = add_node(self.graph, aten.add.Tensor, rows, value, like=node, found=tensor_of(value))
            node.target, node.args, node.kwargs = aten.index_put.default, (x, [mask], value), {}

    def mask(self) -> Node:
        """Return the mask of the rows."""
        import torch

        if self.matches.single is None:
            return self.matches.condition
        if self._mask is None:
            following = self.matches.condition.next
            with self.graph.inserting_before(following):
                self._mask = add_node(self.graph, torch.ops.aten.any.dim, self.matches.condition, self.matches.single)
        return self._mask


def _erase(graph: Graph, node: Node) -> None:
    """Remove a node with all that is computed of it: assertions of how many places there are."""
    for user in [*node.users]:
        if operation_name(user) not in ("sym_size", "_assert_scalar") and user.target not in _RELATIONS:
            raise _refused()
        _erase(graph, user)
    graph.erase_node(node)
