"""Loading of files: reading, imports, and definitions with their hyperparameters expanded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from archspec.compiler.resolve.unit import Binding, Definition, Hyperparameter, Inputs, Unit
from archspec.core.diagnostics import Note, Report, Source, Span, closest_match, decode, read_bytes, suggest
from archspec.core.resources import bundled_files, bundled_path
from archspec.ir.ops import OPS, Op
from archspec.language.syntax import tree
from archspec.language.syntax.tree import names_in, relocate

MAX_FILES = 64
MAX_HYPERPARAMETERS = 1_000
MAX_INHERITANCE_DEPTH = 60

Parse: TypeAlias = Callable[[Source, Report], tree.File]


class Library:
    """Loads units, each file once.

    `raw` maps absolute paths (links are not followed) to the contents of the files: compiled results are valid while
    these are unchanged. `texts` are the contents of files that are open in an editor, by real path. `reusable_units`
    are units of another library whose files have not changed.

    Specs are untrusted: a quoted import must be in the directory of the requested file or below it.
    """

    def __init__(
        self,
        specs: str,
        parse: Parse,
        texts: Mapping[str, bytes] | None = None,
        reusable_units: Mapping[str, Unit] | None = None,
    ) -> None:
        self.specs = specs
        self.parse = parse
        self.texts = texts or {}
        self.reusable_units = reusable_units or {}
        self.raw: dict[str, bytes] = {}
        self.units: dict[str, Unit | None] = {}
        self._real_paths: dict[str, str] = {}
        self._loading: list[str] = []
        self._followed_exports: list[tuple[Unit, str]] = []
        self._reported_cycles: set[str] = set()

    def bundled(self, name: str, report: Report) -> Unit | None:
        """Return the unit of the bundled file NAME.arch."""
        path = bundled_path(self.specs, name)
        return self.load(os.path.join(self.specs, path), report, label=f"specs/{path}", root=self.specs)

    def standard_names(self) -> list[str]:
        """Return the names that the standard library exports; none while it is being loaded."""
        if self._real_path(os.path.join(self.specs, "std.arch")) in self._loading:
            return []
        library = self.bundled("std", Report())
        return list(library.exports) if library is not None else []

    def add_override_names(self, unit: Unit, words: Iterable[str], report: Report) -> None:
        """Add the names of the standard library that the file lacks, for use in overrides only."""
        if unit.override_names or all(word in unit.names for word in words):
            return
        library = self.bundled("std", report)
        if library is None:
            return
        for name, (_, entry) in library.exports.items():
            target = self._resolve_export(library, entry.replace(name=name), library, report)
            if target is not None:
                unit.override_names[name] = target

    def load(
        self, path: str, report: Report, *, label: str, root: str | None = None, span: Span | None = None
    ) -> Unit | None:
        """Return the unit at `path`; None after reporting an error."""
        real_path = self._real_path(path)
        if real_path in self.units:
            return self.units[real_path]
        if len(self.units) + len(self._loading) >= MAX_FILES:
            report.error("budget", f"too many imported files: the limit is {MAX_FILES}", span)
            return None
        if real_path in self.reusable_units:
            return self._adopt_unit(real_path, self.reusable_units[real_path], report)
        data = self.texts[real_path] if real_path in self.texts else read_bytes(real_path, label, report, span)
        text = decode(data, label, report, span) if data is not None else None
        if data is None or text is None:
            return None
        self.raw[os.path.abspath(path)] = data
        folder = os.path.dirname(real_path)
        unit = self.define(Source(label, text), report, folder=folder, root=root or folder, path=real_path)
        self.units[real_path] = unit
        return unit

    def _adopt_unit(self, path: str, unit: Unit, report: Report) -> Unit:
        """Adopt a unit, and the files that it imports, from another library."""
        self.units[path] = unit
        for item in unit.tree.items:
            if isinstance(item, tree.Import) and not item.export:
                self._load_source(unit, item, report)
        return unit

    def _real_path(self, path: str) -> str:
        """Return a path with its links followed; cached, because it takes several system calls."""
        if path not in self._real_paths:
            self._real_paths[path] = os.path.realpath(path)
        return self._real_paths[path]

    def define(self, source: Source, report: Report, *, folder: str | None, root: str | None, path: str) -> Unit:
        """Return the unit of a source text; its imports are loaded too."""
        unit = Unit(source, self.parse(source, report), folder, root)
        unit.standard_names = self.standard_names
        self._loading.append(path)
        self._collect_items(unit, report)
        for item in unit.tree.items:
            if isinstance(item, tree.Import) and not item.export:
                self._import(unit, item, report)
        self._loading.pop()
        for binding in list(unit.names.values()):
            if isinstance(binding.target, Definition) and binding.target.unit is unit:
                expand_signature(binding.target, report, [])
        return unit

    def _collect_items(self, unit: Unit, report: Report) -> None:
        for item in unit.tree.items:
            match item:
                case tree.Definition():
                    self._bind(
                        unit, item.name.text, Binding(Definition(item, unit), unit.span(item.name), False), report
                    )
                case tree.DimensionDeclaration():
                    for name in item.names:
                        if name.text in unit.dims:
                            _report_redefinition(report, "dimension", name.text, unit.span(name), unit.dims[name.text])
                        else:
                            unit.dims[name.text] = unit.span(name)
                case tree.Model():
                    name = str(item.name.value)
                    if name in unit.models:
                        _report_redefinition(
                            report, "model", name, unit.span(item.name), unit.span(unit.models[name].name)
                        )
                    else:
                        unit.models[name] = item
                case tree.Import():
                    if item.export:
                        for entry in item.names:
                            if entry.alias in unit.exports:
                                first = unit.span(unit.exports[entry.alias][1])
                                _report_redefinition(report, "export", entry.alias, unit.span(entry), first)
                            unit.exports.setdefault(entry.alias, (item, entry))

    def check_exports(self, unit: Unit, report: Report) -> None:
        """Report unknown names that a file re-exports."""
        for item in unit.tree.items:
            if isinstance(item, tree.Import) and item.export:
                source = self._load_source(unit, item, report)
                if source is not None:
                    for entry in item.names:
                        self._resolve_export(source, entry, unit, report)

    def _import(self, unit: Unit, item: tree.Import, report: Report) -> None:
        source = self._load_source(unit, item, report)
        for entry in item.names:
            target = self._resolve_export(source, entry, unit, report) if source else None
            self._bind(unit, entry.alias, Binding(target, unit.span(entry), True), report)

    def _bind(self, unit: Unit, name: str, binding: Binding, report: Report) -> None:
        first = unit.names.get(name)
        if first is not None:
            earlier, later = sorted((first.span, binding.span), key=lambda span: span.start)
            _report_redefinition(report, "name", name, later, earlier)
        else:
            unit.names[name] = binding

    def _load_source(self, unit: Unit, item: tree.Import, report: Report) -> Unit | OperationsSource | None:
        span = unit.span(item)
        if not item.path:
            if item.source == "ops":
                return OPERATIONS_SOURCE
            file = bundled_path(self.specs, item.source)
            path, label, root = os.path.join(self.specs, file), f"specs/{file}", self.specs
            if not os.path.isfile(path):
                near = suggest(item.source, ["ops", *bundled_files(self.specs)])
                report.error("unknown-import", f"unknown bundled file `{item.source}`", span, help=near)
                return None
        else:
            if unit.folder is None or unit.root is None:
                report.error(
                    "import-outside",
                    "a spec from standard input can only import bundled files",
                    span,
                    help="save the spec to a file, or import a bundled file by name",
                )
                return None
            path = os.path.join(unit.folder, item.source)
            root = unit.root
            real_path = self._real_path(path)
            if "\0" in item.source or not real_path.startswith(self._real_path(root) + os.sep):
                report.error(
                    "import-outside",
                    f'"{item.source}" is outside the directory of the spec',
                    span,
                    help="move the file into the directory of the compiled spec, or below it",
                )
                return None
            label = _relative_to_file(unit.source.label, item.source)
        real_path = self._real_path(path)
        if real_path in self._loading:
            names = [os.path.basename(p) for p in [*self._loading[self._loading.index(real_path) :], real_path]]
            report.error("import-cycle", f"circular import: {' -> '.join(names)}", span)
            return None
        return self.load(path, report, label=label, root=root, span=span)

    def _resolve_export(
        self, source: Unit | OperationsSource, entry: tree.ImportedName, unit: Unit, report: Report
    ) -> Definition | Op | None:
        if isinstance(source, OperationsSource):
            if entry.name not in OPS:
                near = suggest(entry.name, list(OPS))
                report.error("unknown-import", f"unknown operation `{entry.name}`", unit.span(entry), help=near)
            return OPS.get(entry.name)
        binding = source.names.get(entry.name)
        if binding is not None and not binding.imported:
            return binding.target
        if entry.name in source.exports:
            item, next_entry = source.exports[entry.name]
            if (source, entry.name) in self._followed_exports:
                self._report_import_cycle(source, entry.name, source.span(next_entry), report)
                return None
            self._followed_exports.append((source, entry.name))
            next_source = self._load_source(source, item, report)
            target = self._resolve_export(next_source, next_entry, source, report) if next_source else None
            self._followed_exports.pop()
            return target
        if entry.name in source.broken:
            return None
        near = closest_match(entry.name, [*(n for n, b in source.names.items() if not b.imported), *source.exports])
        help = f"did you mean `{near}`?" if near is not None else None
        if entry.name in OPS:
            help = f"remove it: `{entry.name}` is an operation and needs no import"
        elif entry.name in self.standard_names():
            help = f"import it from the standard library: `import std {{ {entry.name} }}`"
        elif near is not None:
            unit.broken.add(near)  # the correct name, which the file may use, too
        message = f"`{entry.name}` is not defined in {source.source.label}"
        report.error("unknown-import", message, unit.span(entry), help=help)
        return None

    def _report_import_cycle(self, unit: Unit, name: str, span: Span, report: Report) -> None:
        """Report a circular re-export of a name, once."""
        cycle = [
            exporting.source.label
            for exporting, _ in self._followed_exports[self._followed_exports.index((unit, name)) :]
        ]
        if self._reported_cycles.isdisjoint(cycle):
            message = f"circular re-export of `{name}`: {' -> '.join([*cycle, cycle[0]])}"
            report.error("import-cycle", message, span)
        self._reported_cycles.update(cycle)


class OperationsSource:
    """The source `ops` of an import: the primitive operations."""


OPERATIONS_SOURCE = OperationsSource()


def suggest_definition(unit: Unit, name: str) -> str | None:
    """Return help for an unknown name of a definition; None without a close match."""
    names = [n for n, b in unit.names.items() if isinstance(b.target, Definition)]
    near = closest_match(name, [*names, *unit.standard_names()])
    return suggest_name(unit, near, name) if near is not None else None


def suggest_name(unit: Unit, name: str, unknown: str) -> str:
    """Return help that suggests a name of the file, an operation or the standard library for an unknown name."""
    if name in unit.names or name in unit.dims or name in OPS:
        return f"did you mean `{name}`?"
    imported = f"`import std {{ {name} }}`"
    return f"import it: {imported}" if name == unknown else f"did you mean `{name}`, with {imported}?"


def expand_signature(definition: Definition, report: Report, path: list[Definition]) -> None:
    """Expand the hyperparameters and inputs of a definition, including `..Other`."""
    if definition.expanded or definition.open:
        return
    if definition in path:
        cycle = " -> ".join(d.name for d in [*path[path.index(definition) :], definition])
        message = f"`{definition.name}` inherits its own hyperparameters or inputs: {cycle}"
        report.error("definition-cycle", message, definition.span)
        for unexpanded in path:
            unexpanded.open = True
        return
    if len(path) > MAX_INHERITANCE_DEPTH:
        message = f"a signature is inherited through too many definitions: the limit is {MAX_INHERITANCE_DEPTH}"
        if all(diagnostic.message != message for diagnostic in report.diagnostics):  # once per chain
            report.error("budget", message, definition.span)
        for unexpanded in (*path, definition):
            unexpanded.open = True
        return
    hyperparameters = _expand_hyperparameters(definition, report, path)
    inputs = _expand_inputs(definition, report, path)
    for what, entries in (("hyperparameters", hyperparameters), ("inputs", inputs)):
        if len(entries) > MAX_HYPERPARAMETERS:
            message = f"too many {what} in `{definition.name}`: the limit is {MAX_HYPERPARAMETERS:,}"
            report.error("budget", message, definition.span)
            return
    definition.expanded = True
    definition.hyperparameters = hyperparameters
    definition.inputs = tuple(inputs.values())
    definition.takes = Inputs.from_pairs([(entry.name, entry.default is not None) for entry in definition.inputs])


def _expand_hyperparameters(
    definition: Definition, report: Report, path: list[Definition]
) -> dict[str, Hyperparameter]:
    result: dict[str, Hyperparameter] = {}
    own_spans: dict[str, Span] = {}
    for entry in definition.node.hyperparameters:
        span = definition.unit.span(entry)
        if entry.name == "..":
            inherited = _load_inherited(definition, entry, report, path)
            for parameter in inherited.hyperparameters.values() if inherited is not None else ():
                result = _add_hyperparameter(result, parameter)
        elif entry.name in own_spans:
            _report_redefinition(report, "hyperparameter", entry.name, span, own_spans[entry.name])
        else:
            own_spans[entry.name] = span
            result = _add_hyperparameter(result, Hyperparameter(entry.name, entry.default, definition, span))
    return result


def _add_hyperparameter(parameters: dict[str, Hyperparameter], new: Hyperparameter) -> dict[str, Hyperparameter]:
    """Add a hyperparameter, or replace the inherited hyperparameter of the same name.

    If its default uses a hyperparameter that follows, it moves to the end, before the inherited hyperparameters whose
    defaults depend on it.
    """
    if new.name not in parameters:
        return {**parameters, new.name: new}
    names = list(parameters)
    later = names[names.index(new.name) :]
    parameters = {**parameters, new.name: new}
    if not _default_uses(new, later[1:]):
        return parameters
    moved_names = [new.name]
    for name in later[1:]:
        if _default_uses(parameters[name], moved_names):
            moved_names.append(name)
    return {
        name: parameters[name] for name in [*[name for name in parameters if name not in moved_names], *moved_names]
    }


def _default_uses(parameter: Hyperparameter, names: Sequence[str]) -> bool:
    """Whether the default of a hyperparameter uses one of `names`."""
    return parameter.default is not None and any(name in names for name in names_in(parameter.default))


def _expand_inputs(definition: Definition, report: Report, path: list[Definition]) -> dict[str, tree.SignatureEntry]:
    """Return the inputs of a definition; inherited inputs are located at `..Other`."""
    result: dict[str, tree.SignatureEntry] = {}
    own_spans: dict[str, Span] = {}
    for entry in definition.node.inputs:
        span = definition.unit.span(entry)
        if entry.name == "..":
            inherited = _load_inherited(definition, entry, report, path)
            for input in inherited.inputs if inherited is not None else ():
                assert inherited is not None
                result[input.name] = relocate(input, entry)
                definition.inherited_inputs[input.name] = inherited.inherited_inputs.get(input.name, (inherited, input))
        elif entry.name in own_spans:
            _report_redefinition(report, "name", entry.name, span, own_spans[entry.name])
        else:
            own_spans[entry.name] = span
            result[entry.name] = entry
            definition.inherited_inputs.pop(entry.name, None)
    return result


def _load_inherited(
    definition: Definition, entry: tree.SignatureEntry, report: Report, path: list[Definition]
) -> Definition | None:
    """Return the expanded definition `Other` of `..Other`; None after reporting an error."""
    assert isinstance(entry.default, tree.Name)
    unit, name = definition.unit, entry.default.text
    binding = unit.names.get(name)
    inherited = binding.target if binding is not None else None
    if binding is None or isinstance(inherited, Op):
        if name not in unit.broken:
            help = suggest_definition(unit, name)
            report.error("unknown-name", f"unknown definition `{name}`", unit.span(entry), help=help)
    elif inherited is not None:
        expand_signature(inherited, report, [*path, definition])
    if not isinstance(inherited, Definition):
        definition.open = True
        return None
    definition.open = definition.open or inherited.open
    return inherited


def _report_redefinition(report: Report, what: str, name: str, span: Span, first: Span) -> None:
    report.error(
        "duplicate-name", f"{what} `{name}` is already defined", span, notes=(Note("first defined here", first),)
    )


def _relative_to_file(label: str, path: str) -> str:
    folder = os.path.dirname(label)
    return os.path.normpath(os.path.join(folder, path)) if folder else os.path.normpath(path)
