"""Ties of tensors, or of all tensors in two subtrees."""

from __future__ import annotations

from collections.abc import Iterator

from archspec.compiler.evaluate.program import Program
from archspec.compiler.resolve.unit import Unit
from archspec.core.diagnostics import suggest
from archspec.ir.module import LocatedTensor, Module, canonical_name, find_member, is_frozen, iter_tensors
from archspec.language.syntax import tree


def close_aliases(module: Module) -> None:
    """Map every alias directly to the counted name."""
    for alias in module.aliases:
        module.aliases[alias] = canonical_name(module, alias)


def tie(program: Program, module: Module, alias: str, counted: str, unit: Unit, node: tree.Tie) -> None:
    """Make `alias` another name of `counted` in `module`, or report why that is impossible."""
    pairs = list(_pairs(program, module, alias, counted, unit, node))
    tied_inside = [pair for pair in pairs if pair[0][0] in module.aliases]
    for (name, leaf), (other, _) in pairs:
        if name in module.aliases:
            continue
        if canonical_name(module, other) == name:
            _find_cycle(program, name, other, unit, node)
            continue
        module.aliases[name] = other
        if leaf.weight.kind == "param":
            module.total -= leaf.weight.size
            module.frozen -= leaf.weight.size if leaf.frozen else 0
    for (name, _), (other, _) in tied_inside:
        if canonical_name(module, name) != canonical_name(module, other):
            first = module.aliases[name]
            message = f"`{name}` is already tied to `{first}`"
            program.error("tie-twice", message, unit.span(node.alias), help=f"tie `{first}` instead")
        elif len(pairs) == 1:
            _find_cycle(program, name, other, unit, node)


def _find_cycle(program: Program, alias: str, counted: str, unit: Unit, node: tree.Tie) -> None:
    program.error(
        "tie-circle",
        f"`{alias}` and `{counted}` are already the same tensor"
        if alias != counted
        else f"cannot tie `{alias}` to itself",
        unit.span(node),
        help="tie every other name of a shared tensor to the one that is counted",
    )


def _pairs(
    program: Program, module: Module, alias: str, counted: str, unit: Unit, node: tree.Tie
) -> Iterator[tuple[tuple[str, LocatedTensor], tuple[str, LocatedTensor]]]:
    one, other = find_member(module, alias), find_member(module, counted)
    for found, address, place in ((one, alias, node.alias), (other, counted, node.counted)):
        if found is None:
            if not (program.is_incomplete(module, address) or unit.broken & set(address.split("."))):
                near = suggest(address, [name for name, _ in _some_leaves(module)])
                program.error(
                    "unknown-address", f"cannot tie `{address}`: nothing is declared there", unit.span(place), help=near
                )
            return
    for found, address, place in ((one, alias, node.alias), (other, counted, node.counted)):
        if isinstance(found, LocatedTensor) and found.weight.kind == "const":
            message = f"cannot tie `{address}`: a `const` is not stored"
            program.error("tie-shape", message, unit.span(place), help="declare it as a `buffer`, or remove the tie")
            return
    if isinstance(one, LocatedTensor) and isinstance(other, LocatedTensor):
        if _same(program, alias, one, counted, other, unit, node):
            yield (alias, one), (counted, other)
        return
    if isinstance(one, LocatedTensor) or isinstance(other, LocatedTensor):
        tensor, module_ = (alias, counted) if isinstance(one, LocatedTensor) else (counted, alias)
        message = f"cannot tie the tensor `{tensor}` and the layer or block `{module_}`"
        program.error("tie-shape", message, unit.span(node), help=f"name a tensor, as in `{module_}.weight`")
        return
    assert isinstance(one, Module) and isinstance(other, Module)
    ours = _stored_tensor(one, is_frozen(module, alias))
    theirs = _stored_tensor(other, is_frozen(module, counted))
    only = [n for n in ours if n not in theirs] + [n for n in theirs if n not in ours]
    if only:
        owner = alias if only[0] in ours else counted
        message = f"cannot tie `{alias}` and `{counted}`: only `{owner}` has a tensor `{only[0]}`"
        program.error("tie-shape", message, unit.span(node))
        return
    for name, leaf in ours.items():
        pair = f"{alias}.{name}", f"{counted}.{name}"
        if not _same(program, pair[0], leaf, pair[1], theirs[name], unit, node):
            return
        yield (pair[0], leaf), (pair[1], theirs[name])


def _stored_tensor(module: Module, frozen: bool) -> dict[str, LocatedTensor]:
    return {name: leaf for name, leaf in iter_tensors(module, frozen=frozen) if leaf.weight.kind != "const"}


def _same(
    program: Program, alias: str, one: LocatedTensor, counted: str, other: LocatedTensor, unit: Unit, node: tree.Tie
) -> bool:
    if one.weight.type == other.weight.type and one.weight.kind == other.weight.kind:
        return True
    difference = (
        f"{list(one.weight.shape)} and {list(other.weight.shape)}"
        if one.weight.shape != other.weight.shape
        else f"{one.weight.type.dtype} {one.weight.kind} and {other.weight.type.dtype} {other.weight.kind}"
    )
    message = f"cannot tie `{alias}` and `{counted}`: they are {difference}"
    program.error("tie-shape", message, unit.span(node))
    return False


def _some_leaves(module: Module) -> Iterator[tuple[str, LocatedTensor]]:
    for count, pair in enumerate(iter_tensors(module)):
        if count == 2000:
            return
        yield pair
