"""Detection of unused tensors."""

from __future__ import annotations

from collections.abc import Collection

from archspec.ir import Body, Member, Module, Weight, leaves


def find_unused(module: Module, applied: dict[str, list[Body]], reads: Collection[str]) -> list[str]:
    """Return the relative names of tensors of `module` that a body reads neither itself (`reads`) nor in its calls."""
    deep: set[str] = set(reads)
    for address, bodies in applied.items():
        if address not in module.members:  # a nested module, applied from here
            deep.update(_used_within(module, address, bodies))
    unused: list[str] = []
    for address, member in module.members.items():
        if member.unused:
            continue
        bodies = applied.get(address)
        if bodies is not None and not any(b.unused for b in bodies):
            continue
        if isinstance(member.target, Weight):
            names = [address]
        elif bodies is None:
            names = [f"{address}.{n}" for n, _ in leaves(member.target) if not _excused(member, n)]
        else:
            unread = _unread(bodies)
            names = [f"{address}.{n}" for n in bodies[0].unused if n in unread]
        unused += [n for n in names if n not in deep]
    return unused


def _unread(bodies: list[Body]) -> set[str]:
    """Return the tensors that none of several applications of a module reads."""
    unread = set(bodies[0].unused)
    for body in bodies[1:]:
        unread.intersection_update(body.unused)
    return unread


def _used_within(module: Module, address: str, bodies: list[Body]) -> set[str]:
    unread = _unread(bodies)
    target = bodies[0].module
    assert target is not None
    return {f"{address}.{name}" for name, _ in leaves(target) if name not in unread}


def _excused(member: Member, name: str) -> bool:
    """Whether a declaration inside is marked `unused`."""
    target = member.target
    while isinstance(target, Module):
        address = next((a for a in target.members if name == a or name.startswith(a + ".")), None)
        if address is None:
            return False
        inner = target.members[address]
        if inner.unused:
            return True
        target, name = inner.target, name[len(address) + 1 :]
    return False
