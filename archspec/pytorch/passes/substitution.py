"""Triangular systems that exported programs solve in place, row by row, as systems that are solved at once.

`for i in range(1, n): a[..., i, :i] += a[..., i, :i] @ a[..., :i, :i]` turns an a that is 0 elsewhere into the inverse
of 1 - a, less 1. Delta rules are computed so, in chunks (Yang et al., 2024, arXiv:2406.06484, section 3).

    # before                                              # after
    row = clone(a[:, 1, :1]); above = clone(a[:, :1, :1])  inverse = linalg_solve_triangular(-a, eye(n))
    copy_(a[:, 1, :1], row + sum(row * above, [-2]))       inverse - eye(n)
    ...                                                    # with `+ eye(n)` after it: inverse

Attention in linear time solves its systems so (transformers).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from archspec.pytorch.passes.iterations import eliminate_dead_nodes
from archspec.pytorch.passes.programs import add_node, is_node, node_in, nodes_of, numbers_of, storage_of, tensor_of
from archspec.pytorch.values.arguments import operation_name

if TYPE_CHECKING:
    from torch import Tensor
    from torch.export import ExportedProgram
    from torch.fx import Graph, Node

_MIN_ROWS = 3
"""Systems of fewer rows are left as they are."""

_PARTS = ("select", "slice")
_COPIES = ("clone", "contiguous", "detach")


def rewrite_triangular_solves(program: ExportedProgram) -> None:
    """Replace row-by-row triangular solves by a single solve."""
    nodes = nodes_of(program.graph)
    places = {node: place for place, node in enumerate(nodes)}
    for node in nodes:
        changes = _changes(node, places)
        if changes:
            _replace(program.graph, node, changes, places)


def _changes(matrix: Node, places: Mapping[Node, int]) -> list[Node]:
    """Return the nodes that change the rows of a matrix, in order; none if that does not solve a system."""
    size = _size(matrix) if _is_below_diagonal(matrix) else 0
    if size < _MIN_ROWS:
        return []
    users = sorted(_users(matrix), key=lambda user: places[user])
    changes = [user for user in users if operation_name(user) == "copy_"]
    if len(changes) != size - 1:
        return []
    known: set[Node] = set()
    for i, change in enumerate(changes, 1):
        before = places[changes[i - 2] if i > 1 else matrix]
        nodes = _of_row(change, matrix, i)
        if not nodes or any(not before < places[node] <= places[change] for node in nodes):
            return []
        known |= nodes
    first, last = places[changes[0]], places[changes[-1]]
    others = [user for user in users if user not in known]
    parts = [user for user in matrix.users if operation_name(user) in _PARTS and places[user] < last]
    is_seen = any(first < places[user] < last for user in others) or any(
        places[user] > last for part in parts for user in _users(part)
    )
    return [] if is_seen or any(storage_of(user) == storage_of(matrix) for user in others) else changes


def _size(matrix: Node) -> int:
    """Return the number of rows of square matrices that share no elements with other nodes; 0 for other nodes."""
    if storage_of(matrix) in (None, *map(storage_of, matrix.all_input_nodes)):
        return 0
    rows, columns = tensor_of(matrix).shape[-2:]
    return rows if type(rows) is int and type(columns) is int and rows == columns else 0


def _users(node: Node) -> set[Node]:
    """Return the nodes that read or change a node or a part of it."""
    found: set[Node] = set()
    for user in node.users:
        found |= _users(user) if operation_name(user) in _PARTS else {user}
    return found


def _of_row(change: Node, matrix: Node, i: int) -> set[Node]:
    """Return the nodes that add to row i of a matrix the sum over the rows above, if that is what changes it."""
    row = [(i, column) for column in range(i)]
    above = [(other, column) for other in range(i) for column in range(i)]
    columns = _rank(matrix) - 1
    target, value = change.args[:2]
    if not is_node(value) or operation_name(value) != "add" or value.kwargs or not _is_part(target, matrix, row):
        return set()
    for own, total in (value.args, value.args[::-1]):
        product = total.args[0] if is_node(total) and _is_sum_of_rows(total) else None
        if not is_node(product) or operation_name(product) != "mul":
            continue
        for factor, other in (product.args, product.args[::-1]):
            if not is_node(factor) or operation_name(factor) != "unsqueeze" or factor.args[1] not in (-1, columns):
                continue
            read = [_read(own, matrix, row), _read(factor.args[0], matrix, row), _read(other, matrix, above)]
            if all(nodes is not None for nodes in read):
                return {change, value, node_in(total), product, factor}.union(*[nodes or () for nodes in read])
    return set()


def _rank(node: Node) -> int:
    return tensor_of(node).dim()


def _is_sum_of_rows(node: Node) -> bool:
    return operation_name(node) == "sum" and node.args[1:] in (([-2],), ([_rank(node) - 1],)) and not node.kwargs


def _read(node: object, matrix: Node, elements: Sequence[tuple[int, int]]) -> set[Node] | None:
    """Return the nodes that copy elements of a matrix, the last of which is the node; None if it has other elements."""
    copies: set[Node] = set()
    while is_node(node) and operation_name(node) in _COPIES:
        copies.add(node)
        node = node.args[0]
    return copies if _is_part(node, matrix, elements) else None


def _is_part(node: object, matrix: Node, elements: Sequence[tuple[int, int]]) -> bool:
    """Whether a node has these elements of each matrix, by row and column."""
    import torch

    parts: list[Node] = []
    while is_node(node) and operation_name(node) in _PARTS and all(isinstance(item, int) for item in node.args[1:]):
        parts.append(node)
        node = node.args[0]
    if node is not matrix or not parts:
        return False
    size, outer = _size(matrix), _rank(matrix) - 2
    places = torch.arange(size * size).reshape(*[1] * outer, size, size)
    for part in reversed(parts):
        places = _applied(part, places)
    whole = [*map(str, tensor_of(matrix).shape[:outer])]
    return [*map(str, tensor_of(parts[0]).shape[:outer])] == whole and numbers_of(places.flatten()) == [
        row * size + column for row, column in elements
    ]


def _applied(part: Node, x: Tensor) -> Tensor:
    """Return the same part of another tensor."""
    return cast("Callable[..., Tensor]", part.target)(x, *part.args[1:])


def _replace(graph: Graph, matrix: Node, changes: Sequence[Node], places: Mapping[Node, int]) -> None:
    """Put the inverse, below its diagonal, in the place of what the changes make of a matrix."""
    import torch

    aten = torch.ops.aten
    last, size = changes[-1], _size(matrix)
    later = [user for user in matrix.users if places[user] > places[last]]
    value = tensor_of(matrix)
    with graph.inserting_before(last.next):
        new = partial(add_node, graph, like=last)
        alike = {"dtype": value.dtype, "device": value.device}
        identity = new(aten.eye.default, size, found=value.new_empty((size, size)), keywords=alike)
        inverse = new(
            aten.linalg_solve_triangular.default,
            node_in(matrix.args[0]) if operation_name(matrix) == "neg" else new(aten.neg.default, matrix),
            identity,
            found=value,
            keywords={"upper": False, "unitriangular": True},
        )
        result = new(aten.sub.Tensor, inverse, identity)
    for user in later:
        if _adds_identity(user, size):
            user.replace_all_uses_with(inverse)
        else:
            user.replace_input_with(matrix, result)
    for change in reversed(changes):
        graph.erase_node(change)
    eliminate_dead_nodes(graph)


def _adds_identity(node: Node, size: int) -> bool:
    others = [item for item in node.all_input_nodes if operation_name(item) == "eye" and item.args == (size,)]
    return operation_name(node) == "add" and not node.kwargs and len(others) == 1


def _is_below_diagonal(matrix: object) -> bool:
    """Whether all other elements are 0."""
    if not is_node(matrix) or matrix.op != "call_function" or not matrix.args:
        return False
    name, first, *rest = operation_name(matrix), *matrix.args
    if name == "masked_fill":
        return rest[1:] == [0] and _is_upper_triangle(rest[0])
    return _is_below_diagonal(first) if name in ("neg", *_COPIES) else name == "tril" and rest == [-1]


def _is_upper_triangle(mask: object) -> bool:
    """Whether a mask is true exactly on and above the diagonal (`triu` of ones)."""
    if not is_node(mask) or operation_name(mask) != "triu" or mask.args[1:] not in ((), (0,)):
        return False
    return operation_name(node_in(mask.args[0])) == "ones"
