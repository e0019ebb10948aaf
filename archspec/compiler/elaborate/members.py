"""The members of a module when all its declarations are known: those of merged modules, and checks of the addresses.

`..: Callee` makes the members of one module those of another, under the same addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from archspec.compiler.evaluate.program import Program
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.unit import Unit
from archspec.core.addresses import parent, prefixes, relative
from archspec.core.diagnostics import Note, Span
from archspec.ir.module import LocatedTensor, Module, enclosing_member, find_member


def merge(program: Program, module: Module, other: Module, modifiers: tuple[str, ...], at: Span) -> None:
    """Add the members of another module, declared at `at`; reports an error for an address that is already declared."""
    if other in program.incomplete:
        program.incomplete.add(module)
    twice = next((address for address in other.members if address in module.members), None)
    if twice is not None:
        _refuse(program, module, other, twice, at)
        return
    frozen, unused = "frozen" in modifiers, "unused" in modifiers
    for address, member in other.members.items():
        held, spare = frozen or member.frozen, unused or member.unused
        module.members[address] = member._replace(frozen=held, unused=spare, span=at)
    module.absent |= other.absent
    module.merged[at] = other


def merge_ties(module: Module) -> None:
    """Make the ties of merged modules, except those inside their members, which are made."""
    for other in module.merged.values():
        for alias, counted in other.aliases.items():
            leaf = find_member(module, alias)
            if alias in module.aliases or not isinstance(leaf, LocatedTensor):
                continue
            module.aliases[alias] = counted
            if leaf.weight.kind == "param":
                module.total -= leaf.weight.size
                module.frozen -= leaf.weight.size if leaf.frozen else 0


def merge_roles(module: Module) -> None:
    """Add the roles of merged modules, which take precedence over those of the module itself."""
    for other in module.merged.values():
        roles = dict(other.roles)
        own = roles.pop("", None)
        module.roles += roles.items()
        if own is not None:
            plain = [address for address in other.members if roles.keys().isdisjoint(prefixes(address))]
            module.roles += [(address, own) for address in plain]


def _refuse(program: Program, module: Module, other: Module, address: str, at: Span) -> None:
    """Report that a merged module declares what is already declared."""
    first = module.members[address].span
    if first == at:
        message = f"address `{address}` of `{other.type}` is declared again in each loop iteration"
        help = f"put the index into an address, as in `layer[i]: {other.type}(...)`"
        program.error("duplicate-address", message, at, help=help)
        return
    message = f"address `{address}` of `{other.type}` is already declared"
    inside = Note(f"`{other.type}` declares it here", other.members[address].span)
    help = f"leave one of them out, or give `{other.type}` an address"
    program.error("duplicate-address", message, at, notes=(Note("first declared here", first), inside), help=help)


def check_nesting(program: Program, module: Module) -> None:
    """Report addresses inside other declared addresses, because they would have two owners."""
    members = module.members
    for address, member in members.items():
        outer = next((prefix for prefix in prefixes(parent(address)) if prefix in members), None)
        if outer is not None:
            message = f"address `{address}` is inside `{outer}`, which is already declared"
            note = Note("declared here", members[outer].span)
            program.error("duplicate-address", message, member.span, notes=(note,))


def check_roles(program: Program, unit: Unit, module: Module, roles: Sequence[tuple[str, nodes.Address]]) -> None:
    """Check that the addresses of roles are declared, or excluded by the hyperparameters."""
    if not roles or unit.broken or module in program.incomplete:
        return
    places = cache(_places)
    for address, node in roles:
        if not (_may_have(module, address, places) or program.is_incomplete(module, address)):
            program.error("unknown-address", f"nothing is declared at `{address}`", unit.span(node.at))


def _places(module: Module) -> set[str]:
    """Return the addresses at or below which a module has members, or would have with other hyperparameters."""
    return {outer for address in (*module.members, *module.absent) for outer in ("", *prefixes(address))}


def _may_have(module: Module, address: str, places: Callable[[Module], set[str]]) -> bool:
    """Whether something is declared at or below an address, or would be with other hyperparameters."""
    if address in places(module) or not module.absent.isdisjoint(("", *prefixes(address))):
        return True
    around = enclosing_member(module, address)
    if around is None or around == address:
        return around is not None
    inner = module.members[around].target
    return isinstance(inner, Module) and _may_have(inner, relative(address, around), places)
