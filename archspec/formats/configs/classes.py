"""The class of `transformers` that reads a configuration."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from archspec.formats.configs.facts import read_facts
from archspec.formats.configs.family import Family
from archspec.formats.strict_json import Member


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
        facts, family = read_facts(self._specs), self._family
        written, types = self._plain("transformers_version"), {family.type, *filter(None, family.parts.values())}
        has_code = self._plain("model_type") not in (None, family.type) or bool(self._plain("auto_map"))
        if has_code or not facts["types"].keys() >= types:
            return frozenset()
        is_class = self._architecture in facts["types"][family.type]["classes"]
        if not is_class or not isinstance(written, str) or _is_newer(written, facts["transformers"]):
            return frozenset()
        return frozenset(facts["shared"]).union(*[facts["types"][type]["fields"] for type in types])

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
