"""Names of tensors in published checkpoints, and in live models of `transformers`, by the lists in the family files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from archspec.formats.configs.family import Family, known_types, read_family


class Names(NamedTuple):
    """The list of a family: pairs of a run of segments in published names and the one in live models, in order."""

    pairs: tuple[tuple[str, str], ...]

    def live(self, name: str) -> str:
        """Return the name in a live model of a tensor with this published name."""
        return self.steps(name)[0]

    def steps(self, name: str) -> tuple[str, list[tuple[str, str]]]:
        """Return the live name, and the pairs that changed the name."""
        used: list[tuple[str, str]] = []
        for pair in self.pairs:
            pattern, template = substitution(*pair)
            before, name = name, pattern.sub(template, name)
            if name != before:
                used.append(pair)
        return name, used


def names_of(definition: str, specs: str) -> list[Names]:
    """Return the lists of names, if any, of the families that have a definition as an architecture."""
    return list(dict.fromkeys([Names(family.names) for family in families_of(definition, specs) if family.names]))


def families_of(definition: str, specs: str) -> Iterator[Family]:
    """Yield the families that have a definition as an architecture."""
    for type in known_types(specs):
        with open(os.path.join(specs, "configs", type + ".yaml"), encoding="utf-8") as file:
            if definition not in file.read():
                continue  # reading it as YAML takes much longer
        family = read_family(specs, type, {})
        if any(each.definition == definition for each in family.architectures.values()):
            yield family


@cache
def substitution(published: str, live: str) -> tuple[re.Pattern[str], str]:
    """Return the pattern of a run of whole segments, and what replaces it; each `*` stands for one segment."""
    groups = iter(range(1, published.count("*") + 1))
    template = re.sub(r"\*", lambda _: rf"\g<{next(groups)}>", live)
    run = re.escape(published).replace(r"\*", "([^.]+)")
    return re.compile(rf"(?<![^.]){run}(?![^.])"), template
