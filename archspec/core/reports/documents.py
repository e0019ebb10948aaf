"""Machine-readable documents, in JSON and YAML; exported graphs use them without results."""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf
from typing import TypeAlias, cast

Document: TypeAlias = dict[str, object]
"""The content of JSON and YAML output: plain data under text keys."""

FORMATS = ("json", "yaml")


def write(contents: Document, format: str) -> str:
    """Format a document as JSON or YAML."""
    return json(contents) if format == "json" else yaml(contents)


def json(contents: Document) -> str:
    """Format a document as JSON, with one line per entry and per element of a list of objects."""
    from json import dumps

    entries: list[str] = []
    for key, value in contents.items():
        elements = cast("list[object]", value) if isinstance(value, list) else []
        if elements and isinstance(elements[0], dict):
            text = "[\n  " + ",\n  ".join(map(dumps, elements)) + "\n ]"
        else:
            text = dumps(value)
        entries.append(f"{dumps(key)}: {text}")
    return "{" + ",\n ".join(entries) + "}\n"


def yaml(contents: Document) -> str:
    """Format a document as YAML, with innermost lists and mappings on one line."""
    import yaml as library

    dumper = getattr(library, "CSafeDumper", library.SafeDumper)
    return library.dump(contents, Dumper=dumper, sort_keys=False, default_flow_style=None, width=2**30)


def finite(values: Mapping[str, object]) -> Document:
    """Replace infinity, which JSON does not have, by its name in the language."""
    return {name: finite_value(value) for name, value in values.items()}


def finite_value(value: object) -> object:
    """Return a value, or `inf` and `-inf` as text."""
    return str(value) if isinstance(value, float) and isinf(value) else value


def plain(contents: Document) -> Document:
    """Convert a document to the types that reading its JSON returns: lists instead of tuples."""
    return {key: _plain(value) for key, value in contents.items()}


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return plain(cast("Document", value))
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[object]", value)]
    return value
