"""Files of specs with all they import, cached within a process while they do not change; trees also between runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from archspec.compiler.evaluate.program import Program
from archspec.compiler.resolve.files import Library
from archspec.compiler.resolve.unit import Unit
from archspec.core import resources
from archspec.core.diagnostics import (
    ArchError,
    Report,
    Source,
    StopCompilation,
    make_error,
    suggest,
    too_large_error,
)
from archspec.formats.configs.configuration import MAX_CONFIGURATION_BYTES
from archspec.language.syntax import store, tree
from archspec.pipeline import cache
from archspec.pipeline.locate import Location, find_configurations
from archspec.pipeline.streams import stream_text

MAX_PROGRAMS = 8
MAX_LISTED_FILES = 8


class LoadedFile:
    """A file with all it imports, and the objects compiled from it in this process.

    `is_stable` is whether its path will mean the same file again, and `is_configuration` whether it is one.
    """

    def __init__(self, library: Library, program: Program, unit: Unit) -> None:
        self.library = library
        self.program = program
        self.unit = unit
        self.is_stable = True
        self.is_configuration = False


_loaded: dict[str, LoadedFile] = {}


def open_model(location: Location, report: Report) -> tuple[LoadedFile, tree.Model]:
    """Return the file at a location and the model in it that is named. Raises ArchError."""
    loaded = load_file(location, report)
    return loaded, model_in(loaded, location.model, report)


def model_in(loaded: LoadedFile, name: str | None, report: Report) -> tree.Model:
    """Return the model of a file with this name; without a name, its only model. Raises ArchError."""
    models = loaded.unit.models
    label = loaded.unit.source.label
    if name is not None:
        if name not in models:
            report.check()
            near = suggest(name, list(models)) or _name_one_help(models)
            raise make_error("unknown-model", f'unknown model "{name}" in {label}', help=near)
        return models[name]
    if len(models) != 1:
        if report.failed:
            remove_from_cache(loaded)
        report.check()
        if not models:
            raise make_error("no-model", f"no model in {label}", help='add a model: `model "name" = Definition(...)`')
        raise make_error("which-model", f"{label} has {len(models)} models", help=_name_one_help(models, label))
    return next(iter(models.values()))


def _name_one_help(models: dict[str, tree.Model], label: str = "") -> str | None:
    names = ", ".join(f"{label}:{n}" if label else f'"{n}"' for n in models)
    return f"name one: {names}" if models else None


def load_file(location: Location, report: Report) -> LoadedFile:
    """Return the file at a location, with all it imports. Raises ArchError if it is no spec or unreadable."""
    path = location.path
    if location.kind == "configuration":
        return _load_configuration(location, report)
    if location.kind == "stream":
        return load_file(read_once(location, report), report)
    if location.kind == "adapter":
        help = "count or verify it; for all else, name its base model"
        raise make_error("usage", f"{location.name} is an adapter, not a model", help=help)
    if location.kind == "checkpoint":
        help = "count, compare or verify it; `archspec scaffold` drafts a spec for it"
        raise make_error("usage", f"{path} is a checkpoint: it has tensors, but no computation", help=help)
    if location.kind == "directory":
        configurations = find_configurations(path)[:MAX_LISTED_FILES]
        help = "expected a config.json, an adapter_config.json or a checkpoint in it"
        help = f"name one of its configurations: {', '.join(configurations)}" if configurations else help
        raise make_error("unreadable", f"no model in the directory {path}", help=help)
    if location.text is not None:
        source = Source(location.label, location.text)
        return _load_text(report, lambda lib: lib.define(source, report, folder=None, root=None, path=source.label))
    if location.kind == "bundled":
        file = os.path.basename(path).removesuffix(".arch")
        return _load_cached(location.key, lambda library: library.bundled(file, report), report)
    root = location.root
    key = location.key if root is None else f"{location.key}\0{root}"
    return _load_cached(key, lambda library: library.load(path, report, label=location.label, root=root), report)


def read_once(location: Location, report: Report) -> Location:
    """Return the location of what a stream contains, with its text. Raises ArchError if it cannot be read."""
    text, is_configuration = stream_text(location.path, report)
    return location._replace(kind="configuration" if is_configuration else "spec", text=text)


def _load_cached(path: str, load: Callable[[Library], Unit | None], report: Report) -> LoadedFile:
    """Load the file at `path`, or return the cached result if it is current. Raises ArchError if it cannot be read."""
    loaded = _cached_if_unchanged(path)
    if loaded is None:
        library, program = new_library_and_program()
        unit = None
        with suppress(StopCompilation):
            unit = load(library)
        if unit is None:
            report.check()
            raise AssertionError("an unreadable file has been reported")
        loaded = _add_to_cache(path, LoadedFile(library, program, unit))
        if report.failed:
            remove_from_cache(loaded)
    return loaded


def _load_configuration(location: Location, report: Report) -> LoadedFile:
    from archspec.formats.configs.spec import ReadingOptions, build_config_unit, load_config

    text, path, label = location.text, location.path, location.label
    reading = ReadingOptions(location.type, location.ignore, location.strict, has_path=text is None)
    if text is None:
        key = "\0".join((location.key, label, location.type or "", str(location.strict), *location.ignore))
        loaded = _load_cached(key, lambda library: load_config(path, label, library, report, reading), report)
        loaded.is_stable = location.is_stable
    elif len(text) > MAX_CONFIGURATION_BYTES:
        raise too_large_error(label, MAX_CONFIGURATION_BYTES)
    else:
        loaded = _load_text(report, lambda library: build_config_unit(Source(label, text), library, report, reading))
    loaded.is_configuration = True
    return loaded


def _load_text(report: Report, load: Callable[[Library], Unit | None]) -> LoadedFile:
    """Load a text without caching the result."""
    library, program = new_library_and_program()
    with suppress(StopCompilation):
        unit = load(library)
        if unit is not None:
            loaded = LoadedFile(library, program, unit)
            loaded.is_stable = False
            return loaded
    raise ArchError(report.diagnostics)


def new_library_and_program() -> tuple[Library, Program]:
    return Library(os.path.realpath(resources.specs_root()), parse_cached), Program()


def _cached_if_unchanged(path: str) -> LoadedFile | None:
    """Return the cached result for `path` if none of its files has changed."""
    loaded = _loaded.get(path)
    if loaded is not None and not all(cache.has_contents(p, t) for p, t in loaded.library.raw.items()):
        del _loaded[path]
        return None
    if loaded is not None:
        _loaded[path] = _loaded.pop(path)  # most recently used last
    return loaded


def _add_to_cache(path: str, loaded: LoadedFile) -> LoadedFile:
    while len(_loaded) >= MAX_PROGRAMS:
        del _loaded[next(iter(_loaded))]
    _loaded[path] = loaded
    return loaded


def remove_from_cache(loaded: LoadedFile) -> None:
    for path in [p for p, other in _loaded.items() if other is loaded]:
        del _loaded[path]


# Trees ----------------------------------------------------------------------------------------------------------------

MAX_CACHED_CHARACTERS = 2**20
"""Maximum number of characters of all texts whose trees are cached within a process."""

_trees: dict[str, tree.File] = {}


def parse_uncached(source: Source, report: Report) -> tree.File:
    """Parse a source."""
    from archspec.language.syntax.parse import parse  # imported late: most files are cached

    return parse(source, report)


def parse_cached(source: Source, report: Report) -> tree.File:
    """Parse a source, or return the cached tree if the same text was parsed without errors before."""
    text = source.text
    file = _trees.pop(text, None) or _read_cached_tree(text)
    if file is None:
        before = len(report.diagnostics)
        file = parse_uncached(source, report)
        if len(report.diagnostics) > before:
            return file
        cache.write("tree", text, store.dump(file))
    _trees[text] = file  # most recently used last
    while sum(map(len, _trees)) > MAX_CACHED_CHARACTERS:
        del _trees[next(iter(_trees))]
    return file


def _read_cached_tree(text: str) -> tree.File | None:
    """Return the tree of a text from the cache on disk."""
    stored = cache.read("tree", text)
    return None if stored is None else store.load(stored)
