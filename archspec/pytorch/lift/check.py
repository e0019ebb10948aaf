"""The check of a lifted spec, which is only returned if it computes what its module does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from math import inf, nan
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from archspec.core.algebra import split_multiple, symbols
from archspec.core.diagnostics import ArchError
from archspec.ir.module import Body
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.table import PlainValue
from archspec.pipeline.compile import compile_text
from archspec.pipeline.model import get_compilation
from archspec.pytorch.lift.capture import CapturedModule, Outputs, captured_outputs, outputs_without_inputs
from archspec.pytorch.lift.subject import Subject
from archspec.pytorch.numeric.evaluate import EvaluationError
from archspec.pytorch.passes.intercepting import restore_attributes
from archspec.pytorch.passes.precision import in_float64, keeps_rounded
from archspec.pytorch.prove.numeric import FLOAT32_TOLERANCE as FLOAT32
from archspec.pytorch.prove.numeric import (
    MAX_ELEMENTS,
    RELATIVE_TOLERANCE,
    Run,
    array_runner,
    largest_error,
    longer_sizes,
    module_runner,
)
from archspec.pytorch.prove.sides import accepts, example_sizes, model_outputs, require_small_sizes
from archspec.pytorch.prove.tables import other_rows, overlap
from archspec.pytorch.run.to_torch import to_torch
from archspec.pytorch.values.arguments import UntranslatableError

if TYPE_CHECKING:
    import torch
    from torch import nn

MAX_TRIED_LENGTH = 512
"""Larger sizes are not tried."""

MAX_PARAMETERS_RUN = 100_000_000
"""Modules with more parameters are not run even once."""

MAX_COMPUTED_BYTES = 2**36
"""Outputs are not computed if their values add up to more bytes, as those of deep networks for large images may."""

EXECUTION_ERRORS = (EvaluationError, IndexError, RuntimeError)
"""Exceptions raised where a module or its spec cannot be evaluated."""

ITERATIONS = (1, 2, 4, 9)
"""How often loops over a length run in comparisons, besides those at two sizes."""

FLOAT32_TOLERANCE = 2e-6
"""The relative difference of outputs of a module that computes some values in float32 regardless of its precision."""


class TooLargeToRunError(UntranslatableError):
    """The outputs must be compared numerically, but the module has too many parameters to run."""


class ComparisonError(UntranslatableError):
    """A module or its spec cannot be run to compare outputs."""


class UndecidedError(UntranslatableError):
    """A spec cannot be proven equal to a module, which has too many parameters for its outputs to be compared."""


def check_size(module: nn.Module) -> None:
    """Raise TooLargeToRunError if a module is too large to be run."""
    if sum([parameter.numel() for parameter in module.parameters()]) > MAX_ELEMENTS:
        raise TooLargeToRunError("it is too large to compare outputs")


class _Pair(NamedTuple):
    """The body of a spec, with its outputs in normal form, and the module that should compute the same."""

    body: Body
    module: nn.Module
    arrays: Arrays
    outputs: Sequence[Array]
    unused: Mapping[str, torch.Tensor]
    """Examples of the inputs that only the module takes."""

    def runs(self, hidden: float = nan) -> tuple[Run, Run]:
        """Return what computes the outputs of both; `hidden` are the shares of the spec where a mask hides all keys."""
        ours = array_runner(self.arrays, self.outputs, MAX_COMPUTED_BYTES, hidden)
        return ours, module_runner(self.module, self.body, self.unused)

    def error(self, fixed: Mapping[str, int] = MappingProxyType({}), most: int = MAX_ELEMENTS) -> float | None:
        """Return the largest difference of the outputs, as `largest_error`. Where a mask hides all keys, the module
        may compute no number, as a softmax does, or 0, as the fused attention of PyTorch.
        """
        error = largest_error(self.body, *self.runs(), fixed, most)
        return error if error != inf else largest_error(self.body, *self.runs(hidden=0.0), fixed, most)

    def unrounded_error(self, fixed: Mapping[str, int] = MappingProxyType({})) -> float | None:
        """Return the difference of outputs where nothing is rounded to float32; None if they cannot be computed."""
        try:
            with in_float64():
                return self.error(fixed, MAX_PARAMETERS_RUN)
        except EXECUTION_ERRORS:
            return None


def check(text: str, overrides: Mapping[str, PlainValue], module: nn.Module, captured: CapturedModule) -> None:
    """Raise Untranslatable unless a spec compiles, has exactly the tensors of a module, and computes the same.

    It computes the same if its outputs are the same in float64 at two sizes, with padding; for all sizes that the spec
    has, where a branch of the module may depend on them. A module that cannot be run must have its normal form.
    """
    body = _with_tensors(text, overrides, module)
    if reason := overlap(module):
        raise UntranslatableError(reason)
    pair = _check_outputs(body, module, captured.outputs, _unused(body, _examples(captured)), computes=False)
    require_small_sizes(captured.recording, module, body, example_sizes(body), pair.unused)
    _check_longer(pair, captured)
    if not overrides:
        _check_values(pair, captured)
    _check_computed(pair)


def check_build(text: str, overrides: Mapping[str, PlainValue]) -> None:
    """Raise Untranslatable unless a module can be made of a spec."""
    import torch

    try:
        with torch.device("meta"):
            to_torch(compile_text(text, "<text>", None, overrides))
    except ArchError as error:
        raise UntranslatableError(f"no module can be built of its spec: {error.diagnostics[0].message}") from error


def check_again(text: str, overrides: Mapping[str, PlainValue], subject: Subject) -> None:
    """Raise Untranslatable unless a spec is another module of the same class."""
    body = _with_tensors(text, overrides, subject.module)
    _check_outputs(body, subject.module, captured_outputs(subject), _unused(body, subject.inputs))


def check_outputs(text: str, overrides: Mapping[str, PlainValue], subject: Subject) -> bool:
    """Return whether the outputs of another module of the same class can be computed. Raises Untranslatable unless a
    spec has its tensors, and the same outputs for one size if so. This is much faster than the proof of `check_again`.
    """
    body = _with_tensors(text, overrides, subject.module)
    arrays = Arrays()
    pair = _Pair(body, subject.module, arrays, model_outputs(arrays, body), _unused(body, subject.inputs))
    try:
        error = pair.error(longer_sizes(body) or example_sizes(body))
    except EXECUTION_ERRORS:
        return False
    if error is not None:
        _require_same(pair, error, FLOAT32_TOLERANCE)
    return error is not None


def check_unrounded(text: str, overrides: Mapping[str, PlainValue], subject: Subject) -> None:
    """Raise Untranslatable unless a spec is a module that was made without rounding; Uncompared or Undecided if that is
    unknown.
    """
    body = _with_tensors(text, overrides, subject.module)
    try:
        outputs = captured_outputs(subject)
    except UntranslatableError as problem:
        raise ComparisonError(str(problem)) from problem
    with in_float64():
        _check_outputs(body, subject.module, outputs, _unused(body, subject.inputs), RELATIVE_TOLERANCE)


def _with_tensors(text: str, overrides: Mapping[str, PlainValue], module: nn.Module) -> Body:
    """Return the body of a spec. Raises Untranslatable unless it has the tensors of a module."""
    try:
        model = compile_text(text, "<text>", None, overrides)
    except ArchError as error:
        raise UntranslatableError(f"its spec does not compile: {error.diagnostics[0].message}") from error
    reason = other_rows(model, module)
    if reason:
        raise UntranslatableError(f"its spec declares different tensors: {reason}")
    return get_compilation(model).body


def check_without(
    text: str, overrides: Mapping[str, PlainValue], subject: Subject, names: Sequence[str], captured: CapturedModule
) -> None:
    """Raise Untranslatable unless a spec also computes the same as a module without its optional inputs."""
    body = get_compilation(compile_text(text, "<text>", None, overrides)).body_without_optional_inputs()
    with restore_attributes(subject.module):
        outputs = outputs_without_inputs(subject, names, captured.outputs.arrays)
    given = {name: value for name, value in subject.inputs.items() if name not in names}
    _check_outputs(body, subject.module, outputs, _unused(body, given))


def _check_outputs(
    body: Body,
    module: nn.Module,
    outputs: Outputs,
    unused: Mapping[str, torch.Tensor],
    rounded: float = FLOAT32_TOLERANCE,
    *,
    computes: bool = True,
) -> _Pair:
    """Return a spec and a module. Raises Untranslatable unless their outputs are computed to be the same: an equal
    normal form says that of the program which PyTorch exported only as far as each of its calls was understood.
    """
    arrays, theirs, has_loops, excluded = outputs
    pair = _Pair(body, module, arrays, model_outputs(arrays, body), unused)
    if has_loops or pair.outputs != theirs:
        _check_error(pair, rounded)
    elif computes:
        _check_computed(pair, rounded)
    _check_single(pair)
    _check_excluded(pair, excluded)
    if has_loops:
        _check_lengths(pair)
    return pair


def _check_computed(pair: _Pair, rounded: float = FLOAT32_TOLERANCE) -> None:
    """Raise Untranslatable if outputs with an equal normal form differ by more than rounding, as far as they can be
    computed.
    """
    try:
        error = pair.error()
    except EvaluationError:
        return
    if error is not None and error > FLOAT32_TOLERANCE:
        _require_same(pair, error, rounded)


def _check_error(pair: _Pair, rounded: float) -> None:
    """Raise Untranslatable unless outputs are equal, up to `rounded` where the module rounds some values."""
    try:
        error = pair.error()
    except EvaluationError as problem:
        raise ComparisonError(f"its spec cannot be compared with it: {problem}") from None
    if error is None:
        raise UndecidedError("its spec cannot be proven equal to it, and it is too large to compare outputs")
    _require_same(pair, error, rounded)


def _require_same(pair: _Pair, error: float, rounded: float) -> None:
    if error > RELATIVE_TOLERANCE and not _is_rounding(pair, error, rounded):
        raise UntranslatableError(f"the outputs of its spec differ from its own by {error:.2g}")


def _is_rounding(pair: _Pair, error: float, rounded: float) -> bool:
    """Whether a difference of outputs is due to rounding, in the call or of numbers that the module keeps.

    One above `rounded` is, if there is none without rounding in the call.
    """
    if error <= rounded and keeps_rounded(pair.module):
        return True
    unrounded = pair.unrounded_error() if error <= FLOAT32 else None
    return error <= rounded if unrounded is None else unrounded <= RELATIVE_TOLERANCE


def _check_excluded(pair: _Pair, excluded: Set[tuple[str, int]]) -> None:
    """Raise Untranslatable unless outputs are also equal at the single sizes that the program is not for."""
    for name, size in excluded:
        try:
            error = pair.error({name: size}) if size <= MAX_TRIED_LENGTH else None
        except EvaluationError as problem:
            reason = f"it has a branch for `{name} == {size}`, where its outputs cannot be compared: {problem}"
            raise UntranslatableError(reason) from None
        if error is None or error > FLOAT32_TOLERANCE:
            raise UntranslatableError(f"it can only be exported where `{name} != {size}`")


def _check_longer(pair: _Pair, captured: CapturedModule) -> None:
    """Raise Untranslatable if a module does something else beyond the largest size that it was exported for.

    Beyond the end of a table, a module or its spec computes nothing, and the other may do so. A module that then makes
    a longer table rounds it to float32, so that it is also run without rounding.
    """
    for name, most in captured.recording.most.items():
        sizes = {**example_sizes(pair.body), name: most + 1}
        if most > MAX_TRIED_LENGTH or not accepts(pair.module, dict(pair.body.inputs), sizes, pair.unused):
            continue
        try:
            error = pair.error({name: most + 1}, MAX_PARAMETERS_RUN)
        except EXECUTION_ERRORS:
            continue
        if error is not None and error > FLOAT32_TOLERANCE:
            error = pair.unrounded_error({name: most + 1})
        if error is None or error > FLOAT32_TOLERANCE:
            raise UntranslatableError(f"it can only be exported where `{name}` is at most {most}")


def _check_values(pair: _Pair, captured: CapturedModule) -> None:
    """Raise Untranslatable if the outputs of a small module are others than those of the program that it is read from,
    as where a change in place reads what it changes, or if it does something else for a batch or length of 1, as
    `squeeze` does. PyTorch exports programs for two and more.
    """
    body = pair.body
    names = {name for _, type in body.inputs for size in type.shape for name in symbols(size)}
    chunks = _chunks(body)
    compared = {*chunks} if len(chunks) == 1 else set[str]()  # by `_check_single`, several only together
    small = example_sizes(body)
    small |= {name: least for name, least in captured.recording.least.items() if least > small.get(name, least)}
    for name in ["", *sorted(names - compared)]:
        try:
            sizes = {**small, **({name: 1} if name else {})}
            error = largest_error(body, *pair.runs(), sizes, all_numbers=False)
        except EXECUTION_ERRORS:
            continue
        if error is not None and error > FLOAT32:
            where = f"where `{name}` is 1" if name else f"from its program by {error:.2g}"
            raise UntranslatableError(f"its computation differs {where}")


def _examples(captured: CapturedModule) -> Mapping[str, torch.Tensor]:
    """Return the inputs that a module was called with."""
    _, examples = captured.recording.program.example_inputs or ((), {})
    return examples


def _unused(body: Body, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the inputs of a module that its spec does not have."""
    used = dict(body.inputs)
    return {name: value for name, value in inputs.items() if name not in used}


def _check_single(pair: _Pair) -> None:
    """Raise Untranslatable unless outputs are also equal for a single chunk, where sizes are multiples of a chunk.

    PyTorch exports programs for two and more.
    """
    single = dict.fromkeys(_chunks(pair.body), 1)
    if not single:
        return
    try:
        error = pair.error(single)
    except EvaluationError:  # one is too short for the module
        return
    if error is not None and error > FLOAT32_TOLERANCE:
        raise UntranslatableError(f"its computation differs where `{next(iter(single))}` is 1")


def _chunks(body: Body) -> list[str]:
    """Return the dimensions that count chunks: sizes of inputs are multiples of them."""
    found = [split_multiple(size) for _, type in body.inputs for size in type.shape]
    return list(dict.fromkeys([multiple[1] for multiple in found if multiple is not None and multiple[0] > 1]))


def _check_lengths(pair: _Pair) -> None:
    """Raise Untranslatable unless outputs are also equal for some numbers of iterations of the loops over lengths.

    A module may need more than one.
    """
    for name in _lengths(pair.body):
        for length in ITERATIONS:
            try:
                error = pair.error({name: length})
            except EvaluationError as problem:
                if length == 1:
                    continue
                raise UntranslatableError(f"its spec cannot be compared with it: {problem}") from None
            if error is None or error > FLOAT32_TOLERANCE:
                raise UntranslatableError(f"its computation differs where `{name}` is {length}")


def _lengths(body: Body) -> set[str]:
    """Return the dimensions on which numbers of iterations depend."""
    found = symbols(body.loop.iterations) if body.loop is not None else frozenset[str]()
    return {*found}.union(*[_lengths(call.body) for call in body.calls if call.body is not None])
