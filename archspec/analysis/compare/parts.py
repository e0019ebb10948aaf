"""Parts that models have in place of each other: attention, feed-forward networks, norms and activations.

They are read from the operations of the models, layer by layer: a norm is one by what it computes, whatever its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeAlias

from archspec.analysis.compare.compare import ComponentRow, ReplacedPart
from archspec.core.addresses import (
    ANY_INDEX,
    format_ranges,
    is_below,
    is_index,
    is_inside,
    join,
    parent,
    prefixes,
    segments,
)
from archspec.core.diagnostics import ArchError
from archspec.ir.structure.parts import AttentionFacts, ExpertsFacts, FeedForwardFacts, NormFacts, Part, StateSpaceFacts
from archspec.pipeline.model import Model, get_compilation

_Chain: TypeAlias = tuple[str, ...]
"""The names of a part, from its outermost definition to its innermost one; () if it has none."""


class _Description(NamedTuple):
    """The parts of one kind in a layer, and the words for what they are."""

    chains: tuple[_Chain, ...]
    words: tuple[str, ...]


_Layers: TypeAlias = Mapping[int, Mapping[str, _Description]]
"""The descriptions of the parts of each layer of a stack, by kind."""

_OUTSIDE = ""
"""The address of the parts that are in no stack, which are those of a single layer."""


def find_replaced_parts(models: Sequence[Model | None], rows: Sequence[ComponentRow]) -> list[ReplacedPart]:
    """Return the parts that differ from the parts at the same layer of the first model.

    `rows` are the corresponding components. A model that is None, or whose parts cannot be read, has no parts.
    """
    stacks = [_read_stacks(model) if model is not None else {} for model in models]
    return [part for address in stacks[0] for part in _compare_stack(address, stacks, rows)]


# Parts of one model ---------------------------------------------------------------------------------------------------


def _read_stacks(model: Model) -> dict[str, _Layers]:
    """Return the stacks of a model by address: those whose layers have attention or states, and the parts outside."""
    parts: list[Part] = []
    if not get_compilation(model).unit.deferred:
        with suppress(ArchError):
            parts += model.parts
    types = {module.address: module.type for module in get_compilation(model).table.modules if module.type}
    layers: dict[str, dict[int, list[Part]]] = {}
    for part in parts:
        stack, index = _layer_of(part.address)
        layers.setdefault(stack, {}).setdefault(index, []).append(part)
    return {
        stack: {index: _describe(layer, join(stack, str(index)), types) for index, layer in sorted(indexed.items())}
        for stack, indexed in layers.items()
        if stack == _OUTSIDE or any(isinstance(part.facts, _MIXERS) for layer in indexed.values() for part in layer)
    }


def _layer_of(address: str) -> tuple[str, int]:
    """Return the address of the outermost stack around a part, and the index of the layer."""
    names = segments(address)
    position = next((i for i, name in enumerate(names) if i and is_index(name)), None)
    return (_OUTSIDE, 0) if position is None else (join(*names[:position]), int(names[position]))


_MIXERS = (AttentionFacts, StateSpaceFacts)
_NAMED = (*_MIXERS, FeedForwardFacts, ExpertsFacts)
"""Parts that are named by their definitions."""


def _describe(parts: Sequence[Part], layer: str, types: Mapping[str, str]) -> dict[str, _Description]:
    """Describe the parts of a layer by kind."""
    chains: dict[str, list[tuple[_Chain, str]]] = {}
    for part in parts:
        facts = part.facts
        match facts:
            case AttentionFacts() | StateSpaceFacts():
                word = "attention" if isinstance(facts, AttentionFacts) else "state space"
                chains.setdefault("mixer", []).append((_definition_names(part, parts, layer, types), word))
            case FeedForwardFacts() | ExpertsFacts():
                word = "experts" if isinstance(facts, ExpertsFacts) else "feed-forward"
                chains.setdefault("feed-forward", []).append((_definition_names(part, parts, layer, types), word))
                gated = ", gated" if facts.is_gated else ""
                activation = () if facts.activation is None else (f"{facts.activation}{gated}",)
                chains.setdefault("activation", []).append((activation, "activation"))
            case NormFacts():
                chains.setdefault("norm", []).append(((facts.name,), "norm"))
            case _:
                pass
    return {
        kind: _Description(tuple(dict.fromkeys(c for c, _ in items)), tuple(dict.fromkeys(w for _, w in items)))
        for kind, items in chains.items()
    }


def _definition_names(part: Part, parts: Sequence[Part], layer: str, types: Mapping[str, str]) -> _Chain:
    """Return the names of the definitions in a layer that have most tensors of a part, and none of another such part.

    A linear map that has most of them is not that part.
    """
    tensors: Counter[str] = Counter()
    holders: dict[str, set[str]] = {}
    for name in part.tensors:
        for address in prefixes(name):
            if address in types and is_below(address, layer):
                tensors[address] += 1
                holders.setdefault(address, set()).add(parent(name))
    count = len(part.tensors)
    others = [name for other in parts if isinstance(other.facts, _NAMED) for name in other.tensors]
    others = [name for name in others if name not in part.tensors]
    choices = [
        address
        for address, number in tensors.items()
        if number == count or (2 * number > count and len(holders[address]) > 1)
        if not any(is_inside(name, address) for name in others)
    ]
    return tuple([types[address] for address in sorted(choices, key=lambda address: len(segments(address)))])


# Parts of several models ----------------------------------------------------------------------------------------------


def _compare_stack(
    address: str, stacks: Sequence[Mapping[str, _Layers]], components: Sequence[ComponentRow]
) -> Iterator[ReplacedPart]:
    """Yield the parts of a stack of the first model that are different in the corresponding stacks."""
    matches = [stacks[0][address]]
    for model, others in enumerate(stacks[1:], 1):
        aligned = _aligned_stack(address, components, model)
        if aligned is not None and aligned in others:
            matches.append(others[aligned])
        else:
            matches.append(_corresponding_stack(address, stacks[0], others))
    rows: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for index in matches[0]:
        layers = [match.get(index, {}) for match in matches]
        for kind in layers[0]:
            row = _compare_layers([layer.get(kind) for layer in layers])
            if row is not None:
                rows.setdefault(row, []).append(index)
    for (name, parts), indices in rows.items():
        yield ReplacedPart(name, address, format_ranges(indices) if address != _OUTSIDE else "", parts)


def _aligned_stack(address: str, components: Sequence[ComponentRow], model: int) -> str | None:
    """Return the address of the stack of a model whose layers are aligned with a stack of the first model."""
    layers = join(address, ANY_INDEX)
    for component in components:
        ours, theirs = component.row.groups[0], component.row.groups[model]
        if len(ours) == len(theirs) == 1 and ours[0].address == layers and theirs[0].numbered:
            return parent(theirs[0].address)
    return None


def _corresponding_stack(address: str, ours: Mapping[str, _Layers], others: Mapping[str, _Layers]) -> _Layers:
    """Return the stack at the same address, or the only stack; {} for none."""
    if address in others or address == _OUTSIDE:
        return others.get(address, {})
    stacks = [stack for stack in others if stack != _OUTSIDE]
    return others[stacks[0]] if len(stacks) == 1 and len([stack for stack in ours if stack != _OUTSIDE]) == 1 else {}


def _compare_layers(descriptions: Sequence[_Description | None]) -> tuple[str, tuple[str, ...]] | None:
    """Return what the parts of one kind are, and their names in each model; None if they do not differ for certain."""
    present = [description for description in descriptions if description is not None]
    if any(() in description.chains for description in present):
        return None
    words = list(dict.fromkeys(word for description in present for word in description.words))
    chains = [chain for description in present for chain in description.chains]
    columns = list(zip(*chains, strict=False))
    common = next((i for i, names in enumerate(columns) if len(set(names)) > 1), len(columns))
    for position in (common, -1):  # the outermost definitions that differ, or else the innermost ones
        names = [None if d is None else _names_at(d, position) for d in descriptions]
        if len({frozenset(shown) for shown in names if shown is not None}) > 1:
            texts = [
                "" if description is None or shown is None else _format(shown, description.words, len(words) > 1)
                for description, shown in zip(descriptions, names, strict=True)
            ]
            return " or ".join(words), tuple(texts)
    return None


def _names_at(description: _Description, position: int) -> list[str]:
    """Return the names at a position of the chains, or the last ones of chains that are shorter."""
    return list(dict.fromkeys(chain[min(position, len(chain) - 1)] for chain in description.chains))


def _format(names: Sequence[str], words: Sequence[str], is_ambiguous: bool) -> str:
    text = " + ".join(names)
    return f"{text} ({' + '.join(words)})" if is_ambiguous else text
