"""Files of specs, with all they import; kept within a process while they do not change."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
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
from archspec.language.syntax import tree
from archspec.pipeline import cache
from archspec.pipeline.index import read_index
from archspec.pipeline.spec import CONFIGURATION_LABEL, Spec, file_key, is_checkpoint, locate, locate_cached
from archspec.pipeline.streams import is_stream, stream_label, stream_text
from archspec.pipeline.trees import parse_cached

MAX_PROGRAMS = 8


class LoadedFile:
    """A file with all it imports, and what was compiled from it in this process.

    `is_stable` is whether its path will mean the same file again, and `is_configuration` whether it is one.
    """

    def __init__(self, library: Library, program: Program, unit: Unit) -> None:
        self.library = library
        self.program = program
        self.unit = unit
        self.is_stable = True
        self.is_configuration = False


_loaded: dict[str, LoadedFile] = {}


def open_spec(spec: Spec, report: Report) -> tuple[LoadedFile, tree.Model]:
    """The file of a spec and the model in it. Raises ArchError."""
    spec = locate(spec)
    if spec.path is None and spec.text is None:
        loaded = _find_bundled(spec.model or "", report)
        other = locate_cached(spec) if loaded is None else spec
        if other is None:
            raise _unknown_model_error(spec.model or "", report)
        if loaded is None:
            return open_spec(other, report)
        return loaded, loaded.unit.models[spec.model or ""]
    loaded = load_file(spec, report)
    return loaded, model_in(loaded, spec.model, report)


def model_in(loaded: LoadedFile, name: str | None, report: Report) -> tree.Model:
    """The model of a file with this name; without a name, its only model. Raises ArchError."""
    found = loaded.unit.models
    label = loaded.unit.source.label
    if name is not None:
        if name not in found:
            report.check()
            near = suggest(name, list(found)) or _name_one_help(found)
            raise make_error("unknown-model", f'unknown model "{name}" in {label}', help=near)
        return found[name]
    if len(found) != 1:
        remove_from_cache(loaded) if report.failed else None
        report.check()
        if not found:
            raise make_error("no-model", f"no model in {label}", help='add a model: `model "name" = Definition(...)`')
        raise make_error("which-model", f"{label} has {len(found)} models", help=_name_one_help(found, label))
    return next(iter(found.values()))


def _name_one_help(found: dict[str, tree.Model], label: str = "") -> str | None:
    names = ", ".join(f"{label}:{n}" if label else f'"{n}"' for n in found)
    return f"name one: {names}" if found else None


def load_file(spec: Spec, report: Report, root: str | None = None) -> LoadedFile:
    """The file of a spec that is not bundled, or standard input. Raises ArchError if it cannot be read.

    `root` is the directory from which it may import, by default that of the file.
    """
    path = spec.path
    if path is None:
        return _load_configuration(Source(CONFIGURATION_LABEL, spec.text or ""), spec, report)
    if "\0" in path:
        raise make_error("missing-file", "invalid file name: it contains a NUL byte")
    if is_stream(path):
        return _load_stream(path, spec, report)
    if is_checkpoint(path):
        help = "count, compare or verify it; `archspec scaffold` drafts a spec for it"
        raise make_error("usage", f"{path} is a checkpoint: it has tensors, but no computation", help=help)
    if os.path.isdir(path) and not path.endswith(".arch"):
        help = "expected a config.json, an adapter_config.json or a checkpoint in it"
        raise make_error("unreadable", f"no model in the directory {path}", help=help)
    if path.endswith(".json"):
        return _load_configuration(None, spec, report)
    key = os.path.realpath(path) if root is None else f"{os.path.realpath(path)}\0{root}"
    return _load_cached(key, lambda library: library.load(path, report, label=path, root=root), report)


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


def _load_stream(path: str, spec: Spec, report: Report) -> LoadedFile:
    """A spec or a configuration, which begins with a brace, from a stream."""
    label = stream_label(path)
    text, is_configuration = stream_text(path, report)
    source = Source(label, text)
    if is_configuration:
        return _load_configuration(source, spec, report)
    return _load_text(report, lambda lib: lib.define(source, report, folder=None, root=None, path=label))


def _load_configuration(source: Source | None, spec: Spec, report: Report) -> LoadedFile:
    """A configuration with this source, or at the path of the spec."""
    from archspec.formats.configs.spec import ReadingOptions, config_unit, load_config

    reading = ReadingOptions(spec.type, spec.ignore, has_path=source is None)
    path = spec.path or ""
    if source is None:
        key = "\0".join((file_key(path), spec.label or "", spec.type or "", *spec.ignore))
        loaded = _load_cached(
            key, lambda library: load_config(path, spec.label or path, library, report, reading), report
        )
        loaded.is_stable = spec.is_stable
    elif len(source.text) > MAX_CONFIGURATION_BYTES:
        raise too_large_error(source.label, MAX_CONFIGURATION_BYTES)
    else:
        loaded = _load_text(report, lambda library: config_unit(source, library, report, reading))
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


_found: dict[tuple[str, str], str] = {}
"""The files in which bundled models were found: the first ones to look into."""


def _find_bundled(name: str, report: Report) -> LoadedFile | None:
    """Return the bundled file with a model of this name. Only files with the name in quotes are parsed."""
    specs = resources.specs_root()
    for file in _likely_files(specs, name):
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
    return None


def _likely_files(specs: str, name: str) -> Iterator[str]:
    if (specs, name) in _found:
        yield _found[specs, name]
    yield from resources.bundled_files(specs)


def _unknown_model_error(name: str, report: Report) -> ArchError:
    report.check()
    near = suggest(name, models())
    if near is None and os.path.exists(name):
        near = f"to name a file or directory, write `./{name}`"
    help = near or "run `archspec list` to show bundled models; to name a file, use a path with `/` or ending in .arch"
    return make_error("unknown-model", f"unknown bundled model `{name}`", help=help)


def _bundled_unit(specs: str, file: str, report: Report) -> LoadedFile:
    path = os.path.realpath(os.path.join(specs, file + ".arch"))
    return _load_cached(path, lambda library: library.bundled(file, report), report)


def new_library_and_program() -> tuple[Library, Program]:
    return Library(os.path.realpath(resources.specs_root()), parse_cached), Program()


def _cached_if_unchanged(path: str) -> LoadedFile | None:
    """Return the cached result for `path` if none of its files has changed."""
    loaded = _loaded.get(path)
    if loaded is not None and not all(cache.has_contents(p, t) for p, t in loaded.library.raw.items()):
        del _loaded[path]
        return None
    if loaded is not None:
        _loaded[path] = _loaded.pop(path)  # the last one used
    return loaded


def _add_to_cache(path: str, loaded: LoadedFile) -> LoadedFile:
    while len(_loaded) >= MAX_PROGRAMS:
        del _loaded[next(iter(_loaded))]
    _loaded[path] = loaded
    return loaded


def remove_from_cache(loaded: LoadedFile) -> None:
    for path in [p for p, other in _loaded.items() if other is loaded]:
        del _loaded[path]


def models() -> list[str]:
    """Names of the bundled models."""
    return [name for _, name in bundled_models()]


def bundled_models() -> list[tuple[str, str]]:
    """The bundled models: (file, name), file by file."""
    known = read_index()
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
