"""Small modules of the factories in files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from archspec.core.diagnostics import ArchError
from archspec.pytorch.export.capture import SingleLengthError
from archspec.pytorch.lift.sizes.evidence import FormulaError
from archspec.pytorch.lift.sources.architecture import Architecture, reason_for, subject_of
from archspec.pytorch.lift.sources.fields import is_pattern, kind_of, numbers_in
from archspec.pytorch.lift.sources.file import architecture_of_file
from archspec.pytorch.lift.sources.inputs import InputDeclaration
from archspec.pytorch.lift.sources.source import Source
from archspec.pytorch.lift.sources.variations import (
    multiplied,
    resize_and_relayer,
    with_larger_widths,
    with_same_reals,
    with_separate_sizes,
)
from archspec.pytorch.lift.subject import Subject

Makes: TypeAlias = "Sequence[Callable[[], Source]]"


def source_of_file(
    text: str,
    declared: Sequence[InputDeclaration],
    are_long: bool = False,
    flags: Mapping[str, bool] = MappingProxyType({}),
) -> Source:
    """Return small modules of the factory in a file, or else the one that it makes, which are called with long inputs
    or with usual ones. `flags` are booleans that the factory is given. Raises ArchError.
    """
    architecture, whole = architecture_of_file(text, declared, are_long, flags)
    longer = None if are_long or not declared else partial(source_of_file, text, declared, True, flags)
    source = _Factory(architecture, whole, declared, longer).source()
    return source._replace(flipped=partial(source_of_file, text, declared, are_long))


def fixed_file(text: str, declared: Sequence[InputDeclaration]) -> Source:
    """Return the module that the factory in a file makes, as it is. Raises ArchError."""
    architecture, whole = architecture_of_file(text, declared)
    stated: Mapping[str, object] = {} if architecture is None else architecture.stated
    return Source(whole, lambda: whole.module, declared=declared, stated=stated)


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
        """Return small modules, with others in their place; the actual one if it has no arguments."""
        if self.architecture is None:
            return self._as_it_is()
        if not numbers_in(self.architecture.fields):
            return self._described(self._as_it_is())
        try:
            return self._described(self._chain(self.architecture))
        except ArchError as problem:
            return self._described(self._as_it_is()._replace(problem=problem))

    def _described(self, source: Source) -> Source:
        architecture = self.architecture
        assert architecture is not None
        reason = partial(reason_for, architecture)
        return source._replace(
            stated=architecture.stated, lists=architecture.lists, keeping=self._keeping, reason=reason
        )

    def _chain(self, architecture: Architecture) -> Source:
        separate, first = with_separate_sizes(architecture)
        same = with_same_reals(separate)
        rest: list[Callable[[], Source]] = [] if same is None else [partial(self._of, same)]
        rest += [partial(self._of, resize_and_relayer(separate))]
        rest += [partial(self._with_separate, with_larger_widths(architecture))]
        return self._first_of([*self._with_multiples(separate, subject_of(separate, first)), *rest])

    def _keeping(self, names: Collection[str]) -> Source:
        """Return small modules in which only these arguments have other values than in the actual one."""
        architecture, longer = self.architecture, self.longer
        if architecture is not None:
            fields = {
                name: value for name, value in architecture.fields.items() if name in names or isinstance(value, bool)
            }
            architecture = replace(architecture, fields=fields)

        def long() -> Source:
            assert longer is not None
            found = longer()
            return found.keeping(names) if found.keeping is not None else found

        other = _Factory(architecture, self.whole, self.declared, None if longer is None else long)
        return other.source()

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
            if not others:
                raise
            return self._first_of(others)

    def _others_for(self, rest: Makes) -> Callable[[BaseException | None], Makes]:
        def others(cause: BaseException | None) -> Makes:
            if isinstance(cause, FormulaError):  # other small modules show no more formulas
                return []
            return [self.longer] if isinstance(cause, SingleLengthError) and self.longer is not None else rest

        return others

    def _with_multiples(self, architecture: Architecture, subject: Subject) -> Makes:
        """Return what makes small modules, with multiples of numbers of an unknown kind if there are some."""
        sizes = [size for item in self.declared for size in item.sizes]
        depths = [name for name in architecture.fields if kind_of(name) == "layers"]
        patterns = [name for name in architecture.fields if is_pattern(name)]
        of_inputs = [name for name, value in architecture.fields.items() if value in sizes]
        constant = [depths, *[[*depths, *names] for names in (patterns, of_inputs) if names]]
        larger = [multiplied(architecture, subject, names) for names in constant]
        return [*[partial(self._of, found) for found in larger if found], partial(self._small, subject)]

    def _with_separate(self, architecture: Architecture) -> Source:
        separate, first = with_separate_sizes(architecture)
        return self._first_of(self._with_multiples(separate, subject_of(separate, first)))
