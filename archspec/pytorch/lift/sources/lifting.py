"""From what users name to a spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import cast

from archspec.core.diagnostics import ArchError, make_error
from archspec.ir.table import PlainValue
from archspec.pipeline.compile import loads
from archspec.pipeline.model import Model
from archspec.pytorch.calls.values import UntranslatableError
from archspec.pytorch.lift.api import as_refusal, lift_subject
from archspec.pytorch.lift.check import ComparisonError, UndecidedError, check_again, check_outputs, check_unrounded
from archspec.pytorch.lift.sources.source import CoincidentSizeError, LayerPatternError, Source
from archspec.pytorch.lift.sources.subjects import source_of
from archspec.pytorch.lift.subject import Subject
from archspec.pytorch.patches.precision import in_float64, keep_epsilon
from archspec.pytorch.prove.tables import other_rows


def lift_source(text: str, inputs: Sequence[str] = ()) -> str:
    """Return the spec of what is named `FILE.py[:factory]`, `config.json`, `timm:NAME` or `torchvision:NAME`.

    `inputs` describe those of a file's module, as in `x=real[batch,8]`. Raises ArchError.
    """
    return lift_or_replace(source_of(text, inputs))


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
        check = check_again if differs else check_outputs
        as_refusal(name, lambda: _check_deep(check, spec, overrides, deep))
    whole = source.whole
    if whole is not None:
        as_refusal(name, lambda: _check_whole(spec, whole))
    if source.subject.third is not None:
        third = source.subject.third
        as_refusal(name, lambda: _check_third(spec, [*model.hyperparameters], third))
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


def _check_third(spec: str, names: Sequence[str], make: Callable[[], Subject | None]) -> None:
    with in_float64():
        third = make()
    if third is None:
        return
    keep_epsilon(third.module)
    overrides = {name: cast("PlainValue", third.numbers[name]) for name in names if name in third.numbers}
    try:
        with suppress(UndecidedError):
            _check_or_compare(spec, overrides, third)
    except UntranslatableError as problem:
        raise CoincidentSizeError(f"the spec of two small ones does not hold for other sizes: {problem}") from None


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


def _check_deep(
    check: Callable[[str, Mapping[str, PlainValue], Subject], None],
    spec: str,
    overrides: Mapping[str, PlainValue],
    deep: Subject,
) -> None:
    try:
        check(spec, overrides, deep)
    except UntranslatableError as problem:
        raise LayerPatternError(f"the spec of one with few layers does not hold for all: {problem}") from None
