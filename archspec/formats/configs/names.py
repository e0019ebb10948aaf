"""Names of tensors in published checkpoints, in live models of `transformers` and in GGUF files.

The files of families list the differences; `docs/import.md` describes these lists.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator, Sequence
from functools import cache, cached_property
from typing import NamedTuple

from archspec.formats.configs.documents import DocumentReader
from archspec.formats.configs.family import Family, known_types, read_family


class Names(NamedTuple):
    """The list of a family: pairs of runs of segments, in published names and in live models, in order."""

    pairs: tuple[tuple[str, str], ...]

    def live(self, name: str) -> str:
        """Return the name in a live model of a tensor with this published name."""
        return self.steps(name)[0]

    def steps(self, name: str) -> tuple[str, list[tuple[str, str]]]:
        """Return the live name, and the pairs that were applied to the published name."""
        used: list[tuple[str, str]] = []
        for pair in self.pairs:
            pattern, template = substitution(*pair)
            previous, name = name, pattern.sub(template, name)
            if name != previous:
                used.append(pair)
        return name, used


def find_names(definition: str, specs: str) -> list[Names]:
    """Return the lists of names, if any, of the families that have a definition as an architecture."""
    return list(dict.fromkeys([Names(family.names) for family in iter_families(definition, specs) if family.names]))


def iter_families(definition: str, specs: str) -> Iterator[Family]:
    """Yield the families that have a definition as an architecture, once for each choice of types of their parts.

    The family whose file has the definition is the first.
    """
    families: list[tuple[bool, str]] = []
    for type in known_types(specs):
        with open(os.path.join(specs, "configs", type + ".yaml"), encoding="utf-8") as file:
            if definition not in file.read():
                continue  # parsing YAML takes much longer
        family = read_family(specs, type, {})
        files = [each.file for each in family.architectures.values() if each.definition == definition]
        if files:
            families.append((type.replace("-", "_") not in files, type))
    for _, type in sorted(families):
        choices = DocumentReader(specs, {}).iter_part_types(type, known_types(specs))
        yield from [read_family(specs, type, {}, part_types) for part_types in choices]


@cache
def substitution(published: str, live: str) -> tuple[re.Pattern[str], str]:
    """Return the pattern of a run of complete segments, and its replacement.

    Each `*` matches one segment, and `**.` any number of them.
    """
    groups = iter(range(1, published.count("*") + 1))
    template = re.sub(r"\*\*\.|\*", lambda _: rf"\g<{next(groups)}>", live)
    run = re.escape(published).replace(r"\*\*\.", r"((?:[^.]+\.)*?)").replace(r"\*", "([^.]+)")
    return re.compile(rf"(?<![^.]){run}(?![^.])"), template


# Names in GGUF files --------------------------------------------------------------------------------------------------


class Rule(NamedTuple):
    """A run of segments in published names, and the runs that replace it in a GGUF file.

    Without `parts`, the conversion drops these tensors; with several, it splits each tensor. If `parts` have fewer `*`,
    it stacks the tensors that differ in the last number. `how` names a further effect of the conversion (see
    `archspec.analysis.verify.gguf`). If it `is_optional`, a later rule applies to a file without the parts.
    """

    published: str
    parts: tuple[str, ...]
    how: str = ""
    is_optional: bool = False

    @property
    def is_stack(self) -> bool:
        """Whether tensors with different numbers are stacked."""
        return bool(self.parts) and self.parts[0].count("*") < self.published.count("*")


class StoredLocation(NamedTuple):
    """The location of a tensor in a GGUF file: the names of its parts, and its index in a stack.

    `rule` is the rule that applies, if it does more than rename the tensor.
    """

    names: tuple[str, ...]
    stack_index: int | None = None
    rule: Rule | None = None


class GGUFNames:
    """The list of a family: rules in order, and the names of tensors that the conversion adds."""

    def __init__(self, family: Family) -> None:
        self.type = family.type
        self.added = {part for published, parts, _ in family.gguf if published is None for part in parts}
        self.rules: list[Rule] = []
        for i, (published, parts, how) in enumerate(family.gguf):
            if published is not None:
                has_alternative = any(published == alternative for alternative, *_ in family.gguf[i + 1 :])
                self.rules.append(Rule(published, parts, how, has_alternative or len(parts) > 1))

    @cached_property
    def _hints(self) -> list[tuple[str, Rule]]:
        """The rules, each with a text that all names it applies to contain: a search for it is faster than a match."""
        return [(max(rule.published.split("*"), key=len).strip("."), rule) for rule in self.rules]

    def locate(self, name: str, stored: Container[str]) -> StoredLocation:
        """Locate the tensor with a published name in a file with the names `stored`."""
        location = StoredLocation((name,))
        for hint, rule in self._hints:
            if hint not in location.names[0]:
                continue
            pattern = substitution(rule.published, "")[0]
            match = pattern.search(location.names[0])
            if match is None:
                continue
            if not rule.parts:
                return StoredLocation((), None, rule)
            names = tuple(
                [pattern.sub(substitution(rule.published, part)[1], location.names[0]) for part in rule.parts]
            )
            if rule.is_optional and not are_stored(names, stored):
                continue
            stack_index = int(match[match.re.groups]) if rule.is_stack and match[match.re.groups].isdecimal() else None
            is_relevant = rule.is_stack or len(names) > 1 or rule.how
            location = StoredLocation(names, stack_index, rule) if is_relevant else location._replace(names=names)
        return location


def are_stored(names: Sequence[str], stored: Container[str]) -> bool:
    """Whether a file has all names, either unchanged or all without their prefix (`bert.`)."""
    return any(all(name in stored for name in variant) for variant in (names, without_prefix(names)))


def without_prefix(names: Sequence[str]) -> tuple[str, ...]:
    """Return names without their first segments."""
    return tuple([name.partition(".")[2] for name in names])


@cache
def find_gguf_names(definition: str, specs: str) -> tuple[GGUFNames, ...]:
    """Return the lists of the families that have a definition as an architecture; all lists if there are none."""
    families = [family for family in iter_families(definition, specs) if family.gguf] if definition else []
    families = families or [read_family(specs, type, {}) for type in known_types(specs)]
    return tuple({family.gguf: GGUFNames(family) for family in reversed(families) if family.gguf}.values())
