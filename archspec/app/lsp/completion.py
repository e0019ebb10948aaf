"""Completion: the names in scope, arguments, addresses and imports that are valid at a location."""

from __future__ import annotations

import re
from collections.abc import Iterator

from archspec.app.lsp.descriptions import operation_signature, signature
from archspec.app.lsp.workspace import Analysis
from archspec.compiler.resolve.definition import resolve_definition
from archspec.compiler.resolve.unit import Definition, Unit
from archspec.core import resources
from archspec.core.diagnostics import Report
from archspec.core.record import Record
from archspec.ir.ops import OPS, Op
from archspec.ir.ops.record import REQUIRED
from archspec.language.syntax import tree
from archspec.language.syntax.edits import Edit, import_edit
from archspec.language.syntax.machine import TITLING
from archspec.language.syntax.parse import CONTEXTUAL, parser


class Candidate(Record):
    """A text to insert, with its kind (as in `Symbol`, or "keyword" or "module") and edits elsewhere in the file."""

    text: str
    kind: str
    detail: str = ""
    documentation: str = ""
    edits: tuple[Edit, ...] = ()


class Call(Record):
    """An unclosed call before a location: its callee, the index of the argument list, and the start of that list.

    Index 0 is the first pair of parentheses, and 1 the second, which holds the inputs.
    """

    callee: str
    list: int
    arguments: str


def complete(analysis: Analysis, text: str, offset: int) -> list[Candidate]:
    """Return the candidates at an offset of a text; the analysis may be of an earlier text with fewer errors."""
    before = text[:offset]
    line = before[before.rfind("\n") + 1 :]
    if "#" in line or line.count('"') % 2:
        return []
    candidates = _candidates(analysis, before, line, offset)
    return list({(candidate.text, candidate.kind): candidate for candidate in candidates}.values())


def _candidates(analysis: Analysis, before: str, line: str, offset: int) -> Iterator[Candidate]:
    unit = analysis.unit
    if unit is None:
        return
    source = re.search(r"\b(?:import|export)\s+(\w+)\s*\{[^{}]*$", before)
    if source is not None:
        yield from _exported_candidates(analysis, source[1])
    elif re.search(r"^\s*(import|export)\s+\w*$", line):
        yield from (Candidate(name, "module") for name in ("ops", *resources.bundled_files(analysis.library.specs)))
    elif re.search(r"(?<![\w\])])\.(?:[\w.\[\]]*\.)?\w*$", line):
        yield from _address_candidates(analysis, offset, line)
    elif re.match(r"\s*model\s+\"[^\"]*\"\s*=\s*\w*$", line):
        yield from (c for c in _file_candidates(unit) if c.kind == "definition" and not c.detail.startswith("fn "))
    else:
        call = find_enclosing_call(before)
        if call is not None:
            yield from _argument_candidates(unit, call)
        definition = _enclosing_definition(analysis, before, offset)
        if definition is not None or call is not None:
            yield from _local_candidates(definition) if definition is not None else ()
            yield from _file_candidates(unit)
            yield from _library_candidates(analysis, unit)
            yield from (Candidate(word, "keyword") for word in sorted(parser().keywords - CONTEXTUAL | TITLING))
        else:
            yield from (Candidate(word, "keyword") for word in sorted(CONTEXTUAL - TITLING))


def find_enclosing_call(before: str) -> Call | None:
    """Return the call in whose arguments a text ends."""
    depth, index = 0, len(before) - 1
    while index >= 0:
        char = before[index]
        if char in ")]}":
            depth += 1
        elif char in "([{":
            if depth == 0:
                break
            depth -= 1
        index -= 1
    if before[index : index + 1] != "(":
        return None
    prefix, arguments = before[:index], before[index + 1 :]
    callee = re.search(r"(\w+)\s*$", prefix)
    if callee is not None:
        return Call(callee[1], 0, arguments)
    if not prefix.rstrip().endswith(")"):
        return None
    first_list = find_enclosing_call(prefix.rstrip()[:-1])
    return Call(first_list.callee, 1, arguments) if first_list is not None and first_list.list == 0 else None


def resolve_callee(unit: Unit, call: Call) -> Definition | Op | None:
    """Return the definition or operation that a call applies."""
    binding = unit.names.get(call.callee)
    return binding.target if binding is not None else OPS.get(call.callee)


def list_arguments(target: Definition | Op, call: Call) -> list[tuple[str, str]]:
    """Return the names of the arguments of a list, each with its type or default."""
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


def _argument_candidates(unit: Unit, call: Call) -> Iterator[Candidate]:
    target = resolve_callee(unit, call)
    if target is None:
        return
    named = set(re.findall(r"(\w+)\s*=(?!=)", call.arguments))
    for name, detail in list_arguments(target, call):
        if name not in named:
            yield Candidate(f"{name} = ", "argument", detail or f"of {target.name}")


def _enclosing_definition(analysis: Analysis, before: str, offset: int) -> Definition | None:
    """Return the definition that contains an offset, even if its source has an error."""
    definition = analysis.definition_at(offset)
    if definition is not None or analysis.unit is None:
        return definition
    signatures = [*re.finditer(r"^(?:(?:fn|layer|block)\s+(\w+)|model|dim|import|export)\b", before, re.MULTILINE)]
    text_since = before[signatures[-1].start() :] if signatures else ""
    is_closed = "}" in text_since and text_since.count("{") <= text_since.count("}")
    binding = analysis.unit.names.get(signatures[-1][1]) if signatures and not is_closed else None
    target = binding.target if binding is not None else None
    return target if isinstance(target, Definition) else None


def _local_candidates(definition: Definition) -> Iterator[Candidate]:
    form = resolve_definition(definition, Report())
    for name, local in {**form.scope.past, **form.scope.locals}.items():
        yield Candidate(name, "value" if local.what == "index" else local.what)
    for name in definition.hyperparameters:
        yield Candidate(name, "hyperparameter")
    for entry in definition.inputs:
        yield Candidate(entry.name, "input")


def _file_candidates(unit: Unit) -> Iterator[Candidate]:
    for name, binding in unit.names.items():
        if binding.target is not None:
            yield _make_candidate(name, binding.target)
    yield from (Candidate(name, "dimension") for name in unit.dims)
    yield from (_make_candidate(op.name, op) for op in OPS.values() if op.name not in unit.names)


def _make_candidate(name: str, target: Definition | Op) -> Candidate:
    if isinstance(target, Op):
        return Candidate(name, "operation", operation_signature(target), target.doc)
    return Candidate(name, "definition", signature(target), target.node.doc)


def _library_candidates(analysis: Analysis, unit: Unit) -> Iterator[Candidate]:
    """Yield the names of the standard library that the file does not import yet, with the edit that imports them."""
    library = analysis.library.bundled("std", Report())
    for name in library.exports if library is not None else ():
        if name not in unit.names and name not in OPS:
            edits = (import_edit(unit.tree, unit.source.text, name),)
            yield Candidate(name, "definition", f"import std {{ {name} }}", "", edits)


def _exported_candidates(analysis: Analysis, source: str) -> Iterator[Candidate]:
    """Yield the names that can be imported from a bundled file."""
    if source == "ops":
        yield from (_make_candidate(op.name, op) for op in OPS.values())
        return
    if source not in resources.bundled_files(analysis.library.specs):
        return
    unit = analysis.library.bundled(source, Report())
    if unit is not None:
        defined = {n: b.target for n, b in unit.names.items() if not b.imported}
        yield from (_make_candidate(name, target) for name, target in defined.items() if target is not None)
        yield from (
            Candidate(name, "definition", f"exported by {source}") for name in unit.exports if name not in defined
        )


def _address_candidates(analysis: Analysis, offset: int, line: str) -> Iterator[Candidate]:
    """Yield the addresses that a definition declares, without the segments that are already written after the dot."""
    definition = _enclosing_definition(analysis, analysis.source.text[:offset], offset)
    address = re.search(r"\.([\w.\[\]]*)$", line)
    prefix = address[1].rpartition(".")[0] if address is not None else ""
    for declared in resolve_definition(definition, Report()).scope.declared if definition is not None else ():
        node = declared.node
        text = analysis.source.text[node.address.start : node.address.end]
        if not text:
            continue
        if not prefix:
            yield Candidate(text, "address", _declared_type(node))
        elif text.startswith(prefix + "."):
            yield Candidate(text[len(prefix) + 1 :], "address", _declared_type(node))


def _declared_type(node: tree.ModuleDeclaration | tree.TensorDeclaration) -> str:
    if isinstance(node, tree.ModuleDeclaration):
        return node.callee.text if isinstance(node.callee, tree.Name) else ""
    return node.kind


def active_argument(call: Call, names: list[tuple[str, str]]) -> int | None:
    """Return the index of the argument in which a list ends, by its name or its position."""
    depth, position, current = 0, 0, ""
    for char in call.arguments:
        depth += (char in "([{") - (char in ")]}")
        position, current = (position + 1, "") if char == "," and depth == 0 else (position, current + char)
    named = re.match(r"\s*(\w+)\s*=(?!=)", current)
    if named is not None:
        position = next((i for i, (name, _) in enumerate(names) if name == named[1]), len(names))
    return position if position < len(names) else None
