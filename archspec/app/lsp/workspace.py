"""The files that an editor has open, and their analyses.

Compiled modules and bodies of the bundled files are cached across analyses, because these files do not change.
Everything else is compiled for each analysis, so that an analysis reports the same diagnostics as `archspec check`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Set
from contextlib import suppress

from archspec.app.lsp.observations import Observations
from archspec.app.lsp.occurrences import Occurrence, Symbol, iter_forwarded, list_occurrences
from archspec.compiler.elaborate.models import CompiledModel, compile_model
from archspec.compiler.evaluate.program import Program
from archspec.compiler.evaluate.values import Tensor, Value, type_description
from archspec.compiler.resolve.files import Library
from archspec.compiler.resolve.unit import Definition, Unit
from archspec.core import resources
from archspec.core.diagnostics import Report, Source, StopCompilation
from archspec.core.record import is_tuple
from archspec.ir.module import Module
from archspec.language.syntax import tree
from archspec.language.syntax.parse import parse, reparse
from archspec.pipeline.compile import check_unit
from archspec.pipeline.files import parse_cached

MAX_FILES = 1_000
"""Maximum number of files in the folders of an editor in which references are searched."""

MAX_CACHED_BODIES = 2_000
"""Maximum number of cached modules and bodies of the bundled files."""


class Analysis:
    """The unit of a file, with its diagnostics and the observations of its compilation.

    `paths` maps the units of the file and of its imports to their paths. `unit` is None for a file that cannot be read.
    """

    def __init__(
        self,
        path: str,
        library: Library,
        program: Program,
        unit: Unit | None,
        report: Report,
        observed: Observations,
        reload: Callable[[Report], tuple[Program, Unit | None]] | None = None,
    ) -> None:
        self.path = path
        self.library = library
        self.unit = unit
        self.report = report
        self.observed = observed
        self._program = program
        self._reload = reload
        self._compiled: dict[str, CompiledModel | None] = {}
        self.paths = {unit: real for real, unit in library.units.items() if unit is not None}
        self._occurrences: list[Occurrence] | None = None

    def compiled(self, name: str) -> CompiledModel | None:
        """Return a compiled model of the file; None if the file has an error."""
        if name not in self._compiled:
            program, unit = self._program, self.unit
            model = None
            if unit is not None and not self.report.failed:
                program.observer = None
                program.begin(Report(), unit.source)
                with suppress(StopCompilation):
                    model = compile_model(program, unit, unit.models[name], {})
            self._compiled[name] = model
        return self._compiled[name]

    def total_despite_errors(self, name: str) -> int | None:
        """Return the parameter count of a model that has no error in a file that has some; None for other models.

        The file is loaded again, because errors are reported once.
        """
        report = Report()
        if self.unit is None or self._reload is None:
            return None
        with suppress(StopCompilation):
            program, unit = self._reload(report)
            if unit is not None and name in unit.models and not report.failed:
                program.begin(report, unit.source)
                model = compile_model(program, unit, unit.models[name], {})
                return None if report.failed or model is None else model.module.total
        return None

    @property
    def source(self) -> Source:
        return self.unit.source if self.unit is not None else Source(self.path, "")

    @property
    def occurrences(self) -> list[Occurrence]:
        """The names in the file with the symbols that they refer to, in the order of the file."""
        if self._occurrences is None:
            self._occurrences = list_occurrences(self.unit, self.paths) if self.unit is not None else []
        return self._occurrences

    def forwarded(self) -> Iterator[frozenset[Symbol]]:
        """Return pairs of hyperparameters or inputs that must have the same name, because `..` connects them."""
        return iter_forwarded(self.unit, self.paths, self.observed.callees) if self.unit is not None else iter(())

    def meaning(self) -> list[object]:
        """Return the results that are independent of names: the value of each name, and the tensors of each model."""
        observed = [self.observed.values.get(id(occurrence.node)) for occurrence in self.occurrences]
        values = [
            (type_description(item.first), item.count_distinct(), *_nameless_value(item.first))
            for item in observed
            if item is not None
        ]
        models = [self.compiled(name) for name in (self.unit.models if self.unit is not None else ())]
        return [*values, *[(model.module.total, model.module.tensors) for model in models if model is not None]]

    def occurrence_at(self, offset: int) -> Occurrence | None:
        """Return the name that contains an offset, or else one that ends there."""
        touching = [o for o in self.occurrences if o.start <= offset <= o.end]
        return next((o for o in touching if offset < o.end), touching[0] if touching else None)

    def definition_at(self, offset: int) -> Definition | None:
        """Return the definition that contains an offset."""
        for binding in self.unit.names.values() if self.unit is not None else ():
            target = binding.target
            if binding.imported or not isinstance(target, Definition):
                continue
            if target.node.start < offset < target.node.end:
                return target
        return None


def _nameless_value(value: Value) -> tuple[object, ...]:
    """Return the parts of a value that are independent of names, such as the rank of a tensor."""
    if isinstance(value, Tensor):
        return (len(value.type.shape), value.type.dtype)
    return (value,) if isinstance(value, int | float | str | None) else ()


class _BundledCache:
    """Cached units, modules and bodies of the bundled files; only compilations without diagnostics add to it."""

    def __init__(self, specs: str) -> None:
        self.specs = specs
        self.units: dict[str, Unit] = {}
        self._program = Program()

    def program(self, observed: Observations) -> Program:
        """Return a new program with the cached modules and bodies."""
        program = Program(observer=observed)
        program.modules.update(self._program.modules)
        program.definitions.update(self._program.definitions)
        program.bodies.update(self._program.bodies)
        program.checked.update(self._program.checked)
        return program

    def add(self, library: Library, program: Program) -> None:
        """Add the bundled units, modules and bodies of a compilation without diagnostics."""
        for real, unit in library.units.items():
            if unit is not None and self._is_bundled(real, library):
                self.units[real] = unit
        cached, units = self._program, set(self.units.values())
        if len(cached.modules) + len(cached.bodies) > MAX_CACHED_BODIES:
            self._program = Program()
            return
        for key in program.modules.keys() - cached.modules.keys():
            if _is_within(key, units, cached):
                module = cached.modules[key] = program.modules[key]
                cached.definitions[module] = program.definitions[module]
        for key in program.bodies.keys() - cached.bodies.keys():
            if _is_within(key, units, cached):
                cached.bodies[key] = program.bodies[key]
        cached.checked = {item for item in program.checked if isinstance(item, Definition) and item.unit in units}

    def _is_bundled(self, real: str, library: Library) -> bool:
        return real.startswith(self.specs + os.sep) and real not in library.texts


def _is_within(key: object, units: Set[Unit], program: Program) -> bool:
    """Return whether the key of a module or body refers only to definitions in `units` and to modules of `program`."""
    if isinstance(key, Definition):
        return key.unit in units
    if isinstance(key, Module):
        return key in program.definitions
    return not is_tuple(key) or all(_is_within(part, units, program) for part in key)


class Workspace:
    """The open files by real path; references are searched in `folders`."""

    def __init__(self) -> None:
        self.texts: dict[str, bytes] = {}
        self.folders: list[str] = []
        self._analyses: dict[str, tuple[dict[str, bytes | None], Analysis]] = {}
        self._bundled = _BundledCache(os.path.realpath(resources.specs_root()))
        self._trees: dict[str, tree.File] = {}
        self._imported: dict[str, tuple[bytes | None, tuple[str, ...]]] = {}
        self._edited: dict[str, tuple[str, tree.File]] = {}  # the last text without syntax errors, by real path

    def prepare(self) -> None:
        """Load the standard library, which most files import."""
        library, program, report = Library(self._bundled.specs, self._parse), Program(), Report()
        unit = library.bundled("std", report)
        if unit is not None:
            check_unit(program, library, unit, report)
            self._bundled.add(library, program)

    def open(self, path: str, text: str) -> None:
        """Use `text` as the contents of a file, instead of those on disk."""
        self.texts[os.path.realpath(path)] = text.encode("utf-8", "surrogatepass")

    def close(self, path: str) -> None:
        """Read the file from disk again."""
        self.texts.pop(os.path.realpath(path), None)
        self._edited.pop(os.path.realpath(path), None)

    def analysis(self, path: str) -> Analysis:
        """Return the analysis of a file; a cached one if neither the file nor its imports have changed."""
        real = os.path.realpath(path)
        if real in self._analyses:
            contents, analysis = self._analyses[real]
            if all(self._contents(file) == data for file, data in contents.items()):
                return analysis
        analysis = self.analyse(path, self.texts)
        files = {os.path.realpath(file) for file in analysis.library.raw} | {real}
        self._analyses[real] = ({file: self._contents(file) for file in files}, analysis)
        return analysis

    def analyse(self, path: str, texts: dict[str, bytes]) -> Analysis:
        """Analyse a file; `texts` are the contents of open files."""
        report, observed = Report(), Observations()
        bundled = self._bundled
        cached = {real: unit for real, unit in bundled.units.items() if real not in texts}
        library = Library(bundled.specs, self._parse, texts, cached)
        program = bundled.program(observed)
        observed.watch(program)
        unit = None
        with suppress(StopCompilation):
            unit = library.load(path, report, label=path)
        if unit is not None:
            check_unit(program, library, unit, report)
            if not report.diagnostics:
                bundled.add(library, program)

        def reload(report: Report) -> tuple[Program, Unit | None]:
            library = Library(bundled.specs, self._parse, texts, cached)
            return Program(), library.load(path, report, label=path)

        return Analysis(os.path.realpath(path), library, program, unit, report, observed, reload)

    def files(self) -> Iterator[str]:
        """Return the paths of the open files and of the specs in the folders."""
        paths = dict.fromkeys(self.texts)
        for root in self.folders:
            for folder, folders, files in os.walk(root):
                folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
                specs = [os.path.join(folder, file) for file in files if file.endswith(".arch")]
                paths.update(dict.fromkeys(map(os.path.realpath, specs)))
                if len(paths) > MAX_FILES:
                    break
        return iter(list(paths)[:MAX_FILES])

    def users(self, path: str) -> Iterator[str]:
        """Return the paths of `files` that import a file, directly or through others, and of the file itself."""
        reached = {os.path.realpath(path): True}

        def reaches(real: str) -> bool:
            if real not in reached:
                reached[real] = False  # in a circle of imports, until one of them reaches the file
                reached[real] = any(reaches(imported) for imported in self._imports(real))
            return reached[real]

        return iter([file for file in self.files() if reaches(file)])

    def _imports(self, real: str) -> tuple[str, ...]:
        """Return the real paths of the files that a file imports."""
        contents = self._contents(real)
        if real not in self._imported or self._imported[real][0] != contents:
            imports: tuple[str, ...] = ()
            if contents is not None:
                label = os.path.relpath(real, os.path.dirname(self._bundled.specs)) if self._is_bundled(real) else real
                file = self._parse(Source(label, contents.decode("utf-8", "replace")), Report())
                items = [item for item in file.items if isinstance(item, tree.Import)]
                imports = tuple([os.path.realpath(self._imported_path(real, item)) for item in items])
            self._imported[real] = contents, imports
        return self._imported[real][1]

    def _imported_path(self, real: str, item: tree.Import) -> str:
        if item.path:
            return os.path.join(os.path.dirname(real), item.source)
        return os.path.join(self._bundled.specs, resources.bundled_path(self._bundled.specs, item.source))

    def _is_bundled(self, real: str) -> bool:
        return real.startswith(self._bundled.specs + os.sep)

    def _contents(self, real: str) -> bytes | None:
        if real in self.texts:
            return self.texts[real]
        try:
            with open(real, "rb") as file:
                return file.read()
        except OSError:
            return None

    def _parse(self, source: Source, report: Report) -> tree.File:
        cached = self._trees.get(source.text)
        if cached is not None:
            return cached
        real = os.path.realpath(source.label)
        if real in self.texts:  # the file cache would store each version of an edited file
            return self._reparse(real, source, report)
        before = len(report.diagnostics)
        file = parse_cached(source, report)
        if len(report.diagnostics) == before and source.label.startswith("specs/"):
            self._trees[source.text] = file
        return file

    def _reparse(self, real: str, source: Source, report: Report) -> tree.File:
        """Return the tree of an open file, from its last tree without syntax errors where that is possible."""
        previous = self._edited.get(real)
        file = reparse(source, *previous) if previous is not None else None
        if file is None:
            before = len(report.diagnostics)
            file = parse(source, report)
            if len(report.diagnostics) > before:
                return file
        self._edited[real] = source.text, file
        return file
