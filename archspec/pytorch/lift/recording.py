"""Recording: what `torch.export` sees of a module as values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from archspec.core.addresses import parent
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Arrays
from archspec.pytorch.calls.complex import ComplexValue
from archspec.pytorch.export.capture import Capture
from archspec.pytorch.lift.idioms.attention import rewrite_attention
from archspec.pytorch.lift.idioms.buckets import bucket_table, buckets_of
from archspec.pytorch.lift.idioms.constants import constant
from archspec.pytorch.lift.idioms.layers import recognize_module
from archspec.pytorch.lift.idioms.recognizers import RECOGNIZERS
from archspec.pytorch.lift.idioms.regions import between_regions
from archspec.pytorch.lift.idioms.rotary import rewrite_rotary_scaling
from archspec.pytorch.lift.idioms.sinusoids import complex_sinusoids, rotary_parameters, slopes
from archspec.pytorch.lift.values.builder import SpecBuilder
from archspec.pytorch.lift.values.source_names import Naming
from archspec.pytorch.lift.values.stored import StoredTensors
from archspec.pytorch.passes.programs import nodes_of, tensors_of
from archspec.pytorch.passes.rolling import LOOPED
from archspec.pytorch.values.arguments import as_list
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import ModuleCall, Value

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.export import ExportedProgram
    from torch.fx import Node


class Recording(Capture):
    """The values of an exported program, in the calls of modules that they are computed in."""

    def __init__(self, arrays: Arrays, program: ExportedProgram, module: nn.Module, inputs: Mapping[str, Type]) -> None:
        super().__init__(arrays, program, inputs)
        self.module = module
        self.spec_builder = SpecBuilder(arrays, RECOGNIZERS)
        self.builder: Builder = self.spec_builder
        self.root = ModuleCall("", type(module).__name__, None)
        self.stored = StoredTensors(module)
        self._counted = dict(self.stored.ties)
        self.inputs: dict[str, Value] = {}
        self._frames: dict[str, ModuleCall] = {}
        self._open: list[ModuleCall] = [self.root]
        self._last: dict[ModuleCall, Node] = {}
        self._naming = Naming()
        self._buckets = buckets_of(program)

    def results(self) -> list[Value]:
        """Return the outputs of the module as they are written."""
        self.outputs()
        b = self.spec_builder
        self._enter([self.root])
        (output,) = [node for node in nodes_of(self.program.graph) if node.op == "output"]
        values = [value for item in as_list(output.args[0]) if isinstance(value := self._value(item), Value)]
        b.frame = self.root
        self._naming.give()
        outputs = [b.written(value) for value in values]
        rewrite_attention(b, outputs)
        rewrite_rotary_scaling(b, outputs)
        return outputs

    def canonical(self, name: str) -> str:
        """Return the name under which a tensor is counted."""
        return self._counted.get(name, name)

    # Inputs and tensors -----------------------------------------------------------------------------------------------

    def _input(self, name: str, type: Type) -> Value:
        b = self.spec_builder
        self.inputs[name] = value = b.stored("input", name, type, self.root)
        b.note_source(value)
        return value

    def _stored(self, name: str, value: Tensor | None, type: Type) -> Value:
        b = self.spec_builder
        if name not in self.stored.names:
            b.frame = self.root
            parameters = rotary_parameters(self.module.get_submodule(parent(name)))
            return constant(b, value, name, parameters)
        stored = b.stored("tensor", self.canonical(name), type, self.root)
        b.note_source(stored)
        return stored

    def _constant(self, value: Tensor, type: Type) -> Value:
        self.spec_builder.frame = self.root
        return constant(self.spec_builder, value)

    def _complex_constant(self, value: Tensor) -> ComplexValue:
        b = self.spec_builder
        b.frame = self.root
        waves = complex_sinusoids(b, value)
        return ComplexValue(*(waves or [constant(b, part) for part in (value.real, value.imag)]))

    def _placeholder(
        self, node: Node, tensors: Mapping[str, str], constants: Mapping[str, str]
    ) -> Value | ComplexValue | None:
        if not node.users and (node.name in tensors or node.name in constants):
            return None
        return super()._placeholder(node, tensors, constants)

    # Operations -------------------------------------------------------------------------------------------------------

    def _call(self, node: Node) -> object:
        b = self.spec_builder
        if node in self._buckets.unneeded:
            return None
        frames = self._stack(node)
        if node in self._buckets.found:
            b.frame = frames[-1]
            return bucket_table(b, self._buckets.found[node], self._type(node.meta["val"]).shape)
        if node in self.folded:
            b.frame = frames[-1]
            known = between_regions(b, self.folded[node]) or slopes(b, self.folded[node])
            if known is not None:
                return known
        self._begin(node, frames)
        return super()._call(node)

    def _begin(self, node: Node, frames: list[ModuleCall]) -> None:
        """Enter the calls of modules that a node is part of."""
        if tensors_of(node):
            self._enter(frames)

    def _note(self, node: Node, found: object) -> None:
        values = as_list(found)
        if found is None or not all(value is None or isinstance(value, Value | ComplexValue) for value in values):
            return
        frames = self._stack(node)
        self._enter(frames)
        own = [value for value in values if isinstance(value, Value) and value.frame is frames[-1]]
        if len(own) == len(values):
            self._naming.note(node, own, frames)
        for frame in self._open:
            self._last[frame] = node

    def _stack(self, node: Node) -> list[ModuleCall]:
        frames = [self.root]
        calls: dict[str, tuple[str, str | type]] = node.meta.get("nn_module_stack") or {}
        for key, (path, kind) in calls.items():
            if path in ("", "_empty_nn_module_stack_from_metadata_hook"):
                continue
            if key not in self._frames:
                name = kind if isinstance(kind, str) else kind.__qualname__
                self._frames[key] = ModuleCall(path, name.rpartition(".")[2], frames[-1])
            frames.append(self._frames[key])
        return frames

    def _enter(self, frames: list[ModuleCall]) -> None:
        """Leave the calls that are over, and enter those of the next operation."""
        while self._open and self._open[-1] not in frames:
            self._leave(self._open.pop())
        self._open = frames
        self.builder.frame = frames[-1]

    def _leave(self, frame: ModuleCall) -> None:
        """Replace what a module computes by a layer or function of the library, if it is one."""
        node = self._last.get(frame)
        made = None if node is None else self._values.get(node)
        if node is not None and isinstance(made, Value) and frame.contains(made.frame) and frame.parent is not None:
            self.builder.frame = frame.parent
            module = self.module.get_submodule(frame.path)
            # loops apply no layers, and a layer has parameters that are all frozen, or none
            if (node.meta.get(LOOPED) and module.state_dict()) or len(self.stored.freezing(frame.path)) > 1:
                return
            found = recognize_module(self.spec_builder, frame, module, made, self.canonical)
            if found is not None:
                self._values[node] = found
                self._naming.note(node, [found], self._stack(node))


class FormRecording(Recording):
    """The normal forms of the values of an exported program, without operations of the language that compute them."""

    def __init__(self, arrays: Arrays, program: ExportedProgram, module: nn.Module, inputs: Mapping[str, Type]) -> None:
        super().__init__(arrays, program, module, inputs)
        self.builder = Builder(arrays)

    def _begin(self, node: Node, frames: list[ModuleCall]) -> None:
        pass

    def _note(self, node: Node, found: object) -> None:
        pass
