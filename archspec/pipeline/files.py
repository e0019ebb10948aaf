"""Files of specs, with all they import; kept within a process while they do not change."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress

from archspec import cache, resources
from archspec.elaborate.program import Program
from archspec.pipeline.index import shipped
from archspec.pipeline.spec import Spec, place
from archspec.pipeline.trees import parsed
from archspec.resolve.files import Library
from archspec.resolve.unit import Unit
from archspec.source import LARGEST_FILE, ArchError, Enough, Report, Source, decode, fail, suggest
from archspec.syntax import tree

MOST_PROGRAMS = 8


class Loaded:
    """A file with all it imports, and what was compiled from it in this process."""

    def __init__(self, library: Library, program: Program, unit: Unit) -> None:
        self.library = library
        self.program = program
        self.unit = unit


_loaded: dict[str, Loaded] = {}


def open_spec(spec: Spec, text: str, report: Report) -> tuple[Loaded, tree.Model]:
    """The file of a spec and the model in it. Raises ArchError."""
    if spec.path is None:
        loaded = _find_bundled(spec.model or "", report)
        return loaded, loaded.unit.models[spec.model or ""]
    loaded = load_file(spec.path, report)
    return loaded, model_in(loaded, spec.model, report)


def model_in(loaded: Loaded, name: str | None, report: Report) -> tree.Model:
    """The model of a file with this name; without a name, its only model. Raises ArchError."""
    found = loaded.unit.models
    label = loaded.unit.source.label
    if name is not None:
        if name not in found:
            report.check()
            near = suggest(name, list(found)) or _choices(found)
            raise fail("unknown-model", f'unknown model "{name}" in {label}', help=near)
        return found[name]
    if len(found) != 1:
        forget(loaded) if report.failed else None
        report.check()
        if not found:
            raise fail("no-model", f"no model in {label}", help='add a model: `model "name" = Definition(...)`')
        raise fail("which-model", f"{label} has {len(found)} models", help=_choices(found, label))
    return next(iter(found.values()))


def _choices(found: dict[str, tree.Model], label: str = "") -> str | None:
    names = ", ".join(f"{label}:{n}" if label else f'"{n}"' for n in found)
    return f"name one: {names}" if found else None


def load_file(path: str, report: Report, root: str | None = None) -> Loaded:
    """The file at a path, or standard input. Raises ArchError if it cannot be read.

    `root` is the directory from which it may import, by default that of the file.
    """
    if path == "-":
        return _load_stdin(report)
    if "\0" in path:
        raise fail("missing-file", "invalid file name: it contains a NUL byte")
    if os.path.isfile(config := os.path.join(path, "config.json")):
        raise fail(
            "unreadable",
            f"expected a file, found the directory {path}",
            help=f"use the configuration in it: `{config}`",
        )
    if path.endswith(".json"):
        from archspec.configs.spec import load_config

        return _once(place(path), lambda library: load_config(path, library, report), report)
    key = os.path.realpath(path) if root is None else f"{os.path.realpath(path)}\0{root}"
    return _once(key, lambda library: library.load(path, report, label=path, root=root), report)


def _once(path: str, load: Callable[[Library], Unit | None], report: Report) -> Loaded:
    """What `load` makes of the file at `path`, or what was made of it before. Raises ArchError if it cannot be read."""
    loaded = _current(path)
    if loaded is None:
        library, program = fresh()
        unit = None
        with suppress(Enough):
            unit = load(library)
        if unit is None:
            report.check()
            raise AssertionError("an unreadable file has been reported")
        loaded = _remember(path, Loaded(library, program, unit))
        if report.failed:
            forget(loaded)
    return loaded


def _load_stdin(report: Report) -> Loaded:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise fail("unreadable", "cannot read <stdin>: it is closed", help="pipe a spec into it, or name a file")
    try:
        data = sys.stdin.buffer.read(LARGEST_FILE + 1)
    except OSError as problem:
        raise fail("unreadable", f"cannot read <stdin>: {(problem.strerror or str(problem)).lower()}") from None
    text = decode(data, "<stdin>", report)
    report.check()
    assert text is not None
    library, program = fresh()
    with suppress(Enough):
        unit = library.define(Source("<stdin>", text), report, folder=None, root=None, path="<stdin>")
        return Loaded(library, program, unit)
    raise ArchError(report.diagnostics)


_found: dict[tuple[str, str], str] = {}
"""The files in which bundled models were found: the first ones to look into."""


def _find_bundled(name: str, report: Report) -> Loaded:
    specs = resources.specs_root()
    known = _found.get((specs, name))
    files = resources.bundled_files(specs) if known is None else [known, *resources.bundled_files(specs)]
    for file in files:
        try:
            with open(os.path.join(specs, file + ".arch"), encoding="utf-8") as text:
                if f'"{name}"' not in text.read():
                    continue
        except (OSError, UnicodeDecodeError):
            continue
        loaded = _bundled_unit(specs, file, report)
        if name in loaded.unit.models:
            _found[specs, name] = file
            return loaded
    report.check()
    near = suggest(name, models())
    help = near or "run `archspec list` to show bundled models; to name a file, use a path with `/` or ending in .arch"
    raise fail("unknown-model", f"unknown bundled model `{name}`", help=help)


def _bundled_unit(specs: str, file: str, report: Report) -> Loaded:
    path = os.path.realpath(os.path.join(specs, file + ".arch"))
    return _once(path, lambda library: library.bundled(file, report), report)


def fresh() -> tuple[Library, Program]:
    return Library(os.path.realpath(resources.specs_root()), parsed), Program()


def _current(path: str) -> Loaded | None:
    """What was loaded from `path` before, if no file of it has changed."""
    loaded = _loaded.get(path)
    if loaded is not None and not all(cache.has_contents(p, t) for p, t in loaded.library.raw.items()):
        del _loaded[path]
        return None
    return loaded


def _remember(path: str, loaded: Loaded) -> Loaded:
    while len(_loaded) >= MOST_PROGRAMS:
        del _loaded[next(iter(_loaded))]
    _loaded[path] = loaded
    return loaded


def forget(loaded: Loaded) -> None:
    for path in [p for p, other in _loaded.items() if other is loaded]:
        del _loaded[path]


def models() -> list[str]:
    """Names of the bundled models."""
    return [name for _, name in bundled_models()]


def bundled_models() -> list[tuple[str, str]]:
    """The bundled models: (file, name), file by file."""
    known = shipped()
    return parse_bundled_models() if known is None else [(model.file, model.name) for model in known]


def parse_bundled_models() -> list[tuple[str, str]]:
    """The bundled models, as `bundled_models` returns them, from the specs themselves."""
    report = Report()
    specs = resources.specs_root()
    found = [
        (file, name)
        for file in resources.bundled_files(specs)
        for name in _bundled_unit(specs, file, report).unit.models
    ]
    report.check()
    return found
