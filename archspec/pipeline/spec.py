"""What a person names a model by."""

from __future__ import annotations

import os

from archspec.record import Record


class Spec(Record):
    """A SPEC taken apart: a bundled name, or the path of a file ("-" is standard input) and perhaps a model's name."""

    path: str | None
    model: str | None


def parse_spec(spec: str) -> Spec:
    """Takes a SPEC apart: `name`, `path.arch`, `path.arch:model name`, `-`, `path.json`."""
    if spec == "-" or spec.endswith((".arch", ".json")):
        return Spec(spec, None)
    if spec.startswith("-:"):
        return Spec("-", spec[2:].strip())
    head, separator, model = spec.partition(".arch:")
    if separator:
        return Spec(head + ".arch", model)
    return Spec(spec, None) if "/" in spec or os.sep in spec else Spec(None, spec)


def written(spec: str | os.PathLike[str]) -> str:
    """A SPEC as text; a path object names a file, whatever it is called."""
    text = os.fspath(spec)
    is_path = isinstance(spec, str) or parse_spec(text).path not in (None, "-")
    return text if is_path else os.path.join(os.curdir, text)


def place(path: str) -> str:
    """What tells a file from others; what a configuration describes is called after its path, links not followed."""
    return os.path.abspath(path) if path.endswith(".json") else os.path.realpath(path)
