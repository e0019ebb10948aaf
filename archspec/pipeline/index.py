"""The index of the bundled models: their files and parameter counts, as plain data that is shipped with the specs.

It is valid for the specs from which it was generated; with others, models are compiled instead.
`python -m archspec.pipeline.generate` writes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from zlib import crc32

from archspec.core import resources
from archspec.core.record import Record
from archspec.ir.table import Params

INDEX_FILE = "index.json"


class BundledModel(Record):
    """A bundled model: the file that defines it, without `.arch`, its name, and its parameter counts."""

    file: str
    name: str
    params: Params


def read_index() -> list[BundledModel] | None:
    """Return the bundled models, file by file; None if the specs are not those of the index."""
    specs = resources.specs_root()
    try:
        with open(os.path.join(specs, INDEX_FILE), encoding="utf-8") as file:
            data = json.load(file)
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
