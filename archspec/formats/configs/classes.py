"""Facts about the classes of `transformers`: which there are, and which fields of a configuration they may read.

`generate.py` writes them to a file, which is read only for fields and types that the families do not have.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache, cached_property
from typing import TypedDict

from archspec.formats.configs.family import Family
from archspec.formats.strict_json import Member

CLASSES_FILE = "_classes.json"


class TypeFacts(TypedDict):
    """The classes of a model type, and the names that only they may read."""

    classes: list[str]
    fields: list[str]


class Facts(TypedDict):
    """The version of `transformers`, its model types, names that any class may read, and facts about types."""

    transformers: str
    known: list[str]
    shared: list[str]
    types: dict[str, TypeFacts]


@cache
def read_facts(specs: str) -> Facts:
    """Read the facts about classes of `transformers`."""
    import json

    with open(os.path.join(specs, "configs", CLASSES_FILE), encoding="utf-8") as file:
        return json.load(file)


class ConfigurationReader:
    """The class of `transformers` that reads a configuration, and the fields that it does not read."""

    def __init__(self, specs: str, members: dict[str, Member], family: Family, architecture: str) -> None:
        self._specs = specs
        self._members = members
        self._family = family
        self._architecture = architecture

    def is_unread(self, name: str) -> bool:
        """Whether the class cannot read a field, so that the field has no effect."""
        parent, _, field = name.rpartition(".")
        return bool(self._names) and (not parent or parent in self._family.parts) and field not in self._names

    @cached_property
    def _names(self) -> frozenset[str]:
        """The names that the class may read; none if the reader is not a class of a known `transformers`."""
        facts = read_facts(self._specs)
        type, family, written = self._plain("model_type"), self._family.type, self._plain("transformers_version")
        if type not in (None, family) or self._plain("auto_map") or not isinstance(written, str):
            return frozenset()
        entry = facts["types"].get(family)
        if entry is None or self._architecture not in entry["classes"] or _is_newer(written, facts["transformers"]):
            return frozenset()
        return frozenset(facts["shared"]).union(entry["fields"])

    def _plain(self, name: str) -> object:
        return self._members[name].value.plain if name in self._members else None

    def describe(self, fields: Sequence[str]) -> str:
        """Describe the fields that the class does not read."""
        version = read_facts(self._specs)["transformers"]
        return f"left out: {', '.join(fields)}, not read by {self._architecture} (transformers {version})"


def _is_newer(version: str, reference: str) -> bool:
    """Whether a version is newer than another one, or is not a version."""
    parts = _VERSION.match(version)
    return parts is None or _release(version) > _release(reference)


def _release(version: str) -> list[int]:
    return [int(part) for part in version.split(".")[:3] if part.isdecimal()]


_VERSION = re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+|$)")
