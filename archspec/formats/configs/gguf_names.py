"""Names of tensors in GGUF files, by the lists in the family files; `docs/import.md` describes these."""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import cache, cached_property
from typing import NamedTuple

from archspec.formats.configs.family import Family, known_types, read_family
from archspec.formats.configs.names import families_of, substitution


class Rule(NamedTuple):
    """A run of segments in published names, and the runs that stand for it in a GGUF file.

    Without `parts`, the conversion drops these tensors. With several, their tensors are parts of one. If `parts` have
    fewer `*`, the tensors that differ in the last number are stacked. `how` is what else the conversion does (see
    `archspec.analysis.verify.gguf`). If it `is_optional`, another rule applies where a file does not have the parts.
    """

    published: str
    parts: tuple[str, ...]
    how: str = ""
    is_optional: bool = False

    @property
    def is_stack(self) -> bool:
        """Whether tensors with different numbers are stacked."""
        return bool(self.parts) and self.parts[0].count("*") < self.published.count("*")


class Place(NamedTuple):
    """Where the elements of a tensor are: the names in the GGUF file, and the number in a stack.

    `rule` is the one that tells more than another name, if any.
    """

    names: tuple[str, ...]
    number: int | None = None
    rule: Rule | None = None


class GGUFNames:
    """The list of a family: rules in order, and the names of tensors that the conversion adds."""

    def __init__(self, family: Family) -> None:
        self.type = family.type
        self.added = {part for published, parts, _ in family.gguf if published is None for part in parts}
        self.rules: list[Rule] = []
        for i, (published, parts, how) in enumerate(family.gguf):
            if published is not None:
                has_another = any(published == other for other, *_ in family.gguf[i + 1 :])
                self.rules.append(Rule(published, parts, how, has_another or len(parts) > 1))

    @cached_property
    def _hints(self) -> list[tuple[str, Rule]]:
        """The rules, each after a text that every name to which it applies contains, which is faster to look for."""
        return [(max(rule.published.split("*"), key=len).strip("."), rule) for rule in self.rules]

    def place(self, name: str, stored: Container[str]) -> Place:
        """Return the place of the tensor with this published name in a file that has the names `stored`."""
        place = Place((name,))
        for hint, rule in self._hints:
            if hint not in place.names[0]:
                continue
            pattern = substitution(rule.published, "")[0]
            match = pattern.search(place.names[0])
            if match is None:
                continue
            if not rule.parts:
                return Place((), None, rule)
            names = tuple([pattern.sub(substitution(rule.published, part)[1], place.names[0]) for part in rule.parts])
            if rule.is_optional and not are_stored(names, stored):
                continue
            number = int(match[match.re.groups]) if rule.is_stack and match[match.re.groups].isdecimal() else None
            tells_more = rule.is_stack or len(names) > 1 or rule.how
            place = Place(names, number, rule) if tells_more else place._replace(names=names)
        return place


def are_stored(names: Sequence[str], stored: Container[str]) -> bool:
    """Whether a file has all names, as they are or without a prefix (`bert.`)."""
    return any(all(name in stored for name in each) for each in (names, without_prefix(names)))


def without_prefix(names: Sequence[str]) -> tuple[str, ...]:
    """Return names without their first segments."""
    return tuple([name.partition(".")[2] for name in names])


@cache
def gguf_names_of(definition: str, specs: str) -> tuple[GGUFNames, ...]:
    """Return the lists of the families that have a definition as an architecture; all lists if there are none."""
    families = [family for family in families_of(definition, specs) if family.gguf] if definition else []
    families = families or [read_family(specs, type, {}) for type in known_types(specs)]
    return tuple({family.gguf: GGUFNames(family) for family in reversed(families) if family.gguf}.values())
