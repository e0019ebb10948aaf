"""The mappings of configurations, as their files in `specs/configs` state them."""

from functools import cache
from typing import Any, NamedTuple

import yaml
from paths import SPECS

from archspec.formats.configs.documents import COMMON, DocumentReader, merge_fields, part_entries

FOLDER = SPECS / "configs"
TYPES = sorted(path.stem for path in FOLDER.glob("[!_]*.yaml"))


class Mapping(NamedTuple):
    """The mapping of a model type: its architectures, its fields by each of their names, and those without effect."""

    type: str
    architectures: dict[str, Any]
    fields: dict[str, dict[str, Any]]
    ignored: frozenset[str]


@cache
def document(name: str) -> dict[str, Any]:
    return yaml.load(
        (FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )


def mapping(type: str) -> Mapping:
    """The mapping of a type, with those that it is `like`, and with what these include."""
    reader = DocumentReader(str(SPECS), {})
    documents = reader.read_inherited(type)
    parts = [reader.read_part(part, entry, None) for part, entry in part_entries(documents).items()]
    entries, ignored = merge_fields([reader.read(COMMON), *documents], parts)
    architectures = next(each["architectures"] for each in reversed(documents) if "architectures" in each)
    fields = {alias: entry for name, entry in entries.items() for alias in (name, *entry.get("also", ()))}
    return Mapping(type, architectures, fields, frozenset(ignored - set(fields)))


def values(type: str, field: str) -> list[Any]:
    """The values of a field that have a meaning."""
    stated = mapping(type).fields[field]["values"]
    if isinstance(stated, str):
        stated = document("_common")["values"][stated]
    return list(stated) if isinstance(stated, dict) else [value for value, _ in stated]
