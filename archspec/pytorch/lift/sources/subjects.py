"""From what users name to what is lifted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from archspec.core.diagnostics import ArchError, make_error
from archspec.core.optional import import_torch
from archspec.pytorch.export.capture import SingleLengthError
from archspec.pytorch.lift.check import TooLargeToRunError
from archspec.pytorch.lift.sizes.sizes import ActualSizeError, SizeDependenceError
from archspec.pytorch.lift.sources.architecture import (
    Architecture,
    build_small_module,
    parts_of,
    reason_for,
    subject_of,
)
from archspec.pytorch.lift.sources.configuration import architecture_of, is_configuration
from archspec.pytorch.lift.sources.examples import check_contents
from archspec.pytorch.lift.sources.factories import fixed_file, source_of_file
from archspec.pytorch.lift.sources.file import COLLECTIONS, subject_of_collection
from archspec.pytorch.lift.sources.inputs import parse_input
from archspec.pytorch.lift.sources.source import CoincidentSizeError, LayerPatternError, Source
from archspec.pytorch.lift.sources.variations import (
    has_actual_heads,
    resize_second,
    separate_part_sizes,
    shrinks_lists,
    uncropped,
    unrolled,
    with_fewer_layers,
    with_fewer_parameters,
    with_longer,
    with_more_heads,
    with_same_reals,
    with_separate_sizes,
)


def source_of(text: str, inputs: Sequence[str] = ()) -> Source:
    """Return the source that is named `FILE.py[:factory]`, `config.json`, `timm:NAME` or `torchvision:NAME`.

    `inputs` describe those of a file's module, as in `x=real[batch,8]`. Raises ArchError.
    """
    import_torch()
    declared = [parse_input(item) for item in inputs]
    if text.partition(":")[0] in COLLECTIONS:
        if inputs:
            raise make_error("usage", f"--input cannot be combined with `{text}`: its inputs are known")
        found = subject_of_collection(text)
        return Source(found, lambda: found.module)
    if is_configuration(text):
        return source_of_architecture(architecture_of(text, declared))
    return source_of_file(text, declared)


def fixed_source_of(text: str, inputs: Sequence[str] = ()) -> Source:
    """Return the source of a module as it is, with numbers for all sizes. Raises ArchError."""
    import_torch()
    declared = [parse_input(item) for item in inputs]
    if text.partition(":")[0] not in COLLECTIONS and is_configuration(text):
        architecture = with_fewer_layers(architecture_of(text, declared))
        whole = replace(architecture, choices=[choices._replace(layers=()) for choices in architecture.choices])
        subject = build_small_module(whole, 0).subject
        source = Source(subject, lambda: subject.module, stated=architecture.stated)
    else:
        source = source_of(text, inputs) if text.partition(":")[0] in COLLECTIONS else fixed_file(text, declared)
    subject = replace(source.subject, has_optional=False, numbers={})
    return source._replace(subject=subject, reason=_fixed_reason)


def _fixed_reason(name: str) -> str:
    """Return why the spec of a module as it is follows no argument."""
    return "--fixed"


def source_of_architecture(architecture: Architecture) -> Source:
    """Return small modules of an architecture, or else shallow ones. Raises ArchError if none can be built and run."""
    whole = unrolled(architecture)
    first = whole if whole is not None and shrinks_lists(architecture) else architecture

    def others(cause: BaseException | None) -> list[Callable[[], Source]]:
        longer = [with_longer(first, found.subject.inputs)] if isinstance(cause, SingleLengthError) else []
        same = [with_same_reals(first)] if isinstance(cause, SizeDependenceError) else []
        small = _other_small_ones(architecture, first is whole, cause)
        shallow_ones = _of_actual_sizes(
            separate_part_sizes(architecture) if isinstance(cause, CoincidentSizeError) else architecture
        )
        together = [partial(_source, first, False)] if parts_of(architecture.fields) else []
        return [*together, *_sources([*longer, *same, *small, *shallow_ones])]

    try:
        found = _source(first)
    except ArchError as problem:
        rest = [
            *_other_small_ones(architecture, first is whole, SizeDependenceError()),
            *_of_actual_sizes(architecture),
        ]
        return _first_that_runs(_sources(rest), problem)
    return _with_small_heads(first, found._replace(others=others))


def _with_small_heads(architecture: Architecture, found: Source) -> Source:
    """Return a source; one with more heads than small modules usually have if those have as many as the actual one, as
    these numbers would be no hyperparameters.
    """

    def instead(_: BaseException | None) -> list[Callable[[], Source]]:
        return [lambda: found]

    more = with_more_heads(architecture) if has_actual_heads(found.subject) else None
    if more is None:
        return found
    try:
        other = _source(more)
    except ArchError:
        return found
    return found if has_actual_heads(other.subject) else other._replace(others=instead)


def _other_small_ones(
    architecture: Architecture, is_whole: bool, cause: BaseException | None
) -> list[Architecture | None]:
    """Return other architectures with small modules, for one with all layers (`is_whole`) or with few."""
    whole, large = unrolled(architecture), uncropped(architecture)
    large_whole = unrolled(large) if large else None
    if isinstance(cause, TooLargeToRunError):
        return (
            [with_fewer_parameters(whole), large_whole]
            if is_whole and whole
            else [with_fewer_parameters(architecture), large]
        )
    if isinstance(cause, CoincidentSizeError):
        return [separate_part_sizes(whole if is_whole and whole else architecture)]
    if is_whole:
        return [large_whole]
    if isinstance(cause, SizeDependenceError):
        return [with_more_heads(architecture), whole, large_whole]
    if isinstance(cause, LayerPatternError):
        return [large, whole]
    return [resize_second(architecture), large] if isinstance(cause, ActualSizeError) else [large]


def _of_actual_sizes(architecture: Architecture) -> list[Architecture | None]:
    found = with_fewer_layers(architecture)
    return [found, unrolled(found)]


def _first_that_runs(sources: Sequence[Callable[[], Source]], problem: ArchError) -> Source:
    """Return the first source that can be built and run, which those after it may replace. Raises the problem."""
    rest = [*sources]

    def others(cause: BaseException | None) -> list[Callable[[], Source]]:
        return rest

    while rest:
        make = rest.pop(0)
        try:
            return make()._replace(others=others)
        except ArchError:
            continue
    raise problem


def _sources(architectures: Sequence[Architecture | None]) -> list[Callable[[], Source]]:
    return [partial(_source, architecture) for architecture in architectures if architecture is not None]


def _source(architecture: Architecture, across_parts: bool = True) -> Source:
    def others(cause: BaseException | None) -> list[Callable[[], Source]]:
        return _sources([with_fewer_parameters(architecture)]) if isinstance(cause, TooLargeToRunError) else []

    subject = subject_of(*with_separate_sizes(architecture, across_parts))
    check_contents(subject.name, subject.module, [*subject.inputs])
    reason = partial(reason_for, architecture)
    return Source(subject, architecture.actual, others, stated=architecture.stated, reason=reason)
