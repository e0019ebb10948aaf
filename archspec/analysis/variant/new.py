"""`archspec new`: the first file of a variant of a model, with a copy of one of its definitions to change."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping

from archspec.analysis.diff.api import diff
from archspec.analysis.variant.lines import imports_for, model_line
from archspec.compiler.evaluate.values import Partial, Value
from archspec.compiler.literals import definition_names
from archspec.compiler.resolve.definition import resolve_definition
from archspec.compiler.resolve.unit import Definition, Unit
from archspec.core import resources
from archspec.core.diagnostics import Report, make_error, suggest
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


def new_spec(path: str, model: Model, overrides: Mapping[str, PlainValue], block: str | None = None) -> str:
    """Return the text of a spec at `path` with a variant of a model: imports, the model, and its parameter count.

    `overrides` are those with which the model was compiled. `block` is a definition to copy, or a hyperparameter whose
    value it is; so are the definitions of the model that use it. The text has been compiled, and gives the same model.

    Raises ArchError for a definition that the model does not have or that cannot be copied.
    """
    file = _NewFile(path, get_compilation(model))
    values = dict(overrides)
    copied = file.copies(block) if block is not None else []
    for name in file.replaced(copied, values):
        values[name] = file.word(name)
    text = file.text(model, values, copied)
    folder = os.path.realpath(os.path.dirname(path) or os.curdir)
    (again,) = compile_text_in_folder(text, path, folder, folder, [file.name])
    if diff(model, again) or again.params != model.params:
        raise make_error("internal", f"{path} would not give {model.name}; this is a bug in archspec; please report it")
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

    def copies(self, block: str) -> list[Definition]:
        """Return the definition to copy, and those that must be copied too: its users, and what only its file has."""
        found = [self._definition(block)]
        if found[0] not in self._reached():
            raise make_error("usage", f"`{block}` is not used by {self.callee.name}", help=self._choices())
        values = {definition for _, definition in self._values()}
        for definition in found:  # grows; the value of a hyperparameter can be set without copying its users
            if definition not in values:
                found += [d for d in self._reached() if d not in found and definition in _used(d)]
        for definition in found:  # grows
            found += [d for d in _used(definition) if d not in found and self._source(d) is None]
        return found

    def replaced(self, copied: Iterable[Definition], overrides: Mapping[str, PlainValue]) -> list[str]:
        """Return the hyperparameters whose value is a copied definition, unless their default is copied as well."""
        if self.callee in copied:
            return []
        return [name for name, definition in self._values() if definition in copied and name not in overrides]

    def word(self, name: str) -> str:
        """Return the name of the definition that a hyperparameter has as its value."""
        return dict(self._values())[name].name

    def _values(self) -> list[tuple[str, Definition]]:
        return [(name, value) for name, value in self.compilation.values.items() if isinstance(value, Definition)]

    def _definition(self, block: str) -> Definition:
        value: Value = self.compilation.values.get(block)
        value = value.definition if isinstance(value, Partial) else value
        binding = self.unit.names.get(block)
        found = value if isinstance(value, Definition) else binding.target if binding is not None else None
        for origin in (self.callee.unit, *[definition.unit for _, definition in self._values()]):
            if found is None and block in origin.names:
                found = origin.names[block].target
        if not isinstance(found, Definition):
            help = suggest(block, [*self._names()]) or self._choices()
            raise make_error("usage", f'unknown definition `{block}` of "{self.compilation.compiled.name}"', help=help)
        return found

    def _reached(self) -> list[Definition]:
        """Return the definitions that the model uses, from its own on."""
        found = [self.callee, *[definition for _, definition in self._values()]]
        for definition in found:  # grows
            found += [other for other in _used(definition) if other not in found]
        return found

    def _names(self) -> Iterator[str]:
        yield from (name for name, _ in self._values())
        yield from (definition.name for definition in self._reached())

    def _choices(self) -> str:
        return f"definitions: {', '.join(dict.fromkeys(self._names()))}"

    # Text -------------------------------------------------------------------------------------------------------------

    def text(self, model: Model, values: Mapping[str, PlainValue], copied: list[Definition]) -> str:
        """Return the text of the file."""
        line = model_line(self.compilation, self.name, values)
        here = {definition.name for definition in copied}
        needed: dict[Import, None] = {}
        for definition in copied:
            self._add(needed, definition.unit, _words(definition), here)
        self._add(needed, self.unit, self._words_of(line), here)
        lent = [word for word in imports_for(self.unit, values) if word not in here]
        needed |= dict.fromkeys([("std", word) for word in lent])
        dims = dict.fromkeys(name for each in copied for name in each.unit.dims if name in _words(each))
        sources = dict.fromkeys(source for source, _ in needed)
        blocks = [_source_of(definition) for definition in self._ordered(copied)]
        count = f"  expect params == {model.params.total:_}\n"
        parts = [
            f"# A variant of {self.compilation.compiled.name}.\n",
            "".join(_import(source, [n for s, n in needed if s == source]) for source in sources),
            f"dim {', '.join(dims)}\n" if dims else "",
            *blocks,
            f"{_wrapped(line)} {{\n{count}}}\n",
        ]
        return "\n".join(part for part in parts if part)

    def _add(self, needed: dict[Import, None], unit: Unit, words: Iterable[str], here: set[str]) -> None:
        """Add the imports for names of a file that are not defined in the new one."""
        for word in words:
            binding = unit.names.get(word)
            if binding is None or (isinstance(binding.target, Op) and binding.target.name == word):
                continue
            if isinstance(binding.target, Definition) and binding.target.name in here:
                continue
            if isinstance(binding.target, Op):
                needed["ops", f"{binding.target.name} as {word}"] = None
                continue
            assert binding.target is not None
            source = self._source(binding.target)
            if source is None:
                raise make_error("usage", f"`{word}` of {unit.source.label} cannot be imported")
            name = binding.target.name
            needed[source, name if name == word else f"{name} as {word}"] = None

    def _source(self, definition: Definition) -> str | None:
        """Return how a spec names the file from which it imports a definition; None if it cannot."""
        unit = definition.unit
        if unit.root == self._specs:
            name = unit.source.label.removeprefix("specs/").removesuffix(".arch")
            if "/" not in name:
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

    def _words_of(self, line: str) -> Iterator[str]:
        node = self.compilation.node
        yield node.callee.text
        items = node.arguments.items if node.arguments is not None else ()
        written = {word for item in items if item.value is not None for word in names_in(item.value)}
        given = self.compilation.overrides.values()
        values = {word for value in given if isinstance(value, str) for word in definition_names(value)}
        known = set(re.findall(r"[A-Za-z_]\w*", line))
        yield from sorted((written | values) & known)

    def _ordered(self, copied: list[Definition]) -> list[Definition]:
        """Return definitions in the order of their files."""
        return sorted(copied, key=lambda definition: (definition.unit is self.callee.unit, definition.span.start))


def _words(definition: Definition) -> list[str]:
    """Return the names of its file that a definition uses."""
    form = resolve_definition(definition, Report())
    own = {*definition.hyperparameters, *[entry.name for entry in definition.inputs]}
    heads = [entry.default for entry in (*definition.node.hyperparameters, *definition.node.inputs) if entry.default]
    return sorted(form.scope.file_names | ({word for head in heads for word in names_in(head)} - own))


def _used(definition: Definition) -> list[Definition]:
    """Return the definitions that a definition uses."""
    names = definition.unit.names
    targets = [names[word].target for word in _words(definition) if word in names]
    return [target for target in targets if isinstance(target, Definition)]


def _source_of(definition: Definition) -> str:
    """Return the source of a definition, with its documentation."""
    node: tree.Definition = definition.node
    doc = "".join(f"## {line}".rstrip() + "\n" for line in node.doc.split("\n")) if node.doc else ""
    return f"{doc}{definition.unit.source.text[node.start : node.end].rstrip()}\n"


def _import(source: str, names: list[str]) -> str:
    line = f"import {source} {{ {', '.join(names)} }}\n"
    if len(line) <= MAX_LINE_WIDTH + 1:
        return line
    lines, found = [""], ""
    for name in names:
        if len(lines[-1]) + len(name) > MAX_LINE_WIDTH - 6:
            lines.append("")
        lines[-1] += f"{name}, "
    found = "".join(f"  {line.rstrip()}\n" for line in lines).rstrip(",\n")
    return f"import {source} {{\n{found}\n}}\n"


def _wrapped(line: str) -> str:
    """Break a model statement that is too long after its first parenthesis."""
    if len(line) <= MAX_LINE_WIDTH:
        return line
    head, _, rest = line.partition("(")
    lines = [""]
    for part in re.split(r"(?<=,) (?=\w+ = )", rest.removesuffix(")")):
        if lines[-1] and len(lines[-1]) + len(part) > MAX_LINE_WIDTH - 4:
            lines.append("")
        lines[-1] = f"{lines[-1]} {part}".strip()
    return f"{head}(\n" + "".join(f"  {line}\n" for line in lines) + ")"
