"""Exported programs that change values in place, as programs of new values only.

PyTorch can do this itself, but traces the whole program once more, which takes as long as exporting it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archspec.equivalence.calls.values import listed

_OF_THE_FIRST = {"copy", "fill", "zero", "masked_fill", "scatter", "index_put", "index_fill", "index_copy", "index_add"}
"""Operations whose result has the element type of what they change, whatever the others have."""

_COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "logical_not"}
"""Operations that give booleans, unless they are in place."""


class _Unknown(Exception):
    """A program changes a value in a way that is left to PyTorch."""


def without_changes(program: Any) -> bool:
    """Rewrite an exported program so that it changes nothing in place; False, with the program as it was, if it reads
    graphs of its own, changes an input or a tensor, or changes a value in an uncommon way.
    """
    if not any(_is_changing(node) for node in program.graph.nodes):
        return all(node.op != "get_attr" for node in program.graph.nodes)
    try:
        made = _Rewriting(program.graph).made
    except _Unknown:
        return False
    made.eliminate_dead_code()
    program.graph_module.graph = made
    return True


def _is_changing(node: Any) -> bool:
    schema = getattr(node.target, "_schema", None)
    return node.op == "call_function" and schema is not None and schema.is_mutable


class _Rewriting:
    """The nodes of a program, made again one by one.

    Nodes with one storage are views of each other. When one of them is changed, those that it is a view of are made
    again at once, and others where they are used next.
    """

    def __init__(self, graph: Any) -> None:
        from torch.fx import Graph

        self.made = Graph()
        self._current: dict[Any, Any] = {}
        """For each node, the new one that has its value."""
        self._version: dict[Any, int] = {}
        """How often the storage of a node had been changed when its new node was made."""
        self._changes: dict[int, int] = {}
        self._changed: dict[Any, Any] = {}
        """For each node that is the result of a change, the node that is changed."""
        self._fixed: set[int] = set()
        """The storages of inputs and tensors."""
        for node in graph.nodes:
            if node.op == "placeholder":
                self._fixed |= {storage for storage in [_storage(node)] if storage is not None}
            if node.op == "get_attr":
                raise _Unknown
            if _is_changing(node):
                self._change(node)
            else:
                self._copy(node)

    def _copy(self, node: Any) -> None:
        self._current[node] = self.made.node_copy(node, self._value)
        storage = _storage(node)
        if storage is not None:
            self._version[node] = self._changes.get(storage, 0)

    def _value(self, node: Any) -> Any:
        """Return the new node that has the present value of a node."""
        while node in self._changed:
            node = self._changed[node]
        storage = _storage(node)
        if storage is not None and self._version[node] != self._changes.get(storage, 0):
            if self._viewed(node) is None:
                raise _Unknown
            self._copy(node)
        return self._current[node]

    def _viewed(self, node: Any) -> Any:
        """Return the node that another one is a view of."""
        sources = [arg for arg in node.all_input_nodes if _storage(arg) is not None]
        same = [arg for arg in sources if _storage(arg) == _storage(node)]
        if not same:
            return None
        (found,) = same if len(same) == 1 else [None]
        while found in self._changed:
            found = self._changed[found]
        return found

    def _change(self, node: Any) -> None:
        """Make the values that a node changes."""
        changed = node.args[0]
        while changed in self._changed:
            changed = self._changed[changed]
        storage = _storage(changed)
        if storage is None or storage in self._fixed or _storage(node) != storage:
            raise _Unknown
        operation = _operation(node)
        args = self._values(node.args)
        keywords = self._values(node.kwargs)
        value = self._made(operation, args, keywords, node, node)
        sources: list[tuple[Any, Any, Any]] = []
        while True:
            viewed = self._viewed(changed)
            sources.append((changed, viewed, self._value(viewed) if viewed is not None else None))
            if viewed is None:
                break
            changed = viewed
        version = self._changes[storage] = self._changes.get(storage, 0) + 1
        self._changed[node] = sources[0][0]
        for view, viewed, before in sources:
            self._current[view], self._version[view] = value, version
            if viewed is not None:
                value = self._placed(view, viewed, before, value, node)

    def _placed(self, view: Any, viewed: Any, before: Any, value: Any, node: Any) -> Any:
        """Return a value with another one in the place of a view of it."""
        import torch

        aten: Any = torch.ops.aten
        schema = getattr(view.target, "_schema", None)
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
                raise _Unknown

    def _made(self, operation: Any, args: tuple[Any, ...], keywords: Mapping[str, Any], like: Any, node: Any) -> Any:
        """Return a new node that has the type of another one, for one that changes something."""
        made = self.made.call_function(operation, args, {**keywords})
        made.meta = {**node.meta, "val": like.meta["val"]}
        return made

    def _values(self, args: Any) -> Any:
        from torch.fx.node import map_arg

        return map_arg(args, self._value)


def _storage(node: Any) -> int | None:
    """Return which storage a node has; None for one of no tensor, or of several storages."""
    import torch

    found = {
        value.untyped_storage()._cdata  # pyright: ignore[reportPrivateUsage]
        if isinstance(value, torch.Tensor)
        else None
        for value in listed(node.meta.get("val"))
    }
    return found.pop() if len(found) == 1 else None


def _operation(node: Any) -> Any:
    """Return the operation whose result is what a node changes its first argument to."""
    import torch

    schema = node.target._schema
    written = [argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments]
    name = schema.name.removeprefix("aten::")
    made = getattr(torch.ops.aten, name.removesuffix("_"), None)
    operation = getattr(made, schema.overload_name or "default", None)
    if not name.endswith("_") or operation is None or sum(written) != 1 or not written[0]:
        raise _Unknown
    own = node.args[0].meta["val"].dtype
    others = [arg.meta["val"] for arg in node.all_input_nodes[1:]]
    dtypes = [other.dtype for other in others if isinstance(other, torch.Tensor)]
    name = name.removesuffix("_")
    if name in _COMPARISONS or (
        name not in _OF_THE_FIRST and any(torch.promote_types(own, dtype) != own for dtype in dtypes)
    ):
        raise _Unknown
    return operation
