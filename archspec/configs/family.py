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
    sets several. A field that only some architectures have a use for says so in `among`, where a `*` stands for any
    characters. `only` lists the values of a field that can have no others. `kind` is integer, number, boolean, entries
    (an object, of which the number of entries is the value) or cycle, `least` the smallest integer. Where the field is
    null, the hyperparameter is the same as `like`; where it is the same as `unless`, it is left to its definition.
    `needs` are fields that must be given with a value of this one. A `cycle` is a list in which every n-th item is the
    first word and all others are the second; it has as many items as the hyperparameter `length` says.
    """

    name: str
    sets: str | None
    kind: str
    default: object
    has_default: bool
    values: list[tuple[object, object]] | None
    only: list[object] | None
    least: int
    among: list[str] | None
    cycle: list[str]
    like: str | None
    unless: str | None
    needs: dict[object, list[str]]
    length: str | None


class Architecture(NamedTuple):
    """The definition that an architecture is, the bundled file it is in, and hyperparameters it always has."""

    file: str
    definition: str
    settings: dict[str, object]


class Family(NamedTuple):
    """A model type: its architectures, its fields by every name they have, and the fields that change nothing."""

    type: str
    architectures: dict[str, Architecture]
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
    architectures = {name: _architecture(entry) for name, entry in merged["architectures"].items()}
    return Family(type, architectures, fields, frozenset(ignored - set(fields)))


def _architecture(entry: str | dict[str, Any]) -> Architecture:
    place: str = entry if isinstance(entry, str) else entry["is"]
    file, _, definition = place.partition(".")
    return Architecture(file, definition, {} if isinstance(entry, str) else entry["with"])


def _field(name: str, entry: dict[str, Any], shared: dict[str, Any]) -> Field:
    default: object = entry.get("default")
    values = entry.get("values")
    if isinstance(values, str):
        values = shared[values]
    cycle = entry.get("cycle", [])
    kinds = {"int": "integer", "float": "number", "bool": "boolean"}
    kind: str = entry.get("kind") or ("cycle" if cycle else kinds.get(default.__class__.__name__, ""))
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
        entry.get("like"),
        entry.get("unless"),
        entry.get("needs", {}),
        entry.get("length"),
    )


def _document(specs: str, name: str, raw: dict[str, bytes]) -> dict[str, Any]:
    import yaml

    path = os.path.abspath(os.path.join(specs, "configs", name + ".yaml"))
    with open(path, "rb") as file:
        raw[path] = file.read()
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(raw[path], Loader=loader)
