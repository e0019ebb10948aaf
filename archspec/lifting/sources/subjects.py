"""From what users name to what is lifted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from archspec.lifting.sources.architecture import Architecture, subject_of, uncropped, unrolled, with_all_layers
from archspec.lifting.sources.collections import COLLECTIONS, subject_of_collection
from archspec.lifting.sources.configuration import architecture_of, is_configuration
from archspec.lifting.sources.file import subject_of_file
from archspec.lifting.sources.inputs import parse_input
from archspec.lifting.subject import Subject
from archspec.pytorch.build import torch_or_fail
from archspec.source import ArchError, fail

if TYPE_CHECKING:
    from torch import nn


class Source(NamedTuple):
    """What is lifted, and what makes the actual module, whose tensors the spec has to have."""

    subject: Subject
    actual: Callable[[], nn.Module]
    deep: Callable[[bool], Subject | None] = lambda alternates: None
    """A module of the same class with all layers, where these may differ: if those of a small one alternate, or else if
    the configuration says so.
    """
    alternative: Callable[[], Source | None] = lambda: None
    """Another module to lift, if this one has sizes that do not show what they depend on."""
    unrolled: Callable[[], Source | None] = lambda: None
    """Another module to lift, if this one is another program with more layers."""


def source_of(text: str, inputs: Sequence[str] = ()) -> Source:
    """Return the source that is named `FILE.py[:factory]`, `config.json`, `timm:NAME` or `torchvision:NAME`.

    `inputs` describe those of a file's module, as in `x=real[batch,8]`. Raises ArchError.
    """
    torch_or_fail()
    declared = [parse_input(item) for item in inputs]
    if text.partition(":")[0] in COLLECTIONS:
        if inputs:
            raise _known_inputs(text)
        found = subject_of_collection(text)
        return Source(found, lambda: found.module)
    if is_configuration(text):
        architecture = architecture_of(text)
        if inputs:
            raise _known_inputs(text)
        return _of_architecture(architecture)
    return Source(*subject_of_file(text, declared))


def _of_architecture(architecture: Architecture) -> Source:
    def alternative() -> Source | None:
        other = uncropped(architecture)
        return _of_architecture(other)._replace(alternative=lambda: None) if other is not None else None

    def with_layers() -> Source | None:
        other = unrolled(architecture)
        return _of_architecture(other)._replace(unrolled=lambda: None) if other is not None else None

    found = subject_of(architecture)
    return Source(found, architecture.actual, partial(with_all_layers, architecture), alternative, with_layers)


def _known_inputs(text: str) -> ArchError:
    return fail("usage", f"--input cannot be combined with `{text}`: its inputs are known")
