"""Ties of two tensors, or of all tensors in two modules: tied ones are subtracted from the totals of their module."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from archspec.compiler.elaborate.application import MAX_SUGGESTION_CANDIDATES
from archspec.compiler.evaluate.program import Program
from archspec.compiler.resolve.unit import Unit
from archspec.core.diagnostics import suggest
from archspec.ir.module import LocatedTensor, Module, canonical_name, find_member, is_frozen, iter_tensors
from archspec.language.syntax import tree


def close_aliases(module: Module) -> None:
    """Map every alias of a module directly to the counted name."""
    for alias in module.aliases:
        module.aliases[alias] = canonical_name(module, alias)


def merge_ties(module: Module) -> None:
    """Add the ties of merged modules, except for ties inside their members, which already exist."""
    for merged in module.merged.values():
        for alias, counted in merged.aliases.items():
            leaf = find_member(module, alias)
            if alias in module.aliases or not isinstance(leaf, LocatedTensor):
                continue
            add_alias(module, alias, leaf, counted)


def add_alias(module: Module, alias: str, leaf: LocatedTensor, counted: str) -> None:
    """Make the tensor at `alias` the one at `counted`, and subtract its parameters from the totals."""
    module.aliases[alias] = counted
    if leaf.weight.kind == "param":
        module.total -= leaf.weight.size
        module.frozen -= leaf.weight.size if leaf.frozen else 0


def tie(program: Program, module: Module, alias: str, counted: str, unit: Unit, node: tree.Tie) -> None:
    """Tie `alias` to `counted` in `module`; an invalid tie is reported."""
    pairs = list(_iter_pairs(program, module, alias, counted, unit, node))
    tied_inside = [pair for pair in pairs if pair[0][0] in module.aliases]
    for (name, leaf), (counted_name, _) in pairs:
        if name in module.aliases:
            continue
        if canonical_name(module, counted_name) == name:
            _report_cycle(program, name, counted_name, unit, node)
            continue
        add_alias(module, name, leaf, counted_name)
    for (name, _), (counted_name, _) in tied_inside:
        if canonical_name(module, name) != canonical_name(module, counted_name):
            first = module.aliases[name]
            message = f"`{name}` is already tied to `{first}`"
            program.error("tie-twice", message, unit.span(node.alias), help=f"tie `{first}` instead")
        elif len(pairs) == 1:
            _report_cycle(program, name, counted_name, unit, node)


def _report_cycle(program: Program, alias: str, counted: str, unit: Unit, node: tree.Tie) -> None:
    program.error(
        "tie-circle",
        f"`{alias}` and `{counted}` are already the same tensor"
        if alias != counted
        else f"cannot tie `{alias}` to itself",
        unit.span(node),
        help="tie every other name of a shared tensor to the name that is counted",
    )


def _iter_pairs(
    program: Program, module: Module, alias: str, counted: str, unit: Unit, node: tree.Tie
) -> Iterator[tuple[tuple[str, LocatedTensor], tuple[str, LocatedTensor]]]:
    alias_member, counted_member = find_member(module, alias), find_member(module, counted)
    for member, address, member_node in ((alias_member, alias, node.alias), (counted_member, counted, node.counted)):
        if member is None:
            if not (program.is_incomplete(module, address) or unit.broken & set(address.split("."))):
                suggestion = suggest(
                    address, [name for name, _ in islice(iter_tensors(module), MAX_SUGGESTION_CANDIDATES)]
                )
                program.error(
                    "unknown-address",
                    f"cannot tie `{address}`: nothing is declared there",
                    unit.span(member_node),
                    help=suggestion,
                )
            return
    for member, address, member_node in ((alias_member, alias, node.alias), (counted_member, counted, node.counted)):
        if isinstance(member, LocatedTensor) and member.weight.kind == "const":
            message = f"cannot tie `{address}`: a `const` is not stored"
            program.error(
                "tie-shape", message, unit.span(member_node), help="declare it as a `buffer`, or remove the tie"
            )
            return
    if isinstance(alias_member, LocatedTensor) and isinstance(counted_member, LocatedTensor):
        if _check_types(program, alias, alias_member, counted, counted_member, unit, node):
            yield (alias, alias_member), (counted, counted_member)
        return
    if isinstance(alias_member, LocatedTensor) or isinstance(counted_member, LocatedTensor):
        tensor, module_address = (alias, counted) if isinstance(alias_member, LocatedTensor) else (counted, alias)
        message = f"cannot tie the tensor `{tensor}` and the layer or block `{module_address}`"
        program.error("tie-shape", message, unit.span(node), help=f"name a tensor, as in `{module_address}.weight`")
        return
    assert isinstance(alias_member, Module) and isinstance(counted_member, Module)
    alias_tensors = _stored_tensors(alias_member, is_frozen(module, alias))
    counted_tensors = _stored_tensors(counted_member, is_frozen(module, counted))
    unmatched = [n for n in alias_tensors if n not in counted_tensors] + [
        n for n in counted_tensors if n not in alias_tensors
    ]
    if unmatched:
        owner = alias if unmatched[0] in alias_tensors else counted
        message = f"cannot tie `{alias}` and `{counted}`: only `{owner}` has a tensor `{unmatched[0]}`"
        program.error("tie-shape", message, unit.span(node))
        return
    for name, leaf in alias_tensors.items():
        names = f"{alias}.{name}", f"{counted}.{name}"
        if not _check_types(program, names[0], leaf, names[1], counted_tensors[name], unit, node):
            return
        yield (names[0], leaf), (names[1], counted_tensors[name])


def _stored_tensors(module: Module, frozen: bool) -> dict[str, LocatedTensor]:
    return {name: leaf for name, leaf in iter_tensors(module, frozen=frozen) if leaf.weight.kind != "const"}


def _check_types(
    program: Program,
    alias: str,
    alias_tensor: LocatedTensor,
    counted: str,
    counted_tensor: LocatedTensor,
    unit: Unit,
    node: tree.Tie,
) -> bool:
    a, b = alias_tensor.weight, counted_tensor.weight
    if a.type == b.type and a.kind == b.kind:
        return True
    difference = (
        f"{list(a.shape)} and {list(b.shape)}"
        if a.shape != b.shape
        else f"{a.type.dtype} {a.kind} and {b.type.dtype} {b.kind}"
    )
    message = f"cannot tie `{alias}` and `{counted}`: they are {difference}"
    program.error("tie-shape", message, unit.span(node))
    return False
