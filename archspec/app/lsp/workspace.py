"""The files that an editor has open, and their analyses.

What was compiled of the bundled files is kept from one analysis to the next, because they do not change; everything
else is compiled anew, so that an analysis finds exactly what `archspec check` finds in the same text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Set
from contextlib import suppress

from archspec.app.lsp.observations import Observations
from archspec.app.lsp.occurrences import Occurrence, Symbol, forwarded_in, occurrences_in
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
"""The limit on files of a folder in which references are searched."""

MAX_CACHED_BODIES = 2_000
"""The limit on modules and bodies that are kept of the bundled files."""


class Analysis:
    """What is known of a file: its unit, the findings, and what was observed while it was compiled.

    `paths` are those of all files that it imports, and its own, by unit. `unit` is None for a file that cannot be read.
    """

    def __init__(
        self, path: str, library: Library, program: Program, unit: Unit | None, report: Report, observed: Observations
    ) -> None:
        self.path = path
        self.library = library
        self.unit = unit
        self.report = report
        self.observed = observed
        self._program = program
        self._compiled: dict[str, CompiledModel | None] = {}
        self.paths = {other: real for real, other in library.units.items() if other is not None}
        self._occurrences: list[Occurrence] | None = None

    def compiled(self, name: str) -> CompiledModel | None:
        """A model of the file; None if the file has an error."""
        if name not in self._compiled:
            program, unit = self._program, self.unit
            found = None
            if unit is not None and not self.report.failed:
                program.observer = None
                program.begin(Report(), unit.source)
                with suppress(StopCompilation):
                    found = compile_model(program, unit, unit.models[name], {})
            self._compiled[name] = found
        return self._compiled[name]

    @property
    def source(self) -> Source:
        return self.unit.source if self.unit is not None else Source(self.path, "")

    @property
    def occurrences(self) -> list[Occurrence]:
        """Every name in the file with what it refers to, in the order of the file."""
        if self._occurrences is None:
            self._occurrences = occurrences_in(self.unit, self.paths) if self.unit is not None else []
        return self._occurrences

    def forwarded(self) -> Iterator[frozenset[Symbol]]:
        """Pairs of hyperparameters or inputs that must have the same name, because `..` connects them."""
        return forwarded_in(self.unit, self.paths, self.observed.callees) if self.unit is not None else iter(())

    def meaning(self) -> list[object]:
        """What does not depend on names: the value of each name, and the parameters of each model."""
        seen = [self.observed.values.get(id(found.node)) for found in self.occurrences]
        values = [
            (type_description(each.what), each.different, *_plain(each.what)) for each in seen if each is not None
        ]
        models = [self.compiled(name) for name in (self.unit.models if self.unit is not None else ())]
        return [*values, *[(each.module.total, each.module.tensors) for each in models if each is not None]]

    def occurrence_at(self, offset: int) -> Occurrence | None:
        """The name at an offset, or that ends there."""
        touching = [o for o in self.occurrences if o.start <= offset <= o.end]
        return next((o for o in touching if offset < o.end), touching[0] if touching else None)

    def definition_at(self, offset: int) -> Definition | None:
        """The definition around an offset."""
        for binding in self.unit.names.values() if self.unit is not None else ():
            target = binding.target
            if binding.imported or not isinstance(target, Definition):
                continue
            if target.node.start < offset < target.node.end:
                return target
        return None


def _plain(value: Value) -> tuple[object, ...]:
    """A value, unless it shows names."""
    if isinstance(value, Tensor):
        return (len(value.type.shape), value.type.dtype)
    return (value,) if isinstance(value, int | float | str | None) else ()


class _Bundled:
    """What was loaded and compiled of the bundled files, all of it without a finding."""

    def __init__(self, specs: str) -> None:
        self.specs = specs
        self.units: dict[str, Unit] = {}
        self._program = Program()

    def program(self, observed: Observations) -> Program:
        """A program that knows the compiled modules and bodies."""
        program = Program(observer=observed)
        program.modules.update(self._program.modules)
        program.definitions.update(self._program.definitions)
        program.bodies.update(self._program.bodies)
        program.checked.update(self._program.checked)
        return program

    def keep(self, library: Library, program: Program) -> None:
        """Keep what a compilation without findings adds."""
        units = {real: unit for real, unit in library.units.items() if unit is not None and self._holds(real, library)}
        self.units.update(units)
        kept, ours = self._program, set(self.units.values())
        if len(kept.modules) + len(kept.bodies) > MAX_CACHED_BODIES:
            self._program = Program()
            return
        for key in program.modules.keys() - kept.modules.keys():
            if _is_within(key, ours, kept):
                module = kept.modules[key] = program.modules[key]
                kept.definitions[module] = program.definitions[module]
        for key in program.bodies.keys() - kept.bodies.keys():
            if _is_within(key, ours, kept):
                kept.bodies[key] = program.bodies[key]
        kept.checked = {each for each in program.checked if isinstance(each, Definition) and each.unit in ours}

    def _holds(self, real: str, library: Library) -> bool:
        return real.startswith(self.specs + os.sep) and real not in library.texts


def _is_within(key: object, units: Set[Unit], program: Program) -> bool:
    """Whether the key of a module or body refers only to definitions in `units` and to modules of `program`."""
    if isinstance(key, Definition):
        return key.unit in units
    if isinstance(key, Module):
        return key in program.definitions
    return not is_tuple(key) or all(_is_within(part, units, program) for part in key)


class Workspace:
    """The open files by real path; `folders` are those in which references are searched."""

    def __init__(self) -> None:
        self.texts: dict[str, bytes] = {}
        self.folders: list[str] = []
        self._analyses: dict[str, tuple[dict[str, bytes | None], Analysis]] = {}
        self._bundled = _Bundled(os.path.realpath(resources.specs_root()))
        self._trees: dict[str, tree.File] = {}
        self._edited: dict[str, tuple[str, tree.File]] = {}  # the last text without syntax errors, by real path

    def prepare(self) -> None:
        """Load the standard library, which most files import."""
        library, program, report = Library(self._bundled.specs, self._parsed), Program(), Report()
        unit = library.bundled("std", report)
        if unit is not None:
            check_unit(program, library, unit, report)
            self._bundled.keep(library, program)

    def open(self, path: str, text: str) -> None:
        """Take `text` as the contents of a file."""
        self.texts[os.path.realpath(path)] = text.encode("utf-8", "surrogatepass")

    def close(self, path: str) -> None:
        """Read the file from disk again."""
        self.texts.pop(os.path.realpath(path), None)
        self._edited.pop(os.path.realpath(path), None)

    def analysis(self, path: str) -> Analysis:
        """The analysis of a file, as it and those that it imports are now."""
        real = os.path.realpath(path)
        if real in self._analyses:
            read, known = self._analyses[real]
            if all(self._contents(file) == data for file, data in read.items()):
                return known
        found = self.analyse(path, self.texts)
        files = {os.path.realpath(file) for file in found.library.raw} | {real}
        self._analyses[real] = ({file: self._contents(file) for file in files}, found)
        return found

    def analyse(self, path: str, texts: dict[str, bytes]) -> Analysis:
        """Analyse a file, where open files have these contents."""
        report, observed = Report(), Observations()
        bundled = self._bundled
        known = {real: unit for real, unit in bundled.units.items() if real not in texts}
        library = Library(bundled.specs, self._parsed, texts, known)
        program = bundled.program(observed)
        observed.watch(program)
        unit = None
        with suppress(StopCompilation):
            unit = library.load(path, report, label=path)
        if unit is not None:
            check_unit(program, library, unit, report)
            if not report.diagnostics:
                bundled.keep(library, program)
        return Analysis(os.path.realpath(path), library, program, unit, report, observed)

    def files(self) -> Iterator[str]:
        """The paths of the specs in the folders and of the open files."""
        found = dict.fromkeys(self.texts)
        for folder in self.folders:
            for at, folders, names in os.walk(folder):
                folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
                found.update(dict.fromkeys(os.path.realpath(os.path.join(at, n)) for n in names if n.endswith(".arch")))
                if len(found) > MAX_FILES:
                    break
        return iter(list(found)[:MAX_FILES])

    def _contents(self, real: str) -> bytes | None:
        if real in self.texts:
            return self.texts[real]
        try:
            with open(real, "rb") as file:
                return file.read()
        except OSError:
            return None

    def _parsed(self, source: Source, report: Report) -> tree.File:
        known = self._trees.get(source.text)
        if known is not None:
            return known
        real = os.path.realpath(source.label)
        if real in self.texts:  # edited: the cache would keep every version
            return self._reparsed(real, source, report)
        before = len(report.diagnostics)
        file = parse_cached(source, report)
        if len(report.diagnostics) == before and source.label.startswith("specs/"):
            self._trees[source.text] = file
        return file

    def _reparsed(self, real: str, source: Source, report: Report) -> tree.File:
        """The tree of a file that an editor has open."""
        known = self._edited.get(real)
        file = reparse(source, *known) if known is not None else None
        if file is None:
            before = len(report.diagnostics)
            file = parse(source, report)
            if len(report.diagnostics) > before:
                return file
        self._edited[real] = source.text, file
        return file
