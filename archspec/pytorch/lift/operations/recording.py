"""Recording: what `torch.export` sees of a module as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from archspec.core.addresses import parent
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.pytorch.calls.complex import Complex
from archspec.pytorch.calls.values import UntranslatableError, as_list, is_list, operation_name
from archspec.pytorch.export.capture import Capture
from archspec.pytorch.lift.idioms.attention import rewrite_attention
from archspec.pytorch.lift.idioms.buckets import bucket_table, buckets_of
from archspec.pytorch.lift.idioms.constants import constant
from archspec.pytorch.lift.idioms.layers import recognize_module
from archspec.pytorch.lift.idioms.regions import between_regions
from archspec.pytorch.lift.idioms.rotary import rewrite_rotary_scaling
from archspec.pytorch.lift.idioms.sinusoids import complex_sinusoids, rotary_parameters, slopes
from archspec.pytorch.lift.operations.complex_values import (
    ComplexResult,
    ComplexValue,
    complex_counterpart,
    has_complex,
)
from archspec.pytorch.lift.operations.counterparts import COUNTERPARTS
from archspec.pytorch.lift.operations.handlers import convert
from archspec.pytorch.lift.values.builder import Builder
from archspec.pytorch.lift.values.source_names import Naming
from archspec.pytorch.lift.values.stored import StoredTensors
from archspec.pytorch.lift.values.values import ModuleCall, Value
from archspec.pytorch.passes.programs import is_node, nodes_of
from archspec.pytorch.passes.rolling import LOOPED

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.export import ExportedProgram
    from torch.fx import Node

RecordedResult: TypeAlias = ComplexResult | Sequence[Value | ComplexValue | None]
"""What a node of a program is as values."""

RecordedForm: TypeAlias = Array | Complex | None
"""The normal form of a result; None if only training uses it."""


class Recording(Capture):
    """The values of an exported program, in the calls of modules that they are computed in."""

    def __init__(self, arrays: Arrays, program: ExportedProgram, module: nn.Module, inputs: Mapping[str, Type]) -> None:
        super().__init__(arrays, program, inputs, self._stored)
        self.module = module
        self.builder = Builder(arrays)
        self.root = ModuleCall("", type(module).__name__, None)
        self.stored = StoredTensors(module)
        self._counted = dict(self.stored.ties)
        self.inputs: dict[str, Value] = {}
        self._made: dict[Node, RecordedResult] = {}
        self._frames: dict[str, ModuleCall] = {}
        self._open: list[ModuleCall] = [self.root]
        self._last: dict[ModuleCall, Node] = {}
        self._naming = Naming()
        self._buckets = buckets_of(program)

    def results(self) -> list[Value]:
        """Return the outputs of the module as values."""
        self.outputs()
        self._enter([self.root])
        (output,) = [node for node in nodes_of(self.program.graph) if node.op == "output"]
        given: list[object] = as_list(output.args[0])
        made = [self._made[item] for item in given if is_node(item) and isinstance(self._value(item), Array | Complex)]
        values = [value for value in made if isinstance(value, Value)]
        if len(values) < len(made):
            raise UntranslatableError("it has complex outputs")
        self.builder.frame = self.root
        self._naming.give()
        outputs = [self.builder.written(value) for value in values]
        rewrite_attention(self.builder, outputs)
        rewrite_rotary_scaling(self.builder, outputs)
        return outputs

    def canonical(self, name: str) -> str:
        """Return the name under which a tensor is counted."""
        return self._counted.get(name, name)

    # Inputs and tensors -----------------------------------------------------------------------------------------------

    def _stored(self, name: str, value: Tensor | None, type: Type) -> Array:
        if name not in self.stored.names:
            self.builder.frame = self.root
            parameters = rotary_parameters(self.module.get_submodule(parent(name)))
            self._latest = constant(self.builder, value, name, parameters)
        else:
            self._latest = self.builder.stored("tensor", self.canonical(name), type, self.root)
            self.builder.note_source(self._latest)
        return self._latest.array

    def _constant(self, value: Tensor, type: Type) -> Array:
        self.builder.frame = self.root
        self._latest = constant(self.builder, value)
        return self._latest.array

    def _complex_constant(self, value: Tensor) -> Complex:
        self.builder.frame = self.root
        waves = complex_sinusoids(self.builder, value)
        real, imaginary = waves or [constant(self.builder, part) for part in (value.real, value.imag)]
        self._latest = ComplexValue(real, imaginary)
        return Complex(real.array, imaginary.array)

    def _placeholder(
        self, node: Node, tensors: Mapping[str, str], constants: Mapping[str, str]
    ) -> Array | Complex | None:
        if not node.users and (node.name in tensors or node.name in constants):
            return None
        found = super()._placeholder(node, tensors, constants)
        if found is not None:
            if isinstance(found, Array) and node.name not in tensors and node.name not in constants:
                dtype = self.arrays.dtype(found)
                self._latest = self.builder.stored("input", node.name, Type(found.shape, dtype), self.root)
                self.inputs[node.name] = self._latest
                self.builder.note_source(self._latest)
            self._made[node] = self._latest
        return found

    # Operations -------------------------------------------------------------------------------------------------------

    def _call(self, node: Node) -> object:
        if node in self._buckets.unneeded:
            return None
        if node in self._buckets.found:
            self.builder.frame = self._stack(node)[-1]
            shape = self._type(node.meta["val"]).shape
            self._made[node] = found = bucket_table(self.builder, self._buckets.found[node], shape)
            return found.array
        if node in self.folded:
            self.builder.frame = self._stack(node)[-1]
            value = self.folded[node]
            found = between_regions(self.builder, value) or slopes(self.builder, value)
            if found is not None:
                self._made[node] = found
                return found.array
        return super()._call(node)

    def _note(self, node: Node, found: object) -> None:
        items = as_list(found)
        results = [item for item in items if item is None or isinstance(item, Array | Complex)]
        if found is None or len(results) < len(items):
            return
        frames = self._stack(node)
        self._enter(frames)
        if node not in self._made:
            self._made[node] = self._translated(node, results)
        made = as_list(self._made[node])
        values = [value for value in made if isinstance(value, Value) and value.frame is frames[-1]]
        if len(values) == len(made):
            self._naming.note(node, values)
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
        made = None if node is None else self._made.get(node)
        if node is not None and isinstance(made, Value) and frame.contains(made.frame) and frame.parent is not None:
            self.builder.frame = frame.parent
            module = self.module.get_submodule(frame.path)
            # loops apply no layers, and a layer has parameters that are all frozen, or none
            if (node.meta.get(LOOPED) and module.state_dict()) or len(self.stored.freezing(frame.path)) > 1:
                return
            found = recognize_module(self.builder, frame, module, made, self.canonical)
            if found is not None:
                self._made[node] = found
                self._naming.note(node, [found])

    def _translated(self, node: Node, found: Sequence[RecordedForm]) -> RecordedResult:
        import operator

        if node.target is operator.getitem:
            return cast("list[RecordedResult]", self._given(node.args[0]))[cast("int", node.args[1])]
        empty = [array for array in found if isinstance(array, Array) and 0 in array.shape]
        if empty and len(empty) == len(found):
            return self.builder.made("empty", [], empty[0])
        name = operation_name(node)
        types = [self._type_of(array) for array in found]
        args = [self._given(item) for item in node.args]
        keywords = {key: self._given(item) for key, item in node.kwargs.items()}
        handler = COUNTERPARTS.get(name)
        is_complex = has_complex(args) or any(type.dtype == "complex" for type in types)
        if handler is None and not is_complex:
            raise UntranslatableError(f"the operation `aten.{name}` has no counterpart in the language")
        try:
            if is_complex:
                return complex_counterpart(name, handler, self.builder, types, *args, **keywords)
            assert handler is not None
            made = handler(self.builder, types, *args, **keywords)
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            raise UntranslatableError(f"the operation `aten.{name}` has no counterpart with these arguments") from error
        if isinstance(made, Sequence):
            if any(value is not None and value.array != array for value, array in zip(made, found, strict=True)):
                raise UntranslatableError(f"the operation `aten.{name}` has different results from its counterpart")
            return made
        if made is not None:
            made = convert(self.builder, made, types[0].dtype)
        if made is None or made.array != found[0]:
            raise UntranslatableError(f"the operation `aten.{name}` has a different result from its counterpart")
        return made

    def _type_of(self, found: RecordedForm) -> Type:
        if isinstance(found, Complex):
            return Type(found.real.shape, "complex")
        return Type(found.shape, self.arrays.dtype(found)) if found is not None else Type(())

    def _given(self, item: object) -> object:
        if is_list(item):
            return [self._given(part) for part in item]
        if not is_node(item):
            return item
        if item in self._made:
            return self._made[item]
        return self._value(item)


class FormRecording(Recording):
    """The normal forms of the values of an exported program, without operations of the language that compute them."""

    def _note(self, node: Node, found: object) -> None:
        pass
