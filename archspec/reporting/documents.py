"""Documents for programs: JSON and YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def json(contents: Mapping[str, Any]) -> str:
    """JSON, one line for each entry, and one for each element of a list of objects."""
    from json import dumps

    entries: list[str] = []
    for key, value in contents.items():
        elements = cast(list[Any], value) if isinstance(value, list) else []
        if elements and isinstance(elements[0], dict):
            text = "[\n  " + ",\n  ".join(map(dumps, elements)) + "\n ]"
        else:
            text = dumps(value)
        entries.append(f"{dumps(key)}: {text}")
    return "{" + ",\n ".join(entries) + "}\n"


def yaml(contents: Mapping[str, Any]) -> str:
    """The same as YAML, with innermost lists and mappings on one line."""
    import yaml as library

    dumper: Any = getattr(library, "CSafeDumper", library.SafeDumper)
    return library.dump(dict(contents), Dumper=dumper, sort_keys=False, default_flow_style=None, width=2**30)
