"""What the fields of a family's configurations mean: `specs/configs/TYPE.yaml`, read as data.

`docs/import.md` describes the files. They are part of the package, and are believed.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

COMMON = "_common"


class Field(NamedTuple):
    """What one field of a configuration does.

    It `sets` a hyperparameter, to its own value or to what `values` gives for that; where `values` gives mappings, each
    sets several. A field that only some architectures have a use for says so in `among`. `only` lists the values of a
    field that can have no others. `kind` is integer, number, boolean or cycle, `least` the smallest integer.
    """

    name: str
    sets: str | None
    kind: str
    default: Any
    has_default: bool
    values: list[tuple[Any, Any]] | None
    only: list[Any] | None
    least: int
    among: list[str] | None
    cycle: list[str]


class Family(NamedTuple):
    """A model type: the bundled file with its definitions, these by architecture, its fields by every name they have,
    and the fields that change nothing.
    """

    type: str
    spec: str
    architectures: dict[str, str]
    fields: dict[str, Field]
    ignored: frozenset[str]


def known_types(specs: str) -> list[str]:
    """The model types that are known."""
    names = os.listdir(os.path.join(specs, "configs"))
    return sorted(name[:-5] for name in names if name.endswith(".yaml") and not name.startswith("_"))


def read_family(specs: str, type: str, raw: dict[str, bytes]) -> Family:
    """The family of a model type that is known; the files it was read from are added to `raw`."""
    common, own = _document(specs, COMMON, raw), _document(specs, type, raw)
    chain = [own]
    while "like" in chain[0]:
        chain.insert(0, _document(specs, chain[0]["like"], raw))
    entries: dict[str, dict[str, Any]] = {}
    ignored = set[str]()
    merged: dict[str, Any] = {}
    for document in (common, *chain):
        merged |= document
        ignored |= set(document.get("ignored", ()))
        for name, entry in document.get("fields", {}).items():
            entries[name] = entry
    fields: dict[str, Field] = {}
    for name, entry in entries.items():
        field = _field(name, entry, common["values"])
        for known_as in (name, *entry.get("also", ())):
            fields[known_as] = field
    return Family(type, merged["spec"], merged["architectures"], fields, frozenset(ignored - set(fields)))


def _field(name: str, entry: dict[str, Any], shared: dict[str, Any]) -> Field:
    default = entry.get("default")
    values = entry.get("values")
    if isinstance(values, str):
        values = shared[values]
    cycle = entry.get("cycle", [])
    kinds = {int: "integer", float: "number", bool: "boolean"}
    kind = entry.get("kind") or ("cycle" if cycle else kinds.get(type(default), ""))
    return Field(
        name,
        entry.get("sets"),
        kind,
        default,
        "default" in entry,
        list(values.items()) if values is not None else None,
        entry.get("only"),
        entry.get("least", 1),
        entry.get("for"),
        cycle,
    )


def _document(specs: str, name: str, raw: dict[str, bytes]) -> dict[str, Any]:
    import yaml

    path = os.path.abspath(os.path.join(specs, "configs", name + ".yaml"))
    with open(path, "rb") as file:
        raw[path] = file.read()
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(raw[path], Loader=loader)
