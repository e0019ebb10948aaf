"""The subject of a lift: a module, the inputs to run it with, and evidence for the names of its sizes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast

from archspec.pytorch.passes.settings import use_exported_settings
from archspec.pytorch.prove.state import are_close
from archspec.pytorch.run.calling import call_exception, call_module
from archspec.pytorch.values.arguments import UntranslatableError

if TYPE_CHECKING:
    import torch
    from torch import nn


class Sample(NamedTuple):
    """A module without values, the numbers that it was made of, whether one with values can be called, and which of the
    numbers differ from those of the first module.
    """

    numbers: Mapping[str, object]
    module: torch.nn.Module
    runs: Callable[[], bool]
    changed: Sequence[str]


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
    changed: Callable[..., Subject | None] | None = None
    """The module with another value of one of the `numbers`, or of more by keyword, and inputs; None if that cannot be
    built or called.
    """
    third: Callable[[Collection[str]], Subject | None] | None = None
    """A module of the same class with further sizes, for which the spec has to hold; None if there is none."""
    samples: Callable[[Collection[str], bool], Iterator[Sample]] | None = None
    """Modules with other numbers, each of them much smaller or larger, whose tensors the spec has to have: few to check
    it, or many others to find formulas.
    """
    branches: Callable[[], Iterator[tuple[str, int]]] = lambda: iter(())
    """The `numbers` with other values, alone, for which a factory may make something else, by its comparisons."""
    has_optional: bool = True
    """Whether inputs that `forward` can do without may be optional in the spec, which takes another export."""
    has_patterns: bool = False
    """Whether the configuration says that layers differ by their numbers."""
    notes: Sequence[str] = ()
    """What the spec leaves out, as sentences."""
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
    return Subject(module, ordered, _others(module, ordered), notes=leave_out_cache(module, ordered))


def leave_out_cache(module: nn.Module, inputs: Mapping[str, torch.Tensor]) -> list[str]:
    """Give a module the settings to be exported with, and return a note if it then has fewer outputs.

    Raises Untranslatable if others of its outputs change.
    """
    if call_exception(module, inputs) is not None:
        use_exported_settings(module)
        return []
    before = call_module(module, inputs)
    if not use_exported_settings(module):
        return []
    after = call_module(module, inputs)
    if not are_close(_tensors(before), _tensors(after)):
        raise UntranslatableError("its other outputs change if it returns no cache")
    names = [[*cast("dict[str, object]", outputs)] if isinstance(outputs, dict) else [] for outputs in (before, after)]
    fewer = [name for name in names[0] if name not in names[1]]
    return [f"Left out: {', '.join(fewer)} (it is for later calls)."] if fewer else []


def _tensors(outputs: object) -> list[torch.Tensor]:
    """Return the outputs that are tensors themselves."""
    import torch

    if isinstance(outputs, dict):
        outputs = [*cast("dict[str, object]", outputs).values()]
    items = [outputs] if isinstance(outputs, torch.Tensor) else cast("Sequence[object]", outputs)
    return [item for item in items if isinstance(item, torch.Tensor)]


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
