"""Modules of an architecture at sizes that no spec was lifted at, and whether a spec is one of them."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

import archspec
from archspec import equivalent
from archspec.pytorch.lift.check import ComparisonError, UndecidedError, check_unrounded
from archspec.pytorch.lift.sources.architecture import (
    Architecture,
    are_alike,
    numbers_of,
    ordered,
    reals_of,
    with_number,
)
from archspec.pytorch.lift.sources.fields import (
    are_fields,
    are_integers,
    head_of,
    is_configuration,
    is_integer,
    is_list,
    kind_of,
)
from archspec.pytorch.lift.sources.inputs import build_uninitialized
from archspec.pytorch.lift.sources.proposals import PROPOSALS, SHALLOW, Choices
from archspec.pytorch.lift.sources.shrinking import merge_fields, shrink_fields
from archspec.pytorch.lift.subject import Subject
from archspec.pytorch.passes.precision import in_float64 as without_rounding
from archspec.pytorch.prove.numeric import MAX_ELEMENTS
from archspec.pytorch.prove.tables import other_tensors
from archspec.pytorch.run.calling import call_exception
from archspec.pytorch.values.arguments import UntranslatableError

FURTHER = Choices((6, 7, 8), 1, (9, 3, 18), 3, (6, 6), 127, 84, 6, (18, 4, 3, 2), (0, 3, 1, 2, 5), (3, 1, 2, 4))
"""Sizes other than those of `archspec.pytorch.lift.sources.proposals`."""

LIGHTER = FURTHER._replace(experts=(9, 4, 3, 2), width=3)
"""Sizes for architectures of which those of `FURTHER` make no module that is small enough to be run."""

MORE_HEADS = LIGHTER._replace(heads=(18, 6, 36))
"""Sizes for architectures some layers of which have twice as many groups of heads."""

ALL_LAYERS = FURTHER._replace(layers=())
"""Sizes for specs that are for as many layers as there are, or for no fewer than the last one that a list names."""

EXACTLY = "exactly"
ROUNDED = "up to the rounding of tables to float32"
IN_FLOAT64 = "exactly, with tables in float64"
AT_ITS_SIZES = "with a size that does not follow the hyperparameters"
NOT_COMPARED = "without a comparison at further sizes"
FIXED = "without hyperparameters"
VERDICTS = AT_ITS_SIZES, NOT_COMPARED, FIXED, ROUNDED, IN_FLOAT64, EXACTLY
"""From the worst one to the best one."""


MOST_LARGE = 3
"""So many modules that are too large to be run are compared by their normal forms."""


class Made(NamedTuple):
    subject: Subject
    numbers: dict[str, Any]

    @property
    def module(self) -> Any:
        return self.subject.module


class Variation(NamedTuple):
    """Other fields for an architecture. `own`: only those differ from the configuration that a spec has as
    hyperparameters, so that it has to be the module of these fields. Where other sizes follow from these, it only has
    to be one of those in which all sizes differ.
    """

    fields: dict[str, Any]
    own: bool
    count: int
    """The parameters of its module."""


def compared(text: str, architecture: Architecture) -> str:
    """Return how a spec is a module with further sizes: for the first one that can be built, called and compared.

    Those that the spec refuses are not compared: it prints no wrong number for them.
    """
    names = archspec.loads(text).hyperparameters
    if not names:
        return FIXED
    for variation in variations(architecture, names):
        verdict = _compared(text, partial(_made, architecture, variation))
        if verdict in (EXACTLY, IN_FLOAT64, ROUNDED) or (verdict == AT_ITS_SIZES and variation.own):
            return verdict
    return NOT_COMPARED


def variations(architecture: Architecture, names: Collection[str]) -> Iterator[Variation]:
    """Yield fields of which modules can be built: those that are small enough to be run, then larger ones."""
    large: list[Variation] = []
    tried: list[dict[str, Any]] = []
    for choices in (FURTHER, LIGHTER, MORE_HEADS, ALL_LAYERS):
        others = [
            shrink_fields(architecture.fields, proposal, choices._replace(are_apart=are_apart))
            for are_apart in (True, False)
            for proposal in [*PROPOSALS, SHALLOW]
        ]
        only = [restricted(architecture.fields, changed, names) for changed in others]
        only = [*[with_reals(architecture.fields, changed, names) for changed in only], *only]
        for own, group in ((True, only), (False, others)):
            found: list[Variation] = []
            for fields in group:
                is_new = fields not in tried and has_whole_heads(architecture.fields, fields)
                count = _count(architecture, fields) if is_new else None
                tried += [] if fields in tried else [fields]
                found += [] if count is None else [Variation(fields, own, count)]
            found.sort(key=lambda variation: variation.count)
            yield from [variation for variation in found if variation.count <= MAX_ELEMENTS]
            large += [variation for variation in found if variation.count > MAX_ELEMENTS]
    yield from sorted(large, key=lambda variation: (not variation.own, variation.count))[:MOST_LARGE]


def has_whole_heads(actual: dict[str, Any], fields: dict[str, Any]) -> bool:
    """Whether widths are multiples of their numbers of heads, as far as they are in the actual fields."""
    for name, value in actual.items():
        if is_configuration(value) and not has_whole_heads(value, fields.get(name, {})):
            return False
    both = [
        {kind_of(name): value for name, value in reversed(merge_fields(actual, scope).items()) if is_integer(value)}
        for scope in ({}, fields)
    ]
    if not all(kinds.get("hidden") and kinds.get("heads") for kinds in both) or "head" in both[0]:
        return True
    first, second = [kinds["hidden"] % kinds["heads"] for kinds in both]
    return first != 0 or second == 0


def _count(architecture: Architecture, fields: dict[str, Any]) -> int | None:
    """Return the number of parameters of a module; None if it cannot be built."""
    try:
        with torch.device("meta"):
            return sum([parameter.numel() for parameter in architecture.build(fields).parameters()])
    except Exception:  # of any class, as it comes from the architecture
        return None


def restricted(fields: dict[str, Any], changed: dict[str, Any], names: Collection[str], prefix: str = "") -> Any:
    """Return changed fields in which those numbers and lists are as they were that are not among some names, and what
    depends on the size of a head if that is as it was. Numbers that are equal to one with a name, before and after, are
    taken to follow it.
    """
    found = dict(changed)
    named = [name for name in fields if {prefix + name, f"{prefix}{name}_"} & {*names}]
    known = {(fields[name], changed.get(name)) for name in named if is_integer(fields[name])}
    counts = [name for name in fields if kind_of(name) == "layers" and prefix + name in names]
    for name, value in fields.items():
        if is_configuration(value):
            part = f"{prefix}{name.removesuffix('_config')}_"
            found[name] = restricted(value, changed.get(name, {}), names, part)
        elif kind_of(name) in ("token", "at_layer") or (is_list(value) and not are_integers(value)):
            found |= {} if counts or kind_of(name) == "token" else {name: value}
        elif (is_integer(value) and (value, changed.get(name)) not in known) or is_list(value):
            found[name] = value
    if head_of(found) == head_of(fields):
        found |= {name: value for name, value in fields.items() if are_fields(value) and "mrope_section" in value}
    return found


def with_reals(fields: dict[str, Any], changed: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return changed fields, with other reals for all hyperparameters that are reals, each by another factor."""
    found = merge_fields(fields, changed)
    for turn, (name, value) in enumerate(reals_of(fields).items()):
        if name in names:
            found = with_number(found, name, value * (1.4 + 0.3 * turn))
    return found


def _made(architecture: Architecture, variation: Variation) -> Made | None:
    """Return the module of a variation, without values if it is too large to be run; None if it cannot be called."""
    build = partial(architecture.build, variation.fields)
    try:
        module = (build() if variation.count <= MAX_ELEMENTS else build_uninitialized(build)).eval()
    except Exception:  # of any class, as it comes from the architecture
        return None
    given = [inputs for turn in (1, 0) for inputs in architecture.inputs(module, turn)]
    inputs = next((inputs for inputs in given if call_exception(module, inputs) is None), None)
    if inputs is None:
        return None
    alike = [other for other in given if are_alike(inputs, other) and _shapes(inputs) != _shapes(other)]
    others = next((other for other in alike if call_exception(module, other) is None), None)
    config = getattr(module, "config", None)
    settled = config.to_dict() if config is not None else {}
    numbers = numbers_of(merge_fields(architecture.fields, variation.fields) | settled)
    return Made(Subject(module, ordered(module, inputs), others, numbers=numbers), numbers)


def _shapes(inputs: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in inputs.items()}


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
        return NOT_COMPARED
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
    if found.verdict == "different":
        return AT_ITS_SIZES
    return checked(text, overrides, make)


def checked(text: str, overrides: dict[str, Any], make: Callable[[], Made | None]) -> str:
    """Return the verdict for a spec that is checked as lifted ones are: with the inputs that its module is known to
    take.
    """
    with without_rounding():
        made = make()
    if made is None:
        return NOT_COMPARED
    try:
        check_unrounded(text, overrides, made.subject)
    except (ComparisonError, UndecidedError):
        return NOT_COMPARED
    except UntranslatableError:
        return AT_ITS_SIZES
    return IN_FLOAT64


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
