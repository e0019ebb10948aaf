"""Exported programs of PyTorch modules, as `torch.export` records them, without changes in place."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, redirect_stderr
from io import StringIO
from traceback import walk_tb
from typing import TYPE_CHECKING, cast

from archspec.core.algebra import Polynomial
from archspec.core.optional import silence_loggers
from archspec.ir.module import Type
from archspec.pytorch.calls.registry import CALLS
from archspec.pytorch.export.capture import is_library_file
from archspec.pytorch.passes.in_place import functionalize
from archspec.pytorch.passes.intercepting import (
    disable_mask_detection,
    record_called_functions,
    use_triangular_solver,
)
from archspec.pytorch.passes.known_numbers import known_number_mode, symbolic_flags, symbolic_len
from archspec.pytorch.passes.own_operations import embedding_bag_mode, recurrent_layer_mode, whole_window_mode
from archspec.pytorch.passes.precision import with_epsilon_of
from archspec.pytorch.passes.programs import (
    allow_size_one,
    decompose_program,
    excludes_ones,
    generalize_to_size_one,
    guards_of,
    nodes_of,
    tensors_of,
)
from archspec.pytorch.passes.substitution import rewrite_triangular_solves
from archspec.pytorch.values.arguments import UntranslatableError, operation_name

if TYPE_CHECKING:
    import torch
    from torch._ops import OpOverload
    from torch.export import ExportedProgram


DEPTH = 2
"""How often an operation that is defined by others is replaced by them."""


def examples(module: torch.nn.Module, inputs: Mapping[str, Type], sizes: Mapping[str, int]) -> dict[str, torch.Tensor]:
    """Return inputs of these types and sizes, filled with 0; in float64 for a module whose parameters are."""
    import torch

    parameters = [*module.parameters()]
    has_float64 = any(parameter.dtype == torch.float64 for parameter in parameters)
    dtypes = {"real": torch.float64 if has_float64 else torch.float32, "int": torch.long, "bool": torch.bool}
    device = parameters[0].device if parameters else torch.device("cpu")

    def example(type: Type) -> torch.Tensor:
        shape = [size.at(sizes) if isinstance(size, Polynomial) else size for size in type.shape]
        return torch.zeros(shape, dtype=dtypes[type.dtype], device=device)

    return {name: example(type) for name, type in inputs.items()}


def is_without_values(tensor: torch.Tensor) -> bool:
    """Whether a tensor has a type and a shape alone."""
    from torch._subclasses import FakeTensor

    return isinstance(tensor, FakeTensor) or tensor.is_meta


def varied(inputs: Mapping[str, torch.Tensor], has_other_integers: bool = True) -> dict[str, torch.Tensor]:
    """Return inputs of the same types and sizes with other elements: integers beyond 1 are those given, in another
    order; others are 0 and 1, beginning with 1, so that masks hide something but not everything. All integers are those
    given unless it `has_other_integers`.
    """
    import torch

    generator = torch.Generator().manual_seed(sum([tensor.numel() for tensor in inputs.values()]))

    def other(tensor: torch.Tensor) -> torch.Tensor:
        if is_without_values(tensor) or not tensor.numel() or tensor.is_complex():
            return tensor
        if tensor.is_floating_point():
            drawn = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
            return tensor + drawn.to(tensor.device, tensor.dtype)
        if tensor.dtype != torch.bool and not has_other_integers:
            return tensor
        if not 0 <= int(tensor.min()) <= int(tensor.max()) <= 1:
            return tensor.flip([*range(tensor.dim())])
        found = torch.randint(0, 2, tensor.shape, generator=generator)
        if tensor.dim() > 1:
            found[..., 0] = 1
        return found.to(tensor.device, tensor.dtype)

    return {name: other(tensor) for name, tensor in inputs.items()}


def export_module(
    module: torch.nn.Module, inputs: Mapping[str, Type], sizes: Mapping[str, int], decomposed: bool = True
) -> ExportedProgram:
    """Return the exported program of a module in evaluation, called with inputs of these types by name.

    `sizes` are those to call it with. `decomposed`: a program that changes values in place is decomposed. Raises
    Untranslatable if it cannot be exported.
    """
    import torch
    from torch.fx._lazy_graph_module import _use_lazy_graph_module  # pyright: ignore[reportPrivateUsage]

    arguments = examples(module, inputs, sizes)
    free = {
        name: {axis: torch.export.Dim.AUTO for axis, size in enumerate(type.shape) if isinstance(size, Polynomial)}
        for name, type in inputs.items()
    }

    def export() -> ExportedProgram:
        return torch.export.export(module, (), arguments, dynamic_shapes=free, strict=False)

    try:
        # No code is made of graphs that only passes read.
        with warnings.catch_warnings(), torch.no_grad(), _use_lazy_graph_module(True), ExitStack() as modes:
            warnings.simplefilter("ignore")  # those of PyTorch about its own code
            modes.enter_context(redirect_stderr(StringIO()))  # PyTorch prints the graph of what it fails for
            modes.enter_context(
                silence_loggers("torch._subclasses.fake_tensor", "torch.fx.experimental.symbolic_shapes")
            )
            modes.enter_context(_without_cache())
            for mode in (
                recurrent_layer_mode(),
                embedding_bag_mode(),
                whole_window_mode(),
                disable_mask_detection(),
                known_number_mode(module),
                symbolic_len(module),
                symbolic_flags(module),
                use_triangular_solver(),
                record_called_functions(),
                with_epsilon_of(module),
            ):
                modes.enter_context(mode)
            program = export()
            if excludes_ones(program, guards_of(program)):
                other = generalize_to_size_one(export)
                if other is not None and not excludes_ones(other, guards_of(other)):
                    program = other
                    modes.enter_context(allow_size_one())
            rewrite_triangular_solves(program)
            if not decomposed:
                return program
            if not functionalize(program):
                program = decompose_program(program)
            return _decompose_composites(program)
    except Exception as error:
        message = str(error).strip().splitlines()
        reason = f"torch.export fails: {message[0] if message else type(error).__name__}"
        place = _place(error, module) if "data-dependent" in reason else ""
        raise UntranslatableError(f"{reason}{place}") from error


def _place(error: Exception, module: torch.nn.Module) -> str:
    """Return the innermost part of a module that raises an exception, and the line of its own code."""
    parts = {id(part): path for path, part in cast("Iterable[tuple[str, torch.nn.Module]]", module.named_modules())}
    place = ""
    for frame, line in walk_tb(error.__traceback__):
        path = parts.get(id(frame.f_locals.get("self")))
        file = frame.f_code.co_filename
        if path is not None and not is_library_file(file):
            source = f"{os.path.basename(file)}:{line}"
            place = f", in `{path}` ({source})" if path else f", in {source}"
    return place


def _decompose_composites(program: ExportedProgram) -> ExportedProgram:
    """Return a program without operations that have no normal form, if PyTorch defines them by others that have one."""
    import torch

    known, found = {*_unknown(program)}, program
    if not known:
        return program
    for _ in range(DEPTH):
        composite = [operation for operation in _unknown(found) if _is_composite(operation)]
        if composite:
            table = cast("Mapping[object, Callable[..., object]]", torch.export.default_decompositions())
            functions: dict[object, Callable[..., object]] = {item: table[item] for item in composite if item in table}
            found = decompose_program(found, functions)
    return found if known.issuperset(_unknown(found)) else program


def _is_composite(operation: OpOverload) -> bool:
    """Whether PyTorch defines an operation by others, the same ones for all lengths, unlike a recurrent layer."""
    names = [argument.name for argument in operation._schema.arguments]  # pyright: ignore[reportPrivateUsage]
    return operation._can_decompose() and "num_layers" not in names  # pyright: ignore[reportPrivateUsage]


def _unknown(program: ExportedProgram) -> list[OpOverload]:
    """Return the operations of a program that have no normal form, except for those on complex numbers."""
    from torch._ops import OpOverload

    calls = [node for node in nodes_of(program.graph) if tensors_of(node)]
    real = [
        node
        for node in calls
        if not any(value.is_complex() for part in (node, *node.all_input_nodes) for value in tensors_of(part))
    ]
    targets: list[object] = [node.target for node in real if operation_name(node) not in CALLS]
    return [cast("OpOverload", target) for target in targets if isinstance(target, OpOverload)]


def _without_cache() -> AbstractContextManager[None]:
    """Let shapes be computed anew each time: looking up those that have symbols takes longer."""
    from torch._dynamo import config

    return cast("AbstractContextManager[None]", config.patch({"fake_tensor_cache_enabled": False}))  # pyright: ignore
