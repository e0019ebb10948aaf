"""The subject of a lift: a module, the inputs to run it with, and evidence for the names of its sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


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
    third: Callable[[], Subject | None] | None = None
    """A module of the same class with further sizes, for which the spec has to hold; None if there is none."""
    has_patterns: bool = False
    """Whether the configuration says that layers differ by their numbers."""
    deep: Callable[[bool], Subject | None] | None = None
    """A module of the same class with all layers; None if this one has as many. One that is too large to be run is only
    made if it is said that its layers differ.
    """
