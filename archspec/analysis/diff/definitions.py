"""Definitions with equal names and different source in two models, with counts of the changes of one application."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from archspec.analysis.diff.operations import collapse_operation_changes, compare_definitions
from archspec.analysis.diff.structure import StoredTensor, StoredTensors, collapse_changes, find_changes
from archspec.compiler.resolve.unit import Definition, Unit, is_numeric
from archspec.core.addresses import is_below, is_inside, join
from archspec.core.diagnostics import ArchError, Span
from archspec.ir.module import Body, iter_tensors
from archspec.pipeline.model import Model, get_compilation

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|#.*|\w+|[^\w\s]')


def find_differing_definitions(a: Model, b: Model) -> dict[str, Counter[str]]:
    """Return the layers, blocks and functions of which two models have different definitions with one name.

    Each is mapped to the number of changes by kind: those of OperationChange, and those of TensorChange after
    "tensors". Definitions that compute the same from the same tensors are omitted.
    """
    ours, theirs = (_find_definitions(get_compilation(model).body) for model in (a, b))
    result: dict[str, Counter[str]] = {}
    pairs = {name: _corresponding_bodies(ours[name], theirs[name]) for name in ours.keys() & theirs.keys()}
    for name, (before, after) in pairs.items():
        if _are_different(before, after):
            changes = _count_changes(before, after)
            if changes:
                result[name] = changes
    listed = {name: result[name] for name in theirs if name in result}
    functions = _differing_number_functions(a, b, [body for bodies in theirs.values() for body in bodies.values()])
    same = [pair for pair in pairs.values() if not _are_different(*pair)] if functions else []
    if any(_have_equal_sizes(*pair) and _count_changes(*pair) for pair in same):  # which only the functions can cause
        listed |= {name: Counter(["differs"]) for name in functions}
    return listed


def _differing_number_functions(a: Model, b: Model, bodies: Sequence[Body]) -> list[str]:
    """Return the functions of numbers of one name that differ in two models, and that the bodies of `b` use.

    These functions are evaluated, and have no body.
    """
    ours, theirs = (_number_functions(get_compilation(model).unit) for model in (a, b))
    words = {token for span in {body.span for body in bodies} if span is not None for token in _definition_tokens(span)}
    used: list[str] = []
    while added := [name for name in theirs if name in words and name not in used]:
        used += added
        words.update(*[_definition_tokens(theirs[name]) for name in added])
    common = [name for name in used if name in ours]
    return [name for name in common if _definition_tokens(ours[name]) != _definition_tokens(theirs[name])]


def _number_functions(unit: Unit) -> dict[str, Span]:
    """Return the functions of numbers of a file and of the files that it imports."""
    result: dict[str, Span] = {}
    units = [unit]
    for current in units:  # grows
        for binding in current.names.values():
            target = binding.target
            if isinstance(target, Definition):
                if is_numeric(target):
                    result.setdefault(target.name, target.span)
                if target.unit not in units:
                    units.append(target.unit)
    return result


def _find_definitions(body: Body) -> dict[str, dict[str, Body]]:
    """Return the bodies of each definition by the first address of its application, for a function its caller."""
    result: dict[str, dict[str, Body]] = {body.type: {"": body}} if body.module is not None else {}
    seen: set[Body] = set()

    def visit(body: Body, prefix: str) -> None:
        for call in body.calls:
            nested, address = call.body, join(prefix, call.address)
            if nested is not None and nested not in seen:
                seen.add(nested)
                if nested.span is not None:
                    result.setdefault(nested.type, {}).setdefault(address, nested)
                visit(nested, address)

    visit(body, "")
    return result


def _iter_modules(body: Body, prefix: str) -> Iterator[tuple[str, Body]]:
    """Yield the layers and blocks that a body applies, directly or in loops and functions."""
    for call in body.calls:
        if call.body is not None:
            address = join(prefix, call.address)
            if call.kind in ("layer", "block"):
                yield address, call.body
            else:
                yield from _iter_modules(call.body, address)


def _corresponding_bodies(ours: dict[str, Body], theirs: dict[str, Body]) -> tuple[Body, Body]:
    """Return the bodies at the first common address, or the first bodies."""
    for address, body in ours.items():
        if address in theirs:
            return body, theirs[address]
    return next(iter(ours.values())), next(iter(theirs.values()))


def _are_different(before: Body, after: Body) -> bool:
    """Whether the definitions of two bodies differ in more than comments and layout."""
    assert before.span is not None and after.span is not None
    return before.span != after.span and _definition_tokens(before.span) != _definition_tokens(after.span)


def _definition_tokens(span: Span) -> list[str]:
    """Return the tokens of a definition from its name to its closing brace, without comments."""
    tokens: list[str] = []
    depth = 0
    for match in _TOKEN.finditer(span.source.text, span.start):
        token = match[0]
        if not token.startswith("#"):
            tokens.append(token)
            depth += (token == "{") - (token == "}")
            if token == "}" and not depth:
                break
    return tokens


def _count_changes(before: Body, after: Body) -> Counter[str]:
    """Count the changes of a definition, without those of nested definitions that differ themselves."""
    nested = dict(_iter_modules(before, ""))
    separate = [
        address
        for address, body in _iter_modules(after, "")
        if address in nested and body.type == nested[address].type and _are_different(nested[address], body)
    ]
    changes: Counter[str] = Counter()
    ours, theirs = _stored_tensors(before, separate), _stored_tensors(after, separate)
    for change in collapse_changes(find_changes(ours, theirs)):
        changes.update(
            f"tensors {kind}" for kind in change.kinds if kind != "reshaped" or _have_equal_sizes(before, after)
        )
    try:
        operations = compare_definitions(before, after)
    except ArchError:  # more operations than can be compared
        return changes
    own = [
        change
        for change in operations
        if not any(is_below(change.address, address) for address in separate)
        and not (change.address in separate and change.kind in ("computes", "returns", "differs"))
    ]
    changes.update(change.kind for change in collapse_operation_changes(own))
    return changes


def _stored_tensors(body: Body, separate: Sequence[str]) -> StoredTensors:
    """Return the tensors of a body's module by relative name, except those in the modules `separate`."""
    if body.module is None:
        return {}
    return {
        name: StoredTensor(
            leaf.weight.kind,
            leaf.weight.shape,
            leaf.weight.kind == "param" and not leaf.frozen,
            body.module.aliases.get(name),
        )
        for name, leaf in iter_tensors(body.module)
        if leaf.weight.kind != "const" and not any(is_inside(name, address) for address in separate)
    }


def _have_equal_sizes(before: Body, after: Body) -> bool:
    """Whether the numbers among the hyperparameters are equal, so that shapes differ only by the definitions."""
    if before.module is None or after.module is None:
        return False
    ours, theirs = before.module.hyperparameters, after.module.hyperparameters
    return all(ours[name] == theirs[name] for name in ours.keys() & theirs.keys() if isinstance(ours[name], int))
