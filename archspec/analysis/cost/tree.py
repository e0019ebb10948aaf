"""A model's costs as a tree of addresses; equal numbered components are shown once, attention's products separately."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from archspec.analysis.cost.cost import NO_OPERATIONS, Cost, ModuleCost, OperationCounts, add_scaled
from archspec.core.addresses import join
from archspec.core.addresses.tree import AddressTree, Node
from archspec.core.algebra import weighted_sum

SCORES, MIX = "(scores)", "(mix)"
"""The last segment of the rows of attention's products, which cannot occur in an address."""


class CostRow(NamedTuple):
    """One row of the tree: `level`, `label`, `address` and `times` are as in `addresses.tree.TreeRow`.

    `work` is the work of the component, in all repetitions; so are `parameters` and `trainable`, each tensor counted
    once. The component is applied `applied` times in each repetition, its parent `around` times.
    """

    level: int
    label: str
    address: str
    type: str
    times: int
    applied: int
    around: int
    work: OperationCounts
    parameters: int
    trainable: int


class _Sum(NamedTuple):
    work: OperationCounts
    parameters: int
    trainable: int


def tree(cost: Cost, depth: int | None = None, *, fold: bool = True) -> list[CostRow]:
    """Return the rows of the tree: the whole model, then its components.

    `depth` limits the nesting; without `fold`, each component has a separate row.
    """
    grown = _grow(cost)
    grown.compute_sums(_add, fold)
    found: list[CostRow] = []
    applied = [1]
    for row in grown.rows(depth):
        node, number = row.node, row.times * row.copies
        del applied[row.level + 1 :]
        around = applied[-1]
        applied.append(node.own[0].applied if node.own else around)
        work = add_scaled([(node.each.work, number)]) if number > 1 else node.each.work
        found.append(
            CostRow(
                row.level,
                row.label,
                row.address,
                node.type,
                row.times,
                applied[-1],
                around,
                work,
                node.each.parameters * number,
                node.each.trainable * number,
            )
        )
    return found


def _grow(cost: Cost) -> AddressTree[ModuleCost, _Sum]:
    """Build the tree of all modules; attention's products follow the modules that contain them."""
    grown: AddressTree[ModuleCost, _Sum] = AddressTree(_Sum(NO_OPERATIONS, 0, 0))
    for module in cost.modules:
        _put(grown, module._replace(own=_without_attention(module.own)))
    for module in cost.modules:
        scores, mixes = module.own.score_macs, module.own.mix_macs
        for segment, work in (
            (SCORES, OperationCounts(scores, score_macs=scores)),
            (MIX, OperationCounts(mixes, mix_macs=mixes)),
        ):
            if work.macs:
                address = join(module.address, segment)
                _put(grown, ModuleCost(address, "matmul", module.applied, work, parameters=0, trainable=0))
    return grown


def _without_attention(own: OperationCounts) -> OperationCounts:
    if not (own.score_macs or own.mix_macs):
        return own
    macs = weighted_sum([(own.macs, 1), (own.score_macs, -1), (own.mix_macs, -1)])
    return OperationCounts(macs, elementwise=own.elementwise)


def _put(grown: AddressTree[ModuleCost, _Sum], module: ModuleCost) -> None:
    node = grown.at(module.address)
    node.own.append(module)
    node.type = module.type


def _add(node: Node[ModuleCost, _Sum]) -> Hashable:
    parts = [(child.each, child.times) for child in node.children.values()]
    parts += [(_Sum(module.own, module.parameters, module.trainable), 1) for module in node.own]
    node.each = _Sum(
        add_scaled([(part.work, times) for part, times in parts]),
        sum(part.parameters * times for part, times in parts),
        sum(part.trainable * times for part, times in parts),
    )
    return tuple(module[2:] for module in node.own)
