"""Matching the tensors of GGUF files with those of a spec: other names, and tensors that the conversion rearranges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from archspec.analysis.verify.naming import NamingVariant
from archspec.formats.checkpoints.entries import Entry
from archspec.formats.configs.gguf_names import GGUFNames, Place, Rule, without_prefix


class GGUFMatch(NamedTuple):
    """The tensors in a file by their names in the spec, as far as they have one, and the others."""

    found: dict[str, Entry]
    others: list[Entry]
    spellings: list[NamingVariant]
    notes: list[str]


def match_gguf(spec: Iterable[str], stored: Mapping[str, Entry], family: GGUFNames) -> GGUFMatch:
    """Match the names of a spec with `stored`, the tensors of a file by name, as the list of a family tells."""
    places = {name: _without_prefix(family.place(name, stored), stored) for name in spec}
    present = {name: place for name, place in places.items() if place.names and all(n in stored for n in place.names)}
    stacks: dict[str, dict[int, str]] = {}
    found: dict[str, Entry] = {}
    used: dict[Rule, set[str]] = {}
    taken: set[str] = set()
    for name, (names, number, rule) in present.items():
        if number is not None and stored[names[0]].shape:
            stacks.setdefault(names[0], {})[number] = name
        elif number is None and taken.isdisjoint(names):
            entry = _combined([stored[each] for each in names], rule.how if rule else "")
            if entry is None:
                continue
            found[name] = entry
        else:
            continue
        taken.update(names)
        if rule:
            used.setdefault(rule, set()).update(names[:1])
    others = [entry for name, entry in stored.items() if name not in taken | family.added]
    for name, members in stacks.items():
        stack = stored[name]
        held = {number: member for number, member in members.items() if number < stack.shape[0]}
        found |= {member: _slice(stack, number) for number, member in held.items()}
        if len(held) < stack.shape[0]:
            others.append(stack._replace(shape=(stack.shape[0] - len(held), *stack.shape[1:])))
    spellings = [NamingVariant("gguf", "llama.cpp", family.type, len(taken))] if taken else []
    spellings += [_variant(rule, len(names)) for rule, names in used.items()]
    added = [name for name in stored if name in family.added]
    dropped = [name for name, place in places.items() if not place.names]
    return GGUFMatch(found, others, spellings, _notes(added, dropped))


def _without_prefix(place: Place, stored: Mapping[str, Entry]) -> Place:
    """Return a place without the prefix of the spec's names (`bert.`), where the file has none."""
    if place.names and not any(name in stored for name in place.names):
        shorter = without_prefix(place.names)
        if all(name in stored for name in shorter):
            return place._replace(names=shorter)
    return place


def _combined(parts: Sequence[Entry], how: str) -> Entry | None:
    """Return the tensor that the parts are, as the spec has it; None if their shapes do not fit together.

    "transposed" exchanges the last two axes of each part; parts are joined along the last axis. "heads" are keys and
    values by head: the keys are transposed, both are joined along the second axis, and the first two become one.
    "squeezed" removes an axis of 1 element before the last. "from N" leaves out the first N rows.
    """
    shapes = [part.shape for part in parts]
    if how and any(len(shape) < 2 for shape in shapes):
        return None
    if how == "transposed":
        shapes = [(*shape[:-2], shape[-1], shape[-2]) for shape in shapes]
    shape: tuple[int, ...] | None = shapes[0]
    if how == "heads":
        shape = _of_heads(*shapes)
    elif how == "squeezed":
        shape = (*shapes[0][:-1], 1, shapes[0][-1])
    elif how.startswith("from "):
        shape = (shapes[0][0] + int(how.removeprefix("from ")), *shapes[0][1:])
    elif len(shapes) > 1:
        is_fit = all(shapes) and len({shape[:-1] for shape in shapes}) == 1
        shape = (*shapes[0][:-1], sum(shape[-1] for shape in shapes)) if is_fit else None
    return None if shape is None else parts[0]._replace(shape=shape, bytes=sum(part.bytes for part in parts))


def _of_heads(keys: tuple[int, ...], values: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape of keys [heads, rank, size] and values [heads, size, rank] together."""
    if len(keys) != 3 or len(values) != 3 or (keys[0], keys[1]) != (values[0], values[2]):
        return None
    return keys[0] * (keys[2] + values[1]), keys[1]


def _slice(stack: Entry, number: int) -> Entry:
    """Return one of the tensors of a stack."""
    bytes = stack.bytes // stack.shape[0]
    return stack._replace(shape=stack.shape[1:], bytes=bytes, start=stack.start + number * bytes)


def _variant(rule: Rule, names: int) -> NamingVariant:
    kind = "stacked" if rule.is_stack else "joined" if len(rule.parts) > 1 else rule.how
    return NamingVariant(kind, ", ".join(rule.parts), rule.published, names)


def _notes(added: Sequence[str], dropped: Sequence[str]) -> list[str]:
    """Describe what the conversion adds and what it leaves out."""
    notes = [f"ignored, because the conversion to GGUF adds it: `{name}`" for name in added]
    if dropped:
        notes.append(f"the conversion to GGUF drops {', '.join(f'`{name}`' for name in dropped)}")
    return notes
