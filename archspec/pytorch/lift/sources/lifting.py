"""From what users name to a spec."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from textwrap import wrap
from typing import cast

from archspec.core.diagnostics import ArchError, Diagnostic, make_error
from archspec.ir.table import PlainValue
from archspec.pipeline.compile import compile_text, loads
from archspec.pipeline.model import Model
from archspec.pytorch.lift.api import as_refusal, lift_subject
from archspec.pytorch.lift.check import ComparisonError, UndecidedError, check_again, check_outputs, check_unrounded
from archspec.pytorch.lift.sources.examples import left_out
from archspec.pytorch.lift.sources.fields import is_integer
from archspec.pytorch.lift.sources.source import CoincidentSizeError, LayerPatternError, Source
from archspec.pytorch.lift.sources.subjects import source_of
from archspec.pytorch.lift.spec_text import WIDTH
from archspec.pytorch.lift.subject import Sample, Subject
from archspec.pytorch.passes.precision import in_float64, keep_epsilon
from archspec.pytorch.prove.tables import other_rows
from archspec.pytorch.values.arguments import UntranslatableError


def lift_source(text: str, inputs: Sequence[str] = ()) -> str:
    """Return the spec of what is named `FILE.py[:factory]`, `config.json`, `timm:NAME` or `torchvision:NAME`.

    `inputs` describe those of a file's module, as in `x=real[batch,8]`. Raises ArchError.
    """
    spec, _ = lift_with_notes(text, inputs)
    return spec


def lift_with_notes(text: str, inputs: Sequence[str] = ()) -> tuple[str, list[Diagnostic]]:
    """Return a spec as `lift_source`, and what it does not follow, or leaves out, which comments in it say as well."""
    source = source_of(text, inputs)
    spec, reasons = _following_most(source)
    notes = [*_notes(source, spec, reasons)]
    lines = [line for note in notes for line in wrap(note, WIDTH, initial_indent="# ", subsequent_indent="#   ")]
    title, newline, rest = spec.partition("\n")
    warnings = [Diagnostic("not-lifted", note.removesuffix("."), severity="warning") for note in notes]
    return title + newline + "".join([f"{line}\n" for line in lines]) + rest, warnings


def _notes(source: Source, spec: str, reasons: Mapping[str, str]) -> Iterator[str]:
    """Yield what a spec does not follow, by its reasons, and the inputs that are left out."""
    model = loads(spec)
    found: dict[str, list[str]] = {}
    for name, value in source.stated.items():
        if name not in model.hyperparameters:
            found.setdefault(reasons.get(name) or source.reason(name), []).append(f"{name} = {value}")
    for reason, names in found.items():
        yield f"Not followed: {', '.join(names)} ({reason})."
    module, given = source.subject.module, source.subject.inputs
    arguments = inspect.signature(module.forward).parameters.values() if source.declared else ()
    missing = [item.name for item in arguments if item.default is None and item.name not in given]
    missing = missing or left_out(module, given)
    if missing:
        yield f"Left out: {', '.join(missing)} (it can do without)."


def _following_most(source: Source) -> tuple[str, dict[str, str]]:
    """Return a spec that follows all arguments of a source, or else as many as it can, and why it does not follow
    others. Raises ArchError if it cannot be lifted with their actual values either.
    """
    try:
        return lift_or_replace(source), {}
    except ArchError as error:
        problem, keeping = error, source.keeping
    if keeping is None:
        raise problem
    try:
        best = lift_or_replace(keeping(()))
    except ArchError:
        raise problem from problem.__cause__
    followed = loads(best).hyperparameters.keys()
    names, kept = [name for name, value in source.stated.items() if is_integer(value)], list[str]()
    reasons: dict[str, str] = {}
    for name in names:
        if len(kept) + 1 == len(names):  # these are all
            break
        try:
            spec = lift_or_replace(keeping([*kept, name]))
        except ArchError as error:
            reasons[name] = _reason(error)
            continue
        arguments = loads(spec).hyperparameters.keys()
        if arguments > followed:  # it has lost no other one
            best, followed = spec, arguments
            kept.append(name)
    return best, {name: reasons.get(name) or _reason(problem) for name in names if name not in kept}


def _reason(error: ArchError) -> str:
    """Return why something cannot be lifted."""
    return error.diagnostics[0].message.partition(": ")[2]


def lift_or_replace(source: Source) -> str:
    """Return the spec of a source, or of another module in its place if it cannot be lifted. Raises ArchError."""
    try:
        return _lifted(source)
    except ArchError as error:
        problem = error
    for other in source.others(problem.__cause__):
        try:
            return lift_or_replace(other())
        except ArchError:
            continue
    raise problem


def _lifted(source: Source) -> str:
    if source.problem is not None:
        raise source.problem
    spec = lift_subject(source.subject)
    model = loads(spec)
    name, reason = source.subject.name, other_rows(model, source.actual())
    if reason:
        reason = f"the spec lifted from a small module is wrong at the actual sizes: {reason}"
        raise make_error("lift", f"cannot lift `{name}`: {reason}") from LayerPatternError(reason)
    _check_free_sizes(model, source)
    differs = source.subject.has_patterns or " if i " in spec
    deep = source.subject.deep(differs) if source.subject.deep is not None else None
    if deep is not None:
        overrides = {name: cast("PlainValue", deep.numbers[name]) for name in model.hyperparameters}
        as_refusal(name, lambda: _check_deep(spec, overrides, deep, differs))
    whole = source.whole
    if whole is not None:
        as_refusal(name, lambda: _check_whole(spec, whole))
    if source.subject.third is not None:
        third = source.subject.third
        as_refusal(name, lambda: _check_third(spec, [*model.hyperparameters], third))
    if source.subject.samples is not None:
        samples = source.subject.samples
        as_refusal(name, lambda: _check_samples(spec, [*model.hyperparameters], samples(model.hyperparameters)))
    return spec


def _check_free_sizes(model: Model, source: Source) -> None:
    """Refuse a spec that is for one size where users say that there may be any."""
    whole = source.whole or source.subject
    others = whole.other_inputs or {}
    for item in source.declared:
        if item.name not in model.inputs or item.name not in others:
            continue
        shapes = model.inputs[item.name].shape, whole.inputs[item.name].shape, others[item.name].shape
        for name, size, first, second in zip(item.sizes, *shapes, strict=True):
            if isinstance(size, int) and first != second:
                reason = f"its operations depend on `{name}` of `{item.name}` in a way that is known for one size only"
                help = f"write a number in the place of `{name}`"
                raise make_error("lift", f"cannot lift `{source.subject.name}`: {reason}", help=help)


def _check_third(spec: str, names: Sequence[str], make: Callable[[Collection[str]], Subject | None]) -> None:
    with in_float64():
        third = make(names)
    if third is None:
        return
    keep_epsilon(third.module)
    overrides = {name: cast("PlainValue", third.numbers[name]) for name in names if name in third.numbers}
    try:
        with suppress(UndecidedError):
            _check_or_compare(spec, overrides, third)
    except UntranslatableError as problem:
        raise CoincidentSizeError(f"the spec of two small ones does not hold for other sizes: {problem}") from None


def _check_samples(spec: str, names: Sequence[str], samples: Iterable[Sample]) -> None:
    """Refuse a spec that has other tensors than a module of other numbers, if that can be called."""
    for sample in samples:
        overrides = {name: cast("PlainValue", sample.numbers[name]) for name in names if name in sample.numbers}
        try:
            reason = other_rows(compile_text(spec, "<text>", None, overrides), sample.module)
        except ArchError:  # it is no spec for these numbers
            continue
        if reason and sample.runs():
            values = ", ".join([f"`{name}` = {value}" for name, value in overrides.items()])
            raise CoincidentSizeError(f"the spec of two small ones does not hold for {values}: {reason}")


def _check_or_compare(spec: str, overrides: Mapping[str, PlainValue], third: Subject) -> None:
    """Raise Untranslatable unless a spec is a module, or has its outputs where the module cannot be exported."""
    try:
        check_unrounded(spec, overrides, third)
    except ComparisonError:
        check_outputs(spec, overrides, third)


def _check_whole(spec: str, whole: Subject) -> None:
    """Refuse the spec of a small module that is not that of the actual one, unless that is too large to decide it."""
    try:
        with suppress(UndecidedError):
            check_again(spec, {}, whole)
    except UntranslatableError as problem:
        raise UntranslatableError(
            f"the spec lifted from a small module is wrong at the actual sizes: {problem}"
        ) from None


def _check_deep(spec: str, overrides: Mapping[str, PlainValue], deep: Subject, differs: bool) -> None:
    """Refuse a spec that is not a module with all layers, which `differs` if these are of several kinds."""
    if not differs:
        with suppress(UntranslatableError):  # numbers that are rounded differ, though the forms are the same
            return check_outputs(spec, overrides, deep)
    try:
        check_again(spec, overrides, deep)
    except UntranslatableError as problem:
        raise LayerPatternError(f"the spec of one with few layers does not hold for all: {problem}") from None
