"""The subject of a lift: a module, the inputs to run it with, and evidence for the names of its sizes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from archspec.pytorch.run.calling import call_exception

if TYPE_CHECKING:
    import torch
    from torch import nn


class Sample(NamedTuple):
    """A module without values, the numbers that it was made of, and whether one with values can be called."""

    numbers: Mapping[str, object]
    module: torch.nn.Module
    runs: Callable[[], bool]


@dataclass(frozen=True)
class Subject:
    """A module to lift. Everything but `module` and `inputs` is evidence that makes the spec more general."""

    module: torch.nn.Module
    inputs: Mapping[str, torch.Tensor]
    """By argument of `forward`, in the order of its signature."""
    other_inputs: Mapping[str, torch.Tensor] | None = None
    """The same arguments with another batch and another length: which sizes of inputs are free."""
    second: Callable[[], Subject] | None = None
    """The same architecture with other sizes: it distinguishes equal sizes, and shows how they depend on fields."""
    numbers: Mapping[str, object] = field(default_factory=dict[str, object])
    """Values of the configuration by name, such as `hidden_size`: names for hyperparameters."""
    actual: Mapping[str, object] | None = None
    """Values for the model in place of `numbers`, where the module is a small one of a larger architecture."""
    name: str = ""
    """The name of the model in the spec; empty for that of the module's class."""
    free: Mapping[str, Sequence[int | str]] = field(default_factory=dict[str, "Sequence[int | str]"])
    """The sizes of inputs as users describe them: numbers, or names for dimensions."""
    parts: Sequence[str] = ()
    """The beginnings of the names of those values that belong to a part, such as `text_`."""
    changed: Callable[[str, int], Subject | None] | None = None
    """The module with another value of one of the `numbers`, and inputs; None if that cannot be built or called."""
    third: Callable[[Collection[str]], Subject | None] | None = None
    """A module of the same class with further sizes, for which the spec has to hold; None if there is none."""
    samples: Callable[[Collection[str]], Iterator[Sample]] | None = None
    """Modules with other numbers, each of them much smaller or larger, whose tensors the spec has to have."""
    has_patterns: bool = False
    """Whether the configuration says that layers differ by their numbers."""
    deep: Callable[[bool], Subject | None] | None = None
    """A module of the same class with all layers; None if this one has as many. One that is too large to be run is only
    made if it is said that its layers differ.
    """


# Subjects from a module and example inputs: which of its sizes are free is found by trying.


def subject_of(module: nn.Module, inputs: Mapping[str, torch.Tensor] | Sequence[torch.Tensor]) -> Subject:
    """Return what is to be lifted for a module and inputs, by argument of `forward` or in its order."""
    names = list(inspect.signature(module.forward).parameters)
    given = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(names, inputs, strict=False))
    ordered = {name: given[name] for name in names if name in given} | given
    config = getattr(module, "config", None)
    numbers: Mapping[str, object] = config.to_dict() if config is not None and hasattr(config, "to_dict") else {}
    return Subject(module, ordered, _others(module, ordered), numbers=numbers)


def _others(module: nn.Module, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor] | None:
    """Return inputs with as many other sizes as the module accepts: the batch, and one more axis."""
    for axes in ((0, 1), (0,)):
        found = {name: _resized(tensor, axes) for name, tensor in inputs.items()}
        if call_exception(module, found) is None:
            return found
    return None


def _resized(tensor: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
    """Return a tensor with one more element along axes: axis 1 only of ids and sequences."""
    for axis in axes:
        if (axis == 0 and tensor.dim()) or (
            axis == 1 and (tensor.dim() == 3 or (tensor.dim() == 2 and not tensor.dtype.is_floating_point))
        ):
            tensor = tensor.new_zeros([size + (at == axis) * (1 + axis) for at, size in enumerate(tensor.shape)])
    return tensor
