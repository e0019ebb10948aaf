"""Parts of exported programs that `torch.vmap` maps over axes, as operations on whole tensors.

PyTorch records what such a part does with one item, between marks. It can make operations on whole tensors of that, but
by tracing the whole program once more, which takes as long as exporting it. Here only the part is traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from archspec.pytorch.passes.programs import nodes_of

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import Graph, GraphModule, Node
    from torch.fx.node import Argument

_BEGIN, _END, _LOADING = "_vmap_increment_nesting", "_vmap_decrement_nesting", "lazy_load_decompositions"


def inline_vmaps(program: ExportedProgram) -> bool:
    """Rewrite an exported program so that it maps nothing; False if a part of it cannot be traced, with that part as
    it was.
    """
    graph = program.graph
    while (part := _first_part(graph)) is not None:
        traced = _traced(program.graph_module, part)
        if traced is None:
            return False
        _replace(graph, part, traced)
        for node in reversed(nodes_of(graph)):
            if not node.users and (node.op == "get_attr" or _name(node) == _LOADING):
                graph.erase_node(node)
    return True


class _Part:
    """Nodes from the beginning of a map to its end, what they take, and those that others take."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        inside = {*nodes}
        given = [arg for node in nodes for arg in node.all_input_nodes if arg not in inside]
        self.nodes = nodes
        self.inputs = list(dict.fromkeys([arg for arg in given if arg.op != "get_attr"]))
        self.outputs = [node for node in nodes if any(user not in inside for user in node.users)]


def _first_part(graph: Graph) -> _Part | None:
    """Return the first map that is in no other one; None if there is none."""
    depth = 0
    nodes: list[Node] = []
    for node in nodes_of(graph):
        depth += _name(node) == _BEGIN
        if depth:
            nodes.append(node)
        depth -= _name(node) == _END
        if nodes and not depth:
            return _Part(nodes)
    return None


def _name(node: Node) -> str:
    return getattr(node.target, "__name__", "") if node.op == "call_function" else ""


def _traced(module: GraphModule, part: _Part) -> Graph | None:
    """Return the graph of what a part computes; None if it cannot be traced, or has constants."""
    from torch.fx.experimental.proxy_tensor import make_fx

    def run(*values: Argument) -> list[Argument]:
        return _run(module, part, values)

    try:
        found = make_fx(run)(*[node.meta["val"] for node in part.inputs]).graph
    except Exception:  # of any class, as it comes from PyTorch
        return None
    return None if any(node.op == "get_attr" for node in nodes_of(found)) else found


def _run(module: GraphModule, part: _Part, values: Sequence[Argument]) -> list[Argument]:
    """Return the outputs of a part for values of its inputs."""
    from torch.fx.node import map_arg

    known = dict(zip(part.inputs, values, strict=True))

    def value(node: Node) -> Argument:
        return getattr(module, str(node.target)) if node.op == "get_attr" else known[node]

    begun: list[Node] = []
    try:
        for node in part.nodes:
            if node.op == "call_function" and (node.users or _name(node) in (_BEGIN, _END)):
                function = cast("Callable[..., Argument]", node.target)
                known[node] = function(*map_arg(node.args, value), **map_arg(node.kwargs, value))
                begun += [node] if _name(node) == _BEGIN else []
                del begun[len(begun) - (_name(node) == _END) :]
    finally:
        for _ in begun:
            _end()
    return [known[node] for node in part.outputs]


def _end() -> None:
    """End a map that PyTorch is in."""
    from torch._functorch import predispatch

    getattr(predispatch, _END)()


def _replace(graph: Graph, part: _Part, traced: Graph) -> None:
    """Put the nodes of a traced graph in the place of a part."""
    given = iter(part.inputs)
    made: dict[Node, Node] = {}
    with graph.inserting_before(part.nodes[0]):
        for node in nodes_of(traced):
            if node.op == "placeholder":
                made[node] = next(given)
            elif node.op == "call_function":
                made[node] = graph.node_copy(node, made.__getitem__)
                made[node].meta = {**part.nodes[0].meta, "val": node.meta.get("val")}
    results = cast("Sequence[Node]", traced.output_node().args[0])
    for node, result in zip(part.outputs, results, strict=True):
        node.replace_all_uses_with(made[result])
    for node in reversed(part.nodes):
        graph.erase_node(node)
