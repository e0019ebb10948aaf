"""The report of `archspec cost`: the tree, the totals, the memory, and the JSON document."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

from archspec.analysis.cost import decoding_report, time_report, training_report
from archspec.analysis.cost.cost import NO_OPERATIONS, Cost, ModuleCost, OperationCounts, add_scaled
from archspec.analysis.cost.dtypes import byte_count
from archspec.analysis.cost.memory import Activations, StoredBytes
from archspec.core.addresses import join, parent
from archspec.core.addresses.tree import AddressTree, Node
from archspec.core.algebra import weighted_sum
from archspec.core.record import Record
from archspec.core.reports.documents import Document, finite
from archspec.core.reports.page import Block, Page
from archspec.core.reports.tables import Column, Row, View, columns
from archspec.core.reports.text import active, beside, flops, size, title
from archspec.ir.work import Quantity

# The tree of addresses: equal numbered components are shown once, the products of attention and of experts separately.

SCORES, MIX, EXPERTS = "(scores)", "(mix)", "(experts)"
"""The last segments of the rows of products that are shown apart, which cannot occur in an address."""


class CostRow(Record):
    """One row of the tree: `level`, `label`, `address` and `times` are as in `addresses.tree.TreeRow`.

    `work`, `parameters` and `trainable` are totals over all repetitions, with each tensor counted once. The component
    is applied `applied` times in each repetition, its parent `parent_applied` times.
    """

    level: int
    label: str
    address: str
    type: str
    times: int
    applied: int
    parent_applied: int
    work: OperationCounts
    parameters: int
    trainable: int


class _NodeSum(Record):
    work: OperationCounts
    parameters: int
    trainable: int


def tree(cost: Cost, depth: int | None = None, *, fold: bool = True) -> list[CostRow]:
    """Return the rows of the tree: the model, then its components.

    `depth` limits the nesting; without `fold`, each component has a separate row.
    """
    addresses = _build_tree(cost)
    addresses.compute_sums(_compute_sum, fold)
    result: list[CostRow] = []
    applied = [1]
    for row in addresses.rows(depth):
        node, number = row.node, row.times * row.copies
        del applied[row.level + 1 :]
        parent_applied = applied[-1]
        applied.append(node.own[0].applied if node.own else parent_applied)
        work = add_scaled([(node.total.work, number)]) if number > 1 else node.total.work
        result.append(
            CostRow(
                row.level,
                row.label,
                row.address,
                node.type,
                row.times,
                applied[-1],
                parent_applied,
                work,
                node.total.parameters * number,
                node.total.trainable * number,
            )
        )
    return result


def _build_tree(cost: Cost) -> AddressTree[ModuleCost, _NodeSum]:
    """Build the tree of all modules; the products of attention and of experts follow the modules that contain them.

    The experts of a module without others inside it have no separate row.
    """
    addresses: AddressTree[ModuleCost, _NodeSum] = AddressTree(_NodeSum(NO_OPERATIONS, 0, 0))
    containers = {parent(module.address) for module in cost.modules}
    for module in cost.modules:
        _add_module(addresses, module._replace(own=_subtract_parts(module.own, module.address in containers)))
    for module in cost.modules:
        own = module.own
        experts = own.expert_macs if module.address in containers else 0
        for segment, type, work in (
            (SCORES, "matmul", OperationCounts(own.score_macs, score_macs=own.score_macs)),
            (MIX, "matmul", OperationCounts(own.mix_macs, mix_macs=own.mix_macs)),
            (EXPERTS, "routed experts", OperationCounts(experts, expert_macs=experts)),
        ):
            if work.macs:
                address = join(module.address, segment)
                _add_module(addresses, ModuleCost(address, type, module.applied, work, parameters=0, trainable=0))
    return addresses


def _subtract_parts(counts: OperationCounts, has_experts_apart: bool) -> OperationCounts:
    """Return counts without the products that have rows of their own."""
    experts = counts.expert_macs if has_experts_apart else 0
    if not (counts.score_macs or counts.mix_macs or experts):
        return counts
    macs = weighted_sum([(counts.macs, 1), (counts.score_macs, -1), (counts.mix_macs, -1), (experts, -1)])
    return OperationCounts(macs, elementwise=counts.elementwise)


def _add_module(addresses: AddressTree[ModuleCost, _NodeSum], module: ModuleCost) -> None:
    node = addresses.get_or_create(module.address)
    node.own.append(module)
    node.type = module.type


def _compute_sum(node: Node[ModuleCost, _NodeSum]) -> Hashable:
    parts = [(child.total, child.times) for child in node.children.values()]
    parts += [(_NodeSum(module.own, module.parameters, module.trainable), 1) for module in node.own]
    node.total = _NodeSum(
        add_scaled([(part.work, times) for part, times in parts]),
        sum(part.parameters * times for part, times in parts),
        sum(part.trainable * times for part, times in parts),
    )
    return tuple(module[2:] for module in node.own)


def contents(cost: Cost) -> Document:
    """Return the document of the JSON and YAML output; values in symbolic dimensions are formulas as text."""
    table, memory, activations = cost.table, cost.memory, cost.activations
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
        "placed": [_format_amount(number) for number in cost.placed] or None,
        "work": _format_amounts(cost.work, ("macs", "flops", "score_flops", "mix_flops", "elementwise")),
        "memory": {
            "weights": memory.weights,
            "buffers": memory.buffers,
            "stored": _stored_entry(cost.stored),
            "activations": activations and activations._asdict() | {"bytes": _format_amount(activations.bytes)},
            "training": [scheme._asdict() | {"total": scheme.total} for scheme in memory.schemes],
        },
        "decoding": cost.decoding and decoding_report.contents(cost.decoding),
        "training": cost.training and training_report.contents(cost.training),
        "time": cost.time and time_report.contents(cost.time),
        "rows": list(_module_rows(cost).rows),
    }


def _stored_entry(stored: StoredBytes | None) -> Document | None:
    return None if stored is None else {**stored._asdict(), "total": stored.total or None}


def rows(cost: Cost) -> View:
    """Return the rows of the csv output: one per module, part of a cache, or way of counting a training step."""
    if cost.training is not None:
        return training_report.rows(cost.training)
    return _module_rows(cost) if cost.decoding is None else decoding_report.rows(cost.decoding)


def _module_rows(cost: Cost) -> View:
    dtype = cost.memory.dtype
    module_rows: list[Row] = [
        {
            "address": line.address,
            "type": line.type,
            "applied": line.applied,
            **_format_amounts(line.work, ("macs", "flops", "elementwise")),
            "weights": byte_count(line.parameters, dtype),
            "gradients": byte_count(line.trainable, dtype) if cost.memory.schemes else None,
        }
        for line in tree(cost, cost.depth, fold=False)
    ]
    return View(columns(*module_rows[0]), module_rows)


def _format_amounts(work: OperationCounts, names: Iterable[str], digits: str = "") -> dict[str, int | str]:
    return {name: _format_amount(getattr(work, name), digits) for name in names}


def _format_amount(amount: Quantity, digits: str = "") -> int | str:
    return amount if isinstance(amount, int) else f"{amount:{digits}}"


# Pages ----------------------------------------------------------------------------------------------------------------


def page(cost: Cost, format: str = "table") -> Page:
    """Return the report. At depth 0, it contains only the totals."""
    time: list[Block] = [] if cost.time is None else [time_report.time_view(cost.time), time_report.summary(cost.time)]
    if cost.decoding is not None:
        heading = f"{title(cost.model, cost.table.overrides)}, a decoding step"
        totals = [*decoding_report.summary(cost.decoding, cost.memory.dtype), *cost.table.notes]
        return Page(heading, [decoding_report.cache(cost.decoding), totals, *time])
    if cost.training is not None:
        heading = f"{title(cost.model, cost.table.overrides)}, a training step {_describe_sizes(cost)}"
        totals = [*training_report.summary(cost.training), *cost.table.notes]
        return Page(heading, [training_report.flops_view(cost.training), totals, *time])
    blocks: list[Block] = [_summary(cost), _memory_view(cost), *time]
    if cost.depth != 0:
        blocks.insert(0, _tree_view(cost, tree(cost, cost.depth), full_addresses=format == "markdown"))
    return Page(f"{title(cost.model, cost.table.overrides)}, {_describe_sizes(cost)}", blocks)


def _describe_sizes(cost: Cost) -> str:
    set_ = [f"{name} = {size}" for name, size in cost.dims.items() if size is not None]
    symbolic = [name for name, size in cost.dims.items() if size is None]
    words = [f"at {', '.join(set_)}"] * bool(set_) + [f"{', '.join(symbolic)} symbolic"] * bool(symbolic)
    return "; ".join(words) or "all sizes fixed"


def _tree_view(cost: Cost, lines: list[CostRow], *, full_addresses: bool) -> View:
    """Return the human-readable tree."""
    macs = cost.work.macs

    def row(line: CostRow) -> Row:
        work = line.work
        return {
            "address": line.address if full_addresses else "  " * line.level + line.label,
            "times": f"{line.times} x" if line.times > 1 else "",
            "type": line.type,
            **_format_amounts(work, ("macs", "flops", "elementwise"), ","),
            "share": work.macs / macs if isinstance(work.macs, int) and isinstance(macs, int) and macs else None,
            "weights": byte_count(line.parameters, cost.memory.dtype),
            "notes": "" if line.applied == line.parent_applied else f"applied {line.applied} x",
        }

    shown_columns = [
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
    if not isinstance(macs, int):  # formulas are long, and MACs follow from FLOPs
        shown_columns = [column for column in shown_columns if column.key not in ("macs", "share")]
    return View(tuple(shown_columns), [row(line) for line in lines])


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
    if cost.placed:
        numbers = " and ".join([f"{number:,}" for number in cost.placed])
        lines.append(f"images or sounds take the places of {numbers} tokens{_excess(cost)}")
    if cost.stored is not None:
        lines.append(_stored_line(cost.stored))
    if cost.table.active is not None:
        lines.append(active(*cost.table.active[:3]))
    activations = cost.activations
    if activations is not None and not isinstance(activations.bytes, int):
        where = ", ".join(f"{name} >= {size}" for name, size in activations.least.items())
        lines.append(f"{activations.bytes:,} bytes of {_describe_activations(activations)}, where {where}")
    if activations is not None:
        lines.append("activations: exact for the generated module on a CPU, assumed for other modules and devices")
    return [*lines, *cost.table.notes]


def _excess(cost: Cost) -> str:
    """Describe texts that are too short for the vectors that are put into them."""
    tokens = math.prod([cost.dims.get(name) or 0 for name in ("batch", "seq")])
    placed = [number for number in cost.placed if isinstance(number, int)]
    return f", but the text has {tokens:,}" if tokens and sum(placed) > tokens else ""


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
    "none": "causal attention: none found, so --causal-half has no effect",
}


def _describe_activations(activations: Activations) -> str:
    return f"activations saved for training, {activations.attention} attention"


def _memory_view(cost: Cost) -> View:
    """Return the table of memory: weights, gradients and optimizer state."""
    memory = cost.memory
    blank = {"weights": None, "gradients": None, "optimizer": None, "holds": ""}
    memory_rows = [blank | {"to": f"weights, {memory.dtype}", "weights": memory.weights, "total": memory.weights}]
    if memory.buffers:
        memory_rows.append(blank | {"to": "buffers", "total": memory.buffers})
    if cost.stored is not None and not cost.stored.unknown:
        memory_rows.append(blank | {"to": f"weights as stored, {cost.stored.method}", "total": cost.stored.total})
    for scheme in memory.schemes:
        memory_rows.append(scheme._asdict() | {"to": f"training, {scheme.name}", "total": scheme.total})
    if cost.activations is not None and isinstance(cost.activations.bytes, int):
        memory_rows.append(blank | {"to": _describe_activations(cost.activations), "total": cost.activations.bytes})
    shown_columns = [
        Column("to", "bytes", fit="wrap"),
        Column("weights", "weights", drop=2),
        Column("gradients", "gradients", drop=3),
        Column("optimizer", "optimizer", drop=4),
        Column("total", "total"),
        Column("size", "", style="unit"),
        Column("holds", "optimizer state", fit="wrap", drop=1),
    ]
    return View(shown_columns, [row | {"size": size(row["total"])} for row in memory_rows])
