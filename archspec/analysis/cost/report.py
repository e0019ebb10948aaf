"""The report of `archspec cost`: the tree, the totals, the memory, and the JSON document."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from archspec.analysis.cost import decoding_report
from archspec.analysis.cost.cost import NO_OPERATIONS, Cost, ModuleCost, OperationCounts, add_scaled
from archspec.analysis.cost.memory import Activations, StoredBytes, byte_count
from archspec.core.addresses import join
from archspec.core.addresses.tree import AddressTree, Node
from archspec.core.algebra import weighted_sum
from archspec.core.reports.documents import Document, finite
from archspec.core.reports.page import Block, Page
from archspec.core.reports.tables import Column, Row, View, columns
from archspec.core.reports.text import active, beside, flops, size, title
from archspec.ir.work import Quantity

# A model's costs as a tree of addresses; equal numbered components are shown once, attention's products separately.

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


def contents(cost: Cost) -> Document:
    """Return the document of the JSON and YAML output; values in symbolic dimensions are formulas, as text."""
    table, memory, kept = cost.table, cost.memory, cost.activations
    return {
        "format": 1,
        "model": cost.model,
        "hyperparameters": finite(table.hyperparameters),
        "overrides": finite(table.overrides),
        "dims": cost.dims,
        "dtype": memory.dtype,
        "flops_per_mac": 2,
        "causal": cost.causal or None,
        "active": table.active and table.active.to_dict(),
        "work": _amounts(cost.work, ("macs", "flops", "score_flops", "mix_flops", "elementwise")),
        "memory": {
            "weights": memory.weights,
            "buffers": memory.buffers,
            "stored": _stored(cost.stored),
            "activations": kept and kept._asdict() | {"bytes": _plain(kept.bytes)},
            "training": [scheme._asdict() | {"total": scheme.total} for scheme in memory.schemes],
        },
        "decoding": cost.decoding and decoding_report.contents(cost.decoding),
        "rows": list(_module_rows(cost).rows),
    }


def _stored(stored: StoredBytes | None) -> Document | None:
    return None if stored is None else {**stored._asdict(), "total": stored.total or None}


def rows(cost: Cost) -> View:
    """Return the rows of the csv output: one for each module, or for each part of the cache of a decoding step."""
    return _module_rows(cost) if cost.decoding is None else decoding_report.rows(cost.decoding)


def _module_rows(cost: Cost) -> View:
    dtype = cost.memory.dtype
    found: list[Row] = [
        {
            "address": line.address,
            "type": line.type,
            "applied": line.applied,
            **_amounts(line.work, ("macs", "flops", "elementwise")),
            "weights": byte_count(line.parameters, dtype),
            "gradients": byte_count(line.trainable, dtype) if cost.memory.schemes else None,
        }
        for line in tree(cost, cost.depth, fold=False)
    ]
    return View(columns(*found[0]), found)


def _amounts(work: OperationCounts, names: Iterable[str], digits: str = "") -> dict[str, int | str]:
    return {name: _plain(getattr(work, name), digits) for name in names}


def _plain(amount: Quantity, digits: str = "") -> int | str:
    return amount if isinstance(amount, int) else f"{amount:{digits}}"


# Pages ----------------------------------------------------------------------------------------------------------------


def page(cost: Cost, format: str = "table") -> Page:
    """Return the report. At depth 0, it consists of the totals."""
    if cost.decoding is not None:
        heading = f"{title(cost.model, cost.table.overrides)}, a decoding step"
        totals = decoding_report.summary(cost.decoding, cost.memory.dtype)
        return Page(heading, [decoding_report.cache(cost.decoding), totals])
    blocks: list[Block] = [_summary(cost), _memory(cost)]
    if cost.depth != 0:
        blocks.insert(0, _tree(cost, tree(cost, cost.depth), whole_addresses=format == "markdown"))
    return Page(f"{title(cost.model, cost.table.overrides)}, {_sizes(cost)}", blocks)


def _sizes(cost: Cost) -> str:
    set_ = [f"{name} = {size}" for name, size in cost.dims.items() if size is not None]
    left = [name for name, size in cost.dims.items() if size is None]
    words = [f"at {', '.join(set_)}"] * bool(set_) + [f"{', '.join(left)} symbolic"] * bool(left)
    return "; ".join(words) or "all sizes fixed"


def _tree(cost: Cost, lines: list[CostRow], *, whole_addresses: bool) -> View:
    """Return the human-readable tree."""
    macs = cost.work.macs

    def row(line: CostRow) -> Row:
        work = line.work
        return {
            "address": line.address if whole_addresses else "  " * line.level + line.label,
            "times": f"{line.times} x" if line.times > 1 else "",
            "type": line.type,
            **_amounts(work, ("macs", "flops", "elementwise"), ","),
            "share": work.macs / macs if isinstance(work.macs, int) and isinstance(macs, int) and macs else None,
            "weights": byte_count(line.parameters, cost.memory.dtype),
            "notes": "" if line.applied == line.around else f"applied {line.applied} x",
        }

    shown = [
        Column("address", "address", "(the model)", fit="shorten"),
        Column("times", ""),
        Column("type", "type", fit="shorten", drop=3),
        Column("macs", "MACs", drop=1),
        Column("flops", "FLOPs", fit="" if isinstance(macs, int) else "wrap"),
        Column("share", "share", drop=4, style="dim"),
        Column("elementwise", "elementwise", fit="" if isinstance(macs, int) else "wrap", drop=5),
        Column("weights", "weight bytes", drop=2),
        Column("notes", "", style="note"),
    ]
    if not isinstance(macs, int):  # formulas are long, and MACs are half the FLOPs
        shown = [column for column in shown if column.key not in ("macs", "share")]
    return View(tuple(shown), [row(line) for line in lines])


def _summary(cost: Cost) -> list[str]:
    """Describe the figures, one fact per line."""
    work = cost.work

    lines = [
        f"{work.flops:,} FLOPs{beside(flops(work.flops))} in matrix products, 2 per multiply-accumulate (MAC)",
        f"attention: {work.score_flops:,} FLOPs in score products (queries by keys), "
        f"{work.mix_flops:,} in mix products (probabilities by values)",
        f"{work.elementwise:,} elementwise operations, counted per element, not included in the FLOPs",
        "each row includes the modules inside it; " * (cost.depth != 0) + "all optional inputs are given",
    ]
    if cost.causal:
        lines.insert(2, _CAUSAL[cost.causal])
    if not work.score_macs and not work.mix_macs:
        del lines[1]
    if cost.stored is not None:
        lines.append(_stored_line(cost.stored))
    if cost.table.active is not None:
        lines.append(active(*cost.table.active[:3]))
    kept = cost.activations
    if kept is not None and not isinstance(kept.bytes, int):
        where = ", ".join(f"{name} >= {size}" for name, size in kept.least.items())
        lines.append(f"{kept.bytes:,} bytes of {_kept(kept)}, where {where}")
    return lines


def _stored_line(stored: StoredBytes) -> str:
    """Describe the bytes of quantized weights."""
    if stored.unknown:
        return f"quantized ({stored.method}): bytes as stored are not known, because {stored.unknown}"
    return (
        f"quantized ({stored.method}): {stored.converted:,} parameters in {stored.weights:,} bytes, {stored.scales:,} "
        f"bytes of scales and zero points, {stored.others:,} bytes of other parameters in {stored.dtype}"
    )


_CAUSAL = {
    "whole": "causal attention: products counted in full, as they are computed; --causal-half counts them as half",
    "half": "causal attention: products counted as half (--causal-half)",
    "none": "causal attention: none found, so that --causal-half changes nothing",
}


def _kept(activations: Activations) -> str:
    return f"activations saved for training, {activations.attention} attention"


def _memory(cost: Cost) -> View:
    """Return the table of memory: weights, gradients and optimizer state."""
    memory = cost.memory
    blank = {"weights": None, "gradients": None, "optimizer": None, "holds": ""}
    found = [blank | {"to": f"weights, {memory.dtype}", "weights": memory.weights, "total": memory.weights}]
    if memory.buffers:
        found.append(blank | {"to": "buffers", "total": memory.buffers})
    if cost.stored is not None and not cost.stored.unknown:
        found.append(blank | {"to": f"weights as stored, {cost.stored.method}", "total": cost.stored.total})
    for scheme in memory.schemes:
        found.append(scheme._asdict() | {"to": f"training, {scheme.name}", "total": scheme.total})
    if cost.activations is not None and isinstance(cost.activations.bytes, int):
        found.append(blank | {"to": _kept(cost.activations), "total": cost.activations.bytes})
    shown = [
        Column("to", "bytes", fit="wrap"),
        Column("weights", "weights", drop=2),
        Column("gradients", "gradients", drop=3),
        Column("optimizer", "optimizer", drop=4),
        Column("total", "total"),
        Column("size", "", style="unit"),
        Column("holds", "optimizer state", fit="wrap", drop=1),
    ]
    return View(shown, [row | {"size": size(row["total"])} for row in found])
