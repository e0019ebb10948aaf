"""Merged modules, and checks of a module's addresses once all declarations are known.

`..: Callee` adds the members of a module to the enclosing module, under the same addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from archspec.compiler.evaluate.program import Program
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.unit import Unit
from archspec.core.addresses import parent, prefixes, relative
from archspec.core.diagnostics import Note, Span
from archspec.ir.module import Module, enclosing_member


def merge(program: Program, module: Module, merged: Module, modifiers: tuple[str, ...], span: Span) -> None:
    """Add the members of `merged`, declared at `span`; an address that is already declared is reported."""
    if merged in program.incomplete:
        program.incomplete.add(module)
    duplicate = next((address for address in merged.members if address in module.members), None)
    if duplicate is not None:
        _report_duplicate(program, module, merged, duplicate, span)
        return
    freezes, marks_unused = "frozen" in modifiers, "unused" in modifiers
    for address, member in merged.members.items():
        is_frozen, is_unused = freezes or member.frozen, marks_unused or member.unused
        module.members[address] = member._replace(frozen=is_frozen, unused=is_unused, span=span)
    module.absent |= merged.absent
    module.merged[span] = merged


def merge_roles(module: Module) -> None:
    """Add the roles of merged modules, which take precedence over the roles of the module itself."""
    for merged in module.merged.values():
        roles = dict(merged.roles)
        merged_role = roles.pop("", None)
        module.roles += roles.items()
        if merged_role is not None:
            unlabeled = [address for address in merged.members if roles.keys().isdisjoint(prefixes(address))]
            module.roles += [(address, merged_role) for address in unlabeled]


def merge_labels(module: Module) -> None:
    """Add the labels of the members of merged modules, unless the module itself labels them."""
    for merged in module.merged.values():
        for address, label in merged.labels.items():
            if address:
                module.labels.setdefault(address, label)


def _report_duplicate(program: Program, module: Module, merged: Module, address: str, span: Span) -> None:
    """Report that a merged module declares an address again."""
    first = module.members[address].span
    if first == span:
        message = f"address `{address}` of `{merged.type}` is declared again in each loop iteration"
        help = f"put the index into an address, as in `layer[i]: {merged.type}(...)`"
        program.error("duplicate-address", message, span, help=help)
        return
    message = f"address `{address}` of `{merged.type}` is already declared"
    origin = Note(f"`{merged.type}` declares it here", merged.members[address].span)
    help = f"remove one of them, or declare `{merged.type}` at an address"
    program.error("duplicate-address", message, span, notes=(Note("first declared here", first), origin), help=help)


def check_nesting(program: Program, module: Module) -> None:
    """Report declared addresses inside declared addresses, because they would have two owners."""
    members = module.members
    for address, member in members.items():
        enclosing = next((prefix for prefix in prefixes(parent(address)) if prefix in members), None)
        if enclosing is not None:
            message = f"address `{address}` is inside `{enclosing}`, which is already declared"
            note = Note("declared here", members[enclosing].span)
            program.error("duplicate-address", message, member.span, notes=(note,))


def check_subjects(program: Program, unit: Unit, module: Module, subjects: Sequence[tuple[str, nodes.Address]]) -> None:
    """Check that the addresses of roles and labels are declared, or excluded by the hyperparameters."""
    if not subjects or unit.broken or module in program.incomplete:
        return
    cached_prefixes = cache(_possible_prefixes)
    for address, node in subjects:
        if not (_may_declare(module, address, cached_prefixes) or program.is_incomplete(module, address)):
            program.error("unknown-address", f"nothing is declared at `{address}`", unit.span(node.at))


def _possible_prefixes(module: Module) -> set[str]:
    """Return the addresses at or below which a module can have members, for any hyperparameters."""
    return {prefix for address in (*module.members, *module.absent) for prefix in ("", *prefixes(address))}


def _may_declare(module: Module, address: str, member_prefixes: Callable[[Module], set[str]]) -> bool:
    """Whether a module can have a member at or below an address, for any hyperparameters."""
    if address in member_prefixes(module) or not module.absent.isdisjoint(("", *prefixes(address))):
        return True
    enclosing = enclosing_member(module, address)
    if enclosing is None or enclosing == address:
        return enclosing is not None
    target = module.members[enclosing].target
    return isinstance(target, Module) and _may_declare(target, relative(address, enclosing), member_prefixes)
