"""Pictures of the two models of a difference side by side, with added, removed, moved and changed parts marked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from archspec.analysis.diff.api import Difference
from archspec.analysis.diff.operations import OperationChanges
from archspec.analysis.diff.structure import Repetition, StoredTensor, TensorChange, repetition_prefixes, stored_tensors
from archspec.core.addresses import ANY_INDEX, address_pattern, join, parent
from archspec.core.reports.tables import shape
from archspec.core.reports.text import titles
from archspec.drawing.api import build_plan, find_open_nodes
from archspec.drawing.plan.correspondence import Correspondence, key_from
from archspec.drawing.plan.labels import annotate, setting
from archspec.drawing.plan.plan import Node, Plan
from archspec.drawing.svg.marks import Kind, Mark
from archspec.drawing.svg.panels import Panel, side_by_side
from archspec.drawing.svg.theme import THEMES
from archspec.ir.module import gc_paused
from archspec.ir.table import Table
from archspec.pipeline.model import Model

_KEY: list[tuple[Kind | None, str]] = [
    ("removed", "removed: only in A"),
    ("added", "added: only in B"),
    ("moved", "moved: different inputs and different readers"),
    ("changed", "changed, or contains changes"),
    (None, "A: the value in A"),
]

MAX_REASONS = 2
"""Maximum number of reasons for a difference that are written into a box."""

MAX_TOOLTIP_LENGTH = 400
"""Maximum length of a tooltip."""


def picture(difference: Difference, a: Model, b: Model, theme: str = "light") -> str:
    """Return the pictures of two models side by side, as SVG."""
    with gc_paused():
        panels, correspondence = build_panels(difference, a, b)
        return side_by_side(panels, correspondence, _KEY, THEMES[theme])


def build_panels(difference: Difference, a: Model, b: Model) -> tuple[list[Panel], Correspondence]:
    """Return the marked plans of two models, and the correspondence of their nodes."""
    plans, names = (build_plan(a), build_plan(b)), _Names(difference)
    correspondence = Correspondence(plans, names.key_of)
    texts = titles((table.model, table.overrides) for table in (difference.before, difference.after))
    panels = [
        Panel(
            f"{'AB'[side]}: {text}",
            plan,
            find_open_nodes(plan, "layer", None),
            _Marking(plan, side, difference, names).marks(correspondence),
        )
        for side, (plan, text) in enumerate(zip(plans, texts, strict=True))
    ]
    return panels, correspondence


class _Names:
    """Conversion between the names of A, the names of B, and the addresses of changes of operations."""

    def __init__(self, difference: Difference) -> None:
        self.added, self.removed = difference.prefix
        self._names = [_tensor_names(difference.before), _tensor_names(difference.after)]

    def key_of(self, side: int, node: Node) -> Hashable:
        """Return the pattern of the name of a node in B."""
        names = {
            address: ("address", address_pattern(self._in_b(side, address))) for address in (node.addresses or ())[:1]
        }
        return key_from(names, node, address_pattern)

    def _in_b(self, side: int, name: str) -> str:
        return self.added + name.removeprefix(self.removed) if side == 0 else name

    def tensor_name(self, side: int, name: str) -> str:
        """Convert B's name of a tensor to the name in a model."""
        if side == 1:
            return name
        plain = name.removeprefix(self.added)
        return self.removed + plain if self.removed + plain in self._names[0] else plain

    def operation_address(self, side: int, address: str) -> str:
        """Convert the address of a change of operations, which has the longer prefix, to the address in a model."""
        return address.removeprefix(self.added) if side == 0 else address.removeprefix(self.removed)


def _tensor_names(table: Table) -> set[str]:
    return {*stored_tensors(table)}


class _Marking:
    """The changes at each node of one of the two models."""

    def __init__(self, plan: Plan, side: int, difference: Difference, names: _Names) -> None:
        self.plan = plan
        self.side = side
        self.difference = difference
        self.names = names
        self.changes: dict[int, dict[str, Kind]] = {}
        self.notes: dict[int, dict[str, None]] = {}
        self.reasons: dict[int, dict[str, None]] = {}
        self.tensors: dict[int, set[str]] = {}
        self.complete: set[int] = set()
        self.one_sided: Kind = "added" if side else "removed"
        self._nodes: dict[str, list[int]] = {}
        self._patterns: dict[str, list[int]] = {}
        for node in plan.nodes:
            # A layer shows the changes of its tensors.
            if node.parent is None or plan.nodes[node.parent].kind != "layer":
                for address in node.addresses or ():
                    self._nodes.setdefault(address, []).append(node.id)
                for pattern in {address_pattern(address) for address in node.addresses or ()}:
                    self._patterns.setdefault(pattern, []).append(node.id)

    def marks(self, correspondence: Correspondence) -> dict[int, Mark]:
        """Return the marks of nodes by id."""
        repetitions = self.difference.repetitions
        prefixes = tuple(repetition_prefixes(repetitions))
        for repetition in repetitions:
            self._mark_repetition(repetition)
        for change in self.difference.tensors:
            if not prefixes or not change.name.startswith(prefixes):
                self._mark_tensor(change)
        for operation in self.difference.operations:
            self._mark_operation(operation)
        self._mark_unaddressed(correspondence)
        self._combine(self.plan.nodes[0])
        marks: dict[int, Mark] = {}
        for id, kinds in self.changes.items():
            node = self.plan.nodes[id]
            kind = self._combine_kinds(node, set(kinds.values()))
            marks[id] = Mark(kind, _shorten("; ".join(kinds)))
            if self.side == 1 and kind == "changed" and node.form == "box":
                self._annotate(node, correspondence.node(1, id, 0))
        return marks

    def _annotate(self, node: Node, counterpart: Node | None) -> None:
        """Write into a changed box of B what it is in A, and why its computation differs."""
        notes = [note for note in self.notes.get(node.id, ()) if note]
        if notes:
            annotate(node, f"A: {', '.join(notes)}")
            return
        if counterpart is not None and counterpart.type == node.type:
            before, after = counterpart.hyperparameters or {}, node.hyperparameters or {}
            for name in [name for name in after if name in before and before[name] != after[name]][:MAX_REASONS]:
                earlier = setting(name, before[name])
                annotate(node, f"{setting(name, after[name])} (A: {earlier.removeprefix(f'{name} = ')})")
        if not node.differs:
            for reason in [*self.reasons.get(node.id, ())][:MAX_REASONS]:
                annotate(node, reason)

    def _combine_kinds(self, node: Node, kinds: set[Kind]) -> Kind:
        """Return the kind of several changes. A node that is added or removed in part is changed."""
        if kinds <= {"added", "removed"} and node.id not in self.complete:
            return "changed"
        return next(iter(kinds)) if len(kinds) == 1 else "changed"

    # Changes

    def _mark_repetition(self, repetition: Repetition) -> None:
        """Mark the additional repetitions in the model that has them. "times" changes mark the other."""
        if (repetition.after > repetition.before) != bool(self.side):
            return
        for number in repetition.numbers:
            name = self.names.tensor_name(self.side, join(parent(repetition.address), str(number)))
            for id in self._holders(name):
                self._record(id, f"{repetition.before} -> {repetition.after} in total", self.one_sided)
                self.tensors.setdefault(id, set()).add(name)
                if self.tensors[id] >= {*(self.plan.nodes[id].addresses or ())}:
                    self.complete.add(id)

    def _mark_tensor(self, change: TensorChange) -> None:
        name, text = self.names.tensor_name(self.side, change.name), f"{', '.join(change.kinds)} {change.name}"
        if (change.before, change.after)[self.side] is None:  # the layer may have further tensors
            for id in self._nodes.get(parent(name), ()):
                self._record(id, text, "changed")
        elif change.before is None or change.after is None:
            for id in self._holders(name):
                self._record(id, text, self.one_sided)
                self.tensors.setdefault(id, set()).add(name)
        else:
            for id in self._holders(name):
                self._record(id, text, "changed", _describe_tensor(change.before))

    def _mark_operation(self, change: OperationChanges) -> None:
        if change.kind in ("input", "output"):
            self._mark_terminal(change)
            return
        if (change.kind == "added" and self.side == 0) or (change.kind == "removed" and self.side == 1):
            return
        words = " -> ".join([change.before or "nothing", change.after or "nothing"])
        text = " ".join([part for part in (change.kind, change.what, words) if part])
        kind: Kind = change.kind if change.kind in ("added", "removed", "moved") else "changed"
        for address in change.fold.names:
            for id in self._holders(self.names.operation_address(self.side, address)):
                if not id:
                    self._mark_model(change, text)
                    continue
                self._record(id, text, kind, change.before if change.kind == "times" else "")
                if change.kind in ("computes", "reads", "returns"):
                    reason = f"{change.kind} {change.after or 'nothing'} (A: {change.before or 'nothing'})"
                    self.reasons.setdefault(id, {})[reason] = None
                if kind == self.one_sided and self._is_exact(id, address):
                    self.complete.add(id)

    def _mark_model(self, change: OperationChanges, text: str) -> None:
        """Mark the outputs that a change of the model affects: the output that it names, or else all."""
        outputs = [node for node in self.plan.nodes if node.kind == "output"]
        named = [node for node in outputs if node.title == change.what.partition(":")[0]]
        for node in named or outputs:
            if node.id not in self.changes:
                self._record(node.id, text, "changed")

    def _mark_terminal(self, change: OperationChanges) -> None:
        present = (change.before, change.after)[self.side]
        counterpart = (change.before, change.after)[1 - self.side]
        for node in self.plan.nodes:
            if node.kind == change.kind and node.title == change.what and present:
                kind: Kind = "changed" if counterpart else self.one_sided
                self._record(node.id, f"{change.kind} {change.before or 'none'} -> {change.after or 'none'}", kind)
                self.complete.add(node.id)

    def _record(self, id: int, text: str, kind: Kind, note: str = "") -> None:
        self.changes.setdefault(id, {})[text] = kind
        self.notes.setdefault(id, {})[note] = None

    def _is_exact(self, id: int, address: str) -> bool:
        side_address = self.names.operation_address(self.side, address)
        return {*(self.plan.nodes[id].addresses or ())} <= {side_address} or ANY_INDEX in side_address

    def _holders(self, name: str) -> list[int]:
        """Return the nodes at an address or at its innermost parent address with a node; else the root."""
        while name:
            holders = self._nodes.get(name) or (self._patterns.get(name) if ANY_INDEX in name else None)
            if holders:
                return holders
            name = parent(name)
        return [0]

    # Complete nodes

    def _combine(self, node: Node) -> None:
        """Find the nodes that are added or removed completely, with all their tensors."""
        children = self.plan.children(node)
        for child in children:
            self._combine(child)
        if node.tensors and node.kind in ("layer", "param"):
            count = sum(tensor.copies for tensor in node.tensors) * (node.copies if node.kind == "layer" else 1)
            if len(self.tensors.get(node.id, ())) >= count:
                self.complete.add(node.id)
        elif node.kind == "block":
            storing = [child for child in children if child.params or child.tensors]
            if storing and all(child.id in self.complete for child in storing):
                self.complete.add(node.id)
        if node.id in self.complete and node.kind == "block":
            self._absorb(node)

    def _absorb(self, node: Node) -> None:
        """Replace the changes inside a node that is added or removed completely by one change of the node."""
        for child in _iter_descendants(self.plan, node):
            self.changes.pop(child.id, None)
        self.changes[node.id] = {f"{self.one_sided} {node.name}": self.one_sided}

    def _mark_unaddressed(self, correspondence: Correspondence) -> None:
        """Mark operations without a counterpart, in the blocks whose computation differs and in the model."""
        changed_blocks = {address for change in self.difference.operations for address in self._iter_blocks(change)}
        for node in self.plan.nodes:
            if node.kind not in ("op", "fn") or correspondence.node(self.side, node.id, 1 - self.side) is not None:
                continue
            if self._enclosing_block(node) in changed_blocks:
                self._record(node.id, f"{self.one_sided} {node.title}", self.one_sided)
                self.complete.add(node.id)

    def _iter_blocks(self, change: OperationChanges) -> Iterator[int]:
        """Yield the blocks in which a change of operations is drawn: at its addresses, and their enclosing blocks."""
        for address in change.fold.names:
            for id in self._holders(self.names.operation_address(self.side, address)):
                node = self.plan.nodes[id]
                yield id
                yield self._enclosing_block(node)

    def _enclosing_block(self, node: Node) -> int:
        """Return the innermost block that encloses a node, or the root."""
        while node.parent is not None:
            node = self.plan.nodes[node.parent]
            if node.kind in ("block", "layer"):
                return node.id
        return 0


def _iter_descendants(plan: Plan, node: Node) -> Iterable[Node]:
    for child in plan.children(node):
        yield child
        yield from _iter_descendants(plan, child)


def _shorten(text: str) -> str:
    """Truncate a text to MAX_TOOLTIP_LENGTH."""
    return text if len(text) <= MAX_TOOLTIP_LENGTH else f"{text[: MAX_TOOLTIP_LENGTH - 3]}..."


def _describe_tensor(stored: StoredTensor | None) -> str:
    if stored is None:
        return ""
    words = [shape(stored.shape).replace(" x ", " \N{MULTIPLICATION SIGN} ")]
    words += ["buffer"] if stored.kind == "buffer" else [] if stored.trainable else ["frozen"]
    return ", ".join(words) + (f" = {stored.tied_to}" if stored.tied_to else "")
