"""Completion: the names in scope, arguments, addresses and imports that a place accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from archspec.app.lsp.descriptions import operation_signature, signature
from archspec.app.lsp.edits import Edit, import_edit
from archspec.app.lsp.workspace import Analysis
from archspec.compiler.resolve.definition import resolve_definition
from archspec.compiler.resolve.unit import Definition, Unit
from archspec.core import resources
from archspec.core.diagnostics import Report
from archspec.core.record import Record
from archspec.ir.ops import OPS, Op
from archspec.ir.ops.record import REQUIRED
from archspec.language.syntax import tree
from archspec.language.syntax.parse import CONTEXTUAL, parser


class Candidate(Record):
    """A text to insert: its kind as in `Symbol`, "keyword" or "module"; what it is; edits that it needs elsewhere."""

    text: str
    kind: str
    detail: str = ""
    documentation: str = ""
    edits: tuple[Edit, ...] = ()


class Call(Record):
    """The call around a place: the callee, which list of arguments (0 or 1), and the text of it up to the place."""

    callee: str
    list: int
    arguments: str


def complete(analysis: Analysis, text: str, offset: int) -> list[Candidate]:
    """What can be written at an offset of a text; the analysis may be of an earlier text with fewer errors."""
    before = text[:offset]
    line = before[before.rfind("\n") + 1 :]
    if "#" in line or line.count('"') % 2:
        return []
    found = _candidates(analysis, before, line, offset)
    return list({(c.text, c.kind): c for c in found}.values())


def _candidates(analysis: Analysis, before: str, line: str, offset: int) -> Iterator[Candidate]:
    unit = analysis.unit
    if unit is None:
        return
    source = re.search(r"\b(?:import|export)\s+(\w+)\s*\{[^{}]*$", before)
    if source is not None:
        yield from _exported(analysis, source[1])
    elif re.search(r"^\s*(import|export)\s+\w*$", line):
        yield from (Candidate(name, "module") for name in ("ops", *resources.bundled_files(analysis.library.specs)))
    elif re.search(r"(?<![\w\])])\.(?:[\w.\[\]]*\.)?\w*$", line):
        yield from _addresses(analysis, offset, line)
    elif re.match(r"\s*model\s+\"[^\"]*\"\s*=\s*\w*$", line):
        yield from (c for c in _names_of_file(unit) if c.kind == "definition" and not c.detail.startswith("fn "))
    else:
        call = call_around(before)
        if call is not None:
            yield from _arguments(unit, call)
        definition = _definition(analysis, before, offset)
        if definition is not None or call is not None:
            yield from _locals(definition) if definition is not None else ()
            yield from _names_of_file(unit)
            yield from _standard(analysis, unit)
            yield from (Candidate(word, "keyword") for word in sorted(parser().keywords - CONTEXTUAL))
        else:
            yield from (Candidate(word, "keyword") for word in sorted(CONTEXTUAL))


def call_around(before: str) -> Call | None:
    """The call whose arguments a text ends in."""
    depth, at = 0, len(before) - 1
    while at >= 0:
        char = before[at]
        if char in ")]}":
            depth += 1
        elif char in "([{":
            if depth == 0:
                break
            depth -= 1
        at -= 1
    if before[at : at + 1] != "(":
        return None
    head, arguments = before[:at], before[at + 1 :]
    first = re.search(r"(\w+)\s*$", head)
    if first is not None:
        return Call(first[1], 0, arguments)
    if not head.rstrip().endswith(")"):
        return None
    inner = call_around(head.rstrip()[:-1])
    return Call(inner.callee, 1, arguments) if inner is not None and inner.list == 0 else None


def callee_of(unit: Unit, call: Call) -> Definition | Op | None:
    """What a call applies."""
    binding = unit.names.get(call.callee)
    return binding.target if binding is not None else OPS.get(call.callee)


def names_of(target: Definition | Op, call: Call) -> list[tuple[str, str]]:
    """The names for the arguments of a list, with what each is."""
    inputs = [(entry.name, entry.type) for entry in target.inputs]
    hyperparameters = _hyperparameters(target)
    return inputs if call.list == 1 or not hyperparameters else hyperparameters


def _hyperparameters(target: Definition | Op) -> list[tuple[str, str]]:
    if isinstance(target, Op):
        return [(a.name, "" if a.default is REQUIRED else f"= {a.default}") for a in target.attributes]
    return [
        (p.name, "" if p.default is None else f"= {p.unit.source.text[p.default.start : p.default.end]}")
        for p in target.hyperparameters.values()
    ]


def _arguments(unit: Unit, call: Call) -> Iterator[Candidate]:
    target = callee_of(unit, call)
    if target is None:
        return
    given = set(re.findall(r"(\w+)\s*=(?!=)", call.arguments))
    for name, detail in names_of(target, call):
        if name not in given:
            yield Candidate(f"{name} = ", "argument", detail or f"of {target.name}")


def _definition(analysis: Analysis, before: str, offset: int) -> Definition | None:
    """The definition around a place, also where its text has an error."""
    found = analysis.definition_at(offset)
    if found is not None or analysis.unit is None:
        return found
    heads = [*re.finditer(r"^(?:(?:fn|layer|block)\s+(\w+)|model|dim|import|export)\b", before, re.MULTILINE)]
    since = before[heads[-1].start() :] if heads else ""
    is_closed = "}" in since and since.count("{") <= since.count("}")
    binding = analysis.unit.names.get(heads[-1][1]) if heads and not is_closed else None
    target = binding.target if binding is not None else None
    return target if isinstance(target, Definition) else None


def _locals(definition: Definition) -> Iterator[Candidate]:
    form = resolve_definition(definition, Report())
    for name, local in {**form.scope.past, **form.scope.locals}.items():
        yield Candidate(name, "value" if local.what == "index" else local.what)
    for name in definition.hyperparameters:
        yield Candidate(name, "hyperparameter")
    for entry in definition.inputs:
        yield Candidate(entry.name, "input")


def _names_of_file(unit: Unit) -> Iterator[Candidate]:
    for name, binding in unit.names.items():
        if binding.target is not None:
            yield _named(name, binding.target)
    yield from (Candidate(name, "dimension") for name in unit.dims)
    yield from (_named(op.name, op) for op in OPS.values() if op.name not in unit.names)


def _named(name: str, target: Definition | Op) -> Candidate:
    if isinstance(target, Op):
        return Candidate(name, "operation", operation_signature(target), target.doc)
    return Candidate(name, "definition", signature(target), target.node.doc)


def _standard(analysis: Analysis, unit: Unit) -> Iterator[Candidate]:
    """Names of the standard library that the file does not import yet, with the import."""
    library = analysis.library.bundled("std", Report())
    for name in library.exports if library is not None else ():
        if name not in unit.names and name not in OPS:
            edits = (import_edit(unit.tree, unit.source.text, name),)
            yield Candidate(name, "definition", f"import std {{ {name} }}", "", edits)


def _exported(analysis: Analysis, source: str) -> Iterator[Candidate]:
    """The names that a bundled file offers to an import."""
    if source == "ops":
        yield from (_named(op.name, op) for op in OPS.values())
        return
    if source not in resources.bundled_files(analysis.library.specs):
        return
    unit = analysis.library.bundled(source, Report())
    if unit is not None:
        own = {n: b.target for n, b in unit.names.items() if not b.imported}
        yield from (_named(name, target) for name, target in own.items() if target is not None)
        yield from (Candidate(name, "definition", f"exported by {source}") for name in unit.exports if name not in own)


def _addresses(analysis: Analysis, offset: int, line: str) -> Iterator[Candidate]:
    """The addresses that a definition declares, after a point: whole, or what follows the segments that are there."""
    definition = _definition(analysis, analysis.source.text[:offset], offset)
    written = re.search(r"\.([\w.\[\]]*)$", line)
    given = written[1].rpartition(".")[0] if written is not None else ""
    for each in resolve_definition(definition, Report()).scope.declared if definition is not None else ():
        text = analysis.source.text[each.node.address.start : each.node.address.end]
        if not text:
            continue
        if not given:
            yield Candidate(text, "address", _what(each.node))
        elif text.startswith(given + "."):
            yield Candidate(text[len(given) + 1 :], "address", _what(each.node))


def _what(node: tree.ModuleDeclaration | tree.TensorDeclaration) -> str:
    if isinstance(node, tree.ModuleDeclaration):
        return node.callee.text if isinstance(node.callee, tree.Name) else ""
    return node.kind


def active_argument(call: Call, names: list[tuple[str, str]]) -> int | None:
    """Which argument a list ends in: by its name, or by its position."""
    depth, position, current = 0, 0, ""
    for char in call.arguments:
        depth += (char in "([{") - (char in ")]}")
        position, current = (position + 1, "") if char == "," and depth == 0 else (position, current + char)
    named = re.match(r"\s*(\w+)\s*=(?!=)", current)
    if named is not None:
        position = next((i for i, (name, _) in enumerate(names) if name == named[1]), len(names))
    return position if position < len(names) else None
