"""Names in ONNX files: those of the spec, and addresses for the rest."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING

from archspec import __version__
from archspec.ir.module import canonical_name
from archspec.pipeline.model import Model, get_compilation
from archspec.pytorch.onnx.program import Exported

if TYPE_CHECKING:
    import onnx_ir as ir

ADDRESS, TYPE = "archspec.address", "archspec.type"
"""The metadata of nodes: the address of the module that applies the operation, and its definition."""

_SCOPES = "pkg.torch.onnx.name_scopes"
_APPLICATION = re.compile(r"@\d+$")
"""The number of an application, after the address of a module that is applied more than once."""

_PART = re.compile(r"_split_\d+$")
"""What the optimizer adds to the name of a value for each of the parts into which it is split."""

_SYMBOL = re.compile(r"\b[su]\d+\b")


def named(model: Model, found: Exported) -> ir.Model:
    """Return the program of an export as a model of `onnx_ir` with the names of the spec.

    The stored tensors of the spec are initializers, and nothing that depends on them or on inputs is computed.
    """
    program = found.program.model
    graph = program.graph
    addresses = dict(_addresses(graph))
    stored = _stored(model, found)
    inputs = [(value, found.inputs[_name(value)]) for value in graph.inputs]
    _fold_constants(program, stored.values())
    taken = {*stored, *model.inputs, *model.outputs}
    _name_constants(graph, {name for name, _ in found.module.named_buffers()}, taken)
    _name_nodes(model, graph, addresses, taken)
    for value, name in (*inputs, *zip(graph.outputs, model.outputs, strict=True)):
        value.name = name
    for name, value in stored.items():
        value.name = name
        graph.register_initializer(value)
    _set_shapes(model, graph, found.sizes)
    _describe(model, program)
    return program


def _stored(model: Model, found: Exported) -> dict[str, ir.Value]:
    """Return the values of stored tensors by name, each once, no longer as initializers of the program."""
    import onnx_ir as ir
    from onnx_ir.tensor_adapters import TorchTensor

    initializers = found.program.model.graph.initializers
    owner = get_compilation(model).body.module
    assert owner is not None
    state = found.module.state_dict()
    stored: dict[str, ir.Value] = {}
    for name in state:
        value = initializers.pop(name, None)
        if value is not None and stored.setdefault(canonical_name(owner, name), value) is not value:
            value.replace_all_uses_with(stored[canonical_name(owner, name)], replace_graph_outputs=True)
    for name, tensor in state.items():
        if canonical_name(owner, name) == name:
            content = TorchTensor(tensor, name=name)
            if name not in stored:  # it is unused
                stored[name] = ir.Value(name=name, shape=content.shape, type=ir.TensorType(content.dtype))
            stored[name].const_value = content
    return stored


def _fold_constants(program: ir.Model, stored: Iterable[ir.Value]) -> None:
    """Compute what depends on neither inputs nor stored tensors, which are inputs meanwhile."""
    from onnxscript import optimizer

    inputs = program.graph.inputs
    contents = {value: value.const_value for value in stored}
    count = len(inputs)
    for value in contents:
        value.const_value = None
        inputs.append(value)
    optimizer.optimize_ir(program)
    del inputs[count:]
    for value, content in contents.items():
        value.const_value = content


def _name_constants(graph: ir.Graph, tables: Collection[str], taken: set[str]) -> None:
    """Give names to constants: constant tables keep their addresses."""
    for value in list(graph.initializers.values()):
        if _name(value) in tables and _name(value) not in taken:
            taken.add(_name(value))
        else:
            value.name = _free("/constant", taken)


def _addresses(graph: ir.Graph, around: str = "") -> Iterator[tuple[str, str]]:
    """Yield the names of values, each with the address of the innermost module that computes it.

    Those in the body of a loop without one have the address of the loop, `around`.
    """
    for node in graph:
        scopes: list[str] = ast.literal_eval(node.metadata_props.get(_SCOPES, "[]"))
        modules = [scope for scope in scopes[:-1] if not scope.startswith("_empty_nn_module")]
        address = node.metadata_props[ADDRESS] = _APPLICATION.sub("", modules[-1]) if modules else around
        yield from ((_name(value), address) for value in node.outputs)
        for body in _bodies(node):
            yield from _addresses(body, address)


def _bodies(node: ir.Node) -> list[ir.Graph]:
    """Return the graphs that an operation runs."""
    return [attribute.as_graph() for attribute in node.attributes.values() if attribute.type.name == "GRAPH"]


def _name_nodes(model: Model, graph: ir.Graph, addresses: Mapping[str, str], taken: set[str]) -> None:
    """Name nodes, and the values that they compute, by the address of their module and their operation."""
    types = {row.address: row.type for row in get_compilation(model).table.modules}
    for node in graph:
        before = addresses.get(_PART.sub("", _name(node.outputs[0])), "")  # if the optimizer has replaced the node
        address = node.metadata_props.get(ADDRESS, before)
        node.metadata_props.clear()
        if address:
            node.metadata_props[ADDRESS] = address
            if address in types:
                node.metadata_props[TYPE] = types[address]
        node.name = _free(f"{address}/{node.op_type}", taken)
        for body in _bodies(node):
            for value in body.inputs:
                value.name = _free(f"{node.name}/{'index' if value is body.inputs[-1] else 'state'}", taken)
            _name_nodes(model, body, addresses, taken)
        for i, value in enumerate(node.outputs):
            value.name = f"{node.name}:{i}" if i else node.name
            value.metadata_props.clear()


def _set_shapes(model: Model, graph: ir.Graph, sizes: Mapping[str, str]) -> None:
    """Name the sizes of values as in the spec; those of inputs and outputs are its types."""
    import onnx_ir as ir

    for node in graph.all_nodes():
        for value in (*node.outputs, *[value for body in _bodies(node) for value in body.inputs]):
            if value.shape is not None:
                value.shape = ir.Shape([_renamed(size, sizes) for size in value.shape])
    for value in (*graph.inputs, *graph.outputs):
        type = model.inputs.get(_name(value)) or model.outputs[_name(value)]
        value.shape = ir.Shape([size if isinstance(size, int) else str(size) for size in type.shape])


def _renamed(size: int | ir.SymbolicDim, sizes: Mapping[str, str]) -> int | str | None:
    """Return a size in the dimensions of the spec; None if it has others."""
    if isinstance(size, int):
        return size
    symbols = set(_SYMBOL.findall(str(size.value)))
    if not symbols or not symbols <= sizes.keys():
        return None
    return _SYMBOL.sub(lambda match: _in_product(sizes[match[0]]), str(size.value))


def _in_product(size: str) -> str:
    return size if size.isidentifier() else f"({size})"


def _describe(model: Model, program: ir.Model) -> None:
    program.graph.name = model.name
    program.graph.metadata_props.clear()
    program.doc_string = model.doc or None
    program.producer_name, program.producer_version = "archspec", __version__
    program.metadata_props["archspec.parameters"] = str(model.params.total)


def _name(value: ir.Value) -> str:
    """Return the name of a value; the exporter and the optimizer give one to each."""
    assert value.name is not None
    return value.name


def _free(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, which it then is."""
    free = name
    for i in count(2):
        if free not in taken:
            break
        free = f"{name}_{i}"
    taken.add(free)
    return free
