"""Modules of an architecture at sizes that no spec was lifted at, and whether a spec is one of them."""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

import archspec
from archspec.equivalence.api import equivalent, other_tensors
from archspec.equivalence.numeric import MOST_ELEMENTS
from archspec.lifting.sources.architecture import Architecture, failure, numbers_of
from archspec.lifting.sources.fields import are_integers, is_configuration, is_integer, is_list
from archspec.lifting.sources.kinds import kind_of
from archspec.lifting.sources.proposals import PROPOSALS, SHALLOW, Choices
from archspec.lifting.sources.shrinking import merged, small

FURTHER = Choices((6, 7, 8), 1, (9, 3, 18), 3, (6, 6), 127, 84, 6, (18, 4, 3, 2), (0, 3, 1, 2, 5), (3, 1, 2, 4))
"""Sizes other than those of `archspec.lifting.sources.proposals`."""

EXACTLY = "exactly"
ROUNDED = "up to the rounding of tables to float32"
IN_FLOAT64 = "exactly, with tables in float64"
AT_ITS_SIZES = "with a size that does not follow the hyperparameters"
NOT_COMPARED = "without a comparison at further sizes"
VERDICTS = AT_ITS_SIZES, NOT_COMPARED, ROUNDED, IN_FLOAT64, EXACTLY
"""From the worst one to the best one."""


class Made(NamedTuple):
    module: Any
    numbers: dict[str, Any]


def compared(text: str, architecture: Architecture) -> str:
    """Return how a spec is a module with further sizes: for the first one that can be built, called and compared.

    First, only those fields differ from the configuration that the spec has as hyperparameters, so that it has to be
    this module. Where other sizes follow from these, it only has to be one of those in which all sizes differ.
    """
    names = archspec.loads(text).hyperparameters
    others: list[dict[str, Any]] = []
    for choices in (FURTHER._replace(are_apart=True), FURTHER):
        for proposal in [*PROPOSALS, SHALLOW]:
            changed = small(architecture.fields, proposal, choices)
            others += [changed] if changed not in others else []
    only = [restricted(architecture.fields, changed, names) for changed in others]
    for turn, fields in enumerate([*only, *others]):
        if fields not in [*only, *others][:turn]:
            verdict = _compared(text, partial(_made, architecture, fields))
            if verdict in (EXACTLY, IN_FLOAT64, ROUNDED) or (verdict == AT_ITS_SIZES and turn < len(only)):
                return verdict
    return NOT_COMPARED


def restricted(fields: dict[str, Any], changed: dict[str, Any], names: Collection[str], prefix: str = "") -> Any:
    """Return changed fields in which those numbers and lists are as they were that are not among some names."""
    found = dict(changed)
    counts = [name for name in fields if kind_of(name) == "layers" and prefix + name in names]
    for name, value in fields.items():
        if is_configuration(value):
            part = f"{prefix}{name.removesuffix('_config')}_"
            found[name] = restricted(value, changed.get(name, {}), names, part)
        elif kind_of(name) in ("token", "at_layer") or (is_list(value) and not are_integers(value)):
            found |= {} if counts or kind_of(name) == "token" else {name: value}
        elif (is_integer(value) and not {prefix + name, f"{prefix}{name}_"} & {*names}) or is_list(value):
            found[name] = value
    return found


def _made(architecture: Architecture, fields: dict[str, Any]) -> Made | None:
    try:
        with torch.device("meta"):
            count = sum([parameter.numel() for parameter in architecture.build(fields).parameters()])
        module = architecture.build(fields).eval() if count <= MOST_ELEMENTS else None
    except Exception:  # of any class, as it comes from the architecture
        return None
    if module is None or all(failure(module, inputs) for inputs in architecture.inputs(module, 1)):
        return None
    config = getattr(module, "config", None)
    settled = config.to_dict() if config is not None else {}
    return Made(module, numbers_of(merged(architecture.fields, fields) | settled))


def _compared(text: str, make: Callable[[], Made | None]) -> str:
    made = make()
    names = archspec.loads(text).hyperparameters
    if made is None or not all(name in made.numbers for name in names):
        return NOT_COMPARED
    overrides = {name: made.numbers[name] for name in names}
    if all(overrides[name] == value for name, value in names.items()):
        return NOT_COMPARED
    try:
        model = archspec.loads(text, **overrides)
    except archspec.ArchError:
        return AT_ITS_SIZES
    if other_tensors(model, made.module):
        return AT_ITS_SIZES
    found = equivalent(model, made.module)
    if is_same(found):
        return EXACTLY
    exact = in_float64(make)
    if exact is not None and is_same(equivalent(model, exact.module)):
        return IN_FLOAT64
    if "rounding to float32" in found.reason:
        return ROUNDED
    return AT_ITS_SIZES if found.verdict == "different" else NOT_COMPARED


def is_same(found: Any) -> bool:
    return found.verdict in ("equal", "outputs equal")


def in_float64(make: Callable[[], Any]) -> Any:
    """What is made of a module that computes in float64 what is to be in float32, such as its tables."""

    class Exact(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.Tensor.float:
                return args[0].double()
            args = [torch.float64 if arg is torch.float32 else arg for arg in args]
            named = {name: torch.float64 if arg is torch.float32 else arg for name, arg in (kwargs or {}).items()}
            return func(*args, **named)

    modes: list[Exact] = []

    def enter(*_: Any) -> None:
        modes.append(Exact())
        modes[-1].__enter__()

    def leave(*_: Any) -> None:
        modes.pop().__exit__(None, None, None)

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Exact(), mock.patch.object(torch, "FloatTensor", torch.DoubleTensor):
            made = make()
    finally:
        torch.set_default_dtype(before)
    if made is None:
        return None
    made.module.register_forward_pre_hook(enter)  # a call may be in another thread, which has no modes
    made.module.register_forward_hook(leave, always_call=True)
    return made
