"""Checks of the addresses of a module, when all its declarations are known."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.addresses import prefixes
from archspec.elaborate.program import Program
from archspec.ir import Module, find
from archspec.resolve import nodes
from archspec.resolve.unit import Unit
from archspec.source import Note


def check_nesting(program: Program, module: Module) -> None:
    """Report addresses inside other declared addresses, because they would have two owners."""
    members = module.members
    for address, member in members.items():
        end = address.find(".")
        while end >= 0:
            outer = members.get(address[:end])
            if outer is not None:
                program.error(
                    "duplicate-address",
                    f"address `{address}` is inside `{address[:end]}`, which is already declared",
                    member.span,
                    notes=(Note("declared here", outer.span),),
                )
                break
            end = address.find(".", end + 1)


def check_roles(program: Program, unit: Unit, module: Module, roles: Sequence[tuple[str, nodes.Address]]) -> None:
    """Check that the addresses of roles are declared, or excluded by the hyperparameters."""
    if not roles or unit.broken or module in program.incomplete:
        return
    around = {prefix for own in (*module.members, *module.absent) for prefix in prefixes(own)}
    for address, node in roles:
        left_out = not module.absent.isdisjoint(("", *prefixes(address)))
        if address not in around and not left_out and find(module, address) is None:
            program.error("unknown-address", f"nothing is declared at `{address}`", unit.span(node.at))
