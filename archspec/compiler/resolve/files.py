"""Loading of files: reading, imports, and definitions with their hyperparameters expanded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from archspec.compiler.resolve.unit import Binding, Definition, Hyperparameter, Inputs, Unit
from archspec.core.diagnostics import Note, Report, Source, Span, closest_match, decode, read_bytes, suggest
from archspec.core.resources import bundled_files
from archspec.ir.ops import OPS, Op
from archspec.language.syntax import tree
from archspec.language.syntax.tree import names_in, relocate

MAX_FILES = 64
MAX_HYPERPARAMETERS = 1_000
MAX_INHERITANCE_DEPTH = 60

Parse: TypeAlias = Callable[[Source, Report], tree.File]


class Library:
    """Loads units, each file once. `raw` has the contents of the files, by absolute path (links are not followed): the
    compiled results are valid while these stay the same.

    `texts` are the contents of files that are open in an editor, by real path, and `known` the units of another
    library whose files have not changed.

    Specs are untrusted: a quoted import must be in the directory of the requested file or below it.
    """

    def __init__(
        self,
        specs: str,
        parse: Parse,
        texts: Mapping[str, bytes] | None = None,
        known: Mapping[str, Unit] | None = None,
    ) -> None:
        self.specs = specs
        self.parse = parse
        self.texts = texts or {}
        self.known = known or {}
        self.raw: dict[str, bytes] = {}
        self.units: dict[str, Unit | None] = {}
        self._places: dict[str, str] = {}
        self._loading: list[str] = []
        self._following: list[tuple[Unit, str]] = []
        self._circles: set[str] = set()

    def bundled(self, name: str, report: Report) -> Unit | None:
        """Return the unit of the bundled file NAME.arch."""
        return self.load(os.path.join(self.specs, name + ".arch"), report, label=f"specs/{name}.arch", root=self.specs)

    def standard_names(self) -> list[str]:
        """Return the names that the standard library exports; none while it is being loaded."""
        if self._real(os.path.join(self.specs, "std.arch")) in self._loading:
            return []
        library = self.bundled("std", Report())
        return list(library.exports) if library is not None else []

    def add_override_names(self, unit: Unit, words: Iterable[str], report: Report) -> None:
        """Add the standard library's names that the file lacks, for use in overrides only."""
        if unit.lent or all(word in unit.names for word in words):
            return
        library = self.bundled("std", report)
        if library is None:
            return
        for name, (_, entry) in library.exports.items():
            target = self._exported(library, entry.replace(name=name), library, report)
            if target is not None:
                unit.lent[name] = target

    def load(
        self, path: str, report: Report, *, label: str, root: str | None = None, at: Span | None = None
    ) -> Unit | None:
        """Return the unit at `path`; None after reporting an error."""
        real = self._real(path)
        if real in self.units:
            return self.units[real]
        if len(self.units) + len(self._loading) >= MAX_FILES:
            report.error("budget", f"too many imported files: the limit is {MAX_FILES}", at)
            return None
        if real in self.known:
            return self._take(real, self.known[real], report)
        data = self.texts[real] if real in self.texts else read_bytes(real, label, report, at)
        text = decode(data, label, report, at) if data is not None else None
        if data is None or text is None:
            return None
        self.raw[os.path.abspath(path)] = data
        folder = os.path.dirname(real)
        unit = self.define(Source(label, text), report, folder=folder, root=root or folder, path=real)
        self.units[real] = unit
        return unit

    def _take(self, path: str, unit: Unit, report: Report) -> Unit:
        """Adopt a unit, and the files that it imports, from another library."""
        self.units[path] = unit
        for item in unit.tree.items:
            if isinstance(item, tree.Import) and not item.export:
                self._source_of(unit, item, report)
        return unit

    def _real(self, path: str) -> str:
        """Return a path with its links followed, which takes several system calls, once."""
        if path not in self._places:
            self._places[path] = os.path.realpath(path)
        return self._places[path]

    def define(self, source: Source, report: Report, *, folder: str | None, root: str | None, path: str) -> Unit:
        """Return the unit of a source text; its imports are loaded too."""
        unit = Unit(source, self.parse(source, report), folder, root)
        unit.standard_names = self.standard_names
        self._loading.append(path)
        self._collect(unit, report)
        for item in unit.tree.items:
            if isinstance(item, tree.Import) and not item.export:
                self._import(unit, item, report)
        self._loading.pop()
        for binding in list(unit.names.values()):
            if isinstance(binding.target, Definition) and binding.target.unit is unit:
                expand_signature(binding.target, report, [])
        return unit

    def _collect(self, unit: Unit, report: Report) -> None:
        for item in unit.tree.items:
            match item:
                case tree.Definition():
                    self._bind(
                        unit, item.name.text, Binding(Definition(item, unit), unit.span(item.name), False), report
                    )
                case tree.DimensionDeclaration():
                    for name in item.names:
                        if name.text in unit.dims:
                            _already_defined(report, "dimension", name.text, unit.span(name), unit.dims[name.text])
                        else:
                            unit.dims[name.text] = unit.span(name)
                case tree.Model():
                    name = str(item.name.value)
                    if name in unit.models:
                        _already_defined(report, "model", name, unit.span(item.name), unit.span(unit.models[name].name))
                    else:
                        unit.models[name] = item
                case tree.Import():
                    if item.export:
                        for entry in item.names:
                            if entry.alias in unit.exports:
                                first = unit.span(unit.exports[entry.alias][1])
                                _already_defined(report, "export", entry.alias, unit.span(entry), first)
                            unit.exports.setdefault(entry.alias, (item, entry))

    def check_exports(self, unit: Unit, report: Report) -> None:
        """Report unknown names that a file re-exports."""
        for item in unit.tree.items:
            if isinstance(item, tree.Import) and item.export:
                source = self._source_of(unit, item, report)
                if source is not None:
                    for entry in item.names:
                        self._exported(source, entry, unit, report)

    def _import(self, unit: Unit, item: tree.Import, report: Report) -> None:
        other = self._source_of(unit, item, report)
        for entry in item.names:
            target = self._exported(other, entry, unit, report) if other else None
            self._bind(unit, entry.alias, Binding(target, unit.span(entry), True), report)

    def _bind(self, unit: Unit, name: str, binding: Binding, report: Report) -> None:
        first = unit.names.get(name)
        if first is not None:
            earlier, later = sorted((first.span, binding.span), key=lambda span: span.start)
            _already_defined(report, "name", name, later, earlier)
        else:
            unit.names[name] = binding

    def _source_of(self, unit: Unit, item: tree.Import, report: Report) -> Unit | OperationsSource | None:
        at = unit.span(item)
        if not item.path:
            if item.source == "ops":
                return OPERATIONS_SOURCE
            path, label, root = os.path.join(self.specs, item.source + ".arch"), f"specs/{item.source}.arch", self.specs
            if not os.path.isfile(path):
                near = suggest(item.source, ["ops", *bundled_files(self.specs)])
                report.error("unknown-import", f"unknown bundled file `{item.source}`", at, help=near)
                return None
        else:
            if unit.folder is None or unit.root is None:
                report.error(
                    "import-outside",
                    "a spec from standard input can only import bundled files",
                    at,
                    help="save the spec to a file, or import a bundled file by name",
                )
                return None
            path = os.path.join(unit.folder, item.source)
            root = unit.root
            real = self._real(path)
            if "\0" in item.source or not real.startswith(self._real(root) + os.sep):
                report.error(
                    "import-outside",
                    f'"{item.source}" is outside the directory of the spec',
                    at,
                    help="move the file into the directory of the compiled spec, or below it",
                )
                return None
            label = _relative_to_file(unit.source.label, item.source)
        real = self._real(path)
        if real in self._loading:
            names = [os.path.basename(p) for p in [*self._loading[self._loading.index(real) :], real]]
            report.error("import-cycle", f"circular import: {' -> '.join(names)}", at)
            return None
        return self.load(path, report, label=label, root=root, at=at)

    def _exported(
        self, other: Unit | OperationsSource, entry: tree.ImportedName, unit: Unit, report: Report
    ) -> Definition | Op | None:
        if isinstance(other, OperationsSource):
            if entry.name not in OPS:
                near = suggest(entry.name, list(OPS))
                report.error("unknown-import", f"unknown operation `{entry.name}`", unit.span(entry), help=near)
            return OPS.get(entry.name)
        binding = other.names.get(entry.name)
        if binding is not None and not binding.imported:
            return binding.target
        if entry.name in other.exports:
            item, onward = other.exports[entry.name]
            if (other, entry.name) in self._following:
                self._report_import_cycle(other, entry.name, other.span(onward), report)
                return None
            self._following.append((other, entry.name))
            source = self._source_of(other, item, report)
            found = self._exported(source, onward, other, report) if source else None
            self._following.pop()
            return found
        if entry.name in other.broken:
            return None
        near = closest_match(entry.name, [*(n for n, b in other.names.items() if not b.imported), *other.exports])
        help = f"did you mean `{near}`?" if near is not None else None
        if entry.name in OPS:
            help = f"remove it: `{entry.name}` is an operation and needs no import"
        elif entry.name in self.standard_names():
            help = f"import it from the standard library: `import std {{ {entry.name} }}`"
        elif near is not None:
            unit.broken.add(near)  # the other name that the file may use for it
        message = f"`{entry.name}` is not defined in {other.source.label}"
        report.error("unknown-import", message, unit.span(entry), help=help)
        return None

    def _report_import_cycle(self, unit: Unit, name: str, span: Span, report: Report) -> None:
        """Report a circular re-export of a name, once."""
        circle = [other.source.label for other, _ in self._following[self._following.index((unit, name)) :]]
        if self._circles.isdisjoint(circle):
            message = f"circular re-export of `{name}`: {' -> '.join([*circle, circle[0]])}"
            report.error("import-cycle", message, span)
        self._circles.update(circle)


class OperationsSource:
    """The source `ops` of an import: the primitive operations."""


OPERATIONS_SOURCE = OperationsSource()


def suggest_definition(unit: Unit, name: str) -> str | None:
    """Return help for an unknown name that must be that of a definition."""
    known = [n for n, b in unit.names.items() if isinstance(b.target, Definition)]
    near = closest_match(name, [*known, *unit.standard_names()])
    return suggest_name(unit, near, name) if near is not None else None


def suggest_name(unit: Unit, name: str, unknown: str) -> str:
    """Return help that suggests a name of the file, of an operation or of the standard library for an unknown one."""
    if name in unit.names or name in unit.dims or name in OPS:
        return f"did you mean `{name}`?"
    imported = f"`import std {{ {name} }}`"
    return f"import it: {imported}" if name == unknown else f"did you mean `{name}`, with {imported}?"


def expand_signature(definition: Definition, report: Report, path: list[Definition]) -> None:
    """Expand the hyperparameters and inputs of a definition, including `..Other`."""
    if definition.expanded or definition.open:
        return
    if definition in path:
        circle = " -> ".join(d.name for d in [*path[path.index(definition) :], definition])
        message = f"`{definition.name}` inherits its own hyperparameters or inputs: {circle}"
        report.error("definition-cycle", message, definition.span)
        for each in path:
            each.open = True
        return
    if len(path) > MAX_INHERITANCE_DEPTH:
        message = f"a head is inherited through too many definitions: the limit is {MAX_INHERITANCE_DEPTH}"
        if all(found.message != message for found in report.diagnostics):  # once, regardless of the length of the chain
            report.error("budget", message, definition.span)
        for each in (*path, definition):
            each.open = True
        return
    hyperparameters = _hyperparameters(definition, report, path)
    inputs = _inputs(definition, report, path)
    for what, found in (("hyperparameters", hyperparameters), ("inputs", inputs)):
        if len(found) > MAX_HYPERPARAMETERS:
            message = f"too many {what} in `{definition.name}`: the limit is {MAX_HYPERPARAMETERS:,}"
            report.error("budget", message, definition.span)
            return
    definition.expanded = True
    definition.hyperparameters = hyperparameters
    definition.inputs = tuple(inputs.values())
    definition.takes = Inputs.of([(entry.name, entry.default is not None) for entry in definition.inputs])


def _hyperparameters(definition: Definition, report: Report, path: list[Definition]) -> dict[str, Hyperparameter]:
    found: dict[str, Hyperparameter] = {}
    own: dict[str, Span] = {}
    for entry in definition.node.hyperparameters:
        span = definition.unit.span(entry)
        if entry.name == "..":
            other = _inherited(definition, entry, report, path)
            found.update(other.hyperparameters if other is not None else {})
        elif entry.name in own:
            _already_defined(report, "hyperparameter", entry.name, span, own[entry.name])
        else:
            own[entry.name] = span
            found = _add_hyperparameter(found, Hyperparameter(entry.name, entry.default, definition, span))
    return found


def _add_hyperparameter(found: dict[str, Hyperparameter], new: Hyperparameter) -> dict[str, Hyperparameter]:
    """Add a hyperparameter, or replace an inherited one: behind all others if its default uses one that follows it.

    The inherited ones whose defaults depend on it then follow it.
    """
    names = list(found)
    later = names[names.index(new.name) :] if new.name in found else []
    found = {**found, new.name: new}
    if later and not _uses(new, later[1:]):
        return found
    moved = [new.name]
    for name in later[1:]:
        if _uses(found[name], moved):
            moved.append(name)
    return {name: found[name] for name in [*[name for name in found if name not in moved], *moved]}


def _uses(parameter: Hyperparameter, names: Sequence[str]) -> bool:
    """Whether the default of a hyperparameter uses one of some others."""
    return parameter.default is not None and any(name in names for name in names_in(parameter.default))


def _inputs(definition: Definition, report: Report, path: list[Definition]) -> dict[str, tree.SignatureEntry]:
    """Return the inputs of a definition; those of others are located at `..Other`."""
    found: dict[str, tree.SignatureEntry] = {}
    own: dict[str, Span] = {}
    for entry in definition.node.inputs:
        span = definition.unit.span(entry)
        if entry.name == "..":
            other = _inherited(definition, entry, report, path)
            for taken in other.inputs if other is not None else ():
                assert other is not None
                found[taken.name] = relocate(taken, entry)
                definition.taken[taken.name] = other.taken.get(taken.name, (other, taken))
        elif entry.name in own:
            _already_defined(report, "name", entry.name, span, own[entry.name])
        else:
            own[entry.name] = span
            found[entry.name] = entry
            definition.taken.pop(entry.name, None)
    return found


def _inherited(
    definition: Definition, entry: tree.SignatureEntry, report: Report, path: list[Definition]
) -> Definition | None:
    """Return the expanded definition that `..Other` names; None after reporting an error."""
    assert isinstance(entry.default, tree.Name)
    unit, name = definition.unit, entry.default.text
    binding = unit.names.get(name)
    other = binding.target if binding is not None else None
    if binding is None or isinstance(other, Op):
        if name not in unit.broken:
            help = suggest_definition(unit, name)
            report.error("unknown-name", f"unknown definition `{name}`", unit.span(entry), help=help)
    elif other is not None:
        expand_signature(other, report, [*path, definition])
    if not isinstance(other, Definition):
        definition.open = True
        return None
    definition.open = definition.open or other.open
    return other


def _already_defined(report: Report, what: str, name: str, span: Span, first: Span) -> None:
    report.error(
        "duplicate-name", f"{what} `{name}` is already defined", span, notes=(Note("first defined here", first),)
    )


def _relative_to_file(label: str, relative: str) -> str:
    folder = os.path.dirname(label)
    return os.path.normpath(os.path.join(folder, relative)) if folder else os.path.normpath(relative)
