"""Writes the index of the bundled models: `python -m archspec.pipeline.generate`, after a change of a bundled spec."""

from __future__ import annotations

import json
import os

from archspec.core import resources
from archspec.pipeline.index import INDEX_FILE, find_models, fingerprint
from archspec.pipeline.tables import load_table


def index_text() -> str:
    """Return the contents of the index, one model per line."""
    rows = [json.dumps([file, name, *load_table(name)[0].params]) for file, name in find_models()]
    models = ",\n  ".join(rows)
    return f'{{"specs": {json.dumps(fingerprint(resources.specs_root()))},\n "models": [\n  {models}\n]}}\n'


def write_index() -> None:
    """Write the index beside the bundled specs."""
    with open(os.path.join(resources.specs_root(), INDEX_FILE), "w", encoding="utf-8", newline="\n") as file:
        file.write(index_text())


if __name__ == "__main__":
    write_index()
