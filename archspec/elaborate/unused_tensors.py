"""Detection of unused tensors."""

from __future__ import annotations

from collections.abc import Iterable

from archspec.bodies.fold import yielded
from archspec.ir import Body, Call, Member, Module, Operand, Weight, leaves


def find_unused(module: Module, body: Body, discarded: Iterable[int]) -> list[str]:
    """Return the relative names of tensors of `module` that affect neither an output of `body` nor a `discarded` slot,
    one that the spec assigns to `_`.
    """
    live, applied = _live(body, discarded)
    deep = {name for name, slot in body.weights if slot in live}
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


def _live(body: Body, discarded: Iterable[int]) -> tuple[set[int], dict[str, list[Body]]]:
    """Return the slots that affect an output or a `discarded` slot, and the bodies that do so, by address."""
    live = set(discarded)
    applied: dict[str, list[Body]] = {}

    def use(operands: list[tuple[str, Operand]] | tuple[tuple[str, Operand], ...]) -> None:
        live.update([operand for _, operand in operands if isinstance(operand, int)])

    use(body.outputs)
    for call in reversed(body.calls):
        if any(slot in live for _, slot in yielded(call)):
            use(call.inputs if call.kind != "loop" else _live_inputs(call))
            if call.body is not None and call.body.module is not None:
                applied.setdefault(call.address, []).append(call.body)
    return live, applied


def _live_inputs(call: Call) -> list[tuple[str, Operand]]:
    """Return the inputs of a loop that affect an output of an iteration, or what is assigned to `_` in it."""
    assert call.body is not None
    live, _ = _live(call.body, call.body.discarded)
    return [operand for slot, operand in enumerate(call.inputs) if slot in live]


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
