"""`archspec new`: a new spec with a variant of a model, optionally with a copy of one of its definitions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from archspec.analysis.diff.api import diff
from archspec.analysis.variant.lines import find_imports, format_model_statement
from archspec.compiler.evaluate.values import Partial, Value
from archspec.compiler.literals import definition_names
from archspec.compiler.resolve.definition import resolve_definition
from archspec.compiler.resolve.unit import Definition, Unit
from archspec.core import resources
from archspec.core.diagnostics import Report, internal_error, make_error, suggest
from archspec.ir.ops import Op
from archspec.ir.table import PlainValue
from archspec.language.syntax import tree
from archspec.language.syntax.tree import names_in
from archspec.pipeline.compile import compile_text_in_folder
from archspec.pipeline.files import new_library_and_program
from archspec.pipeline.model import Compilation, Model, get_compilation

_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*", re.ASCII)
MAX_LINE_WIDTH = 100

Import = tuple[str, str]
"""The source of an import as a spec writes it, and the imported name, with its alias if it has one."""


def new_spec(path: str, model: Model, overrides: Mapping[str, PlainValue], blocks: Sequence[str] = ()) -> str:
    """Return the text of a spec at `path` with a variant of a model: imports, the model, and its parameter count.

    The model was compiled with `overrides`. `blocks` name definitions to copy, or hyperparameters with a definition as
    their value; definitions of the model that use them are copied too. The text has been compiled to an equal model.

    Raises ArchError for a definition that the model does not use or that cannot be copied.
    """
    file = _NewFile(path, get_compilation(model))
    values = dict(overrides)
    copied = file.find_copies(blocks)
    for name in file.find_replaced(copied, values):
        values[name] = file.definition_name(name)
    text = file.text(model, values, copied)
    folder = os.path.realpath(os.path.dirname(path) or os.curdir)
    (compiled,) = compile_text_in_folder(text, path, folder, folder, [file.name])
    if diff(model, compiled) or compiled.params != model.params:
        raise internal_error(f"{path} does not compile to {model.name}")
    return text


class _NewFile:
    def __init__(self, path: str, compilation: Compilation) -> None:
        self.path = path
        self.compilation = compilation
        self.unit = compilation.unit
        stem = os.path.basename(path).removesuffix(".arch")
        self.name = stem if _NAME.fullmatch(stem) else f"{compilation.compiled.name}-variant"
        self._specs = os.path.realpath(resources.specs_root())

    # Copies -----------------------------------------------------------------------------------------------------------

    @property
    def callee(self) -> Definition:
        target = self.unit.names[self.compilation.node.callee.text].target
        assert isinstance(target, Definition)
        return target

    def find_copies(self, blocks: Iterable[str]) -> list[Definition]:
        """Return the definitions to copy, their users, and used definitions that cannot be imported."""
        copies = list(dict.fromkeys(map(self._reachable_definition, blocks)))
        values = {definition for _, definition in self._values()}
        for definition in copies:  # grows; the value of a hyperparameter can be set without copying its users
            if definition not in values:
                copies += [
                    d for d in self._reachable_definitions() if d not in copies and definition in _used_definitions(d)
                ]
        for definition in copies:  # grows
            copies += [d for d in _used_definitions(definition) if d not in copies and self._import_source(d) is None]
        return copies

    def find_replaced(self, copied: Iterable[Definition], overrides: Mapping[str, PlainValue]) -> list[str]:
        """Return the hyperparameters whose value is a copied definition, unless the callee is copied too."""
        if self.callee in copied:
            return []
        return [name for name, definition in self._values() if definition in copied and name not in overrides]

    def definition_name(self, name: str) -> str:
        """Return the name of the definition that is the value of a hyperparameter."""
        return dict(self._values())[name].name

    def _values(self) -> list[tuple[str, Definition]]:
        return [(name, value) for name, value in self.compilation.values.items() if isinstance(value, Definition)]

    def _reachable_definition(self, block: str) -> Definition:
        definition = self._definition(block)
        if definition not in self._reachable_definitions():
            raise make_error("usage", f"`{block}` is not used by {self.callee.name}", help=self._choices_help())
        return definition

    def _definition(self, block: str) -> Definition:
        value: Value = self.compilation.values.get(block)
        value = value.definition if isinstance(value, Partial) else value
        binding = self.unit.names.get(block)
        target = value if isinstance(value, Definition) else binding.target if binding is not None else None
        for origin in (self.callee.unit, *[definition.unit for _, definition in self._values()]):
            if target is None and block in origin.names:
                target = origin.names[block].target
        if not isinstance(target, Definition):
            help = suggest(block, [*self._names()]) or self._choices_help()
            raise make_error("usage", f'unknown definition `{block}` of "{self.compilation.compiled.name}"', help=help)
        return target

    def _reachable_definitions(self) -> list[Definition]:
        """Return the definitions that the model uses, directly or indirectly, starting with its callee."""
        definitions = [self.callee, *[definition for _, definition in self._values()]]
        for definition in definitions:  # grows
            definitions += [used for used in _used_definitions(definition) if used not in definitions]
        return definitions

    def _names(self) -> Iterator[str]:
        yield from (name for name, _ in self._values())
        yield from (definition.name for definition in self._reachable_definitions())

    def _choices_help(self) -> str:
        return f"definitions: {', '.join(dict.fromkeys(self._names()))}"

    # Text -------------------------------------------------------------------------------------------------------------

    def text(self, model: Model, values: Mapping[str, PlainValue], copied: list[Definition]) -> str:
        """Return the text of the file."""
        line = format_model_statement(self.compilation, self.name, values)
        local_names = {definition.name for definition in copied}
        needed: dict[Import, None] = {}
        for definition in copied:
            self._add_imports(needed, definition.unit, _used_names(definition), local_names)
        self._add_imports(needed, self.unit, self._iter_statement_names(line), local_names)
        standard_names = [word for word in find_imports(self.unit, values) if word not in local_names]
        needed |= dict.fromkeys([("std", word) for word in standard_names])
        dims = dict.fromkeys(
            name for definition in copied for name in definition.unit.dims if name in _used_names(definition)
        )
        sources = dict.fromkeys(source for source, _ in needed)
        blocks = [_definition_text(definition) for definition in self._sort_by_file(copied)]
        count = f"  expect params == {model.params.total:_}\n"
        parts = [
            f"# A variant of {self.compilation.compiled.name}.\n",
            "".join(_format_import(source, [n for s, n in needed if s == source]) for source in sources),
            f"dim {', '.join(dims)}\n" if dims else "",
            *blocks,
            f"{_wrap_statement(line)} {{\n{count}}}\n",
        ]
        return "\n".join(part for part in parts if part)

    def _add_imports(self, needed: dict[Import, None], unit: Unit, words: Iterable[str], local_names: set[str]) -> None:
        """Add the imports of names in `unit` that the new file does not define."""
        for word in words:
            binding = unit.names.get(word)
            if binding is None or (isinstance(binding.target, Op) and binding.target.name == word):
                continue
            if isinstance(binding.target, Definition) and binding.target.name in local_names:
                continue
            if isinstance(binding.target, Op):
                needed["ops", f"{binding.target.name} as {word}"] = None
                continue
            assert binding.target is not None
            source = self._import_source(binding.target)
            if source is None:
                raise make_error("usage", f"`{word}` of {unit.source.label} cannot be imported")
            name = binding.target.name
            needed[source, name if name == word else f"{name} as {word}"] = None

    def _import_source(self, definition: Definition) -> str | None:
        """Return the source of a definition as an import names it; None if it cannot be imported."""
        unit = definition.unit
        if unit.root == self._specs:
            name = resources.bundled_name(unit.source.label)
            if name != "std":
                return name
            return "std" if definition.name in new_library_and_program()[0].standard_names() else None
        if unit.folder is None:
            return None
        file = os.path.join(unit.folder, os.path.basename(unit.source.label))
        folder = os.path.realpath(os.path.dirname(self.path) or os.curdir)
        relative = os.path.relpath(file, folder)
        if relative.startswith(os.pardir):
            message = f"{self.path} cannot import {unit.source.label}, which is outside its directory"
            raise make_error("usage", message, help=f"write the new file to {unit.folder}")
        return f'"{relative}"'

    def _iter_statement_names(self, line: str) -> Iterator[str]:
        node = self.compilation.node
        yield node.callee.text
        items = node.arguments.items if node.arguments is not None else ()
        own_names = {word for item in items if item.value is not None for word in names_in(item.value)}
        values = {*definition_names([*self.compilation.overrides.values()])}
        statement_names = set(re.findall(r"[A-Za-z_]\w*", line))
        yield from sorted((own_names | values) & statement_names)

    def _sort_by_file(self, copied: list[Definition]) -> list[Definition]:
        """Sort definitions: those of other files first, then by their position in the file."""
        return sorted(copied, key=lambda definition: (definition.unit is self.callee.unit, definition.span.start))


def _used_names(definition: Definition) -> list[str]:
    """Return the names of the file that a definition uses."""
    resolved = resolve_definition(definition, Report())
    parameters = {*definition.hyperparameters, *[entry.name for entry in definition.inputs]}
    defaults = [entry.default for entry in (*definition.node.hyperparameters, *definition.node.inputs) if entry.default]
    return sorted(resolved.scope.file_names | ({word for head in defaults for word in names_in(head)} - parameters))


def _used_definitions(definition: Definition) -> list[Definition]:
    """Return the definitions that a definition uses."""
    names = definition.unit.names
    targets = [names[word].target for word in _used_names(definition) if word in names]
    return [target for target in targets if isinstance(target, Definition)]


def _definition_text(definition: Definition) -> str:
    """Return the source of a definition, with its documentation."""
    node: tree.Definition = definition.node
    doc = "".join(f"## {line}".rstrip() + "\n" for line in node.doc.split("\n")) if node.doc else ""
    return f"{doc}{definition.unit.source.text[node.start : node.end].rstrip()}\n"


def _format_import(source: str, names: list[str]) -> str:
    line = f"import {source} {{ {', '.join(names)} }}\n"
    if len(line) <= MAX_LINE_WIDTH + 1:
        return line
    lines, body = [""], ""
    for name in names:
        if len(lines[-1]) + len(name) > MAX_LINE_WIDTH - 6:
            lines.append("")
        lines[-1] += f"{name}, "
    body = "".join(f"  {line.rstrip()}\n" for line in lines).rstrip(",\n")
    return f"import {source} {{\n{body}\n}}\n"


def _wrap_statement(line: str) -> str:
    """Break a model statement that is too long after its first parenthesis."""
    if len(line) <= MAX_LINE_WIDTH:
        return line
    start, _, arguments = line.partition("(")
    lines = [""]
    for part in re.split(r"(?<=,) (?=\w+ = )", arguments.removesuffix(")")):
        if lines[-1] and len(lines[-1]) + len(part) > MAX_LINE_WIDTH - 4:
            lines.append("")
        lines[-1] = f"{lines[-1]} {part}".strip()
    return f"{start}(\n" + "".join(f"  {line}\n" for line in lines) + ")"
