"""Exported programs that change values in place, as programs of new values only.

    # before                       # after
    first = slice(y, 1, 0, 3)      new = copy(slice(y, 1, 0, 3), x)
    copy_(first, x)                changed = slice_scatter(y, new, 1, 0, 3)
    y + first                      changed + slice(changed, 1, 0, 3)

Buckets of relative positions are added to in place (transformers). PyTorch's decompositions give the same spec, but
trace the program once more: lifting a tiny model with such buckets takes 4.5 seconds of a processor in place of 2.8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from archspec.pytorch.passes.iterations import eliminate_dead_nodes
from archspec.pytorch.passes.programs import is_node, node_in, nodes_of, schema_of, storage_of, tensor_of

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import Graph, Node
    from torch.fx.node import Argument

Arguments = TypeVar("Arguments", bound="Argument")

_MAP = "_vmap_increment_nesting"
"""The function that begins a map of `torch.vmap`."""

_OF_THE_FIRST = {"copy", "fill", "zero", "masked_fill", "scatter", "index_put", "index_fill", "index_copy", "index_add"}
"""Operations whose result has the element type of what they change, regardless of the others."""

_COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "logical_not"}
"""Operations that give booleans, unless they are in place."""


class _UnknownMutationError(Exception):
    """A program changes a value in a way that is left to PyTorch."""


def functionalize(program: ExportedProgram) -> bool:
    """Functionalize an exported program; False, with the program as it was, if it reads
    graphs of its own, maps functions (`torch.vmap`), or changes an input, a tensor or a value in an uncommon way.
    """
    nodes = nodes_of(program.graph)
    if any(node.op == "get_attr" or getattr(node.target, "__name__", "") == _MAP for node in nodes):
        return False
    if not any(map(_is_changing, nodes)):
        return True
    try:
        made = _Functionalizer(program.graph).made
    except _UnknownMutationError:
        return False
    eliminate_dead_nodes(made)
    program.graph_module.graph = made
    return True


def _is_changing(node: Node) -> bool:
    schema = schema_of(node)
    return node.op == "call_function" and schema is not None and schema.is_mutable


class _Functionalizer:
    """The nodes of a program, made again one by one.

    Nodes with one storage are views of each other. When one of them is changed, those that it is a view of are made
    again at once, and others where they are used next.
    """

    def __init__(self, graph: Graph) -> None:
        from torch.fx import Graph

        self.made = Graph()
        self._current: dict[Node, Node] = {}
        """For each node, the new one that has its value."""
        self._version: dict[Node, int] = {}
        """How often the storage of a node had been changed when its new node was made."""
        self._changes: dict[int, int] = {}
        self._changed: dict[Node, Node] = {}
        """For each node that is the result of a change, the node that is changed."""
        self._fixed: set[int] = set()
        """The storages of inputs and tensors."""
        for node in nodes_of(graph):
            if node.op == "placeholder":
                self._fixed |= {storage for storage in [storage_of(node)] if storage is not None}
            if _is_changing(node):
                self._change(node)
            else:
                self._copy(node)

    def _copy(self, node: Node) -> None:
        self._current[node] = made = self.made.node_copy(node, self._value)
        if node.op == "placeholder":
            made.name = node.name  # which a copy only keeps unless it is that of a function of Python
        storage = storage_of(node)
        if storage is not None:
            self._version[node] = self._changes.get(storage, 0)

    def _value(self, node: Node) -> Node:
        """Return the new node that has the present value of a node."""
        while node in self._changed:
            node = self._changed[node]
        storage = storage_of(node)
        if storage is not None and self._version[node] != self._changes.get(storage, 0):
            if self._viewed(node) is None:
                raise _UnknownMutationError
            self._copy(node)
        return self._current[node]

    def _viewed(self, node: Node) -> Node | None:
        """Return the node that another one is a view of."""
        sources = [arg for arg in node.all_input_nodes if storage_of(arg) is not None]
        same = [arg for arg in sources if storage_of(arg) == storage_of(node)]
        if not same:
            return None
        (found,) = same if len(same) == 1 else [None]
        while found in self._changed:
            found = self._changed[found]
        return found

    def _change(self, node: Node) -> None:
        """Make the values that a node changes."""
        changed = node.args[0]
        if not is_node(changed):  # several tensors at once
            raise _UnknownMutationError
        while changed in self._changed:
            changed = self._changed[changed]
        storage = storage_of(changed)
        if storage is None or storage in self._fixed or storage_of(node) != storage:
            raise _UnknownMutationError
        operation = _operation(node)
        args = self._values(node.args)
        keywords = self._values(node.kwargs)
        value = self._made(operation, args, keywords, node, node)
        views: list[tuple[Node, Node, Node]] = []
        self._changed[node] = changed
        while (viewed := self._viewed(changed)) is not None:
            views.append((changed, viewed, self._value(viewed)))
            changed = viewed
        version = self._changes[storage] = self._changes.get(storage, 0) + 1
        for view, viewed, before in views:
            self._current[view], self._version[view] = value, version
            value = self._placed(view, viewed, before, value, node)
        self._current[changed], self._version[changed] = value, version

    def _placed(self, view: Node, viewed: Node, before: Node, value: Node, node: Node) -> Node:
        """Return a value with another one in the place of a view of it."""
        import torch

        aten = torch.ops.aten
        schema = schema_of(view)
        name, rest = (schema.name if schema is not None else "").removeprefix("aten::"), self._values(view.args[1:])
        keywords = self._values(view.kwargs)
        match name:
            case "slice":
                return self._made(aten.slice_scatter.default, (before, value, *rest), keywords, viewed, node)
            case "select":
                return self._made(aten.select_scatter.default, (before, value, *rest), keywords, viewed, node)
            case "detach" | "alias":
                return value
            case "transpose":
                return self._made(aten.transpose.int, (value, *rest), keywords, viewed, node)
            case "unsqueeze":
                return self._made(aten.squeeze.dim, (value, *rest), keywords, viewed, node)
            case _:
                raise _UnknownMutationError

    def _made(
        self,
        operation: Callable[..., object],
        args: tuple[Argument, ...],
        keywords: Mapping[str, Argument],
        like: Node,
        node: Node,
    ) -> Node:
        """Return a new node that has the type of another one, for one that changes something."""
        made = self.made.call_function(operation, args, {**keywords})
        made.meta = {**node.meta, "val": like.meta["val"]}
        return made

    def _values(self, args: Arguments) -> Arguments:
        from torch.fx.node import map_arg

        return map_arg(args, self._value)


def _operation(node: Node) -> Callable[..., object]:
    """Return the operation whose result is what a node changes its first argument to."""
    import torch

    schema = schema_of(node)
    assert schema is not None
    written = [argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments]
    name = schema.name.removeprefix("aten::")
    made = getattr(torch.ops.aten, name.removesuffix("_"), None)
    operation = getattr(made, schema.overload_name or "default", None)
    if not name.endswith("_") or operation is None or sum(written) != 1 or not written[0]:
        raise _UnknownMutationError
    own = tensor_of(node_in(node.args[0])).dtype
    others = [arg.meta["val"] for arg in node.all_input_nodes[1:]]
    dtypes = [other.dtype for other in others if isinstance(other, torch.Tensor)]
    name = name.removesuffix("_")
    if name in _COMPARISONS or (
        name not in _OF_THE_FIRST and any(torch.promote_types(own, dtype) != own for dtype in dtypes)
    ):
        raise _UnknownMutationError
    return operation
