"""Mappings of configuration fields to hyperparameters: `specs/configs/TYPE.yaml`, one file per model type.

`docs/import.md` describes the format. The files are part of the package, so they are not validated.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

COMMON = "_common"


class Field(NamedTuple):
    """The effect of one configuration field.

    The field `sets` a hyperparameter to its value, or to the one that `values` maps it to; a mapping sets several.
    `among` lists patterns of the architectures that use the field. `only` lists the supported values. `kind` is
    integer, number, boolean, entries (an object whose number of entries is the value) or cycle; `least` is the minimum.
    If the field is null, the hyperparameter is equal to `like`; if it is equal to `unless`, it keeps its default.
    `needs` maps values to other fields that they require. A `cycle` is a list in which every n-th item is the first
    string and all others are the second; the hyperparameter `length` is its number of items.
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
    """The definition of an architecture, its bundled file, and fixed hyperparameters."""

    file: str
    definition: str
    settings: dict[str, object]


class Family(NamedTuple):
    """A model type: its architectures, its fields by each of their names, and the fields without effect."""

    type: str
    architectures: dict[str, Architecture]
    fields: dict[str, Field]
    ignored: frozenset[str]


def known_types(specs: str) -> list[str]:
    """Return the supported model types, sorted."""
    names = os.listdir(os.path.join(specs, "configs"))
    return sorted(name[:-5] for name in names if name.endswith(".yaml") and not name.startswith("_"))


def read_family(specs: str, type: str, raw: dict[str, bytes]) -> Family:
    """Read the family of a supported model type, and add the files read to `raw`."""
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
        for alias in (name, *entry.get("also", ())):
            fields[alias] = field
    architectures = {name: _architecture(entry) for name, entry in merged["architectures"].items()}
    return Family(type, architectures, fields, frozenset(ignored - set(fields)))


def _architecture(entry: str | dict[str, Any]) -> Architecture:
    target: str = entry if isinstance(entry, str) else entry["is"]
    file, _, definition = target.partition(".")
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
