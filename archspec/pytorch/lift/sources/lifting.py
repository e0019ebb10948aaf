"""From what users name to a spec."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, cast

from archspec.core.diagnostics import ArchError, Diagnostic, make_error
from archspec.ir.table import PlainValue
from archspec.pipeline.compile import loads
from archspec.pipeline.model import Model
from archspec.pytorch.lift.api import as_refusal, lift_subject
from archspec.pytorch.lift.check import ComparisonError, UndecidedError, check_again, check_outputs, check_unrounded
from archspec.pytorch.lift.sizes.evidence import FormulaError
from archspec.pytorch.lift.sources.examples import left_out
from archspec.pytorch.lift.sources.fields import is_integer
from archspec.pytorch.lift.sources.flags import Flags
from archspec.pytorch.lift.sources.item_lists import items_of, join_items
from archspec.pytorch.lift.sources.requirements import require_branches
from archspec.pytorch.lift.sources.source import CoincidentSizeError, LayerPatternError, Source
from archspec.pytorch.lift.sources.subjects import fixed_source_of, source_of
from archspec.pytorch.lift.spec_text import add_comments, data_notes
from archspec.pytorch.lift.subject import Subject
from archspec.pytorch.passes.precision import in_float64, keep_epsilon
from archspec.pytorch.prove.numeric import flat
from archspec.pytorch.prove.state import are_close
from archspec.pytorch.prove.tables import other_rows
from archspec.pytorch.run.calling import call_module
from archspec.pytorch.values.arguments import UntranslatableError

if TYPE_CHECKING:
    import torch
    from torch import nn


OF_INDEX = re.compile(r"[*+] i\b|\bi [*+]|= i\b")
"""A number that follows the index of a loop by a formula, where no address is."""

NUMBERED = re.compile(r"\w\[(?=[^\]]*\b(?!i\b)[a-z_])[^\]]*\](?:\.\w+)*(?::| =)")
"""A declaration at an address that follows a hyperparameter, or one that is tied."""

LOOP = re.compile(r"\bi in (.*)")
"""The bounds of a loop."""

MIN_LAYERS, MORE_LAYERS = 8, 3
"""Formulas of numbers of layers, and of the index of a layer, are checked for so many layers, and so many more."""


def lift_source(text: str, inputs: Sequence[str] = ()) -> str:
    """Return the spec of what is named `FILE.py[:factory]`, `config.json`, `timm:NAME` or `torchvision:NAME`.

    `inputs` describe those of a file's module, as in `x=real[batch,8]`. Raises ArchError.
    """
    spec, _ = lift_with_notes(text, inputs)
    return spec


def lift_with_notes(
    text: str, inputs: Sequence[str] = (), *, fixed: bool = False, progress: Callable[[str], None] = lambda step: None
) -> tuple[str, list[Diagnostic]]:
    """Return a spec as `lift_source`, and what it does not follow, or leaves out, which comments in it say as well.

    A `fixed` one is lifted as it is, with numbers for sizes. `progress` is told what is done.
    """
    progress("making small modules")
    source = (fixed_source_of if fixed else source_of)(text, inputs)
    spec, reasons = _following_most(source, progress)
    if source.flipped is not None:
        flags = Flags(source, spec, lambda other: _following_most(other, progress)[0])
        spec, reasons = flags.spec, {**reasons, **flags.reasons}
    notes = [*_notes(source, spec, reasons)]
    warnings = [Diagnostic("not-lifted", note.removesuffix("."), severity="warning") for note in notes]
    return add_comments(join_items(spec, source.lists), notes), warnings


def _notes(source: Source, spec: str, reasons: Mapping[str, str]) -> Iterator[str]:
    """Yield what a spec does not follow, by its reasons, and the inputs that are left out."""
    model = loads(spec)
    shown = {name: f"{each.name}[{turn}]" for each in source.lists for turn, name in enumerate(each.fields())}
    found: dict[str, list[str]] = {}
    for name, value in source.stated.items():
        if name not in model.hyperparameters:
            reason = reasons.get(name) or source.reason(name)
            found.setdefault(reason, []).append(f"{shown.get(name, name)} = {value}")
    for reason, names in found.items():
        yield f"Not followed: {', '.join(names)} ({reason})."
    module, given = source.subject.module, source.subject.inputs
    arguments = inspect.signature(module.forward).parameters.values() if source.declared else ()
    missing = [item.name for item in arguments if item.default is None and item.name not in given]
    missing = missing or left_out(module, given)
    if missing:
        yield f"Left out: {', '.join(missing)} (it can do without)."
    of_last = [name for name in missing if _is_of_last(module, given, name)] if source.declared else []
    if of_last:
        yield f"Without {of_last[0]}, outputs are of the last position only; describe it with --input for all of them."
    yield from [*(source.whole or source.subject).notes, *data_notes(model)]


def _is_of_last(module: nn.Module, inputs: Mapping[str, torch.Tensor], name: str) -> bool:
    """Whether a module returns the last position alone because it is not given an input, such as its targets."""
    first, *_ = flat(call_module(module, inputs))
    for example in inputs.values():
        with suppress(Exception):  # of any class, as it comes from the module
            longer, *_ = flat(call_module(module, {**inputs, name: example.new_zeros(example.shape)}))
            if longer.shape != first.shape and are_close([longer[:, -1:]], [first]):
                return True
    return False


def _following_most(source: Source, progress: Callable[[str], None]) -> tuple[str, dict[str, str]]:
    """Return a spec that follows all arguments of a source, or else as many as it can, and why it does not follow
    others. Raises ArchError if it cannot be lifted with their actual values either.
    """
    try:
        return lift_or_replace(source, progress), {}
    except ArchError as error:
        problem, keeping = error, source.keeping
    if keeping is None:
        raise problem
    items = items_of(source.lists)
    unknown = _reasons(problem)
    if unknown and (not items or {*unknown} <= {*items} or {*unknown}.isdisjoint(items)):
        spec_and_reasons = _leave_out_unknown(source, keeping, unknown, progress)
        if spec_and_reasons is not None:
            return spec_and_reasons
    if items:  # they are followed together, or not at all
        plain = {name: value for name, value in source.stated.items() if name not in items}
        spec, reasons = _following_most(keeping([*plain])._replace(stated=plain, lists=()), progress)
        return spec, {**reasons, **dict.fromkeys(items, _reason(problem))}
    try:
        best = lift_or_replace(keeping(()), progress)
    except ArchError:
        raise problem from problem.__cause__
    names = [name for name, value in source.stated.items() if is_integer(value)]
    best, followed, reasons = _add_followed(keeping, best, names, progress)
    return best, {name: reasons.get(name) or _reason(problem) for name in names if name not in followed}


def _add_followed(
    keeping: Callable[[Collection[str]], Source], best: str, names: Sequence[str], progress: Callable[[str], None]
) -> tuple[str, list[str], dict[str, str]]:
    """Return a spec that follows more of the arguments with these names than the `best` one, which ones, and why not
    others: all of them together are known to fail, so halves of them are tried, and halves of those.
    """
    followed, reasons = list[str](), dict[str, str]()
    groups = [[*names[: len(names) // 2]], [*names[len(names) // 2 :]]]
    while groups:
        group = groups.pop(0)
        wrong: Mapping[str, str] = {}
        if group and len(followed) + len(group) < len(names):
            try:
                spec = lift_or_replace(keeping([*followed, *group]), progress)
            except ArchError as error:
                wrong = {name: reason for name, reason in _differing(_reasons(error)).items() if name in group}
                wrong = wrong or ({group[0]: _reason(error)} if len(group) == 1 else {})
            else:
                if loads(spec).hyperparameters.keys() > loads(best).hyperparameters.keys():  # it has lost no other one
                    best, followed = spec, [*followed, *group]
                    continue
        reasons |= wrong
        middle = len(group) // 2
        if wrong:
            groups.insert(0, [name for name in group if name not in wrong])
        elif middle:
            groups[:0] = [group[:middle], group[middle:]]
    return best, followed, reasons


def _leave_out_unknown(
    source: Source,
    keeping: Callable[[Collection[str]], Source],
    reasons: Mapping[str, str],
    progress: Callable[[str], None],
) -> tuple[str, dict[str, str]] | None:
    """Return a spec that follows all arguments except those with `reasons`, and others without a formula, and why; None
    if there is none.
    """
    names = [name for name, value in source.stated.items() if is_integer(value) and name not in reasons]
    try:
        return lift_or_replace(keeping(names), progress), _differing(reasons)
    except ArchError as error:
        more = _reasons(error)
    if not more.keys() - reasons.keys():
        return None
    return _leave_out_unknown(source, keeping, {**more, **reasons}, progress)


def _reasons(error: ArchError) -> Mapping[str, str]:
    """Return why the arguments cannot be followed without which something could be lifted."""
    return error.__cause__.reasons if isinstance(error.__cause__, FormulaError) else dict[str, str]()


def _differing(reasons: Mapping[str, str]) -> dict[str, str]:
    """Return why arguments are not followed for which a spec that follows them is wrong."""
    return {name: f"a spec that follows it would be wrong for {reason}" for name, reason in reasons.items()}


def _reason(error: ArchError) -> str:
    """Return why something cannot be lifted."""
    return error.diagnostics[0].message.partition(": ")[2]


def lift_or_replace(source: Source, progress: Callable[[str], None] = lambda step: None) -> str:
    """Return the spec of a source, or of another module in its place if it cannot be lifted. Raises ArchError."""
    try:
        return _lifted(source, progress)
    except ArchError as error:
        problem = error
    for other in source.others(problem.__cause__):
        try:
            return lift_or_replace(other(), progress)
        except ArchError:
            continue
    raise problem


def _lifted(source: Source, progress: Callable[[str], None]) -> str:
    if source.problem is not None:
        raise source.problem
    progress(f"exporting {source.subject.name}")
    spec = lift_subject(source.subject)
    model = loads(spec)
    name, reason = source.subject.name, other_rows(model, source.actual())
    if reason:
        reason = f"the spec lifted from a small module is wrong at the actual sizes: {reason}"
        raise make_error("lift", f"cannot lift `{name}`: {reason}") from LayerPatternError(reason)
    _check_free_sizes(model, source)
    of_index = OF_INDEX.search(re.sub(r"\[[^\]]*\]", "", spec)) is not None
    differs = source.subject.has_patterns or " if i " in spec or of_index
    deep = source.subject.deep(differs) if source.subject.deep is not None else None
    if deep is not None:
        overrides = {name: cast("PlainValue", deep.numbers[name]) for name in model.hyperparameters}
        as_refusal(name, lambda: _check_deep(spec, overrides, deep, differs))
    progress(f"comparing {name} at other sizes")
    whole = source.whole
    if whole is not None:
        as_refusal(name, lambda: _check_whole(spec, whole))
    if of_index or NUMBERED.search(spec):
        _check_deeper(spec, model, source)
    if source.subject.third is not None:
        third = source.subject.third
        as_refusal(name, lambda: _check_third(spec, [*model.hyperparameters], third))
    return require_branches(spec, [*model.hyperparameters], source.subject)


def _check_deeper(spec: str, model: Model, source: Source) -> None:
    """Refuse a spec with formulas of numbers of layers if it is wrong for more layers than there are."""
    subject, bounds = source.subject, " ".join(LOOP.findall(spec))
    make, actual = subject.changed, subject.actual or {}
    if make is None:
        return
    for name in model.hyperparameters:
        value = actual.get(name)
        if not is_integer(value) or not re.search(rf"\b{name}\b", bounds):
            continue
        deeper = max(value + MORE_LAYERS, MIN_LAYERS)
        changed = make(name, deeper) or make(name, deeper + 1)
        if changed is None:
            raise make_error("lift", f"cannot lift `{subject.name}`: it cannot be called with `{name}` = {deeper}")
        overrides = {key: cast("PlainValue", changed.numbers[key]) for key in model.hyperparameters}
        as_refusal(subject.name, partial(_check_unless_undecided, spec, overrides, changed))


def _check_unless_undecided(spec: str, overrides: Mapping[str, PlainValue], subject: Subject) -> None:
    with suppress(UndecidedError):
        check_again(spec, overrides, subject)


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


def _check_or_compare(spec: str, overrides: Mapping[str, PlainValue], third: Subject) -> None:
    """Raise Untranslatable unless a spec has the outputs of a module, or is the module where these cannot be computed.

    What it computes for other inputs has been proven for two modules, so no further export is needed.
    """
    with in_float64():
        is_compared = check_outputs(spec, overrides, third)
    if not is_compared:
        with suppress(ComparisonError):
            check_unrounded(spec, overrides, third)


def _check_whole(spec: str, whole: Subject) -> None:
    """Refuse the spec of a small module that is not that of the actual one, unless that is too large to decide it."""
    try:
        _check_unless_undecided(spec, {}, whole)
    except UntranslatableError as problem:
        raise UntranslatableError(
            f"the spec lifted from a small module is wrong at the actual sizes: {problem}"
        ) from None


def _check_deep(spec: str, overrides: Mapping[str, PlainValue], deep: Subject, differs: bool) -> None:
    """Refuse a spec that is not a module with all layers, which `differs` if these are of several kinds."""
    if not differs:
        with suppress(UntranslatableError):  # numbers that are rounded differ, though the forms are the same
            check_outputs(spec, overrides, deep)
            return
    try:
        check_again(spec, overrides, deep)
    except UntranslatableError as problem:
        raise LayerPatternError(f"the spec of one with few layers does not hold for all: {problem}") from None
