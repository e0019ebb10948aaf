"""The source of bundled specs: whole files, and single definitions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from archspec.core import resources
from archspec.core.diagnostics import Report, Source
from archspec.language.syntax import tree
from archspec.pipeline.files import load_file, parse_cached
from archspec.pipeline.locate import locate_bundled


def bundled_source(name: str) -> str:
    """Return the source of a bundled file or definition.

    `name` is that of a model, which stands for its file, of a file (`std`, `std/norm.arch`), or of a definition; every
    definition of that name is returned. Raises ArchError if there is none.
    """
    specs = os.path.realpath(resources.specs_root())
    stem = name.removesuffix(".arch").removeprefix("specs/")
    path = os.path.realpath(os.path.join(specs, resources.bundled_path(specs, stem)))
    if path.startswith(specs + os.sep) and os.path.isfile(path):
        return _read(path)
    definitions = list(_definitions(specs, name)) if name.isidentifier() else []
    if definitions:
        return "\n".join(definitions)
    return load_file(locate_bundled(name), Report()).unit.source.text


def _definitions(specs: str, name: str) -> Iterator[str]:
    """Yield the definitions with this name, each below a comment with its file; those of the standard library first."""
    paths = [os.path.join(folder, file) for folder, _, files in os.walk(specs) for file in files]
    standard = os.path.join(specs, "std") + os.sep
    for path in sorted(paths, key=lambda path: (not path.startswith(standard), path)):
        if not path.endswith(".arch"):
            continue
        text = _read(path)
        if re.search(rf"^(?:fn|layer|block)\s+{name}\b", text, re.MULTILINE):
            label = f"specs/{os.path.relpath(path, specs)}"
            for item in parse_cached(Source(label, text), Report()).items:
                if isinstance(item, tree.Definition) and item.name.text == name:
                    doc = "".join(f"## {line}".rstrip() + "\n" for line in item.doc.split("\n")) if item.doc else ""
                    yield f"# {label}\n\n{doc}{text[item.start : item.end]}\n"


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
