"""Booleans of a factory as hyperparameters: its module is lifted once more with another value of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations

from archspec.core.diagnostics import ArchError
from archspec.ir.table import PlainValue
from archspec.language.format.api import format
from archspec.language.syntax.edits import Edit, apply_edits
from archspec.pipeline.compile import compile_text, loads
from archspec.pipeline.model import Model
from archspec.pytorch.lift.check import check_again, check_outputs
from archspec.pytorch.lift.notation.merging import UnmergeableError, add_flag, merging_edits
from archspec.pytorch.lift.sources.fields import is_integer
from archspec.pytorch.lift.sources.source import Source
from archspec.pytorch.lift.subject import Subject
from archspec.pytorch.prove.api import equivalent
from archspec.pytorch.prove.numeric import flat
from archspec.pytorch.prove.state import are_close
from archspec.pytorch.prove.tables import other_rows
from archspec.pytorch.run.calling import call_module
from archspec.pytorch.values.arguments import UntranslatableError

MAX_FLAGS = 3
"""So many booleans are followed, as the spec is compared for all of their values together."""

_FETCHING = re.compile(r"pretrained|download|weights|checkpoint|load|compile")
"""Parts of the names of booleans that do more than change a module."""


class Flags:
    """The spec of a factory, and the booleans that it follows. `lift` returns the spec of another source."""

    def __init__(self, source: Source, spec: str, lift: Callable[[Source], str]) -> None:
        self._source, self._lift = source, lift
        self.spec = self._first = spec
        self.reasons: dict[str, str] = {}
        """Why others are not followed."""
        self._values: dict[str, bool] = {}
        self._edits: list[Edit] = []
        self._sources: dict[tuple[str, ...], Source | None] = {(): source}
        stated = {name: value for name, value in source.stated.items() if isinstance(value, bool)}
        for name, value in stated.items() if source.flipped is not None else ():
            if _FETCHING.search(name):
                self.reasons[name] = "it may do more than change the module"
            elif len(self._values) == MAX_FLAGS:
                self.reasons[name] = f"{MAX_FLAGS} others are followed"
            elif reason := self._add(name, value):
                self.reasons[name] = reason

    def _add(self, name: str, value: bool) -> str | None:
        """Follow a boolean, or return why it cannot be followed."""
        values = {**self._values, name: value}
        other = self._flipped([name], values)
        if other is None:
            return f"the module cannot be made with {not value}"
        if _compute_same(self._source.subject, other.subject):
            return "nothing follows it"
        try:
            subject = replace(other.subject, third=None)  # for which the merged spec is compared
            spec = self._lift(other._replace(subject=subject))
        except ArchError as error:
            return error.diagnostics[0].message.partition(": ")[2]
        for is_coarse in (False, True):
            with suppress(UnmergeableError, UntranslatableError, ArchError):
                edits = merging_edits(self._first, spec, name if value else f"not {name}", is_coarse)
                if any(_overlap(edit, earlier) for edit in edits for earlier in self._edits):
                    continue
                edits = list(dict.fromkeys([*self._edits, *edits]))
                merged = apply_edits(self._first, edits)
                for flag, usual in values.items():
                    merged = add_flag(merged, flag, usual)
                merged = format(merged)
                self._check(merged, spec, name, other, values)
                self.spec, self._edits, self._values = merged, edits, values
                return None
        return "no condition tells apart the specs with and without it"

    def _flipped(self, names: Sequence[str], values: Mapping[str, bool]) -> Source | None:
        """Return the source with other values of booleans; None if there is no such module."""
        key = tuple(names)
        if key not in self._sources:
            self._sources[key] = None
            with suppress(ArchError):
                assert self._source.flipped is not None
                self._sources[key] = self._source.flipped({name: not values[name] for name in names})
        return self._sources[key]

    def _check(self, merged: str, spec: str, name: str, other: Source, values: Mapping[str, bool]) -> None:
        """Raise Untranslatable or ArchError unless a merged spec describes every module with these booleans."""
        changed: Mapping[str, PlainValue] = {name: not values[name]}
        unchanged: Mapping[str, PlainValue] = {}
        for part, changes in ((spec, changed), (self._first, unchanged)):
            sizes = _sizes(loads(part), other.subject)
            models = [
                compile_text(text, "<text>", None, each)
                for text, each in ((merged, {**sizes, **changes}), (part, sizes))
            ]
            has_inputs = models[0].inputs.keys() == models[1].inputs.keys()
            if not has_inputs or equivalent(*models).verdict != "equal":
                raise UntranslatableError("the merged spec is another one")
        before = loads(self.spec).hyperparameters.keys()
        for count in range(len(values) + 1):
            for names in combinations(values, count):
                source = self._flipped(names, values)
                is_known = not names and loads(merged).hyperparameters.keys() == {*before, name}
                if source is not None and not is_known:
                    _check_module(merged, {name: not values[name] for name in names}, source)


def _check_module(spec: str, flags: Mapping[str, bool], source: Source) -> None:
    """Raise Untranslatable or ArchError unless a spec with some flags is a module, at several sizes."""
    model = compile_text(spec, "<text>", None, flags)
    if reason := other_rows(model, source.actual()):
        raise UntranslatableError(reason)
    subject = source.subject
    further = [
        subject.second() if subject.second else None,
        subject.third([*model.hyperparameters]) if subject.third else None,
    ]
    for other in [subject, *[each for each in further if each is not None]]:
        overrides = {**_sizes(model, other), **flags}
        try:
            check_outputs(spec, overrides, other)
        except UntranslatableError:  # rounded numbers differ, though the forms are the same
            check_again(spec, overrides, other)


def _sizes(model: Model, subject: Subject) -> dict[str, PlainValue]:
    """Return the integers that a module is made of, for those hyperparameters that a model has."""
    return {
        name: value for name, value in subject.numbers.items() if name in model.hyperparameters and is_integer(value)
    }


def _compute_same(first: Subject, other: Subject) -> bool:
    """Whether two modules have the same tensors, and the same outputs with the same values of these."""
    try:
        other.module.load_state_dict(first.module.state_dict())
        results = [flat(call_module(each.module, first.inputs)) for each in (first, other)]
    except Exception:  # of any class, as it comes from the modules
        return False
    return _ties(first) == _ties(other) and are_close(*results)


def _ties(subject: Subject) -> Collection[object]:
    """Return the names of tensors by the tensors."""
    names: dict[int, list[str]] = {}
    for name, tensor in subject.module.state_dict(keep_vars=True).items():
        names.setdefault(id(tensor), []).append(f"{name} {tensor.requires_grad}")
    return [*names.values()]


def _overlap(first: Edit, second: Edit) -> bool:
    """Whether two different changes are of the same characters."""
    return first != second and first.start < second.end and second.start < first.end
