"""A subject as a program of definitions: what `torch.export` sees of it, recorded, divided and written."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import suppress
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from archspec.core.algebra import Dim, Expression, Polynomial, symbol
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.pytorch.export.capture import MultiplesOnlyError
from archspec.pytorch.export.exporting import examples, export_module
from archspec.pytorch.lift.notation.names import FREE_NAMES, identifier
from archspec.pytorch.lift.recording import FormRecording, Recording
from archspec.pytorch.lift.signatures import Signatures, record_signatures
from archspec.pytorch.lift.statements.program import NO_SIZE_CHANGE, LiftedProgram, SizeChange, build_program
from archspec.pytorch.lift.subject import Subject
from archspec.pytorch.passes.intercepting import restore_attributes
from archspec.pytorch.passes.iterations import trace_loops
from archspec.pytorch.passes.programs import dtype_of, formula_of, input_names, nodes_of, tensor_of
from archspec.pytorch.passes.rolling import roll_loops
from archspec.pytorch.prove.numeric import flat
from archspec.pytorch.prove.state import are_close, changed_mode, modes_of
from archspec.pytorch.run.calling import call_module
from archspec.pytorch.values.arguments import UntranslatableError
from archspec.pytorch.values.values import Value

if TYPE_CHECKING:
    import torch
    from torch import nn
    from torch.export import ExportedProgram

RecordingType = TypeVar("RecordingType", bound=Recording)

MAX_MULTIPLE = 4096
"""Sizes are not multiples of larger numbers."""

MIN_MULTIPLE_COUNT = 3
"""0, 1 and 2 multiples may be special to a module."""


class LoopError(UntranslatableError):
    """The module cannot be lifted with its loops over lengths or layers."""


class Outputs(NamedTuple):
    """The outputs of a module in normal form."""

    arrays: Arrays
    values: list[Array]
    has_loops: bool
    """Whether they stand for a loop over a length."""
    excluded: Set[tuple[str, int]]
    """Single sizes of dimensions that they are not for."""


class CapturedModule(NamedTuple):
    """A module as definitions, and what its outputs are in normal form."""

    program: LiftedProgram
    outputs: Outputs
    recording: Recording

    def attributes(self, path: str) -> Mapping[str, object]:
        """Return the numbers that a module has as attributes."""
        own = vars(self.recording.module.get_submodule(path))
        return {
            name: value for name, value in own.items() if isinstance(value, int | float) and not name.startswith("_")
        }


def capture_module(
    subject: Subject, optional: bool = True, loops: bool = True, other: SizeChange = NO_SIZE_CHANGE
) -> CapturedModule:
    """Return what a module computes. Inputs that `forward` can do without, and that are only masks, are `optional`.

    With `loops`, those over lengths are for any length, and layers in turn with other operations are loops.

    Raises Untranslatable if the language cannot express it.
    """
    module = subject.module
    if any(part.training for part in module.modules()):
        raise UntranslatableError("it is in training: call `eval()` first")
    empty = next((name for name, tensor in module.state_dict(keep_vars=True).items() if not tensor.numel()), None)
    if empty is not None:
        raise UntranslatableError(f"it stores `{empty}`, which has no elements")
    modes = modes_of(module)
    with restore_attributes(module):
        recording, types, sizes = _recorded(subject, (), lambda *given: Recording(Arrays(), *given), loops)
        _check_modes(modes, module)
    try:
        return _captured(subject, recording, types, sizes, optional, loops, other)
    except UntranslatableError as problem:
        if recording.has_loops:
            raise LoopError(str(problem)) from problem
        raise


def _captured(
    subject: Subject,
    recording: Recording,
    types: Mapping[str, Type],
    sizes: Mapping[str, int],
    optional: bool,
    loops: bool,
    other: SizeChange,
) -> CapturedModule:
    module, modes = subject.module, modes_of(subject.module)
    signatures = record_signatures(module, _of_sizes(subject, types, sizes))
    _check_modes(modes, module)
    values = recording.results()
    if not values:
        raise UntranslatableError("it has no outputs that are tensors")
    arrays = [value.array for value in values]
    outputs = Outputs(recording.arrays, arrays, recording.has_loops, recording.excluded)
    program = build_program(
        recording,
        values,
        _named(signatures, len(values)),
        sizes,
        [*subject.numbers],
        omissible(subject, values) if optional else {},
        loops,
        other,
    )
    return CapturedModule(program, outputs, recording)


def omissible(subject: Subject, outputs: Sequence[Value]) -> dict[str, bool]:
    """Return the inputs for which `forward` has the default None, and which are no outputs themselves, and whether ones
    in their place are the same.
    """
    parameters = inspect.signature(subject.module.forward).parameters
    returned = [value.address for value in outputs if value.op == "input"]
    optional = [name for name in subject.inputs if name in parameters and parameters[name].default is None]
    return {name: _means_ones(subject, name) for name in optional if name not in returned}


def _means_ones(subject: Subject, name: str) -> bool:
    """Whether a module has the same outputs without an input as with integers or booleans there that are all 1."""
    import torch

    example = subject.inputs[name]
    if example.dtype not in (torch.bool, torch.int32, torch.int64):
        return False
    others = {other: value for other, value in subject.inputs.items() if other != name}
    with suppress(Exception):  # of any class, as it comes from the module
        without, completed = [
            flat(call_module(subject.module, inputs)) for inputs in (others, {**others, name: torch.ones_like(example)})
        ]
        return are_close(without, completed)
    return False


def captured_outputs(subject: Subject) -> Outputs:
    """Return the normal forms of a module's outputs; operations without a counterpart in the language are allowed."""
    modes = modes_of(subject.module)
    with restore_attributes(subject.module):
        outputs = outputs_without_inputs(subject, (), Arrays())
        _check_modes(modes, subject.module)
    return outputs


def outputs_without_inputs(subject: Subject, names: Sequence[str], arrays: Arrays) -> Outputs:
    """Return the outputs of a module that is called without some inputs, in normal form."""
    recording, *_ = _recorded(subject, names, lambda *given: FormRecording(arrays, *given))
    values = [value.array for value in recording.outputs()]
    return Outputs(arrays, values, recording.has_loops, recording.excluded)


def _recorded(
    subject: Subject, without: Sequence[str], record: Callable[..., RecordingType], loops: bool = True
) -> tuple[RecordingType, dict[str, Type], dict[str, int]]:
    """Return what is recorded of a module that is called `without` some inputs, their types, and sizes of dimensions.

    If it is only for multiples of a number, then the sizes of its inputs are such multiples of dimensions.
    """
    multiples: dict[str, int] = {}
    while True:
        types, sizes = dimensions(subject.inputs, subject.other_inputs, multiples, subject.free)
        types = {name: type for name, type in types.items() if name not in without}
        program = (_program if loops else export_module)(subject.module, types, sizes)
        try:
            return record(program, subject.module, _settled(program, types, sizes)), types, sizes
        except MultiplesOnlyError as problem:
            multiples |= {name: times * multiples.get(name, 1) for name, times in problem.multiples.items()}
            if max(multiples.values()) > MAX_MULTIPLE:
                raise


def _program(module: nn.Module, types: Mapping[str, Type], sizes: Mapping[str, int]) -> ExportedProgram:
    """Return the exported program of a module; for one length only, if it has a loop over it that is not understood."""
    with trace_loops(module) as loops, suppress(UntranslatableError):
        program = export_module(module, types, sizes)
        if not loops.has_any or (roll_loops(program) and _settled(program, types, sizes) == types):
            return program
    return export_module(module, types, sizes)


def _of_sizes(subject: Subject, types: Mapping[str, Type], sizes: Mapping[str, int]) -> Mapping[str, torch.Tensor]:
    """Return the inputs of a subject, or ones of these sizes if it is for multiples of others."""
    found = examples(subject.module, types, sizes)
    is_same = all(tensor.shape == subject.inputs[name].shape for name, tensor in found.items())
    return subject.inputs if is_same else found


def _check_modes(modes: Mapping[str, object], module: nn.Module) -> None:
    """Refuse a module that its own calls change."""
    changed = changed_mode(modes, module)
    if changed is not None:
        raise UntranslatableError(f"a call changes its attribute `{changed}`")


def _settled(program: ExportedProgram, types: Mapping[str, Type], sizes: Mapping[str, int]) -> dict[str, Type]:
    """Return types in which those dimensions are numbers for whose sizes alone a program was exported."""
    names = input_names(program)
    nodes = {names.get(node.name): node for node in nodes_of(program.graph) if node.op == "placeholder"}
    fixed = {
        size
        for name, type in types.items()
        for size, actual in zip(type.shape, tensor_of(nodes[name]).shape, strict=True)
        if isinstance(size, Polynomial) and ((formula := formula_of(actual)) is None or formula.is_Integer)
    }
    return {
        name: Type(tuple([size.at(sizes) if size in fixed else size for size in type.shape]), type.dtype)  # pyright: ignore
        for name, type in types.items()
    }


def _named(signatures: Signatures, count: int) -> Signatures:
    names = signatures.outputs if len(signatures.outputs) == count else [""] * count
    if len(set(names)) < len(names):
        names = [""] * count
    return signatures._replace(outputs=names)


def dimensions(
    inputs: Mapping[str, torch.Tensor],
    others: Mapping[str, torch.Tensor] | None,
    multiples: Mapping[str, int] = MappingProxyType({}),
    free: Mapping[str, Sequence[int | str]] = MappingProxyType({}),
) -> tuple[dict[str, Type], dict[str, int]]:
    """Return the types of inputs, in which sizes that may be others are dimensions, or `multiples` of them, and the
    sizes of these. The `free` sizes of inputs are names for dimensions.
    """
    known: dict[tuple[int, int], Expression] = {}
    sizes: dict[str, int] = {}
    taken: list[str] = []
    types: dict[str, Type] = {}
    for name, tensor in inputs.items():
        shape: list[Dim] = []
        second: Sequence[int] = others[name].shape if others is not None else tensor.shape
        for axis, pair in enumerate(zip(tensor.shape, second, strict=True)):
            if pair[0] == pair[1]:
                shape.append(pair[0])
                continue
            if pair not in known:
                wanted = _names_by_use(tensor, second).get(axis, [])
                taken.append(_dimension_name(name, axis, taken, free.get(name, ()), wanted))
                times = multiples.get(taken[-1], 1)
                is_exact = pair[0] % times == 0 == pair[1] % times
                parts = (pair[0] // times, pair[1] // times) if is_exact else (0, len(taken))
                if parts not in known:
                    sizes[taken[-1]] = _number(pair[0], times, {*sizes.values()})
                    known[parts] = symbol(taken[-1])
                known[pair] = times * known[parts]
            shape.append(known[pair])
        types[name] = Type(tuple(shape), dtype_of(tensor))
    return types, sizes


def _number(size: int, multiple: int, taken: Collection[int]) -> int:
    """Return how many multiples are at least a size, and no other dimension."""
    if multiple == 1:
        return size
    return next(number for number in count(max(MIN_MULTIPLE_COUNT, -(-size // multiple))) if number not in taken)


def _names_by_use(tensor: torch.Tensor, other: Sequence[int]) -> dict[int, list[str]]:
    """Return names for the axes of images and signals, which follow the channels of a real input."""
    pairs = [*zip(tensor.shape, other, strict=True)]
    is_free = [first != second for first, second in pairs]
    if not tensor.is_floating_point() or len(pairs) < 3 or is_free[1] or not all(is_free[2:]):
        return {}
    names = ("length",) if len(pairs) == 3 else ("frames", "height", "width")[-len(pairs) + 2 :]
    is_square = len({*pairs[2:]}) < len(pairs) - 2  # as in a bias of attention
    return {} if is_square else {axis: [name] for axis, name in enumerate(names, 2)}


def _dimension_name(
    name: str, axis: int, taken: Collection[str], sizes: Sequence[int | str], by_use: Sequence[str]
) -> str:
    given = [identifier(size) for size in sizes[axis : axis + 1] if isinstance(size, str)]
    wanted = ["batch"] if axis == 0 else ["target"] if name.startswith("decoder_") else by_use
    names = [*given, *wanted, *FREE_NAMES, *[f"size{i}" for i in range(99)]]
    return next(found for found in names if found and found not in taken)
