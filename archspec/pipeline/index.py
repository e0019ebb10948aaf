"""The bundled models: their files, and the index of their parameter counts, which is shipped with the specs.

The index is valid for the specs from which it was generated; with others, models are compiled instead.
`python -m archspec.pipeline.generate` writes it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING
from zlib import crc32

from archspec.core import resources
from archspec.core.record import Record
from archspec.ir.table import Params

if TYPE_CHECKING:
    from typing import Any

INDEX_FILE = "index.json"


class BundledModel(Record):
    """A bundled model: the file that defines it, without `.arch`, its name, and its parameter counts."""

    file: str
    name: str
    params: Params


def models() -> list[str]:
    """Return the names of the bundled models."""
    return [name for _, name in bundled_models()]


def bundled_models() -> list[tuple[str, str]]:
    """Return the bundled models: (file, name), file by file."""
    index = read_index()
    return find_models() if index is None else [(model.file, model.name) for model in index]


def find_models() -> list[tuple[str, str]]:
    """Return the bundled models, as `bundled_models` does, from the text of the specs."""
    specs = resources.specs_root()
    return [(file, name) for file in resources.bundled_files(specs) for name in _models_in(_path(specs, file))]


def family_models(family: str) -> list[str]:
    """Return the names of the bundled models of a family, which is the name of their file."""
    return [name for file, name in bundled_models() if simplify(file) == simplify(family)]


def resolve_name(name: str) -> str | None:
    """Return the only bundled model that another name means; None if there is none, or more than one.

    Such names are listed in `specs/names.yaml`, or differ only in case and punctuation.
    """
    import yaml  # imported late: most names are exact

    with open(os.path.join(resources.specs_root(), "names.yaml"), encoding="utf-8") as file:
        names = {simplify(other): model for other, model in yaml.safe_load(file).items()}
    matches = [model for model in models() if simplify(model) == simplify(name)]
    return matches[0] if len(matches) == 1 else names.get(simplify(name))


def simplify(name: str) -> str:
    """Return a name in lower case, without punctuation."""
    return "".join(filter(str.isalnum, name.lower()))


def bundled_file(name: str) -> str | None:
    """Return the path of the file with a bundled model; None if there is none with this name."""
    specs = resources.specs_root()
    for file in _likely_files(specs, name):
        path = _path(specs, file)
        with suppress(OSError, UnicodeDecodeError):
            if name in _models_in(path):
                return path
    return None


def _likely_files(specs: str, name: str) -> Iterator[str]:
    """Yield all bundled files, first the one that the index names, which may be out of date."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        yield from [file for file, model, *_ in _read_data(specs)["models"] if model == name]
    yield from resources.bundled_files(specs)


def _models_in(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return re.findall(r'^[ \t]*model[ \t]+"([^"\n]*)"', file.read(), re.MULTILINE)


def _path(specs: str, file: str) -> str:
    return os.path.join(specs, resources.bundled_path(specs, file))


def _read_data(specs: str) -> dict[str, Any]:
    with open(os.path.join(specs, INDEX_FILE), encoding="utf-8") as file:
        return json.load(file)


def read_index() -> list[BundledModel] | None:
    """Return the bundled models with their counts, file by file; None if the specs are not those of the index."""
    specs = resources.specs_root()
    try:
        data = _read_data(specs)
        if data["specs"] != fingerprint(specs):
            return None
        return [BundledModel(file, name, Params(*params)) for file, name, *params in data["models"]]
    except (OSError, ValueError, LookupError, TypeError):
        return None


def fingerprint(specs: str) -> list[int]:
    """Return a checksum of all specs in a directory, and their total size."""
    checksum = size = 0
    for path in sorted(_specs_in(specs)):
        with open(path, "rb") as file:
            content = file.read()
        checksum = crc32(content, crc32(os.path.relpath(path, specs).replace(os.sep, "/").encode(), checksum))
        size += len(content)
    return [checksum, size]


def _specs_in(specs: str) -> Iterator[str]:
    for folder, _, files in os.walk(specs):
        yield from (os.path.join(folder, file) for file in files if file.endswith(".arch"))
