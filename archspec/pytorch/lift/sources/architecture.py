"""Configurable architectures as subjects: small modules of them, with the numbers of the actual one."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from random import Random
from typing import TYPE_CHECKING, NamedTuple, cast

from archspec.core.diagnostics import ArchError, make_error
from archspec.ir.ops import OPS
from archspec.pytorch.lift.sources.branches import branching_values
from archspec.pytorch.lift.sources.fields import (
    Fields,
    are_fields,
    has_patterns,
    is_configuration,
    is_integer,
    kind_of,
    names_layers,
    numbers_in,
)
from archspec.pytorch.lift.sources.inputs import build_on_meta, build_uninitialized
from archspec.pytorch.lift.sources.item_lists import ItemList
from archspec.pytorch.lift.sources.proposals import CHOICES, PROPOSALS, SHALLOW, THIRD, Choices, Proposal
from archspec.pytorch.lift.sources.shrinking import hidden_changes, merge_fields, shrink_fields
from archspec.pytorch.lift.subject import Sample, Subject
from archspec.pytorch.prove.state import changed_mode, modes_of
from archspec.pytorch.run.calling import MAX_FILLED, call_exception

if TYPE_CHECKING:
    import torch
    from torch import nn


CHECKED, SHOWN = (2, 3), (5, 12)
"""How many smaller and larger values of each argument, and sets of values of all, a factory is called with to check
formulas, and to find others.
"""

MAX_LAYERS, MAX_NUMBER = 100, 2**16
"""The largest values of an argument with which a factory is called to see whether it takes another branch."""


@dataclass(frozen=True)
class Architecture:
    """A function from fields to modules. `inputs` yields inputs to try, for the first or the second choice of sizes."""

    name: str
    fields: Fields
    build: Callable[[Fields], nn.Module]
    inputs: Callable[[nn.Module, int], Iterator[dict[str, torch.Tensor]]]
    proposals: Sequence[Proposal] = PROPOSALS
    choices: Sequence[Choices] = CHOICES
    free: Mapping[str, Sequence[int | str]] = field(default_factory=dict[str, "Sequence[int | str]"])
    """The sizes of inputs as users describe them."""
    has_same_reals: bool = False
    """Whether the second small module has the reals of the first one."""
    is_factory: bool = False
    """Whether the fields are the arguments of a factory, of which nothing else is known."""
    stated: Mapping[str, object] = field(default_factory=dict[str, object])
    """The arguments or fields that users state, also those that are no integers."""
    lists: Sequence[ItemList] = ()
    """The lists of integers whose items are fields."""

    def actual(self) -> nn.Module:
        """Return the actual module, without values. Raises ArchError if it cannot be built."""
        try:
            return build_on_meta(partial(self.build, self.fields))
        except Exception as problem:  # of any class, as it comes from the architecture
            raise _unbuilt(self.name, problem) from problem


class SmallModule(NamedTuple):
    """A small module, the fields that it was made of, and the proposal that these follow."""

    subject: Subject
    fields: Fields
    proposal: Proposal


def subject_of(architecture: Architecture, small_one: SmallModule | None = None) -> Subject:
    """Return a small module of an architecture, with others as evidence. Raises ArchError if there is none."""
    small_one = small_one or build_small_module(architecture, 0)
    first = small_one.subject

    def second() -> Subject:
        usual = build_small_module(architecture, 1, small_one.fields)
        return usual.subject if architecture.has_same_reals else _with_other_reals(architecture, usual)

    def deep(differs: bool) -> Subject | None:
        has_all = not any(choices.layers for choices in architecture.choices)
        if has_all or (small_one.proposal.is_shallow and not differs):
            return None
        found = build_small_module(_beginning_with(architecture, small_one.proposal), 2)
        return None if found.fields == small_one.fields else found.subject

    def third(names: Collection[str]) -> Subject:
        return _random_module(architecture, small_one, _third(architecture, small_one.proposal) or small_one, names)

    def changed(name: str, value: int, /, **others: int) -> Subject | None:
        return _changed(architecture, small_one, {name: value, **others})

    def branches() -> Iterator[tuple[str, int]]:
        return _branches(architecture, small_one)

    def samples(names: Collection[str], many: bool) -> Iterator[Sample]:
        return _samples(architecture, small_one, names, many)

    return Subject(
        module=first.module,
        inputs=first.inputs,
        other_inputs=first.other_inputs,
        second=second,
        changed=changed,
        has_patterns=has_patterns(architecture.fields),
        deep=deep,
        third=third,
        samples=samples if architecture.is_factory else None,
        branches=branches if architecture.is_factory else lambda: iter(()),
        numbers=first.numbers,
        parts=parts_of(architecture.fields),
        actual=numbers_of(architecture.fields),
        name=architecture.name,
        free=architecture.free,
    )


def _beginning_with(architecture: Architecture, proposal: Proposal) -> Architecture:
    """Return an architecture for which a proposal, and those after it, are tried before the others."""
    turn = architecture.proposals.index(proposal)
    return replace(architecture, proposals=[*architecture.proposals[turn:], *architecture.proposals[:turn]])


def _third(architecture: Architecture, first: Proposal) -> SmallModule | None:
    """Return a module with further sizes, also of parts that share sizes in others; None if it cannot be built and run.

    Where the `first` one has sizes of the configuration, such as that of images, it has them as well. It has as many
    layers as the first one if the configuration lists some by number: in others, these would not be the same.
    """
    keeps = first.is_cropped, first.unit == 0, first.is_scaled, first.is_shallow
    proposals = [
        item for item in PROPOSALS if keeps == (item.is_cropped, item.unit == 0, item.is_scaled, item.is_shallow)
    ]
    layers = architecture.choices[0].layers
    if layers and not names_layers(architecture.fields):
        layers = THIRD.layers
    for are_apart in (True, False):
        choices = THIRD._replace(layers=layers, are_apart=are_apart)
        other = replace(architecture, choices=[choices], proposals=list(dict.fromkeys([first, *proposals])))
        try:
            return build_small_module(other, 0)
        except ArchError:
            continue
    return None


def _random_module(
    architecture: Architecture, first: SmallModule, third: SmallModule, names: Collection[str]
) -> Subject:
    """Return a `third` small module with random numbers of these `names`, which a spec follows, and of others that it
    has changed already, as far as it can be built and called: of all that a factory has, and of the fields of a
    configuration that are the same in the `first`.
    """
    random = Random(architecture.name)  # the same numbers each time
    same, stated = numbers_of(merge_fields(architecture.fields, first.fields)), numbers_of(architecture.fields)
    found = third
    for name, value in numbers_of(merge_fields(architecture.fields, third.fields)).items():
        kind = kind_of(name)
        is_size = kind not in ("kept", "token", "at_layer", "layers") and same.get(name) == value
        is_named = name in first.subject.numbers and (architecture.is_factory or is_size)
        is_followed = name in names or same.get(name) != value
        if not is_integer(value) or value < 1 or not is_named or not is_followed:
            continue
        numbers = {key: other for key, other in found.subject.numbers.items() if is_integer(other) and key != name}
        most = value + (
            3 if kind == "layers" else max(3, value // 4) if _is_image_size(third, value) else 3 * value + 3
        )
        possible = [
            other for other in range(2, most + 1) if other != value and _divides_alike(stated, name, other, numbers)
        ]
        for other in random.sample(possible, min(3, len(possible))):
            changed = _changed(architecture, found, {name: other})
            if changed is not None:
                fields = with_number(merge_fields(architecture.fields, found.fields), name, other)
                found = SmallModule(changed, fields, third.proposal)
                break
    if found is third:
        return third.subject
    given, module = found.subject.inputs, found.subject.module
    alike = (other for other in architecture.inputs(module, 1) if are_alike(given, other))
    others = next((other for other in alike if call_exception(module, other) is None), None)
    return replace(found.subject, other_inputs=others, name=architecture.name, free=architecture.free)


def reason_for(architecture: Architecture, name: str) -> str:
    """Return why no size of a spec follows an argument or field."""
    value = numbers_of(architecture.fields).get(name)
    if not is_integer(value):
        return "no integer"
    if kind_of(name) == "token":
        return "a token"
    few = shrink_fields(architecture.fields, SHALLOW, architecture.choices[0])
    fields, shapes = merge_fields(architecture.fields, few), set[object]()
    for other in (1, value, value + 1, 2 * value):
        with suppress(Exception):  # of any class, as it comes from the architecture
            module = build_on_meta(partial(architecture.build, with_number(fields, name, other)))
            shapes.add(tuple([(name, *tensor.shape) for name, tensor in module.state_dict().items()]))
    return "shapes follow it in a way that is not known" if len(shapes) > 1 else "no shape follows it"


def _samples(architecture: Architecture, first: SmallModule, names: Collection[str], many: bool) -> Iterator[Sample]:
    """Yield modules that differ from the `first` small one of a factory in one number of these `names`, which a spec
    follows, up to several times the actual one, and then in all of them; `many` and other ones, or few.
    """
    fields = merge_fields(architecture.fields, first.fields)
    random = Random(f"{architecture.name} {many}")
    for changes in _changes(architecture, fields, names, random, *(SHOWN if many else CHECKED)):
        changed = fields
        for name, other in changes.items():
            changed = with_number(changed, name, other)
        with suppress(Exception), warnings.catch_warnings():  # of any class, as it comes from the architecture
            warnings.simplefilter("ignore")  # of tensors without elements
            module = build_on_meta(partial(architecture.build, changed))
            runs = partial(_changed, architecture, first, changes)
            yield Sample(numbers_of(changed), module, lambda runs=runs: runs() is not None, [*changes])


def _branches(architecture: Architecture, first: SmallModule) -> Iterator[tuple[str, int]]:
    """Yield the numbers of a factory with other values than in the `first` small module, with which it may take another
    branch.
    """
    fields = merge_fields(architecture.fields, first.fields)
    for name, value in numbers_in(architecture.fields):
        few = fields.get(name, value)
        if not is_integer(few) or not few > 0 < value:
            continue

        def build(other: int, name: str = name) -> nn.Module:
            return _built_on_meta(architecture, with_number(fields, name, other))

        most = MAX_LAYERS if kind_of(name) == "layers" else MAX_NUMBER
        yield from ((name, other) for other in branching_values(build, few, value, most))


def _built_on_meta(architecture: Architecture, fields: Fields) -> nn.Module:
    with warnings.catch_warnings():  # of tensors without elements
        warnings.simplefilter("ignore")
        return build_on_meta(partial(architecture.build, fields))


def _changes(
    architecture: Architecture, fields: Fields, names: Collection[str], random: Random, each: int, sets: int
) -> Iterator[dict[str, int]]:
    """Yield other numbers for small fields: each alone, several times, and then all together."""
    bounds: dict[str, list[tuple[int, int]]] = {}
    for name, value in numbers_in(architecture.fields):
        few = fields.get(name, value)
        most = value + 2 if kind_of(name) == "layers" else 8 * value + 7
        if name in names and is_integer(few) and few > 0 < value:
            bounds[name] = [(1, few), (value, most)]
    for name, pairs in bounds.items():
        for other in dict.fromkeys([random.randint(*pair) for pair in pairs for _ in range(each)]):
            yield {name: other}
    for _ in range(sets if len(bounds) > 1 else 0):
        yield {name: random.randint(*random.choice(pairs)) for name, pairs in bounds.items()}


def numbers_of(fields: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Return the values of a configuration, and of those inside of it under the names of both."""
    found: dict[str, object] = {}
    for name, value in fields.items():
        if is_configuration(value):
            found |= numbers_of(value, f"{prefix}{name.removesuffix('_config')}_")
        elif are_fields(value) and "mrope_section" in value:
            sections = enumerate(cast("list[int]", value["mrope_section"]))
            found |= {f"{prefix}mrope_section_{turn}": size for turn, size in sections}
        elif are_fields(value) and "layer" in name:
            of_some = _of_some_layers(value)
            found |= {_usable(f"{prefix}{name}_{key}"): size for key, size in of_some.items()}
        elif isinstance(value, bool | int | float | str) and name.isidentifier():
            found[_usable(prefix + name)] = value
    return found


def _usable(name: str) -> str:
    """Return a name for a hyperparameter, which would hide an operation of its name."""
    return f"{name}_" if name in OPS else name


def _of_some_layers(value: Fields) -> dict[str, object]:
    """Return the fields of some layers, by the numbers of these, if they are the same for all of these."""
    fields = [part for part in value.values() if are_fields(part)]
    if not fields or any(part != fields[0] for part in fields):
        return {}
    return {name: size for name, size in fields[0].items() if isinstance(size, int | float)}


def parts_of(fields: Mapping[str, object], prefix: str = "") -> list[str]:
    """Return what the names of the values of the configurations inside of one begin with."""
    found: list[str] = []
    for name, value in fields.items():
        if is_configuration(value):
            part = f"{prefix}{name.removesuffix('_config')}_"
            found += [part, *parts_of(value, part)]
    return found


def build_small_module(architecture: Architecture, turn: int, first: Fields | None = None) -> SmallModule:
    """Return the first small module that can be built and run, and reveals all changes of a `first` one."""
    problem: Exception | None = None
    tried: list[Fields] = []
    same: list[str] = []
    for proposal in architecture.proposals:
        fields = shrink_fields(architecture.fields, proposal, architecture.choices[turn])
        hidden = [] if first is None else hidden_changes(architecture.fields, first, fields)
        same = same or hidden
        if fields in tried or hidden:
            continue
        tried.append(fields)
        try:
            module = _built(architecture, fields, turn)
        except ArchError:
            raise
        except Exception as error:  # of any class, as it comes from the architecture
            problem = problem or error
            continue
        modes = modes_of(module)
        _check_inputs(architecture, module)
        takes = _taking(architecture, fields, module)
        for inputs in architecture.inputs(module, turn % 2):
            error = takes(inputs)
            if error is not None:
                problem = problem or error
                continue
            changed = changed_mode(modes, module)
            if changed is not None:
                raise make_error("lift", f"cannot lift `{architecture.name}`: a call changes its attribute `{changed}`")
            alike = (other for other in architecture.inputs(module, 1 - turn % 2) if are_alike(inputs, other))
            subject = Subject(
                module,
                ordered(module, inputs),
                next((other for other in alike if takes(other) is None), None),
                numbers=_numbers(architecture, module, fields, proposal),
                name=architecture.name,
                free=architecture.free,
            )
            return SmallModule(subject, fields, proposal)
    if problem is None:
        reason = f"all have the same `{'`, `'.join(same)}`" if same else "no inputs of further sizes are known"
        raise make_error("usage", f"cannot build and run small `{architecture.name}`: {reason}")
    raise _unbuilt(architecture.name, problem)


def _built(architecture: Architecture, fields: Fields, seed: int) -> nn.Module:
    """Return the module with these fields, in evaluation; without values if it has too many parameters. Raises
    ValueError if some have no elements, as of a width that is divided by a larger number.
    """
    import torch

    build = partial(architecture.build, fields)
    sizes = [parameter.numel() for parameter in _built_on_meta(architecture, fields).parameters()]
    if 0 in sizes:
        raise ValueError("some of its tensors have no elements")
    count = sum(sizes)
    torch.random.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]
    return (build_uninitialized(build) if count > MAX_FILLED else build()).eval()


def _check_inputs(architecture: Architecture, module: nn.Module) -> None:
    """Refuse a module for which no inputs are known."""
    if next(architecture.inputs(module, 0), None) is None:
        names = ", ".join([f"`{name}`" for name in inspect.signature(module.forward).parameters if name != "kwargs"])
        raise make_error("usage", f"cannot run a small `{architecture.name}`: no inputs are known for {names}")


def _numbers(architecture: Architecture, module: nn.Module, fields: Fields, proposal: Proposal) -> dict[str, object]:
    """Return the numbers of a small module; of a shallow one, those that it has in the place of the actual ones."""
    numbers = numbers_of(_settled(architecture, module, merge_fields(architecture.fields, fields)))
    if not proposal.is_shallow:
        return numbers
    kept = numbers_of(architecture.fields)
    has_fewer = bool(architecture.choices[0].layers)
    return {
        name: value
        for name, value in numbers.items()
        if value != kept.get(name) or (has_fewer and kind_of(name) == "layers")
    }


def _taking(
    architecture: Architecture, fields: Fields, module: nn.Module
) -> Callable[[Mapping[str, torch.Tensor]], Exception | None]:
    """Return what returns the exception that calling a module raises, or one that has as many queries as the actual
    one: these may be chosen among the places in an image, which has to be large enough for them.
    """
    queries = {name: value for name, value in numbers_in(architecture.fields) if kind_of(name) == "queries"}

    @cache
    def demanding() -> nn.Module | None:
        if all(fields.get(name, value) == value for name, value in queries.items()):
            return None
        try:
            return build_uninitialized(partial(architecture.build, {**fields, **queries})).eval()
        except Exception:  # of any class, as it comes from the architecture
            return None

    def error(inputs: Mapping[str, torch.Tensor]) -> Exception | None:
        found = call_exception(module, inputs)
        other = demanding() if found is None else None
        return found if other is None else call_exception(other, inputs)

    return error


def _with_other_reals(architecture: Architecture, usual: SmallModule) -> Subject:
    """Return a small module with other values of those reals on which no shape of a tensor depends, so that a number
    that is the same in both small modules is none of them by accident; the usual one if that cannot be called.
    """
    if usual.proposal.is_shallow:
        return usual.subject
    fields = merge_fields(architecture.fields, usual.fields)

    def shapes(changed: Fields) -> list[tuple[str, Sequence[int]]]:
        module = build_on_meta(partial(architecture.build, changed))
        return [(name, value.shape) for name, value in [*module.named_parameters(), *module.named_buffers()]]

    kept, factor = shapes(fields), 1.5
    for name, value in reals_of(architecture.fields).items():
        changed = with_number(fields, name, value * factor)
        with suppress(Exception):  # of any class, as it comes from the architecture
            if shapes(changed) == kept:
                fields, factor = changed, factor + 0.25
    try:
        module = _built(architecture, fields, 1)
    except Exception:  # of any class, as it comes from the architecture
        return usual.subject
    if call_exception(module, usual.subject.inputs) is not None:
        return usual.subject
    return replace(usual.subject, module=module, numbers=_numbers(architecture, module, fields, usual.proposal))


def _divides_alike(stated: Mapping[str, object], name: str, value: int, numbers: Mapping[str, object]) -> bool:
    """Whether a value is a multiple and a divisor of those other numbers that its stated one is: a module that takes
    other sizes of images than multiples of its patches leaves out what remains.
    """
    usual = stated.get(name)
    for key, number in numbers.items():
        other = stated.get(key)
        if not (is_integer(usual) and is_integer(other) and is_integer(number)):
            continue
        if min(usual, other) < 2 or usual == other:  # what is equal may be so by accident
            continue
        if (usual % other == 0 and value % number) or (other % usual == 0 and number % value):
            return False
    return True


def _is_image_size(small: SmallModule, size: int) -> bool:
    """Whether two axes of an input have a size: the work of attention grows with its fourth power."""
    return any([*tensor.shape].count(size) > 1 for tensor in small.subject.inputs.values())


def reals_of(fields: Mapping[str, object]) -> dict[str, float]:
    """Return the reals of a configuration, but for 0 and 1, which may be special."""
    numbers = numbers_of(fields).items()
    return {name: value for name, value in numbers if isinstance(value, float) and value not in (0.0, 1.0)}


def _changed(architecture: Architecture, first: SmallModule, changes: Mapping[str, int]) -> Subject | None:
    """Return a small module with other values of numbers; None if it cannot be built or called."""
    fields = merge_fields(architecture.fields, first.fields)
    for name, value in changes.items():
        fields = with_number(fields, name, value)
    try:
        module = _built(architecture, fields, 0)
    except Exception:  # of any class, as it comes from the architecture
        return None
    alike = [inputs for inputs in architecture.inputs(module, 0) if are_alike(first.subject.inputs, inputs)]
    inputs = next((inputs for inputs in alike if call_exception(module, inputs) is None), None)
    if inputs is None:
        return None
    numbers = numbers_of(_settled(architecture, module, merge_fields(architecture.fields, fields)))
    return Subject(module, ordered(module, inputs), numbers=numbers)


def with_number(fields: Fields, name: str, value: float) -> Fields:
    """Return fields with another one of the values that `numbers_of` finds in them."""
    found = dict(fields)
    for key, inner in fields.items():
        if _usable(key) == name:
            found[key] = value
        elif is_configuration(inner):
            part = f"{key.removesuffix('_config')}_"
            if name.startswith(part):
                found[key] = with_number(inner, name.removeprefix(part), value)
    return found


def _settled(architecture: Architecture, module: nn.Module, fields: Fields) -> Mapping[str, object]:
    """Return the fields of a module, some of which its configuration may have derived from others; of a factory, its
    arguments alone.
    """
    if architecture.is_factory:
        return fields
    settled = getattr(getattr(module, "config", None), "to_dict", None)
    return fields | settled() if settled is not None else fields


def ordered(module: nn.Module, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return inputs in the order of the signature of `forward`."""
    names = [*inspect.signature(module.forward).parameters]
    return {name: inputs[name] for name in sorted(inputs, key=names.index)}


def are_alike(inputs: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> bool:
    """Whether inputs have the same names, and as many axes."""
    return inputs.keys() == other.keys() and all(value.dim() == other[name].dim() for name, value in inputs.items())


def _unbuilt(name: str, problem: Exception) -> ArchError:
    message = " ".join(str(problem).split())
    return make_error("usage", f"cannot build and run a small `{name}`: {type(problem).__name__}: {message}")
