"""From what users name to what is lifted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from archspec.equivalence.calls.values import Untranslatable
from archspec.lifting.sizes import OfSmallSizes, Unlike
from archspec.lifting.sources.architecture import (
    Architecture,
    resized,
    shallow,
    subject_of,
    uncropped,
    unrolled,
    with_more_heads,
)
from archspec.lifting.sources.collections import COLLECTIONS, subject_of_collection
from archspec.lifting.sources.configuration import architecture_of, is_configuration
from archspec.lifting.sources.file import subject_of_file
from archspec.lifting.sources.inputs import parse_input
from archspec.lifting.sources.shrinking import shrinks_lists
from archspec.lifting.subject import Subject
from archspec.pytorch.build import torch_or_fail
from archspec.source import ArchError, fail

if TYPE_CHECKING:
    from torch import nn


class OfFewLayers(Untranslatable):
    """The spec of a small module is not that of the actual one, as its layers may be of other kinds."""


class Source(NamedTuple):
    """What is lifted, and what makes the actual module, whose tensors the spec has to have."""

    subject: Subject
    actual: Callable[[], nn.Module]
    others: Callable[[BaseException | None], Sequence[Callable[[], Source]]] = lambda cause: ()
    """Other modules to lift in the place of this one, by what it cannot be lifted for."""


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
        return source_of_architecture(architecture)
    return Source(*subject_of_file(text, declared))


def source_of_architecture(architecture: Architecture) -> Source:
    """Return small modules of an architecture, or else shallow ones. Raises ArchError if none can be built and run."""

    whole, large = unrolled(architecture), uncropped(architecture)
    has_lists = shrinks_lists(architecture.fields, architecture.proposals[0], architecture.choices[0])
    first = whole if has_lists and whole is not None else architecture

    def others(cause: BaseException | None) -> Sequence[Callable[[], Source]]:
        small = [large]
        if first is whole:
            small = [unrolled(large) if large else None]
        elif isinstance(cause, Unlike):
            small = [with_more_heads(architecture), whole, unrolled(large) if large else None]
        elif isinstance(cause, OfFewLayers):
            small += [whole, resized(architecture)]
        elif isinstance(cause, OfSmallSizes):
            small = [resized(architecture), large]
        of_its_sizes = shallow(architecture)
        found = [*small, of_its_sizes, unrolled(of_its_sizes)]
        return [partial(_source, other) for other in found if other is not None]

    try:
        return _source(first)._replace(others=others)
    except ArchError:  # no small module can be built and run
        rest = [*others(Unlike())]

        def remaining(cause: BaseException | None) -> Sequence[Callable[[], Source]]:
            return rest

        while rest:
            make = rest.pop(0)
            try:
                return make()._replace(others=remaining)
            except ArchError:
                continue
        raise


def _source(architecture: Architecture) -> Source:
    return Source(subject_of(architecture), architecture.actual)


def _known_inputs(text: str) -> ArchError:
    return fail("usage", f"--input cannot be combined with `{text}`: its inputs are known")
