"""Names of arguments and outputs, recorded in one call of a module."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from archspec.pytorch.passes.programs import dtype_of
from archspec.pytorch.prove.numeric import output_names
from archspec.pytorch.prove.state import without_nested_tensors
from archspec.pytorch.run.calling import call_module
from archspec.pytorch.values.arguments import UntranslatableError

if TYPE_CHECKING:
    import torch
    from torch import nn


class Argument(NamedTuple):
    """A tensor that a module was called with: its name, shape and element type."""

    name: str
    shape: tuple[int, ...]
    dtype: str


class Signatures(NamedTuple):
    """The arguments of each module by address, and the names of the outputs of the whole."""

    arguments: dict[str, list[Argument]]
    outputs: list[str]


def record_signatures(module: nn.Module, inputs: Mapping[str, torch.Tensor]) -> Signatures:
    """Call a module, and return what its modules are called with."""
    found: dict[str, list[Argument]] = {}
    modules = dict(cast("Iterable[tuple[str, nn.Module]]", module.named_modules()))
    handles = [
        part.register_forward_pre_hook(_recorder(found, path, part), with_kwargs=True) for path, part in modules.items()
    ]
    try:
        with without_nested_tensors(module):
            outputs = call_module(module, inputs)
    except UntranslatableError:
        raise
    except Exception as problem:  # of any class, as it comes from the module
        raise UntranslatableError(f"calling it fails: {problem}") from problem
    finally:
        for handle in handles:
            handle.remove()
    return Signatures(found, output_names(outputs))


def _recorder(
    found: dict[str, list[Argument]], path: str, module: nn.Module
) -> Callable[[nn.Module, tuple[object, ...], dict[str, object]], None]:
    signature = inspect.signature(module.forward)

    def record(_: nn.Module, args: tuple[object, ...], keywords: dict[str, object]) -> None:
        try:
            bound = signature.bind_partial(*args, **keywords).arguments
        except TypeError:
            return
        items: dict[str, object] = {**bound, **bound.get("kwargs", {})}
        found.setdefault(path, [argument for name, value in items.items() for argument in _arguments(name, value)])

    return record


def _arguments(name: str, value: object) -> list[Argument]:
    import torch

    if isinstance(value, torch.Tensor):
        return [Argument(name, tuple(value.shape), dtype_of(value))]
    if isinstance(value, list | tuple):
        return [argument for item in cast("list[object]", value) for argument in _arguments(name, item)]
    return []
