"""The interface of generated classes to code outside their file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from archspec.codegen.classes.module_writer import ModuleWriter
from archspec.codegen.python.trees import stored
from archspec.codegen.scope.context import EmittedDefinition, FunctionInput, Output
from archspec.codegen.specialization import translate
from archspec.compiler.elaborate.trace import Trace
from archspec.compiler.evaluate.values import to_plain
from archspec.core.addresses import prefixes
from archspec.ir.module import Module, find_member
from archspec.ir.table import PlainValue
from archspec.language.syntax import tree
from archspec.pipeline.model import Model, get_compilation


class Interface(NamedTuple):
    """The class of a model, and the `blocks` that it repeats, by name.

    `arguments` are those of its constructor, by hyperparameter; None for one that is computed from others. `parameters`
    are their names in Python. `last_sizes` has, for each output, the hyperparameter that is the size of its last axis,
    "" if that is something else. `is_record` is whether the outputs come in a named tuple. `attributes` are the
    attributes that the constructor sets.
    """

    name: str
    arguments: dict[str, PlainValue]
    parameters: dict[str, str]
    inputs: tuple[FunctionInput, ...]
    outputs: tuple[Output, ...]
    last_sizes: tuple[str, ...]
    is_record: bool
    attributes: frozenset[str]
    blocks: tuple[str, ...]


def interface_of(model: Model) -> Interface:
    """Return the interface of the file that `torch_source` returns for a model."""
    compilation = get_compilation(model)
    writer = translate(compilation, _write_root)
    root = writer.emitted[writer.trace.root]
    arguments: dict[str, PlainValue] = {}
    for word in root.kept:
        is_computed = writer.parameters.is_computed(root.definition, word) and word not in writer.trace.explicit
        arguments[word] = None if is_computed else to_plain(compilation.values[word])
    declared = root.definition.node.outputs
    definitions = writer.trace.definitions
    whole = next(module for module, definition in definitions.items() if definition is root.definition)
    blocks = [find_member(whole, address) for address in _repeated(model)]
    return Interface(
        root.name,
        arguments,
        {word: writer.context.parameters(root.definition)[word] for word in root.kept},
        tuple(slot for slot in root.inputs if slot is not None),
        root.outputs,
        tuple(_last_size(declared[i]) if i < len(declared) else "" for i in range(len(root.outputs))),
        root.record is not None,
        frozenset(_attributes(writer, root)),
        tuple(dict.fromkeys(writer.context.names[definitions[b]] for b in blocks if isinstance(b, Module))),
    )


def _write_root(trace: Trace) -> ModuleWriter:
    writer = ModuleWriter(trace)
    writer.write(trace.root)
    return writer


def _attributes(writer: ModuleWriter, emitted: EmittedDefinition) -> Iterator[str]:
    yield from stored(emitted.init)
    for other in writer.emitted.values():
        if other.name == emitted.base:
            yield from _attributes(writer, other)


def _last_size(output: tree.Output) -> str:
    last = output.shape.items[-1] if output.shape.items else None
    return last.text if isinstance(last, tree.Name) else ""


def _repeated(model: Model) -> list[str]:
    """The numbered addresses of blocks, without those inside others."""
    found: list[str] = []
    for row in get_compilation(model).table.modules:
        is_inside = any(outer in found for outer in prefixes(row.address))
        if row.kind == "block" and row.address.rpartition(".")[2].isdigit() and not is_inside:
            found.append(row.address)
    return found
