"""`archspec.lift`: a spec from a PyTorch module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os.path import basename
from traceback import extract_tb
from typing import TYPE_CHECKING, TypeVar

from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import ArchError, make_error
from archspec.ir.normal.deep_stack import run_with_deep_stack
from archspec.language.format.api import format
from archspec.pipeline.compile import loads
from archspec.pytorch.lift.capture import CapturedModule, LoopError, capture_module
from archspec.pytorch.lift.check import TooLargeToRunError, check, check_build, check_size, check_without
from archspec.pytorch.lift.sizes.accidents import Draft, Fields, drop_coincidental_fields
from archspec.pytorch.lift.sizes.evidence import Evidence, evidence_of, require_formulas, wrong_names
from archspec.pytorch.lift.sizes.sizes import ActualSizeError, SizeDependenceError, Sizes, first_difference
from archspec.pytorch.lift.spec_text import add_comments, data_notes, source
from archspec.pytorch.lift.statements.program import SizeChange
from archspec.pytorch.lift.subject import Subject, subject_of
from archspec.pytorch.passes.settings import restore_settings
from archspec.pytorch.prove.state import check_repeatable
from archspec.pytorch.values.arguments import UntranslatableError

if TYPE_CHECKING:
    import torch
    from torch import nn

Result = TypeVar("Result")


@check_arguments
def lift(module: nn.Module, example_inputs: Mapping[str, torch.Tensor] | Sequence[torch.Tensor], /) -> str:
    """Return the spec of a module in evaluation, from inputs by argument of `forward`, or in its order.

    Raises ArchError if the module cannot be written as a spec that computes exactly the same.
    """
    with restore_settings(module):
        subject = as_refusal(type(module).__name__, lambda: subject_of(module, example_inputs))
        spec = lift_subject(subject)
    return add_comments(spec, [*subject.notes, *data_notes(loads(spec))])


def lift_subject(subject: Subject) -> str:
    """Return the spec of a module, given evidence for its sizes and names for its hyperparameters."""
    return as_refusal(type(subject.module).__name__, lambda: _lift_module(subject), _place_of(subject.module))


def _place_of(module: nn.Module) -> str:
    """Return where `forward` of a module is written."""
    code = getattr(type(module).forward, "__code__", None)
    return "" if code is None else f", in {basename(code.co_filename)}:{code.co_firstlineno}"


def as_refusal(name: str, function: Callable[[], Result], place: str = "") -> Result:
    """Return the result of a function. Any exception becomes one refusal to lift the module of that name, which is
    written at a place.
    """
    try:
        return run_with_deep_stack(function)
    except ArchError:
        raise
    except UntranslatableError as problem:
        raise make_error("lift", f"cannot lift `{name}`: {problem}".splitlines()[0]) from problem
    except Exception as problem:  # of any class: there is either a spec or one refusal
        *_, line = extract_tb(problem.__traceback__)
        help = f"report this, with the module: an error at line {line.lineno} of archspec's {basename(line.filename)}"
        raise make_error("lift", f"cannot lift `{name}`: archspec finds no spec for it{place}", help=help) from problem


def _lift_module(subject: Subject) -> str:
    try:
        found = _with_masks(subject, loops=True)
    except LoopError:
        found = _with_masks(subject, loops=False)
    check_repeatable(subject.module, subject.inputs, subject.other_inputs)
    return found


def _with_masks(subject: Subject, loops: bool) -> str:
    try:
        return _write_spec(subject, subject.has_optional, loops)
    except _InputRequiredError:
        return _write_spec(subject, False, loops)


class _InputRequiredError(Exception):
    """A module computes something else without an input than its spec."""


def _write_spec(subject: Subject, optional: bool, loops: bool) -> str:
    first = capture_module(subject, optional, loops)
    try:
        return _spec(subject, first, optional, loops)
    except UntranslatableError as problem:
        has_loops = first.outputs.has_loops or first.program.has_loops
        is_of_sizes = isinstance(problem, SizeDependenceError | TooLargeToRunError)
        if (has_loops and not is_of_sizes) or first.program.has_progressions:
            raise LoopError(str(problem)) from problem
        raise


def _repeated_classes(module: nn.Module) -> set[str]:
    """Return the classes of which a module has several modules."""
    return {kind for kind, count in Counter(type(part).__name__ for part in module.modules()).items() if count > 1}


def _spec(subject: Subject, first: CapturedModule, optional: bool, loops: bool) -> str:
    second = subject.second() if subject.second is not None else None
    if second is not None and first.outputs.has_loops:
        check_size(second.module)
    other = capture_module(second, optional, loops) if second is not None else None
    if second is not None and other is not None and first_difference(first.program, other.program) is not None:
        several = _repeated_classes(subject.module) ^ _repeated_classes(second.module)
        sizes = SizeChange(several, first.program.free ^ other.program.free)
        if any(sizes):
            first, other = [capture_module(each, optional, loops, sizes) for each in (subject, second)]
    numbers = second.numbers if second is not None else None
    theirs = other.program if other is not None else None
    kind = type(subject.module).__name__
    name = subject.name or kind

    def written(sizes: Sizes, actual: Mapping[str, object] | None, params: int | None) -> str:
        values = sizes.defaults(actual)
        return format(source(first.program, sizes, f"{name}: lifted from {kind}.", name, values, params))

    def drafted(fields: Fields, evidence: Evidence | None = None) -> Draft:
        values, narrow, of_sizes = fields
        sizes = Sizes(
            first.program, theirs, values, numbers, first.attributes, subject.parts, narrow, of_sizes, evidence
        )
        return Draft(written(sizes, None, None), sizes)

    draft, sizes = drop_coincidental_fields(drafted, subject)
    if second is not None and subject.samples is not None:
        names = [*sizes.defaults(None)]
        needs_formulas = bool(sizes.created or wrong_names(draft, names, subject))
        if needs_formulas or wrong_names(draft, names, subject, [*subject.numbers]):
            with_formulas = drop_coincidental_fields(partial(drafted, evidence=evidence_of(subject, second)), subject)
            if needs_formulas or len(with_formulas.sizes.defaults(None)) > len(names):
                draft, sizes = with_formulas
                require_formulas(draft, [*sizes.defaults(None)], subject)
    check(draft, {}, subject.module, first)
    if second is not None and other is not None and sizes.other is not None:
        check(draft, sizes.seconds(), second.module, other)
        check_build(draft, sizes.seconds())
    if first.program.optional:
        try:
            check_without(draft, {}, subject, first.program.optional, first)
        except UntranslatableError:
            raise _InputRequiredError from None
    try:
        params = loads(written(sizes, subject.actual, None)).params.total
    except ArchError as error:
        reason = f"the spec of a small one does not compile for its sizes: {error.diagnostics[0].message}"
        raise ActualSizeError(reason) from error
    found = written(sizes, subject.actual, params)
    check_build(found, {})
    return found
