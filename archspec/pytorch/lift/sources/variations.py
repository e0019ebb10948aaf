"""Architectures with other small modules, for what the usual ones do not show."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from archspec.core.diagnostics import ArchError
from archspec.pytorch.lift.sources.architecture import (
    Architecture,
    SmallModule,
    are_alike,
    build_small_module,
    call_exception,
    numbers_of,
    reals_of,
)
from archspec.pytorch.lift.sources.fields import kind_of, named_scopes, numbers_in
from archspec.pytorch.lift.sources.proposals import (
    LIGHT_SECOND_SIZES,
    OTHER_HEADS,
    OTHER_LAYERS,
    OTHER_STEPS,
    SHALLOW,
    Proposal,
)
from archspec.pytorch.lift.sources.shrinking import shrink_fields, without_shrunk_lists
from archspec.pytorch.lift.subject import Subject

if TYPE_CHECKING:
    import torch
    from torch import nn

MULTIPLES = 2, 5, 4, 7, 6, 9
"""Numbers of an unknown kind are so many times larger in the second small module, each by another factor if there are
enough of them. A width may be three times as large.
"""

MAX_UNROLLED = 80
"""Layers of larger modules are not written one by one."""


def shrinks_lists(architecture: Architecture) -> bool:
    """Whether a small module has other sizes in lists than the actual one, and would be another one without them."""
    fields = shrink_fields(architecture.fields, architecture.proposals[0], architecture.choices[0])
    emptied = without_shrunk_lists(architecture.fields, fields)
    if emptied == fields:
        return False
    try:
        modules = [architecture.build(item) for item in (fields, emptied)]
        runs = any(call_exception(modules[1], inputs) is None for inputs in architecture.inputs(modules[1], 0))
    except Exception:  # of any class, as it comes from the architecture
        return True
    first, second = [[(name, value.shape) for name, value in module.state_dict().items()] for module in modules]
    return not runs or first != second


def multiplied(architecture: Architecture, subject: Subject, without: Collection[str] = ()) -> Architecture | None:
    """Return the architecture with multiples of numbers in the second small module, of those that are otherwise the
    same in both, and with which the module of its `subject` can be called; None if there are none. Those in `without`
    stay as they are.

    The multiples are not all the same: a quotient of two numbers, such as the scale of an adapter, is another one then.
    """
    first, second, *rest = architecture.choices
    both = [
        dict(numbers_in(shrink_fields(architecture.fields, architecture.proposals[0], item)))
        for item in (first, second)
    ]
    same = {name: value for name, value in both[0].items() if value == both[1].get(name) and value > 1}
    changed = subject.changed
    assert changed is not None
    possible = {
        name: [by for by in MULTIPLES if name not in without and changed(name, by * value) is not None]
        for name, value in same.items()
    }
    multiples: dict[str, int] = {}
    for name, factors in sorted(possible.items(), key=lambda item: len(item[1])):  # the fewest choices first
        if factors:
            multiples[name] = min(factors, key=[*multiples.values()].count)
    return replace(architecture, choices=[first, second._replace(multiples=multiples), *rest]) if multiples else None


def separate_part_sizes(architecture: Architecture) -> Architecture:
    """Return the architecture with other sizes in each part of a configuration, in both small modules."""
    first, second, *rest = [choices._replace(are_apart=True) for choices in architecture.choices]
    return replace(architecture, choices=[first, second._replace(heads=OTHER_HEADS), *rest])


def with_more_heads(architecture: Architecture) -> Architecture | None:
    """Return the architecture with twice as many heads in small modules, for classes some layers of which have twice as
    many groups of them; None if it has as many groups as heads.
    """
    numbers = numbers_of(architecture.fields)
    heads, groups = [
        {value for name, value in numbers.items() if kind_of(name) == kind} for kind in ("heads", "groups")
    ]
    if groups <= heads:
        return None
    twice = [choices._replace(heads=tuple([2 * count for count in choices.heads])) for choices in architecture.choices]
    return replace(architecture, choices=twice)


def has_actual_heads(subject: Subject) -> bool:
    """Whether a small module has as many heads, and groups of them, as the actual one."""
    heads = {name: value for name, value in subject.numbers.items() if kind_of(name) in ("heads", "groups")}
    return all(value == (subject.actual or {}).get(name) for name, value in heads.items())


def with_separate_sizes(architecture: Architecture, across_parts: bool = True) -> tuple[Architecture, SmallModule]:
    """Return the architecture with as many distinct sizes in small modules as these can be built and run with, and the
    first small module; distinct ones do not leave out inputs. Raises ArchError if none can be built and run.

    If not `across_parts`, sizes with one name stay equal in all parts of a configuration, and both small modules follow
    one proposal.
    """
    separate, found = architecture, build_small_module(architecture, 0)
    second: Proposal | None = None
    names = [(prefix, name) for prefix, scope in named_scopes(architecture.fields) for name, _ in numbers_in(scope)]
    qualified = [prefix + name for prefix, name in names] if across_parts else []
    for name in dict.fromkeys([*[name for _, name in names], *qualified]):
        chosen = (*found.proposal.separate, name)
        first = found.proposal._replace(separate=chosen)
        if shrink_fields(architecture.fields, first, architecture.choices[0]) == found.fields:
            continue
        with suppress(ArchError):
            second = second or (build_small_module(architecture, 1, found.fields).proposal if across_parts else first)
            proposals = list(dict.fromkeys([first, second._replace(separate=chosen)]))
            other = build_small_module(replace(architecture, proposals=[first]), 0)
            another = build_small_module(replace(architecture, proposals=proposals), 1, other.fields)
            if all(_takes_as_much(item.subject, found.subject) for item in (other, another)):
                separate, found = replace(architecture, proposals=[*proposals, *architecture.proposals]), other
    return separate, found


def _takes_as_much(subject: Subject, other: Subject) -> bool:
    """Whether a small module can be called with the inputs of another one, and with other sizes of them."""
    has_sizes = subject.other_inputs is not None or other.other_inputs is None
    return has_sizes and are_alike(subject.inputs, other.inputs)


def with_same_reals(architecture: Architecture) -> Architecture | None:
    """Return the architecture with the same reals in both small modules, for classes that compute something else for
    other ones; None if it has none that differ.
    """
    return replace(architecture, has_same_reals=True) if reals_of(architecture.fields) else None


def resize_second(architecture: Architecture) -> Architecture:
    """Return the architecture with other sizes in the second small module, where those of the first and the second one
    add up alike by accident.
    """
    steps, head_steps = OTHER_STEPS
    first, second, *rest = architecture.choices
    return replace(architecture, choices=[first, second._replace(steps=steps, head_steps=head_steps), *rest])


def resize_and_relayer(architecture: Architecture) -> Architecture:
    """Return the architecture with other sizes and numbers of layers in small modules, where some of them follow from
    others by accident.
    """
    first, second, *rest = resize_second(architecture).choices
    layers, other_layers = OTHER_LAYERS
    return replace(architecture, choices=[first._replace(layers=layers), second._replace(layers=other_layers), *rest])


def with_fewer_parameters(architecture: Architecture) -> Architecture | None:
    """Return the architecture with fewer parameters in the second small module; None if it has no others."""
    first, second, *rest = architecture.choices
    scale, width, experts = LIGHT_SECOND_SIZES
    if second.experts == experts or SHALLOW in architecture.proposals:
        return None
    return replace(architecture, choices=[first, second._replace(scale=scale, width=width, experts=experts), *rest])


def with_larger_widths(architecture: Architecture) -> Architecture:
    """Return the architecture with larger widths in small modules, for classes that divide a width by a field."""
    return replace(architecture, proposals=[proposal for proposal in architecture.proposals if proposal.unit == 32])


def unrolled(architecture: Architecture) -> Architecture | None:
    """Return the architecture with all layers in small modules, and with lists of sizes as they are; None if there are
    too many layers.
    """
    layers = [value for name, value in numbers_of(architecture.fields).items() if kind_of(name) == "layers"]
    if sum([value for value in layers if isinstance(value, int)]) > MAX_UNROLLED:
        return None
    return replace(architecture, choices=[choices._replace(layers=()) for choices in architecture.choices])


def uncropped(architecture: Architecture) -> Architecture | None:
    """Return the architecture with images of the actual size in small modules; None if it has no images."""
    if not any(name.endswith("image_size") for name in numbers_of(architecture.fields)):
        return None
    kept = [proposal for proposal in architecture.proposals if not proposal.is_cropped]
    return replace(architecture, proposals=kept)


def with_fewer_layers(architecture: Architecture) -> Architecture:
    """Return the architecture with all sizes as they are in small modules, which only have fewer layers."""
    return replace(architecture, proposals=[SHALLOW])


def with_longer(architecture: Architecture, inputs: Mapping[str, torch.Tensor]) -> Architecture:
    """Return the architecture with inputs like these that have more elements in all."""

    def longer(module: nn.Module, turn: int) -> Iterator[dict[str, torch.Tensor]]:
        found = [other for other in architecture.inputs(module, turn) if are_alike(inputs, other)]
        return (other for other in found if _elements(other) > _elements(found[0]))

    return replace(architecture, inputs=longer)


def _elements(inputs: Mapping[str, torch.Tensor]) -> int:
    return sum([value.numel() for value in inputs.values()])
