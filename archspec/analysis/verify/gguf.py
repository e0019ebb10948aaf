"""Matching of the tensors of GGUF files with those of a spec: different names, and rearranged tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from archspec.analysis.verify.naming import NamingVariant
from archspec.formats.checkpoints.entries import Entry
from archspec.formats.configs.names import GGUFNames, Rule, StoredLocation, without_prefix


class GGUFMatch(NamedTuple):
    """The tensors in a file by their names in the spec, and the remaining tensors."""

    entries: dict[str, Entry]
    remaining: list[Entry]
    spellings: list[NamingVariant]
    notes: list[str]


def match_gguf(spec: Iterable[str], stored: Mapping[str, Entry], family: GGUFNames) -> GGUFMatch:
    """Match the names of a spec with `stored`, the tensors of a file by name, by the list of a family."""
    places = {name: _strip_prefix(family.locate(name, stored), stored) for name in spec}
    present = {name: place for name, place in places.items() if place.names and all(n in stored for n in place.names)}
    stacks: dict[str, dict[int, str]] = {}
    entries: dict[str, Entry] = {}
    rule_uses: dict[Rule, set[str]] = {}
    used_names: set[str] = set()
    for name, (names, number, rule) in present.items():
        if number is not None and stored[names[0]].shape:
            stacks.setdefault(names[0], {})[number] = name
        elif number is None and used_names.isdisjoint(names):
            entry = _combine([stored[part] for part in names], rule.how if rule else "")
            if entry is None:
                continue
            entries[name] = entry
        else:
            continue
        used_names.update(names)
        if rule:
            rule_uses.setdefault(rule, set()).update(names[:1])
    remaining = [entry for name, entry in stored.items() if name not in used_names | family.added]
    for name, members in stacks.items():
        stack = stored[name]
        stack_members = {number: member for number, member in members.items() if number < stack.shape[0]}
        entries |= {member: _slice(stack, number) for number, member in stack_members.items()}
        if len(stack_members) < stack.shape[0]:
            remaining.append(stack._replace(shape=(stack.shape[0] - len(stack_members), *stack.shape[1:])))
    spellings = [NamingVariant("gguf", "llama.cpp", family.type, len(used_names))] if used_names else []
    spellings += [_rule_variant(rule, len(names)) for rule, names in rule_uses.items()]
    added = [name for name in stored if name in family.added]
    dropped = [name for name, place in places.items() if not place.names]
    return GGUFMatch(entries, remaining, spellings, _describe_changes(added, dropped))


def _strip_prefix(place: StoredLocation, stored: Mapping[str, Entry]) -> StoredLocation:
    """Remove the prefix of the spec's names (`bert.`) from a place if the file does not have it."""
    if place.names and not any(name in stored for name in place.names):
        shorter = without_prefix(place.names)
        if all(name in stored for name in shorter):
            return place._replace(names=shorter)
    return place


def _combine(parts: Sequence[Entry], how: str) -> Entry | None:
    """Combine the parts to the tensor in the spec; return None if their shapes do not fit together.

    "transposed" exchanges the last two axes of each part; parts are joined along the last axis. "heads" are keys and
    values by head: the keys are transposed, both are joined along the second axis, and the first two axes are merged.
    "squeezed" removes an axis of 1 element before the last. "from N" omits the first N rows.
    """
    shapes = [part.shape for part in parts]
    if how and any(len(shape) < 2 for shape in shapes):
        return None
    if how == "transposed":
        shapes = [(*shape[:-2], shape[-1], shape[-2]) for shape in shapes]
    shape: tuple[int, ...] | None = shapes[0]
    if how == "heads":
        shape = _join_heads(*shapes)
    elif how == "squeezed":
        shape = (*shapes[0][:-1], 1, shapes[0][-1])
    elif how.startswith("from "):
        shape = (shapes[0][0] + int(how.removeprefix("from ")), *shapes[0][1:])
    elif len(shapes) > 1:
        is_fit = all(shapes) and len({shape[:-1] for shape in shapes}) == 1
        shape = (*shapes[0][:-1], sum(shape[-1] for shape in shapes)) if is_fit else None
    return None if shape is None else parts[0]._replace(shape=shape, bytes=sum(part.bytes for part in parts))


def _join_heads(keys: tuple[int, ...], values: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the joint shape of keys [heads, rank, size] and values [heads, size, rank]."""
    if len(keys) != 3 or len(values) != 3 or (keys[0], keys[1]) != (values[0], values[2]):
        return None
    return keys[0] * (keys[2] + values[1]), keys[1]


def _slice(stack: Entry, number: int) -> Entry:
    """Return one of the tensors of a stack."""
    bytes = stack.bytes // stack.shape[0]
    return stack._replace(shape=stack.shape[1:], bytes=bytes, start=stack.start + number * bytes)


def _rule_variant(rule: Rule, names: int) -> NamingVariant:
    kind = "stacked" if rule.is_stack else "joined" if len(rule.parts) > 1 else rule.how
    return NamingVariant(kind, ", ".join(rule.parts), rule.published, names)


def _describe_changes(added: Sequence[str], dropped: Sequence[str]) -> list[str]:
    """Describe the tensors that the conversion adds and drops."""
    notes = [f"ignored, because the conversion to GGUF adds it: `{name}`" for name in added]
    if dropped:
        notes.append(f"the conversion to GGUF drops {', '.join(f'`{name}`' for name in dropped)}")
    return notes
