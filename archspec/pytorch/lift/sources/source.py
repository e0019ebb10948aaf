"""What is lifted, and what to lift in its place if that fails."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from archspec.core.diagnostics import ArchError
from archspec.pytorch.lift.sources.inputs import InputDeclaration
from archspec.pytorch.lift.sources.item_lists import ItemList
from archspec.pytorch.lift.subject import Subject
from archspec.pytorch.values.arguments import UntranslatableError

if TYPE_CHECKING:
    from torch import nn


class LayerPatternError(UntranslatableError):
    """The spec of the small module differs from the actual module, probably because the layer pattern needs more
    layers.
    """


class CoincidentSizeError(UntranslatableError):
    """The spec of two small modules fails for a third one: two sizes coincide in both."""


class Source(NamedTuple):
    """What is lifted, and what makes the actual module, whose tensors the spec has to have."""

    subject: Subject
    actual: Callable[[], nn.Module]
    others: Callable[[BaseException | None], Sequence[Callable[[], Source]]] = lambda cause: ()
    """Other modules to lift in the place of this one, by what it cannot be lifted for."""
    whole: Subject | None = None
    """The actual module, if it can be called: a small one may have taken other branches."""
    declared: Sequence[InputDeclaration] = ()
    """The inputs that users describe, in which names are sizes that may vary."""
    stated: Mapping[str, object] = MappingProxyType({})
    """What users state: the arguments of a factory by the names that hyperparameters would have, or fields."""
    lists: Sequence[ItemList] = ()
    """The lists whose items are stated."""
    keeping: Callable[[Collection[str]], Source] | None = None
    """What makes a module in which only these arguments have other values than the actual one, if there are some."""
    problem: ArchError | None = None
    """What makes it impossible that all arguments have other values."""
    flipped: Callable[[Mapping[str, bool]], Source] | None = None
    """What makes modules with other booleans than those that a factory has by default."""
    reason: Callable[[str], str] = lambda name: ""
    """Why a spec may not follow what is stated under a name."""
