"""The mappings of configurations, as their files in `specs/configs` state them."""

from fnmatch import fnmatchcase
from functools import cache
from typing import Any, NamedTuple

import yaml
from paths import SPECS

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
    """The mapping of a type, with that of the type that it is `like`, and of what these include."""
    documents = [document(type)]
    while "like" in documents[0]:
        documents.insert(0, document(documents[0]["like"]))
    included = sorted({name for each in documents for name in each.get("includes", ())})
    documents[:0] = [document(name) for name in ("_common", *included)]
    architectures: dict[str, Any] = {}
    entries: dict[str, dict[str, Any]] = {}
    stated = [each["parts"] for each in documents if "parts" in each] or [{}]
    parts: dict[str, dict[str, Any]] = stated[-1] if isinstance(stated[-1], dict) else {part: {} for part in stated[-1]}
    ignored = {f"{part}.{name}" for part in parts for name in document("_common")["ignored"]}
    for part, entry in parts.items():
        family = entry.get("like") or entry.get("default")
        if family:
            like, sets = mapping(family), entry.get("sets", {})
            fields = {n: field for n, field in like.fields.items() if "for" not in field or field.get("sets") in sets}
            entries |= {f"{part}.{name}": field for name, field in fields.items()}
            ignored |= {f"{part}.{name}" for name in (*like.ignored, *like.fields)}
    for each in documents:
        architectures = each.get("architectures", architectures)
        for pattern in each.get("without", ()):
            entries = {name: entry for name, entry in entries.items() if not fnmatchcase(name, pattern)}
            ignored = {name for name in ignored if not fnmatchcase(name, pattern)}
        entries |= each.get("fields", {})
        ignored.update(each.get("ignored", ()))
    fields = {alias: entry for name, entry in entries.items() for alias in (name, *entry.get("also", ()))}
    return Mapping(type, architectures, fields, frozenset(ignored - set(fields)))


def values(type: str, field: str) -> list[Any]:
    """The values of a field that have a meaning."""
    stated = mapping(type).fields[field]["values"]
    if isinstance(stated, str):
        stated = document("_common")["values"][stated]
    return list(stated) if isinstance(stated, dict) else [value for value, _ in stated]
