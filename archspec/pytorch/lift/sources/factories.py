"""Small modules of the factories in files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from archspec.core.diagnostics import ArchError
from archspec.pytorch.export.capture import SingleLengthError
from archspec.pytorch.lift.sizes.sizes import ActualSizeError, SizeDependenceError
from archspec.pytorch.lift.sources.architecture import Architecture, subject_of
from archspec.pytorch.lift.sources.fields import kind_of
from archspec.pytorch.lift.sources.file import architecture_of_file
from archspec.pytorch.lift.sources.inputs import InputDeclaration
from archspec.pytorch.lift.sources.source import CoincidentSizeError, Source
from archspec.pytorch.lift.sources.variations import (
    has_layers,
    multiplied,
    resize_and_relayer,
    unrolled,
    with_larger_widths,
    with_same_reals,
    with_separate_sizes,
    without_field,
)
from archspec.pytorch.lift.subject import Subject

KINDS_LEFT_OUT = "kept", "groups", "heads", "head"
"""Kinds of arguments, in the order in which one keeps its value if a module cannot be lifted with all of them."""

Makes: TypeAlias = "Sequence[Callable[[], Source]]"


def source_of_file(text: str, declared: Sequence[InputDeclaration], are_long: bool = False) -> Source:
    """Return small modules of the factory in a file, or else the one that it makes, which are called with long inputs
    or with usual ones. Raises ArchError.
    """
    architecture, whole = architecture_of_file(text, declared, are_long)
    longer = None if are_long or not declared else partial(source_of_file, text, declared, True)
    return _Factory(architecture, whole, declared, longer).source()


class _Factory:
    """The factory in a file. `longer` makes its source with long inputs, if they are usual ones."""

    def __init__(
        self,
        architecture: Architecture | None,
        whole: Subject,
        declared: Sequence[InputDeclaration],
        longer: Callable[[], Source] | None,
    ) -> None:
        self.architecture = architecture
        self.whole = whole
        self.declared = declared
        self.longer = longer

    def source(self) -> Source:
        """Return small modules, with others in their place; the actual one if it has no arguments, or if these are not
        independent.
        """
        if self.architecture is None:
            return self._as_it_is()
        try:
            separate, first = with_separate_sizes(self.architecture)
            deep, same = unrolled(separate), with_same_reals(separate)
            rest: list[Callable[[], Source]] = [] if same is None else [partial(self._of, same)]
            rest.append(partial(self._of, resize_and_relayer(separate)))
            if deep is not None and has_layers(separate):
                rest.append(partial(self._with_all_layers, deep))
            rest += [partial(self._with_separate, with_larger_widths(self.architecture)), self._as_it_is]
            return self._first_of([*self._with_multiples(separate, subject_of(separate, first)), *rest])
        except ArchError:
            return self._as_it_is()

    def _as_it_is(self) -> Source:
        return Source(self.whole, lambda: self.whole.module, self._others_for(()), declared=self.declared)

    def _small(self, subject: Subject) -> Source:
        return Source(subject, lambda: self.whole.module, self._others_for(()), self.whole, self.declared)

    def _of(self, architecture: Architecture) -> Source:
        return self._small(subject_of(architecture))

    def _first_of(self, makes: Makes) -> Source:
        """Return the first source that can be made, which those after it may replace."""
        make, *others = makes
        try:
            return make()._replace(others=self._others_for(others))
        except ArchError:
            return self._first_of(others)

    def _others_for(self, rest: Makes) -> Callable[[BaseException | None], Makes]:
        def others(cause: BaseException | None) -> Makes:
            if isinstance(cause, SingleLengthError) and self.longer is not None:
                return [self.longer]
            is_of_sizes = isinstance(cause, SizeDependenceError | CoincidentSizeError | ActualSizeError)
            if is_of_sizes and self.architecture is not None and self._as_it_is in rest:
                return [*rest[:-1], *self._without_one(self.architecture), self._as_it_is]
            return rest

        return others

    def _with_multiples(self, architecture: Architecture, subject: Subject) -> Makes:
        """Return what makes small modules, with multiples of numbers of an unknown kind if there are some."""
        sizes = [size for item in self.declared for size in item.sizes]
        depths = [name for name in architecture.fields if kind_of(name) == "layers"]
        of_inputs = [name for name, value in architecture.fields.items() if value in sizes]
        kept = [depths, [*depths, *of_inputs]] if of_inputs else [depths]
        larger = [multiplied(architecture, subject, names) for names in kept]
        return [*[partial(self._of, found) for found in larger if found], partial(self._small, subject)]

    def _with_separate(self, architecture: Architecture) -> Source:
        separate, first = with_separate_sizes(architecture)
        return self._first_of(self._with_multiples(separate, subject_of(separate, first)))

    def _without_one(self, architecture: Architecture) -> Makes:
        """Return what makes small modules in which one argument has its actual value."""
        fields = architecture.fields
        order = {kind: turn for turn, kind in enumerate(KINDS_LEFT_OUT)}
        names = sorted(fields, key=lambda name: order.get(kind_of(name), len(order))) if len(fields) > 1 else []
        return [partial(self._with_separate, without_field(architecture, name)) for name in names]

    def _with_all_layers(self, architecture: Architecture) -> Source:
        makes = self._with_multiples(architecture, subject_of(architecture))
        return self._first_of([partial(_of_fixed_depth, make) for make in makes])


def _of_fixed_depth(make: Callable[[], Source]) -> Source:
    """Return a source without numbers of layers as names of hyperparameters: fewer layers are of other kinds."""

    def fixed(found: Subject) -> Subject:
        numbers = {name: value for name, value in found.numbers.items() if kind_of(name) != "layers"}
        return replace(found, numbers=numbers)

    source = make()
    second = source.subject.second
    subject = replace(fixed(source.subject), second=None if second is None else lambda: fixed(second()))
    return source._replace(subject=subject)
