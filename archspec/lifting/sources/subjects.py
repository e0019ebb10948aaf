"""From what users name to what is lifted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from archspec.equivalence.calls.values import Untranslatable
from archspec.equivalence.capture import OfShortInputs
from archspec.libraries import torch_or_fail
from archspec.lifting.check import OfLargeSizes
from archspec.lifting.sizes import OfSmallSizes, Unlike
from archspec.lifting.sources.architecture import Architecture, parts_of, subject_of
from archspec.lifting.sources.collections import COLLECTIONS, subject_of_collection
from archspec.lifting.sources.configuration import architecture_of, is_configuration
from archspec.lifting.sources.file import architecture_of_file
from archspec.lifting.sources.inputs import Declared, parse_input
from archspec.lifting.sources.kinds import kind_of
from archspec.lifting.sources.variations import (
    apart,
    has_actual_heads,
    has_layers,
    lighter,
    multiplied,
    relayered,
    resized,
    shallow,
    shrinks_lists,
    uncropped,
    unrolled,
    wider,
    with_longer,
    with_more_heads,
    with_same_reals,
    with_separate_sizes,
    without_field,
)
from archspec.lifting.subject import Subject
from archspec.source import ArchError, fail

if TYPE_CHECKING:
    from torch import nn


KINDS_LEFT_OUT = "kept", "groups", "heads", "head"
"""Kinds of arguments, in the order in which one keeps its value if a module cannot be lifted with all of them."""


class OfFewLayers(Untranslatable):
    """The spec of a small module is not that of the actual one, as its layers may be of other kinds."""


class OfOtherSizes(Untranslatable):
    """The spec of two small modules is not that of a third one, as a size has the value of another one in both."""


class Source(NamedTuple):
    """What is lifted, and what makes the actual module, whose tensors the spec has to have."""

    subject: Subject
    actual: Callable[[], nn.Module]
    others: Callable[[BaseException | None], Sequence[Callable[[], Source]]] = lambda cause: ()
    """Other modules to lift in the place of this one, by what it cannot be lifted for."""
    whole: Subject | None = None
    """The actual module, if it can be called: a small one may have taken other branches."""
    declared: Sequence[Declared] = ()
    """The inputs that users describe, in which names are sizes that may vary."""


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
    return _source_of_file(text, declared)


def _source_of_file(text: str, declared: Sequence[Declared], are_long: bool = False) -> Source:
    """Return small modules of the factory in a file, or else the one that it makes, which are called with long inputs
    or with usual ones. Raises ArchError.
    """
    architecture, whole = architecture_of_file(text, declared, are_long)

    def others_for(
        rest: Sequence[Callable[[], Source]],
    ) -> Callable[[BaseException | None], list[Callable[[], Source]]]:
        def others(cause: BaseException | None) -> list[Callable[[], Source]]:
            is_short = isinstance(cause, OfShortInputs) and declared and not are_long
            if is_short:
                return [partial(_source_of_file, text, declared, True)]
            is_of_sizes = isinstance(cause, Unlike | OfOtherSizes | OfSmallSizes)
            return [*rest[:-1], *without_one(), as_it_is] if is_of_sizes and as_it_is in rest else [*rest]

        return others

    def as_it_is() -> Source:
        return Source(whole, lambda: whole.module, others_for(()), declared=declared)

    def small(subject: Subject) -> Source:
        return Source(subject, lambda: whole.module, others_for(()), whole, declared)

    def of(found: Architecture) -> Source:
        return small(subject_of(found))

    def first_of(sources: Sequence[Callable[[], Source]]) -> Source:
        make, *others = sources
        try:
            return make()._replace(others=others_for(others))
        except ArchError:
            return first_of(others)

    def with_multiples(found: Architecture, subject: Subject) -> list[Callable[[], Source]]:
        sizes = [size for item in declared for size in item.sizes]
        of_inputs = [name for name, value in found.fields.items() if value in sizes]
        depths = [name for name in found.fields if kind_of(name) == "layers"]
        kept = [depths, [*depths, *of_inputs]] if of_inputs else [depths]
        larger = [multiplied(found, subject, names) for names in kept]
        return [*[partial(of, other) for other in larger if other], partial(small, subject)]

    def with_separate(found: Architecture) -> Source:
        separate, first = with_separate_sizes(found)
        return first_of(with_multiples(separate, subject_of(separate, first)))

    def without_one() -> list[Callable[[], Source]]:
        fields = architecture.fields if architecture is not None else {}
        order = {kind: turn for turn, kind in enumerate(KINDS_LEFT_OUT)}
        names = sorted(fields, key=lambda name: order.get(kind_of(name), len(order))) if len(fields) > 1 else []
        return [partial(with_separate, without_field(architecture, name)) for name in names if architecture is not None]

    def with_all_layers(found: Architecture) -> Source:
        makes = with_multiples(found, subject_of(found))
        return first_of([partial(_of_fixed_depth, make) for make in makes])

    if architecture is None:
        return as_it_is()
    try:
        separate, first = with_separate_sizes(architecture)
        deep = unrolled(separate)
        rest = [partial(with_all_layers, deep)] if deep is not None and has_layers(separate) else []
        same = with_same_reals(separate)
        rest = [*([partial(of, same)] if same else []), partial(of, relayered(separate)), *rest]
        rest += [partial(with_separate, wider(architecture)), as_it_is]
        sources = [*with_multiples(separate, subject_of(separate, first)), *rest]
    except ArchError:  # the fields are not independent
        return as_it_is()
    return first_of(sources)


def _of_fixed_depth(make: Callable[[], Source]) -> Source:
    """Return a source without numbers of layers as names of hyperparameters: fewer layers are of other kinds."""

    def fixed(found: Subject) -> Subject:
        numbers = {name: value for name, value in found.numbers.items() if kind_of(name) != "layers"}
        return replace(found, numbers=numbers)

    source = make()
    second = source.subject.second
    subject = replace(fixed(source.subject), second=None if second is None else lambda: fixed(second()))
    return source._replace(subject=subject)


def source_of_architecture(architecture: Architecture) -> Source:
    """Return small modules of an architecture, or else shallow ones. Raises ArchError if none can be built and run."""
    whole = unrolled(architecture)
    first = whole if whole is not None and shrinks_lists(architecture) else architecture

    def others(cause: BaseException | None) -> list[Callable[[], Source]]:
        longer = [with_longer(first, found.subject.inputs)] if isinstance(cause, OfShortInputs) else []
        same = [with_same_reals(first)] if isinstance(cause, Unlike) else []
        small = _other_small_ones(architecture, first is whole, cause)
        shallow_ones = _of_actual_sizes(apart(architecture) if isinstance(cause, OfOtherSizes) else architecture)
        together = [partial(_source, first, False)] if parts_of(architecture.fields) else []
        return [*together, *_sources([*longer, *same, *small, *shallow_ones])]

    try:
        found = _source(first)
    except ArchError as problem:
        rest = [*_other_small_ones(architecture, first is whole, Unlike()), *_of_actual_sizes(architecture)]
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
    if isinstance(cause, OfLargeSizes):
        return [lighter(whole), large_whole] if is_whole and whole else [lighter(architecture), large]
    if isinstance(cause, OfOtherSizes):
        return [apart(whole if is_whole and whole else architecture)]
    if is_whole:
        return [large_whole]
    if isinstance(cause, Unlike):
        return [with_more_heads(architecture), whole, large_whole]
    if isinstance(cause, OfFewLayers):
        return [large, whole]
    return [resized(architecture), large] if isinstance(cause, OfSmallSizes) else [large]


def _of_actual_sizes(architecture: Architecture) -> list[Architecture | None]:
    found = shallow(architecture)
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
        return _sources([lighter(architecture)]) if isinstance(cause, OfLargeSizes) else []

    return Source(subject_of(*with_separate_sizes(architecture, across_parts)), architecture.actual, others)


def _known_inputs(text: str) -> ArchError:
    return fail("usage", f"--input cannot be combined with `{text}`: its inputs are known")
