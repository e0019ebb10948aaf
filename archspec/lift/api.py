"""`archspec.lift`: a spec from a PyTorch module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from archspec.equivalence.api import deeply
from archspec.equivalence.calls.values import Untranslatable
from archspec.lift.capture import Captured, captured
from archspec.lift.sizes import Sizes
from archspec.lift.subject import Subject
from archspec.lift.text import source
from archspec.source import fail

if TYPE_CHECKING:
    import torch
    from torch import nn


def lift(module: nn.Module, example_inputs: Mapping[str, torch.Tensor] | Sequence[torch.Tensor], /) -> str:
    """Return the spec of a module in evaluation, from inputs by argument of `forward`, or in its order.

    Raises ArchError if the module cannot be written as a spec that computes exactly the same.
    """
    from archspec.lift.subjects import subject_of

    return lift_subject(subject_of(module, example_inputs))


def lift_subject(subject: Subject) -> str:
    """Return the spec of a module, given evidence for its sizes and names for its hyperparameters."""
    try:
        return deeply(lambda: _lifted(subject))
    except Untranslatable as problem:
        raise fail("lift", f"cannot lift `{type(subject.module).__name__}`: {problem}") from None


def _lifted(subject: Subject) -> str:
    first = captured(subject)
    second = subject.second() if subject.second is not None else None
    other = captured(second) if second is not None else None
    return text_of(subject, second, first, other)


def text_of(subject: Subject, second: Subject | None, first: Captured, other: Captured | None) -> str:
    """Return the spec of what was captured."""
    numbers = second.numbers if second is not None else None
    sizes = Sizes(first.program, other.program if other is not None else None, subject.numbers, numbers)
    kind = type(subject.module).__name__
    name = subject.name or kind
    params = sum(parameter.numel() for parameter in subject.module.parameters()) if subject.actual is None else None
    return source(first.program, sizes, f"{name}: lifted from {kind}.", name, sizes.defaults(subject.actual), params)
