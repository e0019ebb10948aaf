"""Graphs and pictures that commands write of a small spec."""

import tempfile
from pathlib import Path

from small import complete

from archspec.testing import run


def written(text: str, *options: str, command: str = "graph") -> str:
    """What `archspec graph SPEC OPTIONS` prints for a bundled model, or for a text, whose path is then `text.arch`."""
    with tempfile.TemporaryDirectory() as folder:
        spec = text
        if "\n" in text:
            spec = f"{folder}/text.arch"
            Path(spec).write_text(complete(text), encoding="utf-8")
        status, output, errors = run(command, spec, *options)
    assert status == 0, errors
    return output.replace(f"{folder}/", "")
